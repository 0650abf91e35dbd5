"""The suite judges an endpoint over its wire, to the end also when the endpoint is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from served import PATIENCE, Served

from tessera_conformance.reports.journal import read

ROOT = Path(__file__).resolve().parents[3]
ROOM = ROOT / "conformance" / "abi" / "host_io"
QUICK = ("test_envelope.py", "test_matching.py")

pytestmark = pytest.mark.skipif(not list(ROOM.glob("test_*.py")), reason="the room has no cases yet")


def suite(served: Served, tmp_path: Path, *files: str, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A run of the room's cases, or of some files of them, against an endpoint."""
    implementation = f"--impl=hostio:{served.address},description={tmp_path / 'io.json'}"
    places = [str(ROOM / each) for each in files] or [str(ROOM)]
    options = [implementation, "--deadline=10", f"--report-dir={tmp_path}", *options, *places]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def described(tmp_path: Path) -> tuple[str, str]:
    return "--description", str(tmp_path / "io.json")


def verdicts(tmp_path: Path) -> Counter[str]:
    return Counter(line["verdict"] for line in read(tmp_path / "report.jsonl").observations)


@pytest.mark.parametrize(
    ("form", "files"),
    [
        pytest.param("unix", (), marks=pytest.mark.slow),
        ("tcp", QUICK),
    ],
    ids=["unix", "tcp-part"],
)
def test_nothing_that_crosses_the_wire_fails(
    serve: Callable[..., Served], tmp_path: Path, drawn: Callable[[int], int], form: str, files: tuple[str, ...]
) -> None:
    """What needs methods of the protocol is unsupported; everything else passes. Of the room, a quarter is asked."""
    place = str(tmp_path / "io.sock") if form == "unix" else "127.0.0.1:0"
    part = [] if files else [f"--shard=1/{4 // drawn(4)}"]
    run = suite(serve(f"--{form}", place, *described(tmp_path)), tmp_path, *files, options=part)
    output, _ = run.communicate(timeout=10 * PATIENCE)
    found = verdicts(tmp_path)
    assert set(found) <= {"pass", "unsupported", "inapplicable"}, output
    assert found["pass"] > 20


@pytest.mark.slow
def test_a_run_ends_when_the_endpoint_is_killed(serve: Callable[..., Served], tmp_path: Path) -> None:
    """The cases before have passed, those behind are crashes, and no case is without a verdict."""
    served = serve("--unix", str(tmp_path / "io.sock"), *described(tmp_path))
    run, report = suite(served, tmp_path, *QUICK, "test_fields.py"), tmp_path / "report.jsonl"
    limit = time.monotonic() + PATIENCE
    while not (report.exists() and report.read_bytes().count(b'"verdict":"pass"') > 20):
        assert time.monotonic() < limit
        time.sleep(0.02)
    served.end(signal.SIGKILL)
    output, _ = run.communicate(timeout=10 * PATIENCE)
    assert run.returncode == 1
    found = verdicts(tmp_path)
    assert found["pass"] > 20 and found["crash"] > 20, output
    assert set(found) <= {"pass", "crash", "unsupported", "inapplicable"}, output
