/* Constants and elementwise operations of Graph IR, and the table of all operations that kernels may hold.
 *
 * Each result is rounded once to its dtype; integers wrap, and their division truncates toward zero.
 */
#include "acme.h"

#include <math.h>
#include <string.h>

Value* value_create(Arena* arena, int dtype, int rank, const int64_t* extents) {
  Value* value = arena_take(arena, sizeof *value);
  if (!value) return NULL;
  *value = (Value){.dtype = dtype, .rank = rank, .count = 1};
  for (int i = 0; i < rank; i++) {
    value->extents[i] = extents[i];
    value->count *= (size_t)extents[i];
  }
  value->elements = arena_take(arena, (value->count + 1) * sizeof *value->elements);
  return value->elements ? value : NULL;
}

/* The value as the dtype holds it. */
static Number rounded(int dtype, Number value) {
  unsigned char bytes[16];
  number_store(dtype, bytes, value);
  return number_load(dtype, bytes);
}

static bool run_constant(Frame* frame, const Operation* operation) {
  const Attribute* value = attribute_of(operation, "value");
  int dtype = operation->result_types[0].dtype;
  Value* out = value_create(frame->arena, dtype, 0, NULL);
  if (!out || !value || value->kind > ATTRIBUTE_BOOL || value->kind == ATTRIBUTE_TEXT)
    return fail(frame, "a constant of another form");
  bool is_float = dtype_is_float(dtype);
  out->elements[0] = is_float ? (Number){.f = value->number} : (Number){.i = value->integer};
  if (is_float) out->elements[0] = rounded(dtype, out->elements[0]);
  frame->values[operation->results[0]] = out;
  return true;
}

typedef bool (*Elementwise)(Frame* frame, int dtype, Number a, Number b, Number* out);

static bool add(Frame* frame, int dtype, Number a, Number b, Number* out) {
  (void)frame;
  if (dtype_is_float(dtype)) out->f = dtype == FP64 ? a.f + b.f : (float)a.f + (float)b.f;
  else out->i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
  return true;
}

static bool subtract(Frame* frame, int dtype, Number a, Number b, Number* out) {
  (void)frame;
  if (dtype_is_float(dtype)) out->f = dtype == FP64 ? a.f - b.f : (float)a.f - (float)b.f;
  else out->i = (int64_t)((uint64_t)a.i - (uint64_t)b.i);
  return true;
}

static bool multiply(Frame* frame, int dtype, Number a, Number b, Number* out) {
  (void)frame;
  if (dtype_is_float(dtype)) out->f = dtype == FP64 ? a.f * b.f : (float)a.f * (float)b.f;
  else out->i = (int64_t)((uint64_t)a.i * (uint64_t)b.i);
  return true;
}

static bool divide(Frame* frame, int dtype, Number a, Number b, Number* out) {
  if (dtype_is_float(dtype)) {
    out->f = dtype == FP64 ? a.f / b.f : (float)a.f / (float)b.f;
    return true;
  }
  if (b.i == 0) return fail(frame, "an integer divided by zero");
  out->i = b.i == -1 ? (int64_t)(0 - (uint64_t)a.i) : a.i / b.i;
  return true;
}

/* Two operands of one shape, or one of them a scalar */
static bool run_elementwise(Frame* frame, const Operation* operation, Elementwise function) {
  const Value *a = frame->values[operation->operands[0]], *b = frame->values[operation->operands[1]];
  const Value* wide = a->rank >= b->rank ? a : b;
  if (a->rank && b->rank && (a->rank != b->rank || memcmp(a->extents, b->extents, sizeof a->extents)))
    return fail(frame, "operands of different shapes");
  Value* out = value_create(frame->arena, operation->result_types[0].dtype, wide->rank, wide->extents);
  if (!out) return fail(frame, "no memory on the host");
  for (size_t i = 0; i < out->count; i++) {
    Number result;
    if (!function(frame, out->dtype, a->elements[a->rank ? i : 0], b->elements[b->rank ? i : 0], &result)) return false;
    out->elements[i] = rounded(out->dtype, result);
  }
  frame->values[operation->results[0]] = out;
  return true;
}

static bool run_add(Frame* frame, const Operation* operation) { return run_elementwise(frame, operation, add); }
static bool run_subtract(Frame* frame, const Operation* operation) {
  return run_elementwise(frame, operation, subtract);
}
static bool run_multiply(Frame* frame, const Operation* operation) {
  return run_elementwise(frame, operation, multiply);
}
static bool run_divide(Frame* frame, const Operation* operation) { return run_elementwise(frame, operation, divide); }

static const struct {
  const char* name;
  OperationFunction function;
} known[] = {
    {"tessera.graph.constant", run_constant}, {"tessera.graph.add", run_add},
    {"tessera.graph.subtract", run_subtract}, {"tessera.graph.multiply", run_multiply},
    {"tessera.graph.divide", run_divide},     {"tessera.graph.matmul", run_matmul},
    {"tessera.graph.sum", run_sum},           {"tessera.graph.softmax", run_softmax},
    {"tessera.graph.transpose", run_transpose}, {"tessera.graph.update", run_update},
    {"tessera.graph.slice", run_slice}};

OperationFunction operation_function(const char* name) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return known[i].function;
  return NULL;
}
