/* Section 4.6: the ranks of a group meet on the queue of its first rank, which combines their buffers in order of rank,
 * (((0 + 1) + 2) + ...), and each queue takes its part of the result. */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

enum { REDUCE, REDUCE_SCATTER, GATHER, BROADCAST };
enum { BF16 = 4, BOOL = 11 };
static const size_t SIZES[] = {0, 1, 1, 2, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};

typedef struct {
  int form, dtype, op, root;
  size_t count, bytes; /* elements, and bytes of one */
  Object *stream, *memory;
  size_t offset;
} Collective;

/* A kernel of kernels.cl over all elements: `into` from its beginning, `from` from a place on. */
static cl_int over_elements(const Collective* c, cl_command_queue queue, const char* form, const char* tail, cl_mem into,
                            cl_mem from, size_t offset, size_t bytes) {
  const bool is_complex = c->dtype > BOOL; /* pairs of fp32 or fp64 */
  const size_t one = 1;
  const cl_ulong parts = is_complex ? 2 : 1, count = c->count * parts, at = offset / (bytes / parts);
  char name[32];
  snprintf(name, sizeof name, "%s_%d%s", form, is_complex ? c->dtype - 7 : c->dtype, tail);
  cl_kernel kernel = kernel_named(name);
  if (!kernel) return CL_INVALID_KERNEL_NAME;
  clSetKernelArg(kernel, 0, sizeof into, &into);
  clSetKernelArg(kernel, 1, sizeof from, &from);
  clSetKernelArg(kernel, 2, sizeof at, &at);
  clSetKernelArg(kernel, 3, sizeof count, &count);
  return clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
}

static cl_int reduce(const Collective* c, cl_command_queue queue, const int* group, int ranks, cl_mem result) {
  static const char* const TAILS[] = {"_0", "_1", "_2"};
  cl_int error = 0;
  const bool narrow = c->dtype <= BF16; /* is combined in fp32 */
  cl_mem sum = narrow ? clCreateBuffer(the_context, CL_MEM_READ_WRITE, c->count * 4, NULL, &error) : result;
  if (!error && narrow)
    error = over_elements(c, queue, "widen", "", sum, c->memory->buffers[group[0]], c->offset, c->bytes);
  else if (!error)
    error = clEnqueueCopyBuffer(queue, c->memory->buffers[group[0]], sum, c->offset, 0, c->count * c->bytes, 0, NULL, NULL);
  for (int i = 1; i < ranks && !error; i++)
    error = over_elements(c, queue, "combine", TAILS[c->op], sum, c->memory->buffers[group[i]], c->offset, c->bytes);
  if (!error && narrow) error = over_elements(c, queue, "narrow", "", result, sum, 0, 4);
  if (narrow && sum) clReleaseMemObject(sum);
  return error;
}

/* The combination of a group in a buffer of its own; `ready` is when it is there. */
static cl_int combine(const Collective* c, const int* group, int ranks, cl_mem result, cl_event* ready) {
  cl_event arrived[MOST_RANKS];
  cl_command_queue queue = c->stream->queues[group[0]];
  const size_t whole = c->count * c->bytes, share = whole / (size_t)ranks;
  cl_int error = 0;
  for (int i = 0; i < ranks; i++) {
    error = clEnqueueMarkerWithWaitList(c->stream->queues[group[i]], 0, NULL, &arrived[i]);
    if (error) return error;
    clFlush(c->stream->queues[group[i]]);
  }
  clEnqueueBarrierWithWaitList(queue, (cl_uint)ranks, arrived, NULL);
  for (int i = 0; i < ranks; i++) clReleaseEvent(arrived[i]);
  if (c->form == BROADCAST)
    error = clEnqueueCopyBuffer(queue, c->memory->buffers[c->root], result, c->offset, 0, whole, 0, NULL, NULL);
  else if (c->form != GATHER) error = reduce(c, queue, group, ranks, result);
  for (int i = 0; i < ranks && c->form == GATHER && !error; i++)
    error = clEnqueueCopyBuffer(queue, c->memory->buffers[group[i]], result, c->offset + (size_t)i * share,
                                (size_t)i * share, share, 0, NULL, NULL);
  if (!error) error = clEnqueueMarkerWithWaitList(queue, 0, NULL, ready);
  clFlush(queue);
  return error;
}

static cl_int run(const Collective* c, const int* group, int ranks) {
  cl_int error = 0;
  cl_event ready;
  const size_t whole = c->count * c->bytes, share = whole / (size_t)ranks;
  cl_mem result = clCreateBuffer(the_context, CL_MEM_READ_WRITE, whole, NULL, &error);
  if (!error) error = combine(c, group, ranks, result, &ready);
  for (int i = 0; i < ranks && !error; i++) {
    size_t begin = c->form == REDUCE_SCATTER ? (size_t)i * share : 0;
    cl_command_queue queue = c->stream->queues[group[i]];
    error = clEnqueueBarrierWithWaitList(queue, 1, &ready, NULL);
    if (!error)
      error = clEnqueueCopyBuffer(queue, result, c->memory->buffers[group[i]], begin, c->offset + begin,
                                  c->form == REDUCE_SCATTER ? share : whole, 0, NULL, NULL);
    clFlush(queue);
  }
  if (!error) clReleaseEvent(ready);
  if (result) clReleaseMemObject(result); /* which lives as long as what is queued on it */
  return error;
}

static tessStatus_t collective(Collective c, void* mesh_handle, void* buffer, const char* axis, void* stream_handle) {
  static const char* const AXES[] = {"tp", "pp", "dp", "ep"};
  ENTER(mesh, mesh_handle, MESH);
  c.stream = living(stream_handle, STREAM);
  REQUIRE(c.stream && c.stream->owner == mesh && c.dtype >= 1 && c.dtype <= 13 && (unsigned)c.op <= TESS_COLL_MIN, INVALID);
  REQUIRE(c.root >= 0 && c.root < mesh->ranks, INVALID);
  int along = -1, stride = 1;
  for (int i = 0; i < 4; i++)
    if (axis && !strcmp(axis, AXES[i])) along = i;
  REQUIRE(along >= 0 || c.form == BROADCAST, INVALID);
  bool reduces = c.form == REDUCE || c.form == REDUCE_SCATTER;
  REQUIRE(!reduces || (c.op == TESS_COLL_SUM ? c.dtype != BOOL : c.dtype <= BOOL), TESS_ERR_UNSUPPORTED);
  c.bytes = SIZES[c.dtype];
  int ranks = c.form == BROADCAST ? mesh->ranks : mesh->extents[along];
  REQUIRE(c.form == REDUCE || c.form == BROADCAST || c.count % (size_t)ranks == 0, INVALID);
  if (c.count == 0) return leave(TESS_OK);
  REQUIRE(c.count <= SIZE_MAX / c.bytes, INVALID);
  c.memory = device_memory_at(buffer, c.count * c.bytes, &c.offset);
  REQUIRE(c.memory && c.offset % (c.bytes < 8 ? c.bytes : 8) == 0, INVALID);
  for (int i = 0; i < mesh->ranks; i++) REQUIRE(c.memory->buffers[i], INVALID);
  for (int i = along + 1; i < 4 && along >= 0; i++) stride *= mesh->extents[i];
  cl_int error = 0;
  for (int first = 0; first < mesh->ranks && !error; first++) {
    if (along >= 0 && first / stride % ranks) continue; /* each group once, by its first rank */
    int group[MOST_RANKS] = {0};
    for (int i = 0; i < ranks; i++) group[i] = first + i * (c.form == BROADCAST ? 1 : stride);
    error = run(&c, group, ranks);
    if (c.form == BROADCAST) break;
  }
  return leave(status_of(error));
}

tessStatus_t tessAllReduce(tessMesh_t mesh, void* buffer, size_t count, int dtype, tessCollOp op, const char* axis,
                           tessStream_t stream) {
  return collective((Collective){.form = REDUCE, .dtype = dtype, .op = (int)op, .count = count}, mesh, buffer, axis, stream);
}

tessStatus_t tessReduceScatter(tessMesh_t mesh, void* inout, size_t count, int dtype, tessCollOp op, const char* axis,
                               tessStream_t stream) {
  Collective c = {.form = REDUCE_SCATTER, .dtype = dtype, .op = (int)op, .count = count};
  return collective(c, mesh, inout, axis, stream);
}

tessStatus_t tessAllGather(tessMesh_t mesh, void* inout, size_t count, int dtype, const char* axis,
                           tessStream_t stream) {
  return collective((Collective){.form = GATHER, .dtype = dtype, .count = count}, mesh, inout, axis, stream);
}

tessStatus_t tessBroadcast(tessMesh_t mesh, void* buffer, size_t count, int dtype, int root, tessStream_t stream) {
  Collective c = {.form = BROADCAST, .dtype = dtype, .root = root, .count = count};
  return collective(c, mesh, buffer, NULL, stream);
}
