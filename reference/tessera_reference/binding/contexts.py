"""Contexts, the errors that the binding raises, and the lock around its calls (runtime spec 4.1, 4.7, 4.8, 5, 7)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import wraps
from types import FunctionType, NoneType
from typing import Any, ParamSpec, Protocol, TypeVar

from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status
from ..mesh.memory import Finding
from ..mesh.topology import Topology
from ..runtime.api import Runtime

# The error that the binding raises where the runtime returns a status other than TESS_OK (runtime spec 5, 7).


class TesseraError(Exception):
    """A call that failed: its `status`, and a `message` with the actual and the expected value."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return f"{self.status.name}: {self.message}"


def invalid(function: str, actual: str, allowed: str) -> TesseraError:
    """Return the error for an argument that a function does not take."""
    return _error(Failure(Status.TESS_ERR_INVALID_VALUE, function, actual, allowed))


def require(function: str, name: str, value: Any, *types: type) -> None:
    """Refuse an argument that is of none of these types. Raises `TesseraError`."""
    if not isinstance(value, types):
        allowed = " or ".join(type_.__name__ for type_ in types)
        raise invalid(function, f"{name} of type {type(value).__name__}", allowed)


@contextmanager
def failures_raised() -> Iterator[None]:
    """Raise failures of the ABI's values as `TesseraError`."""
    try:
        yield
    except Failure as failure:
        raise _error(failure) from None


def _error(failure: Failure) -> TesseraError:
    return TesseraError(failure.status, str(failure))


# One lock around every call of the binding, so that threads may share contexts, meshes and streams.
#
# The simulated machine runs in the thread that waits for it; so a wait holds the lock until the work is done. The lock
# covers calls of the binding only, not accesses to the application's arrays.


LOCK = threading.RLock()

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)


def locked(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return the function under the lock, so that it runs alone within the binding."""

    @wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with LOCK:
            return function(*arguments, **named)

    return run


def locked_class(cls: Class) -> Class:
    """Return the class with all methods and properties under the lock; a generator only while it is created."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType):
            setattr(cls, name, locked(member))
        elif isinstance(member, property):
            read = None if member.fget is None else locked(member.fget)
            write = None if member.fset is None else locked(member.fset)
            setattr(cls, name, property(read, write, doc=member.__doc__))
    return cls


# Contexts, and the default context of calls that name none (runtime spec 4.1, 4.7, 4.8, 5).


class OpenMesh(Protocol):
    """The operations of a mesh that its context uses."""

    def synchronize(self, default_stream: bool = False) -> None:
        """Wait for all its streams, or for the default one alone. Raises `TesseraError`."""


@locked_class
class Context:
    """An initialized runtime on a simulated machine. Use it in a `with` statement, or `close` it."""

    def __init__(self, topology: Topology | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Create a machine, by default one of eight devices with the current variables of Appendix C."""
        require("tessInit", "topology", topology, Topology, NoneType)
        require("tessInit", "environment", environment, Mapping, NoneType)
        variables = os.environ if environment is None else environment
        self.runtime = Runtime(topology, dict(variables))
        self.handle = self.call("tessInit")
        self.is_open = True
        self.meshes: list[OpenMesh] = []

    def call(self, function: str, *arguments: Any) -> Any:
        """Return the output of a function of the runtime, or None. Raises `TesseraError` unless it returned TESS_OK."""
        answer = getattr(self.runtime, function)(*arguments)
        status, output = answer if isinstance(answer, tuple) else (answer, None)
        if status is not Status.TESS_OK:
            raise TesseraError(status, self.runtime.last_error)
        return output

    @property
    def policy(self) -> NumericsPolicy:
        """The numerics policy; once assigned, or changed by `set_policy`, it governs the work submitted afterwards."""
        return self.call("tessGetNumericsPolicy", self.handle)  # type: ignore[no-any-return]  # a policy

    @policy.setter
    def policy(self, policy: NumericsPolicy) -> None:
        require("tessSetNumericsPolicy", "policy", policy, NumericsPolicy)
        self.call("tessSetNumericsPolicy", self.handle, asdict(policy))

    def set_policy(self, **switches: int) -> None:
        """Change some switches of the policy. Raises `TesseraError` for others, and for values other than 0 and 1."""
        names = [field.name for field in fields(NumericsPolicy)]
        for name in switches:
            if name not in names:
                raise invalid("tessSetNumericsPolicy", f"switch {name}", "one of " + ", ".join(names))
        with failures_raised():
            self.policy = replace(self.policy, **switches)

    @contextmanager
    def profile(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Write a trace of the work submitted in the `with` statement; open it in Perfetto."""
        require("tessProfilerStop", "path", path, str, os.PathLike)
        with LOCK:
            profiler = self.call("tessProfilerStart", self.handle)
        try:
            yield
        except BaseException:  # which counts, not a failure to write the trace
            with LOCK:
                self.runtime.tessProfilerStop(profiler, os.fspath(path))
            raise
        with LOCK:
            self.call("tessProfilerStop", profiler, os.fspath(path))

    def findings(self) -> list[Finding]:
        """Return the wrong uses of memory found so far: unordered accesses, reads of unwritten memory and others."""
        return list(self.runtime.tessxFindings())

    def close(self) -> None:
        """Call tessShutdown, which ends everything created in the context. Closing twice is not an error."""
        if not self.is_open:
            return
        self.is_open = False
        if self in _MADE:
            _MADE.remove(self)
        self.call("tessShutdown", self.handle)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


_MADE: list[Context] = []
"""The open contexts that `init` created; calls that name none use the last."""


@locked
def init(topology: Topology | None = None, environment: Mapping[str, str] | None = None) -> Context:
    """Call tessInit, and make the new context the default one (RT-05-01). Raises `TesseraError`."""
    context = Context(topology, environment)
    _MADE.append(context)
    return context


@locked
def current(function: str, context: Context | None = None) -> Context:
    """Return the named context, or the default one. Raises `TesseraError` with TESS_ERR_NOT_INITIALIZED without any."""
    require(function, "context", context, Context, NoneType)
    if context is not None:
        return context
    if not _MADE:
        raise TesseraError(Status.TESS_ERR_NOT_INITIALIZED, f"{function}: no context; call ts.init() first")
    return _MADE[-1]


@locked
def version() -> tuple[int, int, int]:
    """Return the result of tessGetVersion: major, minor and patch; needs no context (AMB-RT-39)."""
    runtime = Runtime()
    status, (major, minor, patch) = runtime.tessGetVersion()
    assert status is Status.TESS_OK
    return major, minor, patch
