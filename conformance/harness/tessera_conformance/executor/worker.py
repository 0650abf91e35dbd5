"""Units of work on a worker of the cluster: each in a process of its own, of which nothing outlives the worker."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tessera_conformance.executor.answers import ORDER, OUTPUT, answer_bytes
from tessera_conformance.terminal import Interrupted, interrupt_once
from tessera_conformance.transports.rpc import ProcessFamily

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
        command = [sys.executable, "-m", __name__, module, name]
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


# The process between a worker and the process that does a unit: nothing of the unit outlives the worker.
#
# Its standard input is closed when the worker dies or stops the unit. It then ends the unit and every process that
# the implementation under test has started. `python -m tessera_conformance.executor.worker MODULE FOLDER`.


GRACE = 5.0
"""Seconds that a unit which is to stop has to end its session."""


def main(module: str, folder: str) -> int:
    """The exit code of the unit's process; 0 where a signal ended it, as its answers say how far it came."""
    interrupt_once()
    family = ProcessFamily()
    process = subprocess.Popen(
        [sys.executable, "-m", module, folder],
        stdin=subprocess.DEVNULL,
        env=family.environment(),
        start_new_session=True,
    )
    family.begins_with(process.pid)
    threading.Thread(target=_interrupt_at_end_of_input, daemon=True).start()
    try:
        return max(process.wait(), 0)
    except Interrupted as signal_:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        shutil.rmtree(folder, ignore_errors=True)
        return signal_.exit_code
    finally:
        family.end()
        process.wait()


def _interrupt_at_end_of_input() -> None:
    """Standard input has no content: it only shows that the worker is alive."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
