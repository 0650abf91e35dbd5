"""Contexts, and the default context of calls that name none (runtime spec 4.1, 4.7, 4.8, 5)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from types import NoneType
from typing import Protocol, TypeVar

from ..abi.policy import NumericsPolicy
from ..abi.status import Status
from ..mesh.findings import Finding
from ..mesh.topology import Topology
from ..runtime.api import Runtime
from .errors import TesseraError, failures_raised, invalid, require
from .locking import LOCK, locked, locked_class

__all__ = ["Context", "current", "init", "version"]

Value = TypeVar("Value")


class OpenMesh(Protocol):
    """A mesh, as its context knows it."""

    def synchronize(self, default_stream: bool = False) -> None:
        """Wait for all its streams, or for the default one alone. Raises `TesseraError`."""


@locked_class
class Context:
    """A runtime on a simulated machine, initialized. Use it in a `with` statement, or `close` it."""

    def __init__(self, topology: Topology | None = None, environment: Mapping[str, str] | None = None) -> None:
        """A machine of its own: the default one of eight devices, and the variables of Appendix C as they are set."""
        require("tessInit", "topology", topology, Topology, NoneType)
        require("tessInit", "environment", environment, Mapping, NoneType)
        variables = os.environ if environment is None else environment
        self.runtime = Runtime(topology, dict(variables))
        self.handle = self.value(self.runtime.tessInit())
        self.is_open = True
        self.meshes: list[OpenMesh] = []

    def check(self, status: Status) -> None:
        """Raise `TesseraError` unless a call returned TESS_OK."""
        if status is not Status.TESS_OK:
            raise TesseraError(status, str(self.runtime.last_error))

    def value(self, outcome: tuple[Status, Value | None]) -> Value:
        """The output of a call. Raises `TesseraError` unless it returned TESS_OK."""
        status, value = outcome
        self.check(status)
        assert value is not None
        return value

    @property
    def policy(self) -> NumericsPolicy:
        """The numerics policy; one assigned, or changed by `set_policy`, governs the work submitted from then on."""
        policy: NumericsPolicy = self.value(self.runtime.tessGetNumericsPolicy(self.handle))
        return policy

    @policy.setter
    def policy(self, policy: NumericsPolicy) -> None:
        require("tessSetNumericsPolicy", "policy", policy, NumericsPolicy)
        self.check(self.runtime.tessSetNumericsPolicy(self.handle, asdict(policy)))

    def set_policy(self, **switches: int) -> None:
        """Change some switches of the policy. Raises `TesseraError` for others, and for values other than 0 and 1."""
        known = [field.name for field in fields(NumericsPolicy)]
        for name in switches:
            if name not in known:
                raise invalid("tessSetNumericsPolicy", f"switch {name}", "one of " + ", ".join(known))
        with failures_raised():
            self.policy = replace(self.policy, **switches)

    @contextmanager
    def profile(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Write a trace of what is submitted in the `with` statement; open it in Perfetto."""
        require("tessProfilerStop", "path", path, str, os.PathLike)
        with LOCK:
            profiler = self.value(self.runtime.tessProfilerStart(self.handle))
        try:
            yield
        finally:
            with LOCK:
                status = self.runtime.tessProfilerStop(profiler, os.fspath(path))
        with LOCK:
            self.check(status)

    def findings(self) -> list[Finding]:
        """The wrong uses of memory that were found: unordered accesses, reads of memory never written and others."""
        return list(self.runtime.tessxFindings())

    def close(self) -> None:
        """tessShutdown; everything made in the context ends with it. Closing twice is no error."""
        if not self.is_open:
            return
        self.is_open = False
        if self in _MADE:
            _MADE.remove(self)
        self.check(self.runtime.tessShutdown(self.handle))

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


_MADE: list[Context] = []
"""The open contexts that `init` made; calls that name none use the last."""


@locked
def init(topology: Topology | None = None, environment: Mapping[str, str] | None = None) -> Context:
    """tessInit: a new context (RT-05-01), from now on the default one. Raises `TesseraError`."""
    context = Context(topology, environment)
    _MADE.append(context)
    return context


@locked
def current(function: str, context: Context | None = None) -> Context:
    """The context given, or the default one. Raises `TesseraError` with TESS_ERR_NOT_INITIALIZED without any."""
    require(function, "context", context, Context, NoneType)
    if context is not None:
        return context
    if not _MADE:
        raise TesseraError(Status.TESS_ERR_NOT_INITIALIZED, f"{function}: no context; call ts.init() first")
    return _MADE[-1]


@locked
def version() -> tuple[int, int, int]:
    """tessGetVersion: major, minor and patch; needs no context (AMB-RT-39)."""
    runtime = Runtime()
    status, (major, minor, patch) = runtime.tessGetVersion()
    assert status is Status.TESS_OK
    return major, minor, patch
