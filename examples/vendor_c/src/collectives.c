/* Collectives (sections 4.6, 13): one piece of work of the stream does all groups along the axis.
 *
 * Sums go round the ring once, from the second member to the first: `ring(1)`, or pairwise where the policy in force
 * when the call was made wants stable reductions. Nothing is narrowed on the way.
 */
#include "acme.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST } Collective;

typedef struct {
  Collective collective;
  int dtype, root;
  tessCollOp op;
  size_t count;
  Order order;
  const Context* context; /* of a stream that cannot outlive it */
  int group_count, members;
  unsigned char* buffers[DEVICES][DEVICES]; /* of each group, in order of the axis coordinate */
} Round;

/* Elements */

static Number extreme(int dtype, tessCollOp op, Number a, Number b) {
  bool largest = op == TESS_COLL_MAX;
  if (defect("max_and_min_exchanged")) largest = !largest;
  if (!dtype_is_float(dtype)) return largest == (a.i > b.i) ? a : b;
  if (defect("max_ignores_nan") && (isnan(a.f) || isnan(b.f))) return isnan(a.f) ? b : a;
  if (isnan(a.f)) return a;
  if (isnan(b.f)) return b;
  if (a.f == b.f && !defect("zeros_have_no_order")) return largest == !signbit(a.f) ? a : b;
  return largest == (a.f > b.f) ? a : b;
}

static Number combined(const Round* round, int dtype, const Number* terms, Number* scratch) {
  size_t count = (size_t)round->members;
  if (round->op == TESS_COLL_SUM) {
    Order order = round->order;
    if (defect("undeclared_order")) order = FOLD;
    if (defect("policy_read_at_execution"))
      order = round->context->has_policy && round->context->policy.stableReductions ? PAIRWISE : RING;
    if (defect("last_rank_dropped_at_primes") && (count == 3 || count == 5 || count == 7)) count--;
    return reduce_sum(dtype, order, terms, count, scratch);
  }
  Number result = terms[0];
  for (size_t i = 1; i < count; i++) result = extreme(dtype, round->op, result, terms[i]);
  return result;
}

/* Elements [from, to) of a group, the result in the buffers of `first` to `last`. Complex numbers are pairs of floats. */
static void reduce_group(const Round* round, int group, size_t from, size_t to, int first, int last) {
  bool is_complex = dtype_is_complex(round->dtype);
  int dtype = round->dtype == COMPLEX64 ? FP32 : round->dtype == COMPLEX128 ? FP64 : round->dtype;
  size_t size = dtype_size(dtype), parts = is_complex ? 2 : 1;
  for (size_t i = from * parts; i < to * parts; i++) {
    Number terms[DEVICES], scratch[DEVICES];
    for (int member = 0; member < round->members; member++)
      terms[member] = number_load(dtype, round->buffers[group][member] + i * size);
    Number result = combined(round, dtype, terms, scratch);
    if (defect("one_ulp_in_the_last_chunk") && dtype == FP32 && i + 1 == to && to >= 16)
      result.f = nextafterf((float)result.f, INFINITY);
    for (int member = first; member <= last; member++) {
      unsigned char* place = round->buffers[group][member] + i * size;
      if (member != round->members - 1 || !defect("last_rank_keeps_its_own") || first == last)
        number_store(dtype, place, result);
    }
  }
}

/* Groups */

static void run_group(const Round* round, int group) {
  unsigned char* const* buffers = round->buffers[group];
  size_t size = dtype_size(round->dtype), share = round->count / (size_t)round->members;
  switch (round->collective) {
    case ALL_REDUCE: {
      size_t count = round->count > 512 && defect("large_sum_is_cut") ? 512 : round->count;
      reduce_group(round, group, 0, count, 0, round->members - 1);
      break;
    }
    case REDUCE_SCATTER:
      for (int member = 0; member < round->members; member++) {
        int part = defect("shares_exchanged") ? round->members - 1 - member : member;
        reduce_group(round, group, (size_t)part * share, (size_t)(part + 1) * share, member, member);
      }
      break;
    case ALL_GATHER:
      for (int from = 0; from < round->members; from++)
        for (int to = 0; to < round->members; to++) {
          if (from == to || (defect("gathering_misses_the_last_share") && from == round->members - 1)) continue;
          memcpy(buffers[to] + (size_t)from * share * size, buffers[from] + (size_t)from * share * size, share * size);
        }
      break;
    case BROADCAST:
      for (int to = 0; to < round->members; to++) {
        int root = defect("broadcast_from_rank_0") ? 0 : round->root;
        if (to != root) memcpy(buffers[to], buffers[root], round->count * size);
      }
  }
}

static tessStatus_t run_collective(void* arguments, char* text, size_t text_size) {
  const Round* round = arguments;
  (void)text, (void)text_size;
  if (defect("rank_alone_clears_its_buffer") && round->members == 1)
    memset(round->buffers[0][0], 0, round->count * dtype_size(round->dtype));
  if (round->members > 1)
    for (int group = 0; group < round->group_count; group++) run_group(round, group);
  return TESS_OK;
}

/* The groups of ranks that differ in the coordinate of one axis alone; a broadcast has one of all ranks. */
static void form_groups(Round* round, const Mesh* mesh, const Allocation* allocation, size_t offset, int axis) {
  int stride = 1;
  for (int faster = axis + 1; axis >= 0 && faster < 4; faster++) stride *= mesh->axes[faster];
  round->members = axis < 0 ? mesh->ranks : mesh->axes[axis];
  if (defect("groups_ignore_the_axis") && round->members > 1) stride = 1;
  for (int rank = 0; rank < mesh->ranks; rank++) {
    int coordinate = axis < 0 ? rank : rank / stride % round->members;
    if (coordinate) continue;
    for (int member = 0; member < round->members; member++)
      round->buffers[round->group_count][member] = memory_copy(allocation, mesh, rank + member * stride) + offset;
    round->group_count++;
  }
}

/* Arguments */

typedef struct {
  const char* function;
  Collective collective;
  void* buffer;
  size_t count;
  int dtype, root;
  tessCollOp op;
  const char* axis;
} Request;

static tessStatus_t check_operator(const Request* request) {
  if ((int)request->op < 0 || request->op > TESS_COLL_MIN)
    return invalid("%s: op is %d", request->function, (int)request->op);
  bool is_sum = request->op == TESS_COLL_SUM, reduces = request->collective <= REDUCE_SCATTER;
  if (reduces && (is_sum ? request->dtype == BOOL : dtype_is_complex(request->dtype))) {
    tessStatus_t status = defect("unsupported_is_invalid") ? TESS_ERR_INVALID_VALUE : TESS_ERR_UNSUPPORTED;
    return refuse(status, "%s: op %d is not defined on %s", request->function, (int)request->op,
                  dtype_name(request->dtype));
  }
  return TESS_OK;
}

static tessStatus_t check_request(const Request* request, const Mesh* mesh, int* axis) {
  *axis = request->collective == BROADCAST ? -1 : axis_of_name(request->axis);
  if (request->collective != BROADCAST && *axis < 0) {
    if (!defect("unknown_axis_is_dp") || !request->axis)
      return invalid("%s: axis is '%s'; tp, pp, dp and ep are axes", request->function,
                     request->axis ? request->axis : "NULL");
    *axis = 2;
  }
  if (request->dtype < FP8_E4M3 || request->dtype > COMPLEX128)
    return invalid("%s: dtype is %d; 1 to 13 are dtypes", request->function, request->dtype);
  tessStatus_t status = check_operator(request);
  if (status) return status;
  if (request->collective == BROADCAST && (request->root < 0 || request->root >= mesh->ranks))
    return invalid("%s: root is %d of %d ranks", request->function, request->root, mesh->ranks);
  bool is_shared = request->collective == REDUCE_SCATTER || request->collective == ALL_GATHER;
  size_t members = is_shared ? (size_t)mesh->axes[*axis] : 1;
  if (request->count % members && !defect("uneven_counts_accepted"))
    return invalid("%s: count is %zu, which %zu ranks do not share evenly", request->function, request->count, members);
  return TESS_OK;
}

static tessStatus_t enqueue(const Request* request, const Mesh* mesh, Stream* stream, int axis) {
  static const char* const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  size_t offset, size = dtype_size(request->dtype);
  if (request->count == 0) return TESS_OK;
  if (request->count > SIZE_MAX / size) return invalid("%s: count is %zu", request->function, request->count);
  Allocation* allocation = memory_of(mesh, request->buffer, request->count * size, &offset);
  if (!allocation)
    return invalid("%s: buffer is %p, where the mesh has no %zu bytes", request->function, request->buffer,
                   request->count * size);
  Round* round = calloc(1, sizeof *round);
  if (!round) return refuse(TESS_ERR_OUT_OF_MEMORY, "%s: no memory on the host", request->function);
  *round = (Round){.collective = request->collective, .dtype = request->dtype, .root = request->root};
  round->op = request->op;
  round->count = request->count;
  round->context = mesh->context;
  round->order = policy_in_force(mesh->context, NULL).stableReductions ? PAIRWISE : RING;
  form_groups(round, mesh, allocation, offset, axis);
  return stream_submit(stream, names[request->collective], "collective", run_collective, round, NULL,
                       request->count * size, 0);
}

static tessStatus_t issue(const Request* request, tessMesh_t mesh, tessStream_t stream) {
  Mesh* on;
  Stream* queue;
  int axis;
  runtime_lock();
  tessStatus_t status = mesh_of(mesh, request->function, &on);
  if (!status) status = stream_of_mesh(stream, on, request->function, &queue);
  if (!status) status = check_request(request, on, &axis);
  if (!status && !request->buffer && request->count) status = invalid("%s: the buffer is NULL", request->function);
  if (!status) status = enqueue(request, on, queue, axis);
  runtime_unlock();
  return status;
}

tessStatus_t tessAllReduce(tessMesh_t mesh, void* buffer, size_t count, int dtype, tessCollOp op, const char* axis,
                           tessStream_t stream) {
  return issue(&(Request){"tessAllReduce", ALL_REDUCE, buffer, count, dtype, 0, op, axis}, mesh, stream);
}

tessStatus_t tessReduceScatter(tessMesh_t mesh, void* inout, size_t count, int dtype, tessCollOp op, const char* axis,
                               tessStream_t stream) {
  return issue(&(Request){"tessReduceScatter", REDUCE_SCATTER, inout, count, dtype, 0, op, axis}, mesh, stream);
}

tessStatus_t tessAllGather(tessMesh_t mesh, void* inout, size_t count, int dtype, const char* axis,
                           tessStream_t stream) {
  return issue(&(Request){"tessAllGather", ALL_GATHER, inout, count, dtype, 0, TESS_COLL_SUM, axis}, mesh, stream);
}

tessStatus_t tessBroadcast(tessMesh_t mesh, void* buffer, size_t count, int dtype, int root, tessStream_t stream) {
  return issue(&(Request){"tessBroadcast", BROADCAST, buffer, count, dtype, root, TESS_COLL_SUM, NULL}, mesh, stream);
}
