"""Meshes, their streams, and the caller's memory that is mapped into them while work uses it (spec 4.2, 4.3, 5).

Memory is mapped when work with it is submitted, and let go once every stream that work was submitted to has been
synchronized. Until then the mesh keeps the array alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import NoneType
from typing import Literal

from ..mesh.axes import AXES, MeshAxes
from .contexts import Context, current
from .errors import TesseraError, failures_raised, invalid, require
from .host_arrays import HostArray
from .locking import locked, locked_class

__all__ = ["DefaultStream", "Event", "Mesh", "Stream", "default_stream", "mesh", "stream_on", "synchronize"]

Side = Literal["device", "host"]


@dataclass(frozen=True)
class _Mapping:
    """An array of the caller and the pointer under which the machine sees it."""

    array: HostArray
    pointer: int


@locked_class
class Mesh:
    """Devices along tp, pp, dp and ep, an axis left out having size 1. Use it in a `with` statement, or `close` it."""

    def __init__(self, devices: Iterable[int], axes: Mapping[str, int], context: Context | None = None) -> None:
        """tessMeshCreate. Raises `TesseraError`."""
        self.context = current("tessMeshCreate", context)
        require("tessMeshCreate", "devices", devices, Iterable)
        require("tessMeshCreate", "axes", axes, Mapping)
        unknown = [name for name in axes if name not in AXES]
        if unknown:
            raise invalid("tessMeshCreate", f"axes {', '.join(map(str, unknown))}", "some of " + ", ".join(AXES))
        with failures_raised():
            self.axes = MeshAxes(**axes)
        self.devices = tuple(devices)
        created = self.context.runtime.tessMeshCreate(self.context.handle, self.devices, len(self.devices), self.axes)
        self.handle = self.context.value(created)
        self.context.meshes.append(self)
        self._closed = False
        self._default_stream: Stream | None = None
        self._busy: dict[int, Stream] = {}
        self._mapped: dict[tuple[Side, int, int, bool], _Mapping] = {}

    @property
    def is_open(self) -> bool:
        """Whether neither the mesh nor its context was closed."""
        return not self._closed and self.context.is_open

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.devices)

    @property
    def default_stream(self) -> Stream:
        """The stream used where none is named."""
        if self._default_stream is None:
            self._default_stream = Stream(self)
        return self._default_stream

    def mapped(self, array: HostArray, side: Side = "device") -> int:
        """The pointer of memory of the caller: for devices, which all share it, or for copies, as the host's."""
        key = (side, *array.place)
        if key not in self._mapped:
            runtime = self.context.runtime
            adopted = (
                runtime.tessxAdoptDevice(self.handle, array.memory)
                if side == "device"
                else runtime.tessxAdoptHost(array.memory)
            )
            self._mapped[key] = _Mapping(array, self.context.value(adopted))
        return self._mapped[key].pointer

    @contextmanager
    def submission(self, stream: Stream) -> Iterator[None]:
        """Around mapping memory and submitting the work that uses it."""
        try:
            yield
        except TesseraError:
            self._release_when_idle()
            raise
        self._busy[stream.handle] = stream

    def finished(self, stream: Stream) -> None:
        """Called when the work of a stream is done."""
        self._busy.pop(stream.handle, None)
        self._release_when_idle()

    def synchronize(self, default_stream: bool = False) -> None:
        """Wait for all streams that work was submitted to, or for the default stream alone.

        Raises as `TesseraError` the first failure found.
        """
        failures = []
        for stream in [self.default_stream] if default_stream else list(self._busy.values()):
            try:
                stream.synchronize()
            except TesseraError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def close(self) -> None:
        """tessMeshDestroy, which lets the queued work finish; arrays and streams end too. Twice is no error."""
        if self.is_open:
            self._closed = True
            self.context.meshes.remove(self)
            self.context.check(self.context.runtime.tessMeshDestroy(self.handle))
        self._mapped.clear()
        self._busy.clear()

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _release_when_idle(self) -> None:
        """Free what is mapped once no stream is busy: freeing drains streams, whose errors are reported before."""
        if self._busy or not self.is_open:
            return
        runtime = self.context.runtime
        while self._mapped:
            (side, *_), held = self._mapped.popitem()
            free = (
                runtime.tessFree(self.handle, held.pointer) if side == "device" else runtime.tessHostFree(held.pointer)
            )
            self.context.check(free)


@locked_class
class Stream:
    """A queue of work on every rank of a mesh, in order."""

    def __init__(self, mesh: Mesh, priority: int = 0) -> None:
        """tessStreamCreate. Raises `TesseraError`."""
        require("tessStreamCreate", "mesh", mesh, Mesh)
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


@locked_class
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


@locked
def stream_on(mesh: Mesh, stream: Stream | DefaultStream | None, function: str) -> Stream:
    """The stream for work on a mesh. Raises `TesseraError` for a stream of another mesh, and for no stream."""
    if stream is None or isinstance(stream, DefaultStream):
        return mesh.default_stream
    if not isinstance(stream, Stream) or stream.mesh is not mesh:
        given = (
            "a stream of another mesh" if isinstance(stream, Stream) else f"a stream of type {type(stream).__name__}"
        )
        raise invalid(function, given, "ts.Stream(mesh) of the same mesh, ts.default_stream() or None")
    return stream


def mesh(devices: Iterable[int], axes: Mapping[str, int], context: Context | None = None) -> Mesh:
    """tessMeshCreate: a mesh of the default context (RT-05-02). Raises `TesseraError`."""
    return Mesh(devices, axes, context)


@locked
def synchronize(stream: Stream | DefaultStream | None = None, context: Context | None = None) -> None:
    """Wait for a stream, or else for all work of the context. Raises as `TesseraError` what failed in it."""
    require("tessStreamSynchronize", "stream", stream, Stream, DefaultStream, NoneType)
    if isinstance(stream, Stream):
        stream.synchronize()
        return
    for each in list(current("tessStreamSynchronize", context).meshes):
        each.synchronize(default_stream=stream is not None)
