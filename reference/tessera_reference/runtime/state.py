"""What a runtime consists of, and how one of its functions answers (runtime spec 4, 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from ..abi.status import Failure, Status, within
from ..compilation.executables import Reader
from ..levels.texts import read_at
from ..mesh.choice_policies import Choices
from ..mesh.topology import Topology, default
from ..numerics.errors import NumericsFailure
from .code_cache import CodeCache
from .contexts import Context
from .events import Recordings
from .handles import Handles
from .log import Log
from .machine import Machine
from .meshes import Mesh
from .streams import Stream

__all__ = ["State", "entry", "entry_giving"]


class State:
    """A machine, and the handles of what was made on it. Nothing is shared between two runtimes."""

    def __init__(
        self,
        topology: Topology | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        choices: Choices | None = None,
        timed: bool = True,
        read: Reader = read_at,
    ) -> None:
        self.environment = dict(environment or {})
        self.machine = Machine(topology or default(), choices, timed)
        self.handles = Handles()
        self.recordings = Recordings()
        self.log = Log()
        self.code = CodeCache(self.machine, read)
        self.last_error = ""

    def context(self, handle: Any, function: str) -> Context:
        """A live context. Raises `Failure`, as all of these."""
        return self.handles.find("context", Context, handle, function)

    def mesh(self, handle: Any, function: str) -> Mesh:
        """A live mesh."""
        return self.handles.find("mesh", Mesh, handle, function)

    def stream(self, handle: Any, function: str) -> Stream:
        """A live stream."""
        return self.handles.find("stream", Stream, handle, function)

    def require_initialized(self, function: str) -> None:
        """Some tessInit has succeeded and not been taken back (AMB-RT-07). Raises `Failure`."""
        if not self.handles.live("context"):
            raise Failure(Status.TESS_ERR_NOT_INITIALIZED, function, "no context is live", "a tessInit before it")


def entry(method: Callable[..., None]) -> Callable[..., Status]:
    """A function of the API without outputs: it gives a status, and raises nothing.

    Inside it raises `Failure`, whose text is kept as the last error.
    """
    return _answering(method, ())


def entry_giving(*outputs: str) -> Callable[[Callable[..., Any]], Callable[..., tuple[Status, Any]]]:
    """A function of the API with outputs: it gives a status and what goes there, None where it failed.

    With `null` a caller names outputs whose pointer is NULL.
    """
    return lambda method: _answering(method, outputs)


def _answering(method: Callable[..., Any], outputs: tuple[str, ...]) -> Callable[..., Any]:
    function = method.__name__

    @wraps(method)
    def call(self: State, *arguments: Any, null: tuple[str, ...] = (), **named: Any) -> Any:
        self.machine.host_call()
        try:
            if null:
                _require_outputs(function, outputs, null)
            answer = method(self, *arguments, **named)
        except Failure as failure:
            return _failed(self, failure.status, str(within(failure, function)), outputs)
        except NumericsFailure as failure:
            return _failed(self, Status.TESS_ERR_INVALID_VALUE, f"{function}: {failure}", outputs)
        except MemoryError:
            text = f"{function}: the simulating machine has no memory left; expected smaller sizes"
            return _failed(self, Status.TESS_ERR_OUT_OF_MEMORY, text, outputs)
        return (Status.TESS_OK, answer) if outputs else Status.TESS_OK

    return call


def _require_outputs(function: str, outputs: tuple[str, ...], null: tuple[str, ...]) -> None:
    for name in outputs:
        if name in null:
            given = f"{name} is NULL"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, function, given, "a pointer to where the result goes")


def _failed(state: State, status: Status, text: str, outputs: tuple[str, ...]) -> Any:
    state.last_error = text
    state.log.note("info", f"{status.name}: {text}")
    return (status, None) if outputs else status
