"""Streams and events (runtime spec 4.3, 12; AMB-RT-49, AMB-RT-50, AMB-RT-63)."""

# ruff: noqa: N802, the names are those of the C API

from __future__ import annotations

from typing import Any

from ..arguments import INT, integer, invalid
from ..capture import Capture, capture_of
from ..entries import entry
from ..events import Event, Recording, RecordWork, WaitWork, recording_on
from ..state import State
from ..streams import Stream


@entry("stream")
def tessStreamCreate(state: State, mesh: Any, priority: int) -> int:
    """A stream on all ranks of a mesh; the larger its priority, the more urgent (RT-04.3-11, AMB-RT-63)."""
    on = state.mesh(mesh)
    urgency = integer("priority", priority, INT)
    stream = Stream(0, on, urgency)
    stream.handle = state.handles.give("stream", stream)
    on.streams[stream.handle] = stream
    return stream.handle


@entry()
def tessStreamDestroy(state: State, stream: Any) -> None:
    """End a stream once its work is done; an error not yet reported is lost (RT-04.3-12, AMB-RT-50)."""
    ended = state.stream(stream)
    ended.drain()
    state.release_stream(ended)


@entry("event")
def tessEventCreate(state: State) -> int:
    """An event that nothing has recorded yet (RT-04.3-13, AMB-RT-07)."""
    state.require_initialized()
    event = Event(0)
    event.handle = state.handles.give("event", event)
    return event.handle


@entry()
def tessEventDestroy(state: State, event: Any) -> None:
    """End an event; streams that wait for its recording still do (RT-04.3-14)."""
    _event(state, event)
    state.handles.end(event)


@entry()
def tessEventRecord(state: State, event: Any, stream: Any) -> None:
    """Record how far a stream's work has come; this replaces an earlier recording (RT-02-06, AMB-RT-49)."""
    recorded = _event(state, event)
    on = state.stream(stream)
    capture = capture_of(state.captures, on)
    recording = recording_on(on, next(state.recordings), capture)
    if capture is not None:
        capture.record(recording.number, on)
    else:
        on.enqueue(RecordWork(name=f"record event {event}", stream=on, recording=recording))
    recording.clock = state.machine.order.record(stream)
    recorded.last = recording


@entry()
def tessStreamWaitEvent(state: State, stream: Any, event: Any) -> None:
    """Later work of a stream begins when the recording is reached (RT-12-03, RT-12-04, AMB-RT-49)."""
    waiting = state.stream(stream)
    recording = _event(state, event).last
    if recording is None:
        return
    if not set(recording.mesh.devices) & set(waiting.mesh.devices):
        given = f"an event of mesh {recording.mesh.handle}, which shares no device with mesh {waiting.mesh.handle}"
        raise invalid(given, "a mesh with common devices")
    captured = recording.captured_by
    if captured is not None:
        _require_may_join(captured, recording, waiting, capture_of(state.captures, waiting))
        captured.wait(recording.number, waiting)
        return
    waiting.enqueue(WaitWork(name=f"wait for event {event}", stream=waiting, recording=recording))
    state.machine.order.wait(recording.clock, stream)


@entry()
def tessStreamSynchronize(state: State, stream: Any) -> None:
    """Return when all that was queued is done; the first asynchronous error among it is reported, once
    (RT-04.3-10, RT-07-07, AMB-RT-14)."""
    state.stream(stream).synchronize()


def _event(state: State, handle: Any) -> Event:
    return state.handles.find("event", Event, handle)


def _require_may_join(capture: Capture, recording: Recording, stream: Stream, current: Capture | None) -> None:
    """A stream joins a capture of its own mesh, while it runs, and only one at a time. Raises `Failure`."""
    if capture not in capture.running:
        given = "an event that was recorded in a capture, which has ended"
        raise invalid(given, "an event recorded since")
    if stream.mesh is not recording.mesh:
        given = f"an event captured on mesh {recording.mesh.handle} for a stream of mesh {stream.mesh.handle}"
        raise invalid(given, "a stream of the mesh that is captured")
    if current not in (None, capture):
        given = f"an event of another capture than that of stream {stream.handle}"
        raise invalid(given, "an event of the capture that the stream is in")
