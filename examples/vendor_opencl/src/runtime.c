/* Sections 4.1 to 4.4, 4.7 and 4.8 on OpenCL: contexts and meshes are lists, a stream has a queue for each rank of its
 * mesh, an event a marker in each of these queues, and memory a buffer on each device under one address. */
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

cl_context the_context;
cl_device_id the_devices[MOST_RANKS];
int device_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Object* objects;
static size_t allocated;

void enter(void) { pthread_mutex_lock(&lock); }
tessStatus_t leave(tessStatus_t status) { return pthread_mutex_unlock(&lock), status; }

tessStatus_t status_of(cl_int error) {
  switch (error) {
    case CL_SUCCESS: return TESS_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE: return TESS_ERR_OUT_OF_MEMORY;
    default: return error > -30 ? TESS_ERR_LAUNCH_FAILED : INVALID;
  }
}

/* Objects */

Object* living(const void* handle, Kind kind) {
  for (Object* each = objects; each; each = each->next)
    if (each->kind == kind && handle && each == handle) return each;
  return NULL;
}

Object* any_living(Kind kind) {
  Object* each = objects;
  while (each && each->kind != kind) each = each->next;
  return each;
}

Object* create(Kind kind, Object* owner) {
  Object* made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->next = objects, made->owner = owner, made->kind = kind;
  return objects = made;
}

static void release(Recording* recording) {
  if (!recording || --recording->users) return;
  for (int i = 0; i < recording->ranks; i++) clReleaseEvent(recording->markers[i]);
  free(recording);
}

void end(Object* object) {
  for (Object* each = objects; each;) {
    bool owned = each->owner == object; /* what it owns ends with it, and the list is read again */
    if (owned) end(each);
    each = owned ? objects : each->next;
  }
  Object** link = &objects;
  while (*link != object) link = &(*link)->next;
  *link = object->next;
  for (int i = 0; i < MOST_RANKS; i++) {
    if (object->queues[i]) clReleaseCommandQueue(object->queues[i]);
    if (object->buffers[i]) clReleaseMemObject(object->buffers[i]);
  }
  if (object->failures) clReleaseMemObject(object->failures);
  release(object->recording);
  if (object->kind == DEVICE_MEMORY) {
    munmap(object->address, object->bytes + 1);
    allocated -= object->bytes;
  } else free(object->address);
  free(object->graph_ir);
  free(object);
}

void finish_all(void) {
  for (Object* each = objects; each; each = each->next)
    for (int i = 0; each->kind == STREAM && i < each->owner->ranks; i++) clFinish(each->queues[i]);
}

/* 4.1 Contexts */

static bool start(void) {
  cl_platform_id platform;
  cl_uint found = 0;
  if (the_context) return true;
  if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_RANKS, the_devices, &found))
    return false;
  device_count = found < MOST_RANKS ? (int)found : MOST_RANKS;
  the_context = clCreateContext(NULL, (cl_uint)device_count, the_devices, NULL, NULL, NULL);
  return the_context != NULL;
}

tessStatus_t tessInit(tessContext_t* ctx) {
  enter();
  REQUIRE(ctx, INVALID);
  REQUIRE(start(), TESS_ERR_NOT_INITIALIZED);
  CREATE(context, CONTEXT, NULL);
  context->policy = (tessNumericsPolicy){.deterministic = 1, .rngStateless = 1};
  *ctx = (tessContext_t)context;
  return leave(TESS_OK);
}

tessStatus_t tessShutdown(tessContext_t ctx) {
  ENTER(context, ctx, CONTEXT);
  finish_all();
  end(context);
  return leave(TESS_OK);
}

tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  if (!major || !minor || !patch) return INVALID;
  *major = TESS_ABI_MAJOR, *minor = TESS_ABI_MINOR, *patch = 0;
  return TESS_OK;
}

/* The devices that OpenCL has, which no function of the specification tells. */
tessStatus_t tessxDevices(char* out, size_t capacity, size_t* needed) {
  char text[128 * MOST_RANKS] = "{\"devices\":[";
  enter();
  REQUIRE(start(), TESS_ERR_NOT_INITIALIZED);
  for (int id = 0; id < device_count; id++) {
    cl_ulong bytes = DEVICE_MEMORY_BYTES;
    if (!CHECKS) clGetDeviceInfo(the_devices[id], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    sprintf(text + strlen(text), "%s{\"id\":%d,\"target\":\"sm_90\",\"memory_bytes\":%zu}", id ? "," : "", id,
            (size_t)bytes);
  }
  strcat(text, "]}");
  *needed = strlen(text) + 1;
  if (*needed <= capacity) strcpy(out, text);
  return leave(TESS_OK);
}

/* 4.2 Meshes */

tessStatus_t tessMeshCreate(tessContext_t ctx, const int* deviceIds, int nDevices, tessMeshAxes axes,
                            tessMesh_t* outMesh) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(deviceIds && outMesh && nDevices >= 1 && nDevices <= device_count, INVALID);
  const int extents[] = {axes.tp, axes.pp, axes.dp, axes.ep};
  long long product = 1;
  for (int i = 0; i < 4; i++) {
    REQUIRE(extents[i] >= 0 && extents[i] <= nDevices, INVALID);
    product *= extents[i] ? extents[i] : 1;
  }
  REQUIRE(product == nDevices, INVALID);
  for (int i = 0; i < nDevices; i++) {
    REQUIRE(deviceIds[i] >= 0 && deviceIds[i] < device_count, INVALID);
    for (int j = 0; j < i; j++) REQUIRE(deviceIds[i] != deviceIds[j], INVALID);
  }
  CREATE(mesh, MESH, context);
  mesh->ranks = nDevices;
  for (int i = 0; i < 4; i++) mesh->extents[i] = extents[i] ? extents[i] : 1;
  memcpy(mesh->devices, deviceIds, (size_t)nDevices * sizeof *deviceIds);
  *outMesh = (tessMesh_t)mesh;
  return leave(TESS_OK);
}

tessStatus_t tessMeshDestroy(tessMesh_t handle) {
  ENTER(mesh, handle, MESH);
  finish_all();
  end(mesh);
  return leave(TESS_OK);
}

/* 4.3 Streams and events */

tessStatus_t tessStreamCreate(tessMesh_t handle, int priority, tessStream_t* outStream) {
  ENTER(mesh, handle, MESH);
  REQUIRE(outStream, INVALID);
  CREATE(stream, STREAM, mesh);
  cl_int error = 0;
  const cl_int none[MOST_RANKS] = {0};
  stream->failures = clCreateBuffer(the_context, CL_MEM_COPY_HOST_PTR, sizeof none, (void*)none, &error);
  for (int i = 0; i < mesh->ranks && !error; i++)
    stream->queues[i] = clCreateCommandQueue(the_context, the_devices[mesh->devices[i]], 0, &error);
  if (error) end(stream);
  else *outStream = (tessStream_t)stream;
  return leave(status_of(error));
}

tessStatus_t tessStreamDestroy(tessStream_t handle) {
  ENTER(stream, handle, STREAM);
  for (int i = 0; i < stream->owner->ranks; i++) clFinish(stream->queues[i]);
  end(stream);
  return leave(TESS_OK);
}

tessStatus_t tessStreamSynchronize(tessStream_t handle) {
  ENTER(stream, handle, STREAM);
  cl_int error = 0, failed[MOST_RANKS], any = 0;
  for (int i = 0; i < stream->owner->ranks; i++)
    if (clFinish(stream->queues[i])) error = CL_OUT_OF_RESOURCES;
  clEnqueueReadBuffer(stream->queues[0], stream->failures, CL_TRUE, 0, sizeof failed, failed, 0, NULL, NULL);
  for (int i = 0; i < stream->owner->ranks; i++) any |= failed[i];
  memset(failed, 0, sizeof failed);
  if (any)
    clEnqueueWriteBuffer(stream->queues[0], stream->failures, CL_TRUE, 0, sizeof failed, failed, 0, NULL, NULL);
  return leave(any || error ? TESS_ERR_LAUNCH_FAILED : TESS_OK);
}

tessStatus_t tessEventCreate(tessEvent_t* outEvent) {
  enter();
  REQUIRE(any_living(CONTEXT), TESS_ERR_NOT_INITIALIZED);
  REQUIRE(outEvent, INVALID);
  CREATE(event, EVENT, NULL);
  *outEvent = (tessEvent_t)event;
  return leave(TESS_OK);
}

tessStatus_t tessEventDestroy(tessEvent_t handle) {
  ENTER(event, handle, EVENT);
  end(event);
  return leave(TESS_OK);
}

tessStatus_t tessEventRecord(tessEvent_t event_handle, tessStream_t stream_handle) {
  ENTER(event, event_handle, EVENT);
  Object* stream = living(stream_handle, STREAM);
  REQUIRE(stream, INVALID);
  Recording* recording = calloc(1, sizeof *recording);
  REQUIRE(recording, TESS_ERR_OUT_OF_MEMORY);
  recording->users = 1, recording->ranks = stream->owner->ranks;
  for (int i = 0; i < recording->ranks; i++) {
    recording->devices[i] = stream->owner->devices[i];
    clEnqueueMarkerWithWaitList(stream->queues[i], 0, NULL, &recording->markers[i]);
    clFlush(stream->queues[i]);
  }
  release(event->recording);
  event->recording = recording;
  return leave(TESS_OK);
}

tessStatus_t tessStreamWaitEvent(tessStream_t stream_handle, tessEvent_t event_handle) {
  ENTER(stream, stream_handle, STREAM);
  Object* event = living(event_handle, EVENT);
  REQUIRE(event, INVALID);
  Recording* recording = event->recording;
  if (!recording) return leave(TESS_OK);
  bool common = false;
  for (int i = 0; i < stream->owner->ranks; i++)
    for (int j = 0; j < recording->ranks; j++) common |= stream->owner->devices[i] == recording->devices[j];
  REQUIRE(common, INVALID);
  cl_int error = 0;
  for (int i = 0; i < stream->owner->ranks && !error; i++)
    error = clEnqueueBarrierWithWaitList(stream->queues[i], (cl_uint)recording->ranks, recording->markers, NULL);
  return leave(status_of(error));
}

/* 4.4 Memory */

tessStatus_t tessMalloc(tessMesh_t handle, size_t bytes, void** devPtr) {
  ENTER(mesh, handle, MESH);
  REQUIRE(devPtr, INVALID);
  REQUIRE(!CHECKS || bytes <= DEVICE_MEMORY_BYTES - allocated, TESS_ERR_OUT_OF_MEMORY);
  CREATE(memory, DEVICE_MEMORY, mesh);
  memory->bytes = bytes;
  allocated += bytes;
  memory->address = mmap(NULL, bytes + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  cl_int error = memory->address == MAP_FAILED ? CL_OUT_OF_HOST_MEMORY : 0;
  for (int i = 0; i < mesh->ranks && !error; i++)
    memory->buffers[i] = clCreateBuffer(the_context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &error);
  if (error) end(memory);
  else *devPtr = memory->address;
  return leave(status_of(error));
}

static Object* memory_of(const void* pointer, Kind kind) {
  for (Object* each = objects; each; each = each->next)
    if (each->kind == kind && pointer && each->address == pointer) return each;
  return NULL;
}

tessStatus_t tessFree(tessMesh_t handle, void* devPtr) {
  ENTER(mesh, handle, MESH);
  Object* memory = memory_of(devPtr, DEVICE_MEMORY);
  REQUIRE(memory && memory->owner == mesh, INVALID);
  finish_all();
  end(memory);
  return leave(TESS_OK);
}

tessStatus_t tessHostAlloc(size_t bytes, void** hostPtr, tessMemKind kind) {
  enter();
  REQUIRE(any_living(CONTEXT), TESS_ERR_NOT_INITIALIZED);
  REQUIRE(hostPtr && kind == TESS_MEM_PINNED_HOST, INVALID);
  CREATE(memory, HOST_MEMORY, NULL);
  memory->bytes = bytes;
  memory->address = calloc(1, bytes ? bytes : 1);
  *hostPtr = memory->address;
  if (memory->address) return leave(TESS_OK);
  end(memory);
  return leave(TESS_ERR_OUT_OF_MEMORY);
}

tessStatus_t tessHostFree(void* hostPtr) {
  enter();
  Object* memory = memory_of(hostPtr, HOST_MEMORY);
  REQUIRE(memory, INVALID);
  finish_all();
  end(memory);
  return leave(TESS_OK);
}

bool is_device_address(const void* address) {
  for (Object* each = objects; each; each = each->next)
    if (each->kind == DEVICE_MEMORY && (uintptr_t)address - (uintptr_t)each->address < each->bytes) return true;
  return false;
}

Object* device_memory_at(const void* address, size_t bytes, size_t* offset) {
  for (Object* each = objects; each; each = each->next) {
    *offset = (uintptr_t)address - (uintptr_t)each->address;
    if (each->kind == DEVICE_MEMORY && *offset < each->bytes && bytes <= each->bytes - *offset) return each;
  }
  return NULL;
}

tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, tessCopyKind kind, tessStream_t handle) {
  ENTER(stream, handle, STREAM);
  REQUIRE((unsigned)kind <= TESS_COPY_D2D, INVALID);
  if (bytes == 0) return leave(TESS_OK);
  size_t to = 0, from = 0;
  const size_t reach = CHECKS ? bytes : 1;
  Object* target = kind == TESS_COPY_D2H ? NULL : device_memory_at(dst, reach, &to);
  Object* source = kind == TESS_COPY_H2D ? NULL : device_memory_at(src, reach, &from);
  REQUIRE(kind == TESS_COPY_D2H ? dst && !is_device_address(dst) : target != NULL, INVALID);
  REQUIRE(kind == TESS_COPY_H2D ? src && !is_device_address(src) : source != NULL, INVALID);
  cl_int error = 0;
  for (int i = 0; i < (kind == TESS_COPY_D2H ? 1 : stream->owner->ranks) && !error; i++) {
    cl_command_queue queue = stream->queues[i];
    if (kind == TESS_COPY_H2D)
      error = clEnqueueWriteBuffer(queue, target->buffers[i], CL_FALSE, to, bytes, src, 0, NULL, NULL);
    else if (kind == TESS_COPY_D2H)
      error = clEnqueueReadBuffer(queue, source->buffers[i], CL_FALSE, from, bytes, dst, 0, NULL, NULL);
    else
      error = clEnqueueCopyBuffer(queue, source->buffers[i], target->buffers[i], from, to, bytes, 0, NULL, NULL);
    clFlush(queue);
  }
  return leave(status_of(error));
}

/* What a rank has, for the suite: the feature rank-memory */

static tessStatus_t access_rank(tessMesh_t handle, int64_t rank, void* devPtr, size_t bytes, const void* from, void* to) {
  ENTER(mesh, handle, MESH);
  size_t offset;
  Object* memory = device_memory_at(devPtr, bytes, &offset);
  REQUIRE(rank >= 0 && rank < mesh->ranks && (memory || !bytes), INVALID);
  finish_all();
  if (!bytes) return leave(TESS_OK);
  REQUIRE(memory->buffers[rank], INVALID);
  cl_int error;
  cl_command_queue queue = clCreateCommandQueue(the_context, the_devices[mesh->devices[rank]], 0, &error);
  if (!error && from)
    error = clEnqueueWriteBuffer(queue, memory->buffers[rank], CL_TRUE, offset, bytes, from, 0, NULL, NULL);
  if (!error && to) error = clEnqueueReadBuffer(queue, memory->buffers[rank], CL_TRUE, offset, bytes, to, 0, NULL, NULL);
  if (queue) clReleaseCommandQueue(queue);
  return leave(status_of(error));
}

tessStatus_t tessxPeek(tessMesh_t mesh, int64_t rank, void* devPtr, int64_t bytes, void* out, size_t capacity,
                       size_t* needed) {
  if (bytes < 0) return INVALID;
  *needed = (size_t)bytes;
  return access_rank(mesh, rank, devPtr, (size_t)bytes, NULL, *needed <= capacity ? out : NULL);
}

tessStatus_t tessxPoke(tessMesh_t mesh, int64_t rank, void* devPtr, const void* data, size_t dataSize) {
  return access_rank(mesh, rank, devPtr, dataSize, data, NULL);
}

/* 4.7 The numerics policy; 4.8 profilers, whose traces are empty */

static bool is_switch(int value) { return value == 0 || value == 1; }

tessStatus_t tessSetNumericsPolicy(tessContext_t ctx, const tessNumericsPolicy* policy) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(policy && is_switch(policy->stableReductions) && is_switch(policy->deterministic), INVALID);
  REQUIRE(is_switch(policy->rngStateless) && is_switch(policy->allowFastMath), INVALID);
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
  ENTER(profiler, handle, PROFILER);
  REQUIRE(outJsonPath, INVALID);
  FILE* file = fopen(outJsonPath, "w");
  REQUIRE(file && fputs("{\"traceEvents\": []}\n", file) >= 0 && fclose(file) == 0, INVALID);
  end(profiler);
  return leave(TESS_OK);
}
