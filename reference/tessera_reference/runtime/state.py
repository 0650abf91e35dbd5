"""The state of a runtime: its machine, and the handles of what was made on it (runtime spec 4)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from ..abi.status import Failure, Status
from ..compilation.compiler import Compiler
from ..mesh.choice_policies import Choices
from ..mesh.process_memory import ProcessMemory
from ..mesh.topology import Topology, default
from .capture import Capture, capture_of
from .code_cache import CodeCache
from .collectives import Issued
from .contexts import Context
from .handles import Handles
from .log import Log
from .machine import Machine
from .meshes import Mesh
from .modules import LoadedModule
from .streams import Stream

__all__ = ["State"]


class State:
    """What the functions of the API work on. Two runtimes share nothing."""

    def __init__(
        self,
        topology: Topology | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        choices: Choices | None = None,
        timed: bool = True,
        compiler: Compiler | None = None,
        process: ProcessMemory | None = None,
    ) -> None:
        self.environment = dict(environment or {})
        self.machine = Machine(topology or default(), choices, timed, process=process)
        self.handles = Handles()
        self.recordings = count(1)
        """The numbers of recordings to come."""
        self.captures: list[Capture] = []
        """Those that have not ended."""
        self.issued: WeakKeyDictionary[Stream, Issued] = WeakKeyDictionary()
        self.log = Log()
        self.code = CodeCache(self.machine, compiler or Compiler())
        self.last_status = Status.TESS_OK
        self.last_error = ""
        """How the last call that failed did."""

    def context(self, handle: Any, function: str = "") -> Context:
        """A live context. Raises `Failure`, as all of these."""
        return self.handles.find("context", Context, handle, function)

    def mesh(self, handle: Any, function: str = "") -> Mesh:
        """A live mesh."""
        return self.handles.find("mesh", Mesh, handle, function)

    def stream(self, handle: Any, function: str = "") -> Stream:
        """A live stream."""
        return self.handles.find("stream", Stream, handle, function)

    def module(self, handle: Any, function: str = "") -> LoadedModule:
        """A live module."""
        return self.handles.find("module", LoadedModule, handle, function)

    def require_initialized(self) -> None:
        """There is a live context (AMB-RT-07). Raises `Failure`."""
        if not self.handles.live("context"):
            raise Failure(Status.TESS_ERR_NOT_INITIALIZED, "", "no context is live", "a tessInit before it")

    def drain(self, context: Context | None = None) -> None:
        """Let all queued work finish, or that of one context (AMB-RT-50)."""
        for _, mesh in self.handles.live("mesh"):
            if context in (None, mesh.context):
                mesh.drain()

    def close(self) -> None:
        """Free the machine and its memory at once: processes, work, streams and meshes hold each other."""
        self.machine.engine.close()
        for _, stream in self.handles.live("stream"):
            stream.close()
        for _, mesh in self.handles.live("mesh"):
            mesh.streams.clear()

    def release_stream(self, stream: Stream) -> None:
        """End a stream that has no work left, and the capture that it is in."""
        capture = capture_of(self.captures, stream)
        if capture is not None:
            capture.end(stream)
        stream.close()
        del stream.mesh.streams[stream.handle]
        self.handles.end(stream.handle)

    def release_mesh(self, mesh: Mesh) -> None:
        """Let the work of a mesh finish, and release its streams and memory."""
        self.drain()  # of every mesh: streams of others may refer to its memory
        for handle in tuple(mesh.streams):
            self.release_stream(self.stream(handle))
        for allocation in self.machine.memory.release(mesh.handle):
            self.machine.order.forget(allocation.number)
        self.handles.end(mesh.handle)
