"""Ctrl-C and SIGTERM: the first interrupts, xdist's workers too; later ones do not disturb the clearing up."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

# Ctrl-C and SIGTERM: the first of them interrupts, and nothing after it disturbs what is still to be put in order.


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Raised where the process is when a signal comes; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)

    @property
    def exit_code(self) -> int:
        """Return the exit code that a shell reports of a process which the signal ended."""
        return 128 + self.number


def interrupt_once() -> Callable[[], None]:
    """Let the first of the signals raise `Interrupted`, and ignore the others; gives what takes that back.

    Only the main thread of a process can ask for it; elsewhere nothing happens.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.signal(number, _interrupt) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(number)


# An interruption of a run under xdist: its workers are interrupted too.
#
# A signal may come to the first process alone. xdist then asks the workers to end, which they do after the case that
# they are at, and interrupts them 5 s later.


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
