/* Operations that go along an axis: matrix product, sum, softmax, transposition.
 *
 * Everything is evaluated in the accumulator and rounded once. Sums are folds from the first element to the last, or
 * pairwise where the policy in force wants stable reductions; a product adds to +0 over ascending k.
 */
#include "acme.h"

#include <math.h>

static Number product(int dtype, Number a, Number b) {
  if (dtype == FP64) return (Number){.f = a.f * b.f};
  if (dtype_is_float(dtype)) return (Number){.f = (float)a.f * (float)b.f};
  if (dtype == INT64) return (Number){.i = (int64_t)((uint64_t)a.i * (uint64_t)b.i)};
  return (Number){.i = (int32_t)((uint32_t)a.i * (uint32_t)b.i)};
}

static Number narrowed(int dtype, Number value) {
  unsigned char bytes[16];
  number_store(dtype, bytes, value);
  return number_load(dtype, bytes);
}

static Number exponential(int dtype, Number value) {
  if (dtype == FP64) return (Number){.f = (double)expl((long double)value.f)};
  return (Number){.f = (float)exp(value.f)};
}

static bool is_wider_than_its_accumulator(Frame* frame, const Operation* operation) {
  const Value* x = frame->values[operation->operands[0]];
  const Attribute* accum = attribute_of(operation, "accum");
  int wanted = accum && accum->kind == ATTRIBUTE_TEXT ? dtype_of_name(accum->text) : 0;
  int own = x->dtype == FP64 || x->dtype == INT64 ? x->dtype : dtype_is_float(x->dtype) ? FP32 : INT32;
  return wanted && wanted != own;
}

/* (..., M, K) x (..., K, N) */
bool run_matmul(Frame* frame, const Operation* operation) {
  const Value *a = frame->values[operation->operands[0]], *b = frame->values[operation->operands[1]];
  int rank = a->rank;
  if (rank < 2 || b->rank != rank || a->extents[rank - 1] != b->extents[rank - 2])
    return fail(frame, "a product of shapes that do not fit");
  if (is_wider_than_its_accumulator(frame, operation)) return fail(frame, "an accumulator that is not known");
  int64_t rows = a->extents[rank - 2], depth = a->extents[rank - 1], columns = b->extents[rank - 1], batch = 1;
  int64_t extents[MAX_RANK];
  for (int i = 0; i < rank - 2; i++) {
    if (a->extents[i] != b->extents[i]) return fail(frame, "batches of different shapes");
    batch *= extents[i] = a->extents[i];
  }
  extents[rank - 2] = rows;
  extents[rank - 1] = columns;
  Value* out = value_create(frame->arena, operation->result_types[0].dtype, rank, extents);
  if (!out) return fail(frame, "no memory on the host");
  for (int64_t i = 0; i < batch * rows * columns; i++) {
    int64_t which = i / (rows * columns), row = i / columns % rows, column = i % columns;
    const Number *left = a->elements + (which * rows + row) * depth, *right = b->elements + which * depth * columns;
    Number sum = {.i = 0};
    for (int64_t k = 0; k < depth; k++)
      sum = number_add(a->dtype, sum, product(a->dtype, left[k], right[k * columns + column]));
    if (defect("product_from_the_last_to_the_first")) {
      sum.i = 0;
      for (int64_t k = depth; k-- > 0;)
        sum = number_add(a->dtype, sum, product(a->dtype, left[k], right[k * columns + column]));
    }
    out->elements[i] = narrowed(out->dtype, sum);
  }
  frame->values[operation->results[0]] = out;
  return true;
}

/* An axis of a value: `outer` times `length` times `inner` elements */
typedef struct {
  int number;
  size_t outer, length, inner;
} Axis;

static bool axis_of(Frame* frame, const Operation* operation, const Value* x, Axis* out) {
  const Attribute* axis = attribute_of(operation, "axis");
  int64_t number = axis ? axis->integer : -1;
  if (number < 0) number += x->rank;
  if (number < 0 || number >= x->rank) return fail(frame, "an axis that is not there");
  *out = (Axis){.number = (int)number, .outer = 1, .length = (size_t)x->extents[number], .inner = 1};
  for (int i = 0; i < x->rank; i++) {
    if (i < number) out->outer *= (size_t)x->extents[i];
    if (i > number) out->inner *= (size_t)x->extents[i];
  }
  return true;
}

static void gather(const Value* x, Axis axis, size_t outer, size_t inner, Number* line) {
  for (size_t i = 0; i < axis.length; i++) line[i] = x->elements[(outer * axis.length + i) * axis.inner + inner];
}

bool run_sum(Frame* frame, const Operation* operation) {
  const Value* x = frame->values[operation->operands[0]];
  const Attribute* keep = attribute_of(operation, "keepdims");
  bool keeps = keep && keep->integer;
  Axis axis;
  if (is_wider_than_its_accumulator(frame, operation)) return fail(frame, "an accumulator that is not known");
  if (!axis_of(frame, operation, x, &axis)) return false;
  int64_t extents[MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (i != axis.number || keeps) extents[rank++] = i == axis.number ? 1 : x->extents[i];
  Value* out = value_create(frame->arena, operation->result_types[0].dtype, rank, extents);
  Number* line = arena_take(frame->arena, (2 * axis.length + 2) * sizeof *line);
  if (!out || !line) return fail(frame, "no memory on the host");
  for (size_t i = 0; i < out->count; i++) {
    gather(x, axis, i / axis.inner, i % axis.inner, line);
    Order order = defect_once_in("sums_change_their_order", 5) ? (frame->sums == FOLD ? PAIRWISE : FOLD) : frame->sums;
    size_t length = axis.length - (axis.length > 32 && defect("sum_loses_its_last_element"));
    out->elements[i] = narrowed(out->dtype, reduce_sum(x->dtype, order, line, length, line + axis.length + 1));
  }
  frame->values[operation->results[0]] = out;
  return true;
}

/* exp(x - max) / sum(exp(x - max)) of one line, in place */
static void softmax(int dtype, Order order, Number* line, size_t length, Number* scratch) {
  Number largest = line[0];
  for (size_t i = 1; i < length; i++)
    if (line[i].f > largest.f || isnan(line[i].f)) largest = line[i];
  if (defect("softmax_without_its_maximum")) largest.f = 0;
  for (size_t i = 0; i < length; i++) {
    Number difference = {.f = dtype == FP64 ? line[i].f - largest.f : (float)line[i].f - (float)largest.f};
    line[i] = exponential(dtype, difference);
  }
  Number sum = reduce_sum(dtype, order, line, length, scratch);
  for (size_t i = 0; i < length; i++) line[i].f = dtype == FP64 ? line[i].f / sum.f : (float)line[i].f / (float)sum.f;
}

bool run_softmax(Frame* frame, const Operation* operation) {
  const Value* x = frame->values[operation->operands[0]];
  Axis axis;
  if (!dtype_is_float(x->dtype) || is_wider_than_its_accumulator(frame, operation))
    return fail(frame, "a softmax in an accumulator that is not known");
  if (!axis_of(frame, operation, x, &axis)) return false;
  Value* out = value_create(frame->arena, x->dtype, x->rank, x->extents);
  Number* line = arena_take(frame->arena, (2 * axis.length + 2) * sizeof *line);
  if (!out || !line) return fail(frame, "no memory on the host");
  for (size_t place = 0; axis.length && place < axis.outer * axis.inner; place++) {
    size_t outer = place / axis.inner, inner = place % axis.inner;
    gather(x, axis, outer, inner, line);
    softmax(x->dtype, frame->sums, line, axis.length, line + axis.length + 1);
    for (size_t i = 0; i < axis.length; i++)
      out->elements[(outer * axis.length + i) * axis.inner + inner] = narrowed(x->dtype, line[i]);
  }
  frame->values[operation->results[0]] = out;
  return true;
}

bool run_transpose(Frame* frame, const Operation* operation) {
  const Value* x = frame->values[operation->operands[0]];
  const Attribute* perm = attribute_of(operation, "perm");
  int64_t extents[MAX_RANK], strides[MAX_RANK], order[MAX_RANK], stride = 1;
  unsigned seen = 0;
  if (perm && perm->count != (size_t)x->rank) return fail(frame, "a permutation of other axes");
  for (int i = 0; i < x->rank; i++) {
    order[i] = perm ? perm->elements[i]->integer : x->rank - 1 - i;
    if (order[i] < 0 || order[i] >= x->rank || seen >> order[i] & 1) return fail(frame, "a permutation that is none");
    seen |= 1u << order[i];
    extents[i] = x->extents[order[i]];
  }
  for (int i = x->rank - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= x->extents[i];
  }
  Value* out = value_create(frame->arena, x->dtype, x->rank, extents);
  if (!out) return fail(frame, "no memory on the host");
  for (size_t i = 0; i < out->count; i++) {
    size_t rest = i, from = 0;
    for (int axis = x->rank - 1; axis >= 0; axis--) {
      from += rest % (size_t)extents[axis] * (size_t)strides[order[axis]];
      rest /= (size_t)extents[axis];
    }
    out->elements[i] = x->elements[from];
  }
  frame->values[operation->results[0]] = out;
  return true;
}
