"""Functions called in the process of a worker: do a unit in a process of its own, or stop all units of a run."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tessera_conformance.executor import supervisor
from tessera_conformance.executor.answers import ORDER, OUTPUT, answer_bytes

_LOCK = threading.Lock()
_RUNNING: dict[str, list[subprocess.Popen[bytes]]] = {}
"""The supervisors of the units of each run."""
_STOPPED: set[str] = set()
"""The runs of which no further unit is to begin."""


def perform(order: str, *, module: str, run: str) -> bytes:
    """Do a unit of a run, which a module does as a program; a process that dies leaves what it had answered."""
    with TemporaryDirectory(prefix="tessera-unit-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / ORDER).write_text(order, encoding="ascii")
        command = [sys.executable, "-m", supervisor.__name__, module, name]
        with (folder / OUTPUT).open("wb") as output, _started(command, output.fileno(), run) as process:
            if process is not None:
                process.wait()
        return answer_bytes(folder, _address())


def stop(run: str) -> None:
    """Stop the units of a run, and let none begin."""
    with _LOCK:
        _STOPPED.add(run)
        for process in _RUNNING.get(run, ()):
            _close_input(process)


@contextlib.contextmanager
def _started(command: list[str], output: int, run: str) -> Iterator[subprocess.Popen[bytes] | None]:
    """A process whose open standard input shows that this one is alive; None where the run was stopped."""
    with _LOCK:
        if run in _STOPPED:
            process = None
        else:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
            _RUNNING.setdefault(run, []).append(process)
    try:
        yield process
    finally:
        if process is not None:
            with _LOCK:
                _close_input(process)
                _RUNNING[run].remove(process)
            process.wait()


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _address() -> str:
    """The address of this worker, by which messages name it."""
    from distributed import get_worker

    return str(get_worker().address)
