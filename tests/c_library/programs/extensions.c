/* How extensions take and give: buffers that are too small, texts, bytes, JSON, what is left out, what is refused */
#include <string.h>

#include "session.h"

static char text[65536];
static size_t needed;

static void outcome_has(const char* wanted) {
  OK(tessxOutcome(text, sizeof text, &needed));
  if (!strstr(text, wanted)) {
    ++failures;
    fprintf(stderr, "%s, expected %s in it\n", text, wanted);
  }
}

int main(void) {
  Session session = begin();
  unsigned char bytes[16], found[16];
  char small[8] = "unused";
  void* device = NULL;
  tessxGraph_t graph = NULL;
  int64_t hits = -1, misses = -1;

  OK(tessxDevices(small, sizeof small, &needed)); /* too small: nothing is written */
  HOLDS(strcmp(small, "unused") == 0);
  HOLDS(needed > sizeof small);
  OK(tessxDevices(text, needed, &needed));
  HOLDS(needed == strlen(text) + 1);
  HOLDS(strncmp(text, "{\"devices\":[{\"id\":0,", 20) == 0);
  OK(tessxDevices(NULL, 0, &needed));
  INVALID(tessxDevices(text, sizeof text, NULL));
  INVALID(tessxDevices(NULL, 1, &needed));
  outcome_has("out is NULL");

  memcpy(bytes, "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16", 16);
  OK(tessMalloc(session.mesh, 16, &device));
  OK(tessxPoke(session.mesh, 1, device, bytes, 16));
  OK(tessxPeek(session.mesh, 1, device, 16, found, 16, &needed));
  HOLDS(memcmp(bytes, found, 16) == 0);
  HOLDS(needed == 16);
  INVALID(tessxPoke(session.mesh, 2, device, bytes, 16));
  INVALID(tessxPoke(session.mesh, 1, device, NULL, 16));
  INVALID(tessxPoke(session.mesh, 1, bytes, bytes, 16));
  outcome_has("\"code\": \"TESS_ERR_INVALID_VALUE\"");

  OK(tessxCacheUse(&hits, &misses));
  HOLDS(hits == 0 && misses == 0);
  INVALID(tessxCacheUse(&hits, NULL));
  INVALID(tessxSetSchedule("seeded", 3, NULL, 0)); /* there is a stream */
  OK(tessxReset());
  OK(tessxSetSchedule("fifo", TESSX_ABSENT, NULL, 1));
  INVALID(tessxSetSchedule("sometimes", TESSX_ABSENT, NULL, 0));
  INVALID(tessxSetSchedule(NULL, 1, NULL, 0));
  INVALID(tessxSetSchedule("replay", TESSX_ABSENT, "[1, 2", 0));
  outcome_has("no JSON");
  INVALID(tessxGraphInstantiate(session.stream, &graph));
  HOLDS(graph == NULL);

  INVALID(tessxLanguageVerify("module m { func f() -> tensor<1xfp32> { return x; } }", text, sizeof text, &needed));
  outcome_has("\"diagnostics\": [{");
  INVALID(tessxWspLoad("no package", text, sizeof text, &needed));
  outcome_has("\"code\": \"TRUNCATED\"");
  EXPECT(TESS_ERR_UNSUPPORTED, tessxNumericsDeclared("op.nonsuch", "fp32", "[[4]]", NULL, TESSX_ABSENT, text, sizeof text,
                                                     &needed));
  outcome_has("{\"unsupported\": {\"feature\": \"numerics.declared.op.nonsuch\"}}");
  return failures != 0;
}
