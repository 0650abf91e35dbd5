"""Streams and events (runtime spec 4.3, 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .contexts import Context, current
from .errors import invalid, require

if TYPE_CHECKING:
    from .meshes import Mesh

__all__ = ["DefaultStream", "Event", "Stream", "default_stream", "stream_on"]


class Stream:
    """A queue of work on every rank of a mesh, in order."""

    def __init__(self, mesh: Mesh, priority: int = 0) -> None:
        """tessStreamCreate. Raises `TesseraError`."""
        if not hasattr(mesh, "context"):  # the module of meshes imports this one
            raise invalid("tessStreamCreate", f"mesh of type {type(mesh).__name__}", "Mesh")
        self.mesh = mesh
        self.handle = mesh.context.value(mesh.context.runtime.tessStreamCreate(mesh.handle, priority))
        self._is_open = True

    def synchronize(self) -> None:
        """tessStreamSynchronize: wait for the work. Raises as `TesseraError` the first thing that failed in it."""
        context = self.mesh.context
        try:
            context.check(context.runtime.tessStreamSynchronize(self.handle))
        finally:
            self.mesh.finished(self)

    def record(self, event: Event) -> None:
        """tessEventRecord. Raises `TesseraError`."""
        require("tessEventRecord", "event", event, Event)
        self.mesh.context.check(self.mesh.context.runtime.tessEventRecord(event.handle, self.handle))

    def wait(self, event: Event) -> None:
        """tessStreamWaitEvent: what is queued later starts once the event has come. Raises `TesseraError`."""
        require("tessStreamWaitEvent", "event", event, Event)
        self.mesh.context.check(self.mesh.context.runtime.tessStreamWaitEvent(self.handle, event.handle))

    def close(self) -> None:
        """tessStreamDestroy, which lets the queued work finish. Closing twice is no error."""
        if self._is_open and self.mesh.is_open:
            self._is_open = False
            self.mesh.context.check(self.mesh.context.runtime.tessStreamDestroy(self.handle))
            self.mesh.finished(self)


class Event:
    """A point in a stream that other streams can wait for."""

    def __init__(self, context: Context | None = None) -> None:
        """tessEventCreate. Raises `TesseraError`."""
        self.context = current("tessEventCreate", context)
        self.handle = self.context.value(self.context.runtime.tessEventCreate())
        self._is_open = True

    def close(self) -> None:
        """tessEventDestroy. Closing twice is no error."""
        if self._is_open and self.context.is_open:
            self._is_open = False
            self.context.check(self.context.runtime.tessEventDestroy(self.handle))


class DefaultStream:
    """The default stream of whichever mesh it is used with."""


def default_stream() -> DefaultStream:
    """The stream that a mesh has from the beginning (RT-05-10); the same as giving none."""
    return DefaultStream()


def stream_on(mesh: Mesh, stream: Stream | DefaultStream | None, function: str) -> Stream:
    """The stream meant, for work on a mesh. Raises `TesseraError` for anything else and for another mesh's."""
    if stream is None or isinstance(stream, DefaultStream):
        return mesh.default_stream
    if not isinstance(stream, Stream) or stream.mesh is not mesh:
        given = (
            "a stream of another mesh" if isinstance(stream, Stream) else f"a stream of type {type(stream).__name__}"
        )
        raise invalid(function, given, "ts.Stream(mesh) of the same mesh, ts.default_stream() or None")
    return stream
