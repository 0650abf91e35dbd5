/* What the runtime says of itself to a conformance suite: its claims and its devices (tessera_ext.h). */
#include "acme.h"

#include <stdio.h>

/* Functions are evaluated in a wider format and rounded: half a unit in the last place, and a little. */
static const char hello[] =
    "{\"implementation\":{\"name\":\"acme-tessera\",\"version\":\"1.0.3\"},"
    "\"documents\":[\"runtime_abi\"],"
    "\"capabilities\":{\"c-abi\":\"enforced\",\"checked-handles\":\"enforced\",\"last-error\":\"enforced\","
    "\"rank-memory\":\"enforced\",\"reductions\":\"enforced\",\"fused-attention\":\"enforced\",\"ir-pack\":\"enforced\",\"trace-export\":\"enforced\"},"
    "\"arithmetic\":{\"level\":\"deterministic\","
    "\"trees\":{\"matmul\":\"fold\",\"sum\":\"fold\",\"all_reduce\":\"ring(1)\"},"
    "\"functions\":{\"exp\":0.51},\"subnormals\":\"kept\"}}";

tessStatus_t tessxHello(char* out, size_t capacity, size_t* needed) {
  return answer_text(out, capacity, needed, hello);
}

tessStatus_t tessxDevices(char* out, size_t capacity, size_t* needed) {
  char text[128 * DEVICES] = "{\"devices\":[";
  size_t length = 12;
  for (int id = 0; id < DEVICES; id++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%s{\"id\":%d,\"target\":\"%s\",\"memory_bytes\":%zu}",
                               id ? "," : "", id, TARGET, DEVICE_MEMORY);
  snprintf(text + length, sizeof text - length, "]}");
  return answer_text(out, capacity, needed, text);
}
