"""Streams and events (runtime spec 4.3, 12; AMB-RT-49, AMB-RT-50, AMB-RT-63)."""

from __future__ import annotations

from typing import Any

from ..arguments import INT, integer, invalid
from ..capture import Capture
from ..events import Event, Recording, RecordWork, WaitWork
from ..state import entry, entry_giving
from ..streams import Stream
from .meshes import MeshCalls

__all__ = ["StreamCalls"]


class StreamCalls(MeshCalls):
    """tessStream* and tessEvent*."""

    @entry_giving("stream")
    def tessStreamCreate(self, mesh: Any, priority: int) -> int:  # noqa: N802
        """A stream on all ranks of a mesh; the larger its priority, the more urgent (RT-04.3-11, AMB-RT-63)."""
        on = self.mesh(mesh, "tessStreamCreate")
        urgency = integer("tessStreamCreate", "priority", priority, INT)
        stream = Stream(0, on, urgency)
        stream.handle = self.handles.give("stream", stream)
        on.streams[stream.handle] = stream
        return stream.handle

    @entry
    def tessStreamDestroy(self, stream: Any) -> None:  # noqa: N802
        """End a stream once its work is done; an error not yet reported is lost (RT-04.3-12, AMB-RT-50)."""
        ended = self.stream(stream, "tessStreamDestroy")
        ended.drain()
        if ended.capture is not None:
            ended.capture.end(ended)
        ended.close()
        del ended.mesh.streams[stream]
        self.handles.end(stream)

    @entry_giving("event")
    def tessEventCreate(self) -> int:  # noqa: N802
        """An event that nothing has recorded yet (RT-04.3-13, AMB-RT-07)."""
        self.require_initialized("tessEventCreate")
        event = Event(0)
        event.handle = self.handles.give("event", event)
        return event.handle

    @entry
    def tessEventDestroy(self, event: Any) -> None:  # noqa: N802
        """End an event; who waits for its recording still does (RT-04.3-14)."""
        self._event(event, "tessEventDestroy")
        self.handles.end(event)

    @entry
    def tessEventRecord(self, event: Any, stream: Any) -> None:  # noqa: N802
        """Record how far a stream's work has come; this replaces an earlier recording (RT-02-06, AMB-RT-49)."""
        recorded = self._event(event, "tessEventRecord")
        on = self.stream(stream, "tessEventRecord")
        recording = self.recordings.new(on)
        if on.capture is not None:
            on.capture.record(recording.number, on)
        else:
            on.enqueue(RecordWork(name=f"record event {event}", stream=on, recording=recording))
        self.machine.order.record(recording, stream)
        recorded.last = recording

    @entry
    def tessStreamWaitEvent(self, stream: Any, event: Any) -> None:  # noqa: N802
        """Later work of a stream begins when the recording is reached (RT-12-03, RT-12-04, AMB-RT-49)."""
        function = "tessStreamWaitEvent"
        waiting = self.stream(stream, function)
        recording = self._event(event, function).last
        if recording is None:
            return
        if not set(recording.mesh.devices) & set(waiting.mesh.devices):
            given = f"an event of mesh {recording.mesh.handle}, which shares no device with mesh {waiting.mesh.handle}"
            raise invalid(function, given, "a mesh with common devices")
        captured = recording.captured_by
        if captured is not None:
            _require_may_join(captured, recording, waiting)
            captured.wait(recording.number, waiting)
            return
        waiting.enqueue(WaitWork(name=f"wait for event {event}", stream=waiting, recording=recording))
        self.machine.order.wait(recording, stream)

    @entry
    def tessStreamSynchronize(self, stream: Any) -> None:  # noqa: N802
        """Return when all that was queued is done; the first asynchronous error among it is reported, once
        (RT-04.3-10, RT-07-07, AMB-RT-14)."""
        waited_for = self.stream(stream, "tessStreamSynchronize")
        waited_for.synchronize()

    def _event(self, handle: Any, function: str) -> Event:
        return self.handles.find("event", Event, handle, function)


def _require_may_join(capture: Capture, recording: Recording, stream: Stream) -> None:
    """A stream joins a capture of its own mesh, while it runs, and only one at a time. Raises `Failure`."""
    if not capture.running:
        given = "an event that was recorded in a capture, which has ended"
        raise invalid("tessStreamWaitEvent", given, "an event recorded since")
    if stream.mesh is not recording.mesh:
        given = f"an event captured on mesh {recording.mesh.handle} for a stream of mesh {stream.mesh.handle}"
        raise invalid("tessStreamWaitEvent", given, "a stream of the mesh that is captured")
    if stream.capture not in (None, capture):
        given = f"an event of another capture than that of stream {stream.handle}"
        raise invalid("tessStreamWaitEvent", given, "an event of the capture that the stream is in")
