/* Calls that fail, and an outcome of the last of them that says more than its status, or another. */
#include <stdint.h>
#include <string.h>

typedef int tessStatus_t;

static const char* last;

static tessStatus_t fail(tessStatus_t status, const char* outcome) {
  last = outcome;
  return status;
}

/* What it is to fail with is its signature. */
tessStatus_t tessxParameterLayout(const char* signature, char* out, size_t capacity, size_t* needed) {
  (void)out, (void)capacity, (void)needed;
  if (strcmp(signature, "types") == 0)
    return fail(1,
                "{\"rejected\": {\"code\": \"types\", \"phase\": \"verify\", \"message\": \"no\", \"diagnostics\": "
                "[{\"category\": \"types\", \"message\": \"no\"}]}}");
  if (strcmp(signature, "unsupported") == 0) return fail(6, "{\"unsupported\": {\"feature\": \"memory\"}}");
  if (strcmp(signature, "stale") == 0) return fail(2, "{\"unsupported\": {\"feature\": \"memory\"}}");
  if (strcmp(signature, "other") == 0)
    return fail(2, "{\"rejected\": {\"code\": \"types\", \"phase\": \"verify\", \"message\": \"no\"}}");
  return fail(1, "{\"returned\": {}}");
}

tessStatus_t tessxOutcome(char* out, size_t capacity, size_t* needed) {
  *needed = strlen(last) + 1;
  if (*needed <= capacity) memcpy(out, last, *needed);
  return 0;
}
