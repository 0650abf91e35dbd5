"""The state of a runtime, and the table of the functions that work on it (runtime spec 4, 7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..abi.status import Failure, Status, within
from ..compilation.compiler import Compiler
from ..mesh.engine import Choices
from ..mesh.memory import ProcessMemory
from ..mesh.topology import Topology, default
from ..numerics.formats import NumericsFailure
from .collectives import Issued
from .contexts import Context
from .launches import CodeCache, LoadedModule
from .machine import Handles, Machine, invalid
from .streams import Capture, Mesh, Stream, Work, capture_of

# The log of a runtime: the lines up to the level of TESS_LOG_LEVEL (runtime spec, Appendix C).


LEVELS = ("info", "debug", "trace")
"""The log levels, from the fewest lines to the most."""

MOST_LINES = 10_000
"""The number of lines kept: the last ones."""


@dataclass(frozen=True)
class Line:
    """One line, with its level."""

    level: str
    text: str


class Log:
    """The last lines of the log; without a level none is kept."""

    def __init__(self) -> None:
        self.level: str | None = None
        self.lines: deque[Line] = deque(maxlen=MOST_LINES)

    def note(self, level: str, text: str) -> None:
        """Keep a line if the level includes it."""
        if self.level is not None and LEVELS.index(level) <= LEVELS.index(self.level):
            self.lines.append(Line(level, text))


# The state of a runtime: its machine, and the handles of what was made on it (runtime spec 4).


class State:
    """The state that the functions of the API share. Two runtimes share nothing."""

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
        """The captures that have not ended."""
        self.issued: WeakKeyDictionary[Stream, Issued] = WeakKeyDictionary()
        self.log = Log()
        self.code = CodeCache(self.machine, compiler or Compiler())
        self.last_status = Status.TESS_OK
        self.last_error = ""
        """The message of the last call that failed."""

    def context(self, handle: Any) -> Context:
        """Return the live context of a handle. Raises `Failure`, as all of these."""
        return self.handles.find("context", Context, handle)

    def mesh(self, handle: Any) -> Mesh:
        """Return the live mesh of a handle."""
        return self.handles.find("mesh", Mesh, handle)

    def stream(self, handle: Any) -> Stream:
        """Return the live stream of a handle."""
        return self.handles.find("stream", Stream, handle)

    def module(self, handle: Any) -> LoadedModule:
        """Return the live module of a handle."""
        return self.handles.find("module", LoadedModule, handle)

    def require_initialized(self) -> None:
        """Require a live context (AMB-RT-07). Raises `Failure`."""
        if not self.handles.live("context"):
            raise Failure(Status.TESS_ERR_NOT_INITIALIZED, "", "no context is live", "a tessInit before it")

    def drain(self, context: Context | None = None) -> None:
        """Wait until all queued work is done, or that of one context (AMB-RT-50)."""
        for _, mesh in self.handles.live("mesh"):
            if context in (None, mesh.context):
                mesh.drain()

    def close(self) -> None:
        """Free the machine and its memory at once, since processes, work, streams and meshes refer to each other."""
        self.machine.engine.close()
        for _, stream in self.handles.live("stream"):
            stream.close()
        for _, mesh in self.handles.live("mesh"):
            mesh.streams.clear()

    def release_stream(self, stream: Stream) -> None:
        """End a stream that has no work left, and the capture that contains it."""
        capture = capture_of(self.captures, stream)
        if capture is not None:
            capture.end(stream)
        stream.close()
        del stream.mesh.streams[stream.handle]
        self.handles.end(stream.handle)

    def release_mesh(self, mesh: Mesh) -> None:
        """Wait until the work of a mesh is done, and release its streams and memory."""
        self.drain()  # on every mesh: streams of others may refer to its memory
        for handle in tuple(mesh.streams):
            self.release_stream(self.stream(handle))
        for allocation in self.machine.memory.release(mesh.handle):
            self.machine.order.forget(allocation.number)
        self.handles.end(mesh.handle)


# The table of the host API: each function under its C name, with its answer to callers (runtime spec 4, 7).
#
# A file of `calls` defines the functions of one section. Each takes the state of the runtime and then its arguments,
# returns its outputs, and raises `Failure`, which need not name the function.


FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions as their callers see them."""

Function = TypeVar("Function", bound=Callable[..., Any])


def entry(*outputs: str) -> Callable[[Function], Function]:
    """Register a function of the API by its name, with the names of its outputs.

    Callers get a status or, from a function with outputs, a status and the outputs, None where it failed. Nothing
    raises. With the argument `null` callers name outputs whose pointer is NULL.
    """

    def register(function: Function) -> Function:
        FUNCTIONS[function.__name__] = _answering(function, outputs)
        return function

    return register


def infallible(function: Function) -> Function:
    """Register a function that cannot fail: callers get its result, without a status."""
    FUNCTIONS[function.__name__] = function
    return function


def _answering(function: Callable[..., Any], outputs: tuple[str, ...]) -> Callable[..., Any]:
    name = function.__name__

    @wraps(function)
    def call(state: State, *arguments: Any, null: tuple[str, ...] = (), **named: Any) -> Any:
        state.machine.host_call()
        try:
            if null:
                _require_places(outputs, null)
            answer = function(state, *arguments, **named) if named else function(state, *arguments)
        except Failure as failure:
            return failed(state, failure.status, str(within(failure, name)))
        except NumericsFailure as failure:
            return failed(state, Status.TESS_ERR_INVALID_VALUE, f"{name}: {failure}")
        except MemoryError:
            text = f"{name}: the simulating machine has no memory left; expected smaller sizes"
            return failed(state, Status.TESS_ERR_OUT_OF_MEMORY, text)
        return (Status.TESS_OK, answer) if outputs else Status.TESS_OK

    def failed(state: State, status: Status, text: str) -> Any:
        report(state, status, text)
        return (status, None) if outputs else status

    return call


def _require_places(outputs: tuple[str, ...], null: tuple[str, ...]) -> None:
    for output in outputs:
        if output in null:
            raise invalid(f"{output} is NULL", "a pointer to where the result goes")


def report(state: State, status: Status, text: str) -> Status:
    """Record the message of a failed call, and return its status."""
    state.last_status, state.last_error = status, text
    state.log.note("info", f"{status.name}: {text}")
    return status


# Submission: a call queues work on a stream, or adds it to the capture that the stream is in (runtime spec 6).


def submit(state: State, work: Work, *, captured: bool = True) -> None:
    """Queue work; work of a captured stream becomes a node instead, unless `captured` is False."""
    state.log.note("trace", f"{work.function}: {work.name} on stream {work.stream.handle}")
    capture = capture_of(state.captures, work.stream) if captured else None
    if capture is None:
        work.stream.enqueue(work)
    else:
        capture.add(work)
