/* Events (sections 4.3, 12). Recording gives an event a new marker; a wait is for the marker of the time of its call.
 *
 * So a later recording, or the end of the event, changes nothing for a wait (AMB-RT-49, AMB-RT-141).
 */
#include "acme.h"

#include <stdlib.h>

typedef struct {
  int users; /* the event, the recording, the waits */
  bool done;
  unsigned device_mask;
} Marker;

typedef struct {
  Marker* marker; /* NULL while nothing has recorded it */
} Event;

typedef struct {
  Marker* marker;
} MarkerArguments;

static void marker_leave(Marker* marker) {
  if (marker && --marker->users == 0) free(marker);
}

static void leave_marker(void* arguments) { marker_leave(((MarkerArguments*)arguments)->marker); }

static tessStatus_t run_record(void* arguments, char* text, size_t text_size) {
  (void)text, (void)text_size;
  runtime_lock();
  ((MarkerArguments*)arguments)->marker->done = true;
  progress_notify();
  runtime_unlock();
  return TESS_OK;
}

static tessStatus_t run_wait(void* arguments, char* text, size_t text_size) {
  (void)text, (void)text_size;
  if (defect("waits_ignored")) return TESS_OK;
  runtime_lock();
  while (!((MarkerArguments*)arguments)->marker->done) progress_wait();
  runtime_unlock();
  return TESS_OK;
}

static tessStatus_t event_of(tessEvent_t handle, const char* function, Event** out) {
  *out = handle_object(EVENT, handle);
  return *out ? TESS_OK : invalid("%s: event is %p, which is no live event", function, (void*)handle);
}

static void event_destroy(void* handle) {
  Event* event = handle_object(EVENT, handle);
  marker_leave(event->marker);
  handle_release(handle);
  free(event);
}

void events_destroy_all(void) {
  void* handle;
  while ((handle = handle_first(EVENT, NULL, false))) event_destroy(handle);
}

tessStatus_t tessEventCreate(tessEvent_t* outEvent) {
  if (!outEvent) return invalid("tessEventCreate: outEvent is NULL");
  runtime_lock();
  tessStatus_t status = TESS_OK;
  Event* event = NULL;
  if (!runtime_is_initialized() && !defect("events_before_init"))
    status = refuse(TESS_ERR_NOT_INITIALIZED, "tessEventCreate: tessInit comes first");
  void* known = defect("one_event_for_all") ? handle_first(EVENT, NULL, false) : NULL;
  if (!status && !known) {
    event = calloc(1, sizeof *event);
    known = event ? handle_create(EVENT, event, NULL) : NULL;
    if (!known) status = refuse(TESS_ERR_OUT_OF_MEMORY, "tessEventCreate: no memory or handle is left");
    if (!known) free(event);
  }
  if (!status) *outEvent = known;
  runtime_unlock();
  return status;
}

tessStatus_t tessEventDestroy(tessEvent_t event) {
  Event* found;
  runtime_lock();
  tessStatus_t status = event_of(event, "tessEventDestroy", &found);
  if (!status && !found->marker && defect("unused_event_not_destroyed"))
    status = invalid("tessEventDestroy: nothing to destroy");
  if (!status) event_destroy(event);
  runtime_unlock();
  return status;
}

static tessStatus_t submit(Stream* stream, const char* name, WorkFunction run, Marker* marker) {
  MarkerArguments* arguments = malloc(sizeof *arguments);
  if (!arguments) return refuse(TESS_ERR_OUT_OF_MEMORY, "%s: no memory on the host", name);
  marker->users++;
  arguments->marker = marker;
  return stream_submit(stream, name, "event", run, arguments, leave_marker, 0, 0);
}

static tessStatus_t record(Event* event, Stream* stream) {
  if (event->marker && defect("first_recording_stays")) return TESS_OK;
  Marker* marker = calloc(1, sizeof *marker);
  if (!marker) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessEventRecord: no memory on the host");
  marker->users = 1;
  marker->device_mask = stream->mesh->device_mask;
  if (event->marker && defect_once_in("stale_event_at_times", 2)) marker->done = true;
  tessStatus_t status = submit(stream, "tessEventRecord", run_record, marker);
  if (status) {
    marker_leave(marker);
    return status;
  }
  marker_leave(event->marker);
  event->marker = marker;
  return TESS_OK;
}

static tessStatus_t wait_for(Event* event, Stream* stream) {
  Marker* marker = event->marker;
  if (!marker && defect("unrecorded_event_refused"))
    return invalid("tessStreamWaitEvent: the event was never recorded");
  if (!marker) return TESS_OK;
  if (marker->device_mask & stream->mesh->device_mask || defect("waits_across_machines"))
    return submit(stream, "tessStreamWaitEvent", run_wait, marker);
  return invalid("tessStreamWaitEvent: the event was recorded on a mesh that shares no device with the stream's");
}

static tessStatus_t with_both(
    tessEvent_t event, tessStream_t stream, const char* function, tessStatus_t (*act)(Event*, Stream*)) {
  Event* found;
  Stream* on;
  runtime_lock();
  tessStatus_t status = event_of(event, function, &found);
  if (!status) status = stream_of(stream, function, &on);
  if (!status) status = act(found, on);
  runtime_unlock();
  return status;
}

tessStatus_t tessEventRecord(tessEvent_t event, tessStream_t stream) {
  return with_both(event, stream, "tessEventRecord", record);
}

tessStatus_t tessStreamWaitEvent(tessStream_t stream, tessEvent_t event) {
  return with_both(event, stream, "tessStreamWaitEvent", wait_for);
}
