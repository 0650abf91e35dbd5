/*
 * A kernel library behind the Tessera conformance suite: add the operations that yours has.
 *
 * Names and attributes of operations: docs/protocol.md of the project, under `numerics`.
 */
#include "protocol.h"

static const char HELLO[] =
    "{\"protocol\":{\"minimum\":1,\"maximum\":1},"
    "\"implementation\":{\"name\":\"my-implementation\",\"version\":\"0.1\"},"
    "\"documents\":[\"language_ir\"],"
    "\"capabilities\":{\"operation-access\":\"enforced\"}," /* claim only what works */
    "\"parallel\":true," /* several processes may answer at once; take it away where they share a device */
    "\"arithmetic\":{\"level\":\"strict\"}}";

static float add(float a, float b) { return a + b; }
static float multiply(float a, float b) { return a * b; }

static const struct {
  const char* name;
  float (*compute)(float, float);
} ELEMENTWISE[] = {{"add", add}, {"multiply", multiply}};

static void evaluate(const char* name, float (*compute)(float, float), const Json* inputs) {
  Tensor a = read_tensor(inputs->first), b = read_tensor(inputs->first->next);
  if (strcmp(a.dtype, "fp32") || strcmp(b.dtype, "fp32") || !same_shape(&a, &b)) {
    print_unsupported(name);
    return;
  }
  float *x = (float*)a.data, *y = (float*)b.data; /* the machine is little-endian, as the bytes are */
  for (size_t i = 0; i < a.bytes / sizeof *x; ++i) x[i] = compute(x[i], y[i]);
  printf("{\"returned\":{\"outputs\":[");
  print_tensor(&a);
  printf("]}}");
}

static bool answer(const char* method, const Json* params) {
  if (strcmp(method, "numerics.evaluate")) return false;
  const char* operation = text_of(params, "operation");
  const Json* inputs = member(params, "inputs");
  for (size_t i = 0; i < sizeof ELEMENTWISE / sizeof *ELEMENTWISE; ++i) {
    if (!strcmp(operation, ELEMENTWISE[i].name) && inputs && inputs->count == 2) {
      evaluate(operation, ELEMENTWISE[i].compute, inputs);
      return true;
    }
  }
  print_unsupported(operation);
  return true;
}

int main(void) { return serve(HELLO, answer); }
