"""What the library remembers between calls: a runtime, how the last call failed, and the adapter of extensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..abi.status import Status
from ..compilation.compiler import Compiler
from ..runtime import Runtime
from ..runtime.entries import report
from .process import Process

if TYPE_CHECKING:
    from ..adapter import ReferenceAdapter

__all__ = ["Session"]

Outcome = Mapping[str, Any]
"""As the protocol has it: `rejected` or `unsupported`, and what it is."""


class Session:
    """A runtime on the memory of the process, another one after every reset."""

    def __init__(self, process: Process, environment: Callable[[], dict[str, str]]) -> None:
        self.process = process
        self._environment = environment
        self._compiler = Compiler()
        self._last: tuple[str, Outcome] = ("", {})
        """The text of a failure of an extension, and all that is known about it."""
        self.runtime = self._new_runtime()

    def _new_runtime(self) -> Runtime:
        made = Runtime(compiler=self._compiler, process=self.process)
        self._found = made.environment
        return made

    @cached_property
    def adapter(self) -> ReferenceAdapter:
        """What answers extensions; made when the first is called, since a program without any need not wait for it."""
        from ..adapter import make

        made = make()
        made.runtime = self.runtime
        return made

    def read_environment(self) -> None:
        """Let the next context find the variables of the process, unless an extension has said what it finds."""
        if self.runtime.environment is self._found:
            self.runtime.environment = self._found = self._environment()

    def reset(self) -> None:
        """Forget everything."""
        self.runtime.close()
        self.runtime = self._new_runtime()
        self.process.close_all()
        self._last = ("", {})
        if "adapter" in self.__dict__:
            self.adapter.session_reset()
            self.adapter.runtime = self.runtime

    def fail(self, status: Status, text: str, outcome: Outcome) -> Status:
        """Remember how an extension failed; returns its status."""
        self._last = (text, outcome)
        return report(self.runtime, status, text)

    @property
    def outcome(self) -> Outcome:
        """How the last call that failed did; empty where none has."""
        runtime = self.runtime
        if runtime.last_status is Status.TESS_OK:
            return {}
        if runtime.last_error is self._last[0]:
            return self._last[1]
        return {"rejected": {"code": runtime.last_status.name, "phase": "call", "message": runtime.last_error}}
