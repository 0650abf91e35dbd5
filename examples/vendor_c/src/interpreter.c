/* Runs a function of Graph IR on values of one rank. What a kernel may hold is found out before it is launched. */
#include "acme.h"

#include <string.h>

enum { DEEPEST_CALL = 16 };

static bool run_block(Frame* frame, const Block* block, Value** results, size_t result_count);

bool fail(Frame* frame, const char* problem) {
  frame->problem = problem;
  return false;
}

static const Function* function_of(const Frame* frame, const char* name) {
  for (size_t i = 0; i < frame->graph->count; i++) {
    const Function* each = &frame->graph->functions[i];
    if (each->module == frame->function->module && strcmp(each->name, name) == 0) return each;
  }
  return NULL;
}

/* What is known */

static bool is_control(const char* name) {
  return strcmp(name, "tessera.graph.for") == 0 || strcmp(name, "tessera.graph.call") == 0;
}

static bool is_end(const char* name) {
  return strcmp(name, "tessera.graph.return") == 0 || strcmp(name, "tessera.graph.yield") == 0;
}

static bool is_known_block(const Frame* frame, const Block* block, int depth);

static bool is_known(const Frame* frame, const Operation* operation, int depth) {
  for (size_t i = 0; i < operation->result_count; i++) {
    int dtype = operation->result_types[i].dtype;
    if (!dtype || dtype_is_complex(dtype)) return false;
  }
  for (size_t i = 0; i < operation->region_count; i++)
    if (!is_known_block(frame, operation->regions[i], depth)) return false;
  if (strcmp(operation->name, "tessera.graph.call") == 0) {
    const Attribute* callee = attribute_of(operation, "callee");
    const Function* function = callee && callee->text ? function_of(frame, callee->text) : NULL;
    return function && is_known_block(frame, function->body, depth + 1);
  }
  return is_end(operation->name) || is_control(operation->name) || operation_function(operation->name);
}

static bool is_known_block(const Frame* frame, const Block* block, int depth) {
  if (depth > DEEPEST_CALL || !block->operation_count) return false;
  for (size_t i = 0; i < block->parameter_count; i++)
    if (!block->parameter_types[i].dtype || dtype_is_complex(block->parameter_types[i].dtype)) return false;
  for (size_t i = 0; i < block->operation_count; i++)
    if (!is_known(frame, block->operations[i], depth)) return false;
  return is_end(block->operations[block->operation_count - 1]->name);
}

bool is_supported(const Graph* graph, const Function* function) {
  Frame frame = {.graph = graph, .function = function};
  return is_known_block(&frame, function->body, 0);
}

/* Control flow */

static bool run_for(Frame* frame, const Operation* operation) {
  const Block* body = operation->regions[0];
  size_t carried = operation->result_count;
  if (operation->operand_count != 3 + carried || body->parameter_count != 1 + carried)
    return fail(frame, "a loop of another form");
  int64_t bounds[3];
  for (int i = 0; i < 3; i++) bounds[i] = frame->values[operation->operands[i]]->elements[0].i;
  int64_t start = bounds[0], stop = bounds[1], step = bounds[2];
  if (step == 0) return fail(frame, "a range with a step of 0");
  Value** current = arena_take(frame->arena, (carried + 1) * sizeof *current);
  if (!current) return fail(frame, "no memory on the host");
  for (size_t i = 0; i < carried; i++) current[i] = frame->values[operation->operands[3 + i]];
  for (int64_t index = start; step > 0 ? index < stop : index > stop; index += step) {
    Value* counter = value_create(frame->arena, INT32, 0, NULL);
    if (!counter) return fail(frame, "no memory on the host");
    counter->elements[0].i = index;
    frame->values[body->parameters[0]] = counter;
    for (size_t i = 0; i < carried; i++) frame->values[body->parameters[1 + i]] = current[i];
    if (!run_block(frame, body, current, carried)) return false;
  }
  for (size_t i = 0; i < carried; i++) frame->values[operation->results[i]] = current[i];
  return true;
}

static bool run_call(Frame* frame, const Operation* operation) {
  size_t operands = operation->operand_count, count = operation->result_count;
  Value** arguments = arena_take(frame->arena, (operands + 1) * sizeof *arguments);
  Value** results = arena_take(frame->arena, (count + 1) * sizeof *results);
  if (!arguments || !results) return fail(frame, "no memory on the host");
  for (size_t i = 0; i < operands; i++) arguments[i] = frame->values[operation->operands[i]];
  Frame inner = *frame;
  inner.function = function_of(frame, attribute_of(operation, "callee")->text);
  bool done = run_function(&inner, arguments, operands, results, count);
  frame->problem = inner.problem;
  for (size_t i = 0; done && i < count; i++) frame->values[operation->results[i]] = results[i];
  return done;
}

static bool run_operation(Frame* frame, const Operation* operation) {
  if (strcmp(operation->name, "tessera.graph.for") == 0) return run_for(frame, operation);
  if (strcmp(operation->name, "tessera.graph.call") == 0) return run_call(frame, operation);
  return operation_function(operation->name)(frame, operation);
}

static bool run_block(Frame* frame, const Block* block, Value** results, size_t result_count) {
  for (size_t i = 0; i < block->operation_count; i++) {
    const Operation* operation = block->operations[i];
    if (is_end(operation->name)) {
      if (operation->operand_count != result_count) return fail(frame, "another number of results");
      for (size_t k = 0; k < result_count; k++) results[k] = frame->values[operation->operands[k]];
      return true;
    }
    if (!run_operation(frame, operation)) return false;
  }
  return fail(frame, "a block without an end");
}

bool run_function(Frame* frame, Value** arguments, size_t argument_count, Value** results, size_t result_count) {
  const Block* body = frame->function->body;
  frame->values = arena_take(frame->arena, ((size_t)frame->function->value_count + 1) * sizeof *frame->values);
  if (!frame->values) return fail(frame, "no memory on the host");
  if (body->parameter_count != argument_count) return fail(frame, "another number of arguments");
  for (size_t i = 0; i < argument_count; i++) frame->values[body->parameters[i]] = arguments[i];
  return run_block(frame, body, results, result_count);
}
