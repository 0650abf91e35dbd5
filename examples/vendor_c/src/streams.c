/* Streams (sections 4.3, 6, 12): a queue of work and a thread that does it, over all ranks of the mesh.
 *
 * Every piece of work has a ticket; tickets are given out in the order of the calls. To wait for what was queued is
 * to wait until no stream has a piece left whose ticket is that old.
 */
#include "acme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t tickets;
static uint64_t performed; /* of trials */

tessStatus_t stream_of(tessStream_t handle, const char* function, Stream** out) {
  *out = handle_object(STREAM, handle);
  if (*out) return TESS_OK;
  return invalid("%s: stream is %p, which is no live stream", function, (void*)handle);
}

tessStatus_t stream_of_mesh(tessStream_t handle, const Mesh* mesh, const char* function, Stream** out) {
  tessStatus_t status = stream_of(handle, function, out);
  if (!status && (*out)->mesh != mesh && !defect("stream_of_any_mesh"))
    status = invalid("%s: the stream belongs to another mesh", function);
  return status;
}

/* The thread */

static void note_error(Stream* stream, tessStatus_t status, const char* text) {
  if (!status || stream->error) return;
  stream->error = status;
  snprintf(stream->error_text, sizeof stream->error_text, "%s", text);
}

static void discard(Work* work) {
  if (work->discard) work->discard(work->arguments);
  free(work->arguments);
  free(work);
}

static Work* next_of(Stream* stream) {
  Work* work = stream->first;
  if (defect("newest_work_first") && work->next && work->next->run == work->run) { /* two of a kind exchanged */
    Work* second = work->next;
    work->next = second->next;
    second->next = work;
    stream->first = work = second;
    if (stream->last == second) stream->last = second->next;
  }
  stream->first = work->next;
  if (!stream->first) stream->last = NULL;
  return work;
}

static void perform(Stream* stream, Work* work) {
  char text[256] = "";
  stream->running = work->ticket;
  runtime_unlock();
  if (strcmp(work->category, "event")) delay_of_trials();
  uint64_t start = now();
  tessStatus_t status = work->run(work->arguments, text, sizeof text);
  uint64_t stop = now();
  if (defect("work_counted_without_the_lock")) performed++;
  runtime_lock();
  work->started = start > stream->last_stop ? start : stream->last_stop;
  work->stopped = stop > work->started ? stop : work->started + 1;
  stream->last_stop = work->stopped;
  note_error(stream, status, text);
  if (work->profiler) profiler_record(stream, work);
  discard(work);
  stream->running = 0;
  progress_notify();
}

static void* thread_of(void* argument) {
  Stream* stream = argument;
  runtime_lock();
  for (;;) {
    while (!stream->first && !stream->closing) runtime_wait(&stream->wake);
    if (!stream->first) break;
    perform(stream, next_of(stream));
  }
  runtime_unlock();
  return NULL;
}

/* Queueing and waiting */

tessStatus_t stream_submit(Stream* stream, const char* name, const char* category, WorkFunction run, void* arguments,
                           void (*discard)(void*), size_t bytes, double occupancy) {
  Work* work = calloc(1, sizeof *work);
  if (!work) {
    if (discard) discard(arguments);
    free(arguments);
    return refuse(TESS_ERR_OUT_OF_MEMORY, "%s: no memory on the host", name);
  }
  *work = (Work){.run = run, .discard = discard, .arguments = arguments, .ticket = ++tickets, .category = category};
  work->profiler = profiler_of_context(stream->mesh->context);
  work->bytes = bytes;
  work->occupancy = occupancy;
  work->enqueued = now();
  snprintf(work->name, sizeof work->name, "%s", name);
  if (stream->last) stream->last->next = work;
  else stream->first = work;
  stream->last = work;
  pthread_cond_signal(&stream->wake);
  return TESS_OK;
}

static bool has_older(const Stream* stream, uint64_t limit) {
  uint64_t oldest = stream->running ? stream->running : stream->first ? stream->first->ticket : 0;
  return oldest && oldest <= limit;
}

static bool any_older(const Context* context, const Mesh* mesh, uint64_t limit) {
  void* each = handle_first(STREAM, mesh, true);
  for (; each; each = handle_next(STREAM, mesh, true, each)) {
    const Stream* stream = handle_object_of_any(each);
    if ((!context || stream->mesh->context == context) && has_older(stream, limit)) return true;
  }
  return false;
}

void streams_drain(const Context* context, const Mesh* mesh) {
  uint64_t limit = tickets;
  while (any_older(context, mesh, limit)) progress_wait();
}

/* The calls */

tessStatus_t tessStreamCreate(tessMesh_t mesh, int priority, tessStream_t* outStream) {
  static int numbers;
  Stream* stream = calloc(1, sizeof *stream);
  if (!stream) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessStreamCreate: no memory on the host");
  runtime_lock();
  tessStatus_t status = mesh_of(mesh, "tessStreamCreate", &stream->mesh);
  if (!status && !outStream) status = invalid("tessStreamCreate: outStream is NULL");
  volatile int urgency = defect("priority_overflows") ? 2 * priority : priority; /* which no result depends on */
  (void)urgency;
  if (!status && priority < 0 && defect("negative_priority_refused"))
    status = invalid("tessStreamCreate: priority is %d", priority);
  if (!status) {
    stream->mesh_handle = mesh;
    stream->number = ++numbers;
    pthread_cond_init(&stream->wake, NULL);
    stream->handle = handle_create(STREAM, stream, stream->mesh);
    bool runs = stream->handle && pthread_create(&stream->thread, NULL, thread_of, stream) == 0;
    if (!runs) {
      if (stream->handle) handle_release(stream->handle);
      status = refuse(TESS_ERR_OUT_OF_MEMORY, "tessStreamCreate: no thread or handle is left");
    }
  }
  if (!status) *outStream = stream->handle;
  runtime_unlock();
  if (status) free(stream);
  return status;
}

void stream_destroy(void* handle) {
  Stream* stream = handle_object(STREAM, handle);
  handle_retire(handle);
  if (defect("destroyed_stream_forgets_work")) {
    while (stream->first) discard(next_of(stream));
  }
  while (stream->first || stream->running) progress_wait();
  stream->closing = true;
  pthread_cond_signal(&stream->wake);
  runtime_unlock();
  pthread_join(stream->thread, NULL);
  runtime_lock();
  handle_release(handle);
  pthread_cond_destroy(&stream->wake);
  free(stream);
}

tessStatus_t tessStreamDestroy(tessStream_t stream) {
  Stream* found;
  runtime_lock();
  tessStatus_t status = stream_of(stream, "tessStreamDestroy", &found);
  if (!status) stream_destroy(stream);
  runtime_unlock();
  return status;
}

/* The first error of the stream since it was last asked, reported once (AMB-RT-14). */
static tessStatus_t reported(Stream* stream) {
  tessStatus_t status = stream->error;
  if (defect("errors_never_reported")) return TESS_OK;
  if (status) refuse(status, "tessStreamSynchronize: %s", stream->error_text);
  stream->again = status && !stream->again && defect("error_reported_twice");
  if (!stream->again) stream->error = TESS_OK;
  return status;
}

tessStatus_t tessStreamSynchronize(tessStream_t stream) {
  Stream* found;
  runtime_lock();
  tessStatus_t status = stream_of(stream, "tessStreamSynchronize", &found);
  if (!status) {
    uint64_t limit = tickets;
    bool skips = defect("synchronize_returns_at_once") || defect_once_in("synchronize_returns_early_at_times", 2);
    if (!skips)
      while ((found = handle_object(STREAM, stream)) && has_older(found, limit)) progress_wait();
    status = found ? reported(found) : invalid("tessStreamSynchronize: the stream was destroyed meanwhile");
  }
  runtime_unlock();
  return status;
}
