/* A library with a table of functions alone: the second entry is NULL, and the table ends after the third. */
#include <stddef.h>

typedef int tessStatus_t;

static tessStatus_t version(int* major, int* minor, int* patch) {
  *major = 5, *minor = 6, *patch = 7;
  return 0;
}

static tessStatus_t init(void** context) {
  static int one;
  *context = &one;
  return 0;
}

static struct {
  size_t struct_size;
  int major, minor;
  void* entries[40];
} table = {16 + 3 * sizeof(void*), 1, 0, {(void*)init, NULL, (void*)version, (void*)version}};

const void* tessGetApi(void) { return &table; }

/* Exported, but no entry of the table: not there for who asks the table. */
tessStatus_t tessShutdown(void* context) {
  (void)context;
  return 0;
}
