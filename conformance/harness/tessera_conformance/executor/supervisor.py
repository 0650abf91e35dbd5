"""The process between a worker and the process that does a unit: nothing of the unit outlives the worker.

Its standard input is closed when the worker dies or stops the unit. It then ends the unit and every process that the
implementation under test has started. `python -m tessera_conformance.executor.supervisor MODULE FOLDER`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading

from tessera_conformance.terminal import Interrupted, interrupt_once
from tessera_conformance.transports.rpc import ProcessFamily

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
