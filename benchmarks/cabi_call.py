"""A small call of a C library through the process that loads it, and what of it is not the pipe."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_conformance.protocol import Returned
from tessera_conformance.session import Session
from tessera_conformance.transports.cabi.transport import CabiTransport
from tessera_conformance.transports.locate import locate

CALLS = 500
SOURCE = Path(__file__).parents[1] / "tests" / "transports" / "cabi" / "steady.c"
METHOD = "runtime.tessGetVersion"


def measure() -> list[Outcome]:
    """One call at a time, as the suite asks, and many requests in one write, which is the work without the waiting."""
    if shutil.which("gcc") is None:
        return [NotMeasured("C library call", "apt-get install gcc")]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libsteady.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
        return _measured(library)


def _measured(library: Path) -> list[Outcome]:
    session = Session(locate(f"cabi:{library}"))
    command = CabiTransport(str(library)).arguments(library.parent)
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    requests = _requests(CALLS)

    def one_by_one() -> None:
        for _ in range(CALLS):
            assert isinstance(session.call(METHOD, {}), Returned)
        session.exchanges.clear()

    def together() -> None:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(requests)
        child.stdin.flush()
        for _ in range(CALLS):
            assert b"returned" in child.stdout.readline()

    single, batched = in_turns(one_by_one, together, 15, time.perf_counter)
    session.close()
    child.communicate()
    return [
        Measurement("C library call", single / CALLS, "batched", batched / CALLS, single / CALLS * 1e6, "us", 150),
        Measurement(
            "C library call, batched", batched / CALLS, "single", single / CALLS, batched / CALLS * 1e6, "us", 15
        ),
    ]


def _requests(count: int) -> bytes:
    """So many requests, a line each."""
    request = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": {}}
    return (json.dumps(request) + "\n").encode() * count
