/* Indexing and slice assignment: one text a dimension, an index `3` or a slice `a:b:s`; `$k` is the k-th bound.
 *
 * An index drops its dimension. Out of range is an error of execution.
 */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  int64_t start, count, step;
  bool is_index;
} Part;

/* A part of a text up to a colon or the end: empty, an integer, or the value of a bound. */
static bool read_bound(const Frame* frame, const int* bounds, size_t bound_count, const char** text, int64_t* out,
                       bool* is_given) {
  *is_given = **text && **text != ':';
  if (*is_given) {
    char* end;
    bool is_bound = **text == '$';
    long long number = strtoll(*text + is_bound, &end, 10);
    if (end == *text + is_bound || (is_bound && (number < 0 || (size_t)number >= bound_count))) return false;
    *out = is_bound ? frame->values[bounds[number]]->elements[0].i : number;
    *text = end;
  }
  return **text == 0 || **text == ':';
}

static bool read_part(Frame* frame, const int* bounds, size_t bound_count, const char* text, int64_t extent, Part* out) {
  int64_t values[3] = {0, extent, 1};
  bool given[3] = {false, false, false};
  int parts = 0;
  for (; parts < 3; parts++) {
    if (!read_bound(frame, bounds, bound_count, &text, &values[parts], &given[parts]))
      return fail(frame, "an index of another form");
    if (!*text) break;
    text++;
  }
  out->is_index = parts == 0;
  if (out->is_index) {
    if (!given[0]) return fail(frame, "an index of another form");
    *out = (Part){.start = values[0], .count = 1, .step = 1, .is_index = true};
    if (values[0] < 0 || values[0] >= extent)
      return defect("index_out_of_range_is_ignored") ? (out->count = 0, true) : fail(frame, "an index out of range");
    return true;
  }
  if (values[2] <= 0) return fail(frame, "a slice with a step that is not positive");
  if (values[0] < 0 || values[1] > extent || values[0] > values[1]) return fail(frame, "a slice out of range");
  out->start = values[0];
  out->step = values[2];
  out->count = (values[1] - values[0] + values[2] - 1) / values[2];
  return true;
}

static bool read_parts(Frame* frame, const Operation* operation, const Value* x, size_t first_bound, Part* parts) {
  const Attribute* spec = attribute_of(operation, "spec");
  if (!spec || spec->kind != ATTRIBUTE_LIST || spec->count > (size_t)x->rank)
    return fail(frame, "an index of another form");
  for (int i = 0; i < x->rank; i++) {
    const Attribute* text = (size_t)i < spec->count ? spec->elements[i] : NULL;
    if (text && text->kind != ATTRIBUTE_TEXT) return fail(frame, "an index of another form");
    bool is_read = read_part(frame, operation->operands + first_bound, operation->operand_count - first_bound,
                             text ? text->text : ":", x->extents[i], &parts[i]);
    if (!is_read) return false;
  }
  return true;
}

/* Where the n-th selected element stands. */
static size_t place_of(const Value* x, const Part* parts, size_t n) {
  size_t place = 0, stride = 1;
  for (int i = x->rank - 1; i >= 0; i--) {
    place += (size_t)(parts[i].start + (int64_t)(n % (size_t)parts[i].count) * parts[i].step) * stride;
    n /= (size_t)parts[i].count;
    stride *= (size_t)x->extents[i];
  }
  return place;
}

static size_t selected(const Value* x, const Part* parts) {
  size_t count = 1;
  for (int i = 0; i < x->rank; i++) count *= (size_t)parts[i].count;
  return count;
}

bool run_update(Frame* frame, const Operation* operation) {
  const Value *x = frame->values[operation->operands[0]], *y = frame->values[operation->operands[1]];
  Part parts[MAX_RANK];
  if (!read_parts(frame, operation, x, 2, parts)) return false;
  size_t count = selected(x, parts);
  if (y->rank && y->count != count) return fail(frame, "an assignment of another size");
  Value* out = value_create(frame->arena, x->dtype, x->rank, x->extents);
  if (!out) return fail(frame, "no memory on the host");
  memcpy(out->elements, x->elements, x->count * sizeof *x->elements);
  for (size_t n = 0; n < count; n++) out->elements[place_of(x, parts, n)] = y->elements[y->rank ? n : 0];
  frame->values[operation->results[0]] = out;
  return true;
}

bool run_slice(Frame* frame, const Operation* operation) {
  const Value* x = frame->values[operation->operands[0]];
  Part parts[MAX_RANK];
  if (!read_parts(frame, operation, x, 1, parts)) return false;
  int64_t extents[MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (!parts[i].is_index) extents[rank++] = parts[i].count;
  Value* out = value_create(frame->arena, x->dtype, rank, extents);
  if (!out) return fail(frame, "no memory on the host");
  for (size_t n = 0; n < out->count; n++) out->elements[n] = x->elements[place_of(x, parts, n)];
  frame->values[operation->results[0]] = out;
  return true;
}
