"""An interruption of a run under xdist: its workers are interrupted too.

A signal may come to the first process alone. xdist then asks the workers to end, which they do after the case that they
are at, and interrupts them 5 s later.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest


class WorkerInterruption:
    """A plugin of the process that shares out the cases: passes an interruption on to the workers it has started."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Remember the process of a worker of this machine; xdist offers no other way to it."""
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        if node.gateway.spec.popen and process is not None:
            self._processes.append(process)

    def pytest_keyboard_interrupt(self) -> None:
        """Interrupt them; a worker ignores the second of two signals."""
        for process in self._processes:
            process.send_signal(signal.SIGINT)
