/* Profilers (sections 4.8, 17): what the context's streams did meanwhile, as a Chrome trace (AMB-RT-164). */
#include "acme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Slice {
  struct Slice* next;
  char name[NAME_BYTES];
  const char* category;
  size_t bytes;
  double occupancy;
  uint64_t enqueued, started, stopped;
  int ranks, stream;
} Slice;

typedef struct {
  Context* context;
  uint64_t begun;
  Slice *first, *last;
} Profiler;

uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Where profilers run side by side, which is not asserted, the first one records (AMB-RT-66). */
void* profiler_of_context(const Context* context) {
  return handle_first(PROFILER, defect("profiles_every_context") ? NULL : context, false);
}

void profiler_record(const Stream* stream, const Work* work) {
  Profiler* profiler = handle_object(PROFILER, work->profiler);
  Slice* slice = profiler ? calloc(1, sizeof *slice) : NULL;
  if (!slice) return;
  memcpy(slice->name, work->name, sizeof slice->name);
  slice->category = work->category;
  slice->bytes = work->bytes;
  slice->occupancy = work->occupancy;
  slice->enqueued = work->enqueued - profiler->begun;
  slice->started = work->started - profiler->begun;
  slice->stopped = work->stopped - profiler->begun;
  slice->ranks = stream->mesh->ranks;
  slice->stream = stream->number;
  if (profiler->last) profiler->last->next = slice;
  else profiler->first = slice;
  profiler->last = slice;
}

void profiler_destroy(void* handle) {
  Profiler* profiler = handle_object(PROFILER, handle);
  for (Slice *each = profiler->first, *next; each; each = next) {
    next = each->next;
    free(each);
  }
  handle_release(handle);
  free(profiler);
}

tessStatus_t tessProfilerStart(tessContext_t ctx, tessProfiler_t* outProfiler) {
  Profiler* profiler = calloc(1, sizeof *profiler);
  if (!profiler) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessProfilerStart: no memory on the host");
  runtime_lock();
  tessStatus_t status = context_of(ctx, "tessProfilerStart", &profiler->context);
  if (!status && !outProfiler) status = invalid("tessProfilerStart: outProfiler is NULL");
  if (!status) {
    void* handle = handle_create(PROFILER, profiler, profiler->context);
    profiler->begun = now();
    if (handle) *outProfiler = handle;
    else status = refuse(TESS_ERR_OUT_OF_MEMORY, "tessProfilerStart: too many handles are live");
  }
  runtime_unlock();
  if (status) free(profiler);
  return status;
}

/* Times of the format are microseconds; those in `args` are nanoseconds. */
static void write_slice(FILE* file, const Slice* slice, bool first) {
  uint64_t start = slice->started, duration = slice->stopped - slice->started;
  uint64_t enqueued = defect("enqueued_after_the_start") ? slice->stopped : slice->enqueued;
  unsigned long long unit = defect("trace_in_nanoseconds") ? 1 : 1000;
  fprintf(file, "%s\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"%s\",\"pid\":1,\"tid\":%d,", first ? "" : ",", slice->name,
          slice->category, defect("trace_of_unknown_phases") ? "x" : "X", slice->stream);
  fprintf(file, "\"ts\":%llu.%03llu,\"dur\":%llu.%03llu,", start / unit, unit == 1 ? 0 : start % unit, duration / unit,
          unit == 1 ? 0 : duration % unit);
  fprintf(file, "\"args\":{\"enqueue\":%llu,\"start\":%llu,\"stop\":%llu,\"ranks\":%d", (unsigned long long)enqueued,
          (unsigned long long)start, (unsigned long long)slice->stopped, slice->ranks);
  if (slice->bytes && strcmp(slice->category, "copy") == 0) {
    double seconds = (double)duration / (defect("bandwidth_of_bits") ? 8e9 : 1e9);
    fprintf(file, ",\"bandwidth_bytes_per_second\":%.17g", (double)slice->bytes / seconds);
  }
  if (slice->occupancy > 0) fprintf(file, ",\"occupancy\":%.17g", slice->occupancy);
  fprintf(file, "}}");
}

static tessStatus_t write_trace(const Profiler* profiler, const char* path) {
  FILE* file = fopen(path, "w");
  if (!file) {
    if (defect("unwritable_path_is_success")) return TESS_OK;
    return invalid("tessProfilerStop: outJsonPath is '%s', which cannot be written", path);
  }
  fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  for (const Slice* each = profiler->first; each; each = each->next) write_slice(file, each, each == profiler->first);
  fprintf(file, defect("trace_is_cut") ? "" : "\n]}\n");
  bool written = !ferror(file);
  written = fclose(file) == 0 && written;
  return written ? TESS_OK : invalid("tessProfilerStop: outJsonPath is '%s', which could not be written", path);
}

tessStatus_t tessProfilerStop(tessProfiler_t profiler, const char* outJsonPath) {
  runtime_lock();
  tessStatus_t status = TESS_OK;
  Profiler* found = handle_object(PROFILER, profiler);
  if (found) streams_drain(found->context, NULL);
  found = handle_object(PROFILER, profiler);
  if (!found) status = invalid("tessProfilerStop: profiler is %p, which is no live profiler", (void*)profiler);
  else if (!outJsonPath) status = invalid("tessProfilerStop: outJsonPath is NULL");
  else status = write_trace(found, outJsonPath);
  if (!status && !defect("profiler_never_ends")) profiler_destroy(profiler);
  runtime_unlock();
  return status;
}
