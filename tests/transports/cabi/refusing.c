/* A library that copies in a thread, slowly, and whose tessShutdown refuses as REFUSE says: while parts of the context
   live ("parts"), or always ("always"); "hang": a stream that waits for an event waits for ever; "shared": every tessInit
   returns one context, which ends with its last tessShutdown. It has no tessxReset. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int tessStatus_t;
typedef struct { int tp, pp, dp, ep; } tessMeshAxes;
typedef struct { void* dst; const void* src; size_t bytes; } Copy;
typedef struct { pthread_t thread; int copying, waits; } Stream;

enum { OK = 0, INVALID_VALUE = 1 };
static int contexts, parts, calls;

static int is(const char* what) {
  const char* asked = getenv("REFUSE");
  return asked && strcmp(asked, what) == 0;
}

tessStatus_t tessInit(void** context) {
  contexts++;
  *context = is("shared") ? (void*)&contexts : malloc(1);
  return OK;
}

tessStatus_t tessShutdown(void* context) {
  if (is("always") || (is("parts") && parts)) return INVALID_VALUE;
  contexts--;
  if (context != &contexts) free(context);
  return OK;
}

/* The contexts and the parts that live, and the calls that this process has had. */
tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  *major = contexts, *minor = parts, *patch = ++calls;
  return OK;
}

tessStatus_t tessMeshCreate(void* context, const int* ids, int count, tessMeshAxes axes, void** mesh) {
  (void)context, (void)ids, (void)count, (void)axes;
  parts++;
  *mesh = malloc(1);
  return OK;
}

tessStatus_t tessMeshDestroy(void* mesh) {
  parts--;
  free(mesh);
  return OK;
}

tessStatus_t tessStreamCreate(void* mesh, int priority, void** stream) {
  (void)mesh, (void)priority;
  parts++;
  *stream = calloc(1, sizeof(Stream));
  return OK;
}

tessStatus_t tessStreamSynchronize(void* handle) {
  Stream* stream = handle;
  while (stream->waits) sleep(1);
  if (stream->copying) pthread_join(stream->thread, NULL);
  stream->copying = 0;
  return OK;
}

tessStatus_t tessStreamDestroy(void* handle) {
  if (((Stream*)handle)->copying) return INVALID_VALUE;
  parts--;
  free(handle);
  return OK;
}

tessStatus_t tessEventCreate(void** event) {
  parts++;
  *event = malloc(1);
  return OK;
}

tessStatus_t tessEventDestroy(void* event) {
  parts--;
  free(event);
  return OK;
}

tessStatus_t tessStreamWaitEvent(void* handle, void* event) {
  (void)event;
  if (is("hang")) ((Stream*)handle)->waits = 1;
  return OK;
}

static void* copy_later(void* argument) {
  Copy* copy = argument;
  usleep(200000);
  memcpy(copy->dst, copy->src, copy->bytes);
  free(copy);
  return NULL;
}

tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, int kind, void* handle) {
  Stream* stream = handle;
  Copy* copy = malloc(sizeof *copy);
  (void)kind;
  *copy = (Copy){dst, src, bytes};
  stream->copying = 1;
  return pthread_create(&stream->thread, NULL, copy_later, copy);
}

tessStatus_t tessxLastError(char* out, size_t capacity, size_t* needed) {
  *needed = sizeof "the driver said no";
  if (*needed <= capacity) memcpy(out, "the driver said no", *needed);
  return OK;
}
