/* A runtime of one device, the host itself, made of malloc, memcpy and threads: the functions of tessera.h without
 * modules and kernels (section 4.5), and nothing else. README.md says what it chooses where the specification is
 * silent, and which mistakes PLAIN_DEFECT=name makes. A stream is a queue and a thread; a call that queues work
 * returns when the work is done, unless the library is built with -DDELAY=microseconds. */
#include "tessera.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DELAY
#define DELAY 0 /* microseconds before each piece of work */
#endif
#define CAPACITY ((size_t)1 << 28)
#define REQUIRE(condition, status) \
  if (!(condition)) return leave(status)
#define INVALID TESS_ERR_INVALID_VALUE
#define ENTER(name, handle, kind) /* the object of a handle, with the lock held */ \
  enter();                                                                         \
  Object* name = living(handle, kind);                                             \
  REQUIRE(name, (kind) <= MESH ? TESS_ERR_NOT_INITIALIZED : INVALID)
#define CREATE(name, ...)             \
  Object* name = create(__VA_ARGS__); \
  REQUIRE(name, TESS_ERR_OUT_OF_MEMORY)

typedef enum { CONTEXT = 1, MESH, STREAM, EVENT, DEVICE_MEMORY, HOST_MEMORY, PROFILER } Kind;

/* Everything that lives: a handle is the address of its object, and of memory `memory` is the pointer. */
typedef struct Object {
  struct Object *next, *owner;
  Kind kind;
  int parts; /* objects that it owns and that have to end before it */
  char* memory;
  size_t bytes;
  tessNumericsPolicy policy;
  struct Moment* moment;     /* of an event */
  struct Work *first, *last; /* of a stream */
  bool working, closing;
  pthread_t thread;
} Object;

typedef struct Moment { int users; bool queued, reached; } Moment; /* a recording of an event, reached once */

typedef struct Work { struct Work* next; void* dst; const void* src; size_t bytes; Moment *reaches, *waits; } Work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Object* objects;
static size_t allocated;

static bool defect(const char* name) { /* no name is part of another */
  const char* chosen = getenv("PLAIN_DEFECT");
  return chosen && strstr(chosen, name);
}

static void enter(void) { pthread_mutex_lock(&lock); }
static tessStatus_t leave(tessStatus_t status) { return pthread_mutex_unlock(&lock), status; }

/* Objects */

static const char ANY[1];

/* The object of a handle, or any of a kind. */
static Object* living(const void* handle, Kind kind) {
  for (Object* each = objects; each; each = each->next)
    if (each->kind == kind && (each == handle || (each->memory && each->memory == handle) || handle == ANY)) return each;
  return NULL;
}

static Object* create(Kind kind, Object* owner) {
  Object* made = malloc(sizeof *made);
  if (!made) return NULL;
  *made = (Object){.next = objects, .owner = owner, .kind = kind};
  if (owner && kind != PROFILER) owner->parts++;
  return objects = made;
}

static tessStatus_t end(Object* object) {
  Object** link = &objects;
  while (*link != object) link = &(*link)->next;
  *link = object->next;
  if (object->owner && object->kind != PROFILER) object->owner->parts--;
  if (object->kind == DEVICE_MEMORY) allocated -= object->bytes;
  free(object->memory);
  free(object);
  return TESS_OK;
}

/* Work */

static void release(Moment* moment) {
  if (moment && --moment->users == 0) free(moment);
}

static Moment* shared(Moment* moment) { return moment->users++, moment; }

static void* work_of(void* argument) {
  Object* stream = argument;
  enter();
  for (;;) {
    while (!stream->first && !stream->closing) pthread_cond_wait(&changed, &lock);
    Work* work = stream->first;
    if (!work) break;
    stream->first = work->next;
    stream->working = true;
    while (work->waits && !work->waits->reached) pthread_cond_wait(&changed, &lock);
    leave(TESS_OK);
    usleep(DELAY);
    if (work->bytes) memcpy(work->dst, work->src, work->bytes);
    enter();
    if (work->reaches) work->reaches->reached = true;
    release(work->reaches);
    release(work->waits);
    free(work);
    stream->working = false;
    pthread_cond_broadcast(&changed);
  }
  leave(TESS_OK);
  return NULL;
}

static void finish(const Object* stream) {
  while (stream->first || stream->working) pthread_cond_wait(&changed, &lock);
}

static void finish_all(void) {
  for (Object* each = objects; each;) {
    bool busy = each->kind == STREAM && (each->first || each->working);
    if (busy) pthread_cond_wait(&changed, &lock); /* a stream may end meanwhile: the list is read again */
    each = busy ? objects : each->next;
  }
}

static tessStatus_t queue(Object* stream, Work work) {
  Work* made = malloc(sizeof *made);
  if (!made) return TESS_ERR_OUT_OF_MEMORY;
  *made = work;
  if (stream->first) stream->last->next = made;
  else stream->first = made;
  stream->last = made;
  pthread_cond_broadcast(&changed);
  if (DELAY == 0) finish(stream);
  return TESS_OK;
}

/* 4.1 Contexts */

tessStatus_t tessInit(tessContext_t* ctx) {
  enter();
  REQUIRE(ctx, INVALID);
  CREATE(context, CONTEXT, NULL);
  context->policy = (tessNumericsPolicy){.deterministic = 1, .rngStateless = 1};
  *ctx = (tessContext_t)context;
  return leave(TESS_OK);
}

tessStatus_t tessShutdown(tessContext_t ctx) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(!context->parts, INVALID);
  return leave(end(context));
}

tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  if (major) *major = TESS_ABI_MAJOR;
  if (minor) *minor = TESS_ABI_MINOR;
  if (patch) *patch = 0;
  return TESS_OK;
}

/* 4.2 Meshes */

static bool one(int extent) { return extent == 0 || extent == 1; }

tessStatus_t tessMeshCreate(tessContext_t ctx, const int* deviceIds, int nDevices, tessMeshAxes axes,
                            tessMesh_t* outMesh) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(deviceIds && nDevices == 1 && deviceIds[0] == 0 && outMesh, INVALID);
  REQUIRE(one(axes.tp) && one(axes.pp) && one(axes.dp) && one(axes.ep), INVALID);
  CREATE(mesh, MESH, context);
  *outMesh = (tessMesh_t)mesh;
  return leave(TESS_OK);
}

tessStatus_t tessMeshDestroy(tessMesh_t handle) {
  ENTER(mesh, handle, MESH);
  REQUIRE(!mesh->parts, INVALID);
  return leave(end(mesh));
}

/* 4.3 Streams and events */

tessStatus_t tessStreamCreate(tessMesh_t handle, int priority, tessStream_t* outStream) {
  ENTER(mesh, handle, MESH);
  REQUIRE(outStream, INVALID);
  CREATE(stream, STREAM, mesh);
  REQUIRE(pthread_create(&stream->thread, NULL, work_of, stream) == 0, TESS_ERR_OUT_OF_MEMORY);
  *outStream = (tessStream_t)stream;
  return leave(TESS_OK);
}

tessStatus_t tessStreamDestroy(tessStream_t handle) {
  ENTER(stream, handle, STREAM);
  finish(stream);
  stream->closing = true;
  pthread_cond_broadcast(&changed);
  leave(TESS_OK);
  pthread_join(stream->thread, NULL);
  enter();
  return leave(end(stream));
}

tessStatus_t tessEventCreate(tessEvent_t* outEvent) {
  enter();
  REQUIRE(living(ANY, CONTEXT), TESS_ERR_NOT_INITIALIZED);
  REQUIRE(outEvent, INVALID);
  Object* event = create(EVENT, NULL);
  Moment* moment = calloc(1, sizeof *moment);
  REQUIRE(event && moment, TESS_ERR_OUT_OF_MEMORY);
  event->moment = shared(moment);
  *outEvent = (tessEvent_t)event;
  return leave(TESS_OK);
}

tessStatus_t tessEventDestroy(tessEvent_t handle) {
  ENTER(event, handle, EVENT);
  release(event->moment);
  return leave(end(event));
}

tessStatus_t tessEventRecord(tessEvent_t event_handle, tessStream_t stream_handle) {
  enter();
  Object *event = living(event_handle, EVENT), *stream = living(stream_handle, STREAM);
  REQUIRE(event && stream, INVALID);
  if (event->moment->queued) { /* a new recording replaces the one before */
    Moment* moment = calloc(1, sizeof *moment);
    REQUIRE(moment, TESS_ERR_OUT_OF_MEMORY);
    release(event->moment);
    event->moment = shared(moment);
  }
  event->moment->queued = true;
  return leave(queue(stream, (Work){.reaches = shared(event->moment)}));
}

tessStatus_t tessStreamWaitEvent(tessStream_t stream_handle, tessEvent_t event_handle) {
  enter();
  Object *stream = living(stream_handle, STREAM), *event = living(event_handle, EVENT);
  REQUIRE(stream && event, INVALID);
  return leave(defect("event_forgotten") ? TESS_OK : queue(stream, (Work){.waits = shared(event->moment)}));
}

tessStatus_t tessStreamSynchronize(tessStream_t handle) {
  if (!handle && defect("null_stream_not_initialized")) return TESS_ERR_NOT_INITIALIZED;
  ENTER(stream, handle, STREAM);
  finish(stream);
  return leave(TESS_OK);
}

/* 4.4 Memory */

static tessStatus_t allocate(Kind kind, Object* owner, size_t bytes, void** out) {
  size_t rounded = bytes ? (bytes + 63) / 64 * 64 : 64;
  if (rounded < bytes && !defect("size_wraps")) return TESS_ERR_OUT_OF_MEMORY;
  if (kind == DEVICE_MEMORY && rounded > CAPACITY - allocated) return TESS_ERR_OUT_OF_MEMORY;
  char* pointer = calloc(1, rounded + 1);
  Object* memory = pointer ? create(kind, owner) : NULL;
  if (!memory) return free(pointer), TESS_ERR_OUT_OF_MEMORY;
  memory->memory = pointer, memory->bytes = bytes;
  if (kind == DEVICE_MEMORY) allocated += bytes;
  *out = pointer;
  return TESS_OK;
}

tessStatus_t tessMalloc(tessMesh_t handle, size_t bytes, void** devPtr) {
  ENTER(mesh, handle, MESH);
  REQUIRE(devPtr, INVALID);
  return leave(allocate(DEVICE_MEMORY, mesh, bytes, devPtr));
}

static tessStatus_t free_memory(void* pointer, Kind kind, const Object* owner) {
  finish_all();
  Object* memory = living(pointer, kind);
  if (!memory && pointer && defect("double_free")) return TESS_OK;
  if (!memory || memory->memory != pointer || memory->owner != owner) return INVALID;
  return end(memory);
}

tessStatus_t tessFree(tessMesh_t handle, void* devPtr) {
  ENTER(mesh, handle, MESH);
  return leave(free_memory(devPtr, DEVICE_MEMORY, mesh));
}

tessStatus_t tessHostAlloc(size_t bytes, void** hostPtr, tessMemKind kind) {
  enter();
  REQUIRE(living(ANY, CONTEXT), TESS_ERR_NOT_INITIALIZED);
  REQUIRE(hostPtr && kind == TESS_MEM_PINNED_HOST, INVALID);
  return leave(allocate(HOST_MEMORY, NULL, bytes, hostPtr));
}

tessStatus_t tessHostFree(void* hostPtr) {
  enter();
  return leave(free_memory(hostPtr, HOST_MEMORY, NULL));
}

/* The bytes from an address to the end of the device memory that it lies in; 0 elsewhere. */
static size_t device_bytes(const void* address) {
  for (Object* each = objects; each; each = each->next)
    if (each->kind == DEVICE_MEMORY && (uintptr_t)address - (uintptr_t)each->memory < each->bytes)
      return each->bytes - ((uintptr_t)address - (uintptr_t)each->memory);
  return 0;
}

static bool reachable(const void* address, size_t bytes, bool of_device) {
  size_t left = device_bytes(address);
  return address && (of_device ? bytes <= left : left == 0);
}

tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, tessCopyKind kind, tessStream_t handle) {
  ENTER(stream, handle, STREAM);
  REQUIRE((unsigned)kind <= TESS_COPY_D2D || defect("any_copy_kind"), INVALID);
  if (bytes == 0) return leave(TESS_OK);
  bool fits = reachable(dst, bytes, kind != TESS_COPY_D2H) && reachable(src, bytes, kind != TESS_COPY_H2D);
  if (!fits && kind == TESS_COPY_H2D && defect("overlong_copy_cut")) bytes = device_bytes(dst);
  else REQUIRE(fits || (unsigned)kind > TESS_COPY_D2D, INVALID);
  if (kind == TESS_COPY_D2D && defect("last_byte_lost")) bytes--;
  return leave(queue(stream, (Work){.dst = dst, .src = src, .bytes = bytes}));
}

/* 4.6 Collectives: what one rank has is what all have */

enum { BOOL = 11, MOVE = TESS_COLL_MIN + 1 }; /* what is moved is not combined */

static tessStatus_t collective(tessMesh_t mesh_handle, void* buffer, size_t count, int dtype, int op, const char* axis,
                               int root, tessStream_t stream_handle) {
  static const unsigned char SIZES[] = {0, 1, 1, 2, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};
  enter();
  Object *mesh = living(mesh_handle, MESH), *stream = living(stream_handle, STREAM);
  REQUIRE(mesh, TESS_ERR_NOT_INITIALIZED);
  REQUIRE(stream && stream->owner == mesh && root == 0 && dtype >= 1 && dtype <= 13 && op >= 0, INVALID);
  REQUIRE(axis && strlen(axis) == 2 && strstr("tp pp dp ep", axis), INVALID);
  REQUIRE(op == MOVE || (op == TESS_COLL_SUM ? dtype != BOOL : dtype <= BOOL), TESS_ERR_UNSUPPORTED);
  size_t size = SIZES[dtype];
  REQUIRE(count == 0 || (count <= SIZE_MAX / size && reachable(buffer, count * size, true)), INVALID);
  REQUIRE((uintptr_t)buffer % (size < 8 ? size : 8) == 0, INVALID);
  return leave(queue(stream, (Work){.bytes = 0}));
}

#define REDUCTION(name)                                                                                       \
  tessStatus_t name(tessMesh_t mesh, void* buffer, size_t count, int dtype, tessCollOp op, const char* axis, \
                    tessStream_t stream) {                                                                    \
    return collective(mesh, buffer, count, dtype, (unsigned)op < MOVE ? (int)op : -1, axis, 0, stream);       \
  }
REDUCTION(tessAllReduce)
REDUCTION(tessReduceScatter)

tessStatus_t tessAllGather(tessMesh_t mesh, void* inout, size_t count, int dtype, const char* axis, tessStream_t on) {
  return collective(mesh, inout, count, dtype, MOVE, axis, 0, on);
}

tessStatus_t tessBroadcast(tessMesh_t mesh, void* buffer, size_t count, int dtype, int root, tessStream_t stream) {
  return collective(mesh, buffer, count, dtype, MOVE, "dp", root, stream);
}

/* 4.7 The numerics policy, which no copy depends on; 4.8 profilers, whose traces are empty */

tessStatus_t tessSetNumericsPolicy(tessContext_t ctx, const tessNumericsPolicy* policy) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(policy && one(policy->stableReductions) && one(policy->deterministic), INVALID);
  REQUIRE(one(policy->rngStateless) && one(policy->allowFastMath), INVALID);
  context->policy = *policy;
  return leave(TESS_OK);
}

tessStatus_t tessGetNumericsPolicy(tessContext_t ctx, tessNumericsPolicy* policy) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(policy, INVALID);
  *policy = context->policy;
  return leave(TESS_OK);
}

tessStatus_t tessProfilerStart(tessContext_t ctx, tessProfiler_t* profiler) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(profiler, INVALID);
  CREATE(made, PROFILER, context);
  *profiler = (tessProfiler_t)made;
  return leave(TESS_OK);
}

tessStatus_t tessProfilerStop(tessProfiler_t handle, const char* outJsonPath) {
  enter();
  Object* profiler = living(handle, PROFILER);
  REQUIRE(profiler && outJsonPath, INVALID);
  FILE* file = fopen(outJsonPath, "w");
  REQUIRE(file && fputs("{\"traceEvents\": []}\n", file) >= 0 && fclose(file) == 0, INVALID);
  return leave(end(profiler));
}
