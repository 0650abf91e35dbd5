/* A library whose tessGetVersion does what MISBEHAVE says; without it, nothing wrong. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int tessStatus_t;

static int is(const char* what) {
  const char* asked = getenv("MISBEHAVE");
  return asked && strcmp(asked, what) == 0;
}

static tessStatus_t give(const char* text, char* out, size_t capacity, size_t* needed) {
  *needed = strlen(text) + 1;
  if (*needed <= capacity) memcpy(out, text, *needed);
  return 0;
}

tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  if (is("segfault")) *(volatile int*)8 = 1;
  if (is("abort")) abort();
  if (is("exit")) exit(0);
  if (is("quit")) _exit(0);
  if (is("hang") || is("spin")) {
    signal(SIGTERM, SIG_IGN);
    const char* mark = getenv("MARK"); /* a file that says that the call has begun */
    FILE* file = mark ? fopen(mark, "w") : NULL;
    if (file) fclose(file);
    for (volatile int i = 0;; i++)
      if (is("hang")) sleep(1);
  }
  if (is("print")) {
    printf("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"returned\":{}}}\n");
    fflush(stdout);
    (void)!write(1, "raw output\n", 11);
    char line[64];
    if (fgets(line, sizeof line, stdin)) return 9;
  }
  if (is("status")) return 77;
  *major = 1, *minor = 2, *patch = 3;
  return 0;
}

/* A handle that is none: the library trusts it as a vendor's would. */
tessStatus_t tessInit(int** context) {
  *context = is("corrupt") ? (int*)0xdead0 : calloc(1, sizeof(int));
  return 0;
}

tessStatus_t tessShutdown(int* context) {
  if (is("reset")) abort();
  *context = 1;
  free(context);
  return 0;
}

tessStatus_t tessxDevices(char* out, size_t capacity, size_t* needed) {
  if (is("no json")) return give("{devices: none", out, capacity, needed);
  if (is("no object")) return give("[1]", out, capacity, needed);
  if (is("no devices")) return give("{\"devices\": []}", out, capacity, needed);
  if (is("grow")) {
    *needed = capacity + 1;
    return 0;
  }
  if (is("huge")) {
    *needed = SIZE_MAX;
    return 0;
  }
  return give("{\"devices\": [{\"id\": 0, \"target\": \"sm_90\", \"memory_bytes\": 1024}]}", out, capacity, needed);
}
