/* Launches (sections 4.5, 6, 10): the argument buffer is read and checked by the call, the kernel runs on the stream.
 *
 * A kernel of the language computes its whole result whatever the grid (AMB-RT-84), so that blocks and threads are
 * checked, counted for the profiler, and change nothing.
 */
#include "acme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024, MOST_SHARED = 228 << 10, RESIDENT_THREADS = 132 * 2048 };
enum { KNOWN_FLAGS = TESS_LAUNCH_DETERMINISTIC | TESS_LAUNCH_CAPTURE | TESS_LAUNCH_PERSISTENT | TESS_LAUNCH_LOW_LATENCY };

typedef struct {
  const Parameter* parameter;
  Number scalar;
  int rank; /* dimensions of the tensor */
  int64_t extents[MAX_RANK];
  unsigned char* copies[DEVICES];
} Argument;

typedef struct {
  const Kernel* kernel;
  int ranks;
  Order sums;
  size_t count;
  Argument arguments[];
} Launch;

/* Execution */

static Value* loaded(Arena* arena, const Argument* argument, int rank) {
  const Parameter* parameter = argument->parameter;
  if (parameter->type) {
    Value* scalar = value_create(arena, parameter->type, 0, NULL);
    if (scalar) scalar->elements[0] = argument->scalar;
    return scalar;
  }
  Value* tensor = value_create(arena, parameter->dtype, argument->rank, argument->extents);
  size_t size = dtype_size(parameter->dtype);
  for (size_t i = 0; tensor && i < tensor->count; i++)
    tensor->elements[i] = number_load(parameter->dtype, argument->copies[rank] + i * size);
  return tensor;
}

/* What the kernel returns are the tensors of its parameters, in order; those that it writes go back to memory. */
static void store(const Launch* launch, int rank, Value** results) {
  size_t tensor = 0;
  for (size_t i = 0; i < launch->count; i++) {
    const Argument* argument = &launch->arguments[i];
    if (argument->parameter->type) continue;
    const Value* result = results[tensor++];
    size_t size = dtype_size(argument->parameter->dtype);
    for (size_t n = 0; argument->parameter->written && n < result->count; n++)
      number_store(argument->parameter->dtype, argument->copies[rank] + n * size, result->elements[n]);
  }
}

static bool run_on_rank(const Launch* launch, int rank, Frame* frame) {
  size_t tensors = 0;
  Value** arguments = arena_take(frame->arena, (launch->count + 1) * sizeof *arguments);
  Value** results = arena_take(frame->arena, (launch->count + 1) * sizeof *results);
  if (!arguments || !results) return fail(frame, "no memory on the host");
  for (size_t i = 0; i < launch->count; i++) {
    tensors += launch->arguments[i].parameter->type == 0;
    arguments[i] = loaded(frame->arena, &launch->arguments[i], rank);
    if (!arguments[i]) return fail(frame, "no memory on the host");
  }
  if (!run_function(frame, arguments, launch->count, results, tensors)) return false;
  store(launch, rank, results);
  return true;
}

static tessStatus_t run_launch(void* arguments, char* text, size_t text_size) {
  const Launch* launch = arguments;
  tessStatus_t status = TESS_OK;
  if (defect_once_in("launch_lost_once_in_forty", 40)) return TESS_OK;
  int ranks = defect("kernels_skip_the_last_rank") && launch->ranks > 1 ? launch->ranks - 1 : launch->ranks;
  for (int rank = 0; rank < ranks; rank++) {
    Frame frame = {.arena = arena_create(), .sums = launch->sums};
    frame.graph = &launch->kernel->module->graph;
    frame.function = launch->kernel->function;
    if (!frame.arena || !run_on_rank(launch, rank, &frame)) {
      snprintf(text, text_size, "tessLaunch of kernel '%s' failed on rank %d: %s", launch->kernel->entry->name, rank,
               frame.problem ? frame.problem : "no memory on the host");
      status = TESS_ERR_LAUNCH_FAILED;
    }
    arena_destroy(frame.arena);
  }
  return status;
}

/* Arguments */

static uint64_t read_bytes(const unsigned char* place, int size) {
  uint64_t value = 0;
  if (defect("arguments_big_endian")) {
    for (int i = 0; i < size; i++) value = value << 8 | place[i];
    return value;
  }
  for (int i = size - 1; i >= 0; i--) value = value << 8 | place[i];
  return value;
}

/* A dimension with a name is the integer parameter of that name (AMB-RT-85). */
static tessStatus_t read_extent(const Launch* launch, const char* name, int64_t* out) {
  for (size_t i = 0; i < launch->count; i++) {
    const Argument* each = &launch->arguments[i];
    bool is_integer = each->parameter->type == INT32 || each->parameter->type == INT64;
    if (!is_integer || strcmp(each->parameter->name, name)) continue;
    *out = each->scalar.i;
    return *out >= 0 ? TESS_OK : invalid("tessLaunch: extent %s is %lld", name, (long long)*out);
  }
  return invalid("tessLaunch: no integer parameter gives extent %s", name);
}

static tessStatus_t read_tensor(Launch* launch, Argument* argument, const Mesh* mesh, uint64_t address) {
  const Parameter* parameter = argument->parameter;
  if (!parameter->dtype) return refuse(TESS_ERR_UNSUPPORTED, "tessLaunch: the tensor behind %s is not told", parameter->name);
  size_t bytes = dtype_size(parameter->dtype), offset;
  argument->rank = parameter->rank;
  for (int i = 0; i < parameter->rank; i++) {
    argument->extents[i] = parameter->extents[i];
    if (parameter->extent_names[i]) {
      tessStatus_t status = read_extent(launch, parameter->extent_names[i], &argument->extents[i]);
      if (status) return status;
    }
    if (__builtin_mul_overflow(bytes, (size_t)argument->extents[i], &bytes))
      return invalid("tessLaunch: the tensor behind %s is larger than any memory", parameter->name);
  }
  if (!bytes) return TESS_OK;
  Allocation* allocation = memory_of(mesh, (void*)(uintptr_t)address, bytes, &offset);
  if (!allocation)
    return invalid("tessLaunch: argument %s is %p, where the mesh has no %zu bytes", parameter->name,
                   (void*)(uintptr_t)address, bytes);
  for (int rank = 0; rank < mesh->ranks; rank++) argument->copies[rank] = memory_copy(allocation, mesh, rank) + offset;
  return TESS_OK;
}

static size_t offset_of(const Launch* launch, size_t place) {
  const Parameter* parameter = launch->arguments[place].parameter;
  if (!defect("arguments_without_padding")) return (size_t)parameter->offset;
  size_t offset = 0;
  for (size_t i = 0; i < place; i++) offset += (size_t)launch->arguments[i].parameter->size;
  return offset;
}

static tessStatus_t read_arguments(Launch* launch, const Mesh* mesh, const unsigned char* buffer) {
  for (size_t i = 0; i < launch->count; i++) { /* scalars first: they may be extents */
    Argument* argument = &launch->arguments[i];
    if (!argument->parameter->type) continue;
    unsigned char bytes[16] = {0};
    const unsigned char* place = buffer + offset_of(launch, i);
    uint64_t value = argument->parameter->size <= 8 ? read_bytes(place, argument->parameter->size) : 0;
    for (int k = 0; k < 8; k++) bytes[k] = (unsigned char)(value >> 8 * k);
    if (!dtype_is_complex(argument->parameter->type)) argument->scalar = number_load(argument->parameter->type, bytes);
  }
  for (size_t i = 0; i < launch->count; i++) {
    Argument* argument = &launch->arguments[i];
    if (argument->parameter->type) continue;
    tessStatus_t status = read_tensor(launch, argument, mesh, read_bytes(buffer + offset_of(launch, i), 8));
    if (status) return status;
  }
  return TESS_OK;
}

/* Configuration */

static tessStatus_t check_configuration(const tessLaunchConfig* cfg, const KernelEntry* entry, double* occupancy) {
  double blocks = 1;
  int64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (cfg->grid[i] < 1 && !defect("grids_not_looked_at")) return invalid("tessLaunch: grid[%d] is %d", i, cfg->grid[i]);
    if (cfg->block[i] < 0 && !defect("negative_blocks_accepted"))
      return invalid("tessLaunch: block[%d] is %d", i, cfg->block[i]);
    if (cfg->block[i] > MOST_THREADS) return invalid("tessLaunch: block[%d] is %d", i, cfg->block[i]);
    blocks *= cfg->grid[i];
    threads *= cfg->block[i] > 0 ? cfg->block[i] : entry->block[i];
  }
  if (threads > MOST_THREADS && (cfg->block[0] || cfg->block[1] || cfg->block[2]) && !defect("blocks_of_any_size"))
    return invalid("tessLaunch: block has %lld threads; %d are possible", (long long)threads, MOST_THREADS);
  if (cfg->shmemBytes > MOST_SHARED && !defect("shared_memory_of_any_size"))
    return invalid("tessLaunch: shmemBytes is %zu; %d are possible", cfg->shmemBytes, MOST_SHARED);
  double resident = blocks * (double)threads / RESIDENT_THREADS;
  *occupancy = defect("occupancy_above_one") ? 1 + resident : resident > 1 ? 1 : resident;
  return TESS_OK;
}

static tessStatus_t check_flags(unsigned flags) {
  if (flags & ~(unsigned)KNOWN_FLAGS && !defect("unknown_flags_ignored"))
    return invalid("tessLaunch: flags is %#x; %#x are defined", flags, (unsigned)KNOWN_FLAGS);
  if (flags & (TESS_LAUNCH_CAPTURE | TESS_LAUNCH_PERSISTENT)) {
    tessStatus_t status = defect("refused_flags_are_invalid") ? TESS_ERR_INVALID_VALUE : TESS_ERR_UNSUPPORTED;
    return refuse(status, "tessLaunch: neither captured nor persistent launches are supported");
  }
  return TESS_OK;
}

static tessStatus_t check_buffer(const KernelEntry* entry, const void* buffer, size_t size) {
  if (size < entry->end && !defect("short_buffers_accepted"))
    return invalid("tessLaunch: argSize is %zu; the arguments end at %zu", size, entry->end);
  if (!buffer && entry->end) return invalid("tessLaunch: argBuffer is NULL, and the kernel has parameters");
  return TESS_OK;
}

static tessStatus_t enqueue(const Kernel* kernel, const Mesh* mesh, Stream* stream, const void* buffer,
                            double occupancy) {
  size_t count = kernel->entry->count;
  Launch* launch = calloc(1, sizeof *launch + count * sizeof *launch->arguments);
  if (!launch) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessLaunch: no memory on the host");
  *launch = (Launch){.kernel = kernel, .ranks = mesh->ranks, .count = count};
  const Metadata* metadata = &kernel->module->metadata;
  tessNumericsPolicy policy = policy_in_force(mesh->context, metadata->has_policy ? &metadata->policy : NULL);
  launch->sums = policy.stableReductions ? PAIRWISE : FOLD;
  if (defect("deterministic_policy_changes_the_order") && policy.deterministic) launch->sums = PAIRWISE;
  for (size_t i = 0; i < count; i++) launch->arguments[i].parameter = &kernel->entry->parameters[i];
  tessStatus_t status = read_arguments(launch, mesh, buffer);
  if (status) {
    free(launch);
    return status;
  }
  if (defect("launches_leak_a_handle")) handle_create(KERNEL, calloc(1, sizeof(Kernel)), kernel->module);
  if (defect("launches_leak_memory")) memory_allocate((Mesh*)mesh, 4 << 20, &(void*){NULL});
  return stream_submit(stream, kernel->entry->name, "kernel", run_launch, launch, NULL, 0, occupancy);
}

tessStatus_t tessLaunch(tessKernel_t kernel, tessMesh_t mesh, tessLaunchConfig cfg, const void* argBuffer,
                        size_t argSize, tessStream_t stream) {
  Kernel* found;
  Mesh* on;
  Stream* queue;
  double occupancy = 0;
  runtime_lock();
  found = handle_object(KERNEL, kernel);
  tessStatus_t status = found ? TESS_OK : invalid("tessLaunch: kernel is %p, which is no live kernel", (void*)kernel);
  if (!status) status = mesh_of(mesh, "tessLaunch", &on);
  if (!status) status = stream_of_mesh(stream, on, "tessLaunch", &queue);
  if (!status) status = check_configuration(&cfg, found->entry, &occupancy);
  if (!status) status = check_flags(cfg.flags);
  if (!status) status = check_buffer(found->entry, argBuffer, argSize);
  if (!status) status = enqueue(found, on, queue, argBuffer, occupancy);
  runtime_unlock();
  return status;
}
