"""The state of a session of the adapter; each part is imported and created on first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..abi.policy import NumericsPolicy
    from ..collectives.links import CreditLimiter
    from ..compilation.compiler import Compiler
    from ..host_io.endpoint import Endpoint
    from ..runtime import Runtime
    from ..wsp.native import NativeRun
    from ..wsp.run import Run

FORGOTTEN = ("runtime", "endpoint", "_runs", "_limiters")
"""The attributes that `session_reset` recreates."""


class SessionState:
    """A runtime, an endpoint and the runs of packages, and a compiler that outlives them."""

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler, which compiles each program once."""
        from ..compilation.compiler import Compiler

        return Compiler()

    @cached_property
    def runtime(self) -> Runtime:
        """The functions of the runtime, on a machine of its own."""
        from ..runtime import Runtime

        return Runtime(compiler=self.compiler)

    @cached_property
    def endpoint(self) -> Endpoint:
        """The IO_CPU."""
        from ..host_io.endpoint import Endpoint

        return Endpoint()

    @cached_property
    def _runs(self) -> dict[int, Run | NativeRun]:
        """The runs of packages by their numbers."""
        return {}

    @cached_property
    def _limiters(self) -> list[CreditLimiter]:
        """The limiters of credits, in order of their numbers."""
        return []

    def session_reset(self, **arguments: Any) -> dict[str, Any]:
        """Replace the machine and the endpoint, and drop runs and limiters."""
        if "runtime" in self.__dict__:
            self.runtime.close()
        for attribute in FORGOTTEN:
            self.__dict__.pop(attribute, None)
        return {}

    def policy(self, context: int, function: str) -> NumericsPolicy:
        """Return the policy in force for the work of a context. Raises `Failure`."""
        from ..runtime.machine import reported_by

        with reported_by(function):
            return self.runtime.context(context).governing()
