"""Ctrl-C and SIGTERM: any front end seals its report, says that it was interrupted, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tessera_conformance.reports.journal import read
from tessera_conformance.terminal.interruptions import WorkerInterruption

from .processes import is_alive, pids_in

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")

ROOT = Path(__file__).resolve().parents[2]
TOOL = [sys.executable, "-m", "tessera_conformance"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance/ir/test_grammar.py"]
PARALLEL = ["-p", "xdist", "-n2"]
SUITE = ("ir/test_grammar.py", "--deadline=300")

FRONT_ENDS = {
    "run": ([*TOOL, "run", *SUITE], True),
    "run in parallel": ([*TOOL, "run", *SUITE, *PARALLEL], True),
    "pytest": ([*PYTEST, "--deadline=300"], True),
    "pytest in parallel": ([*PYTEST, "--deadline=300", *PARALLEL], True),
    "reproduce": ([*TOOL, "reproduce", "ir/grammar/only-modules-stand-at-the-top/func", "--deadline=300"], True),
    "smoke": ([*TOOL, "smoke"], False),
}


QUICK = {("smoke", signal.SIGINT)}
LEFT_OUT = {("run in parallel", signal.SIGTERM), ("pytest in parallel", signal.SIGINT)}
"""The signals come alike to both front ends, and to both where they run in parallel."""


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(
            name, number, id=f"{name}-{number.name}", marks=[] if (name, number) in QUICK else pytest.mark.slow
        )
        for name in FRONT_ENDS
        for number in (signal.SIGINT, signal.SIGTERM)
        if (name, number) not in LEFT_OUT
    ],
)
def test_an_interrupted_front_end_seals_and_cleans_up(
    name: str, number: signal.Signals, tmp_path: Path, fake_command: Callable[[str], str]
) -> None:
    interrupt(name, lambda running: running.send_signal(number), tmp_path, fake_command)


@pytest.mark.slow
def test_a_terminal_interrupts_every_process_of_a_parallel_run(
    tmp_path: Path, fake_command: Callable[[str], str]
) -> None:
    """The workers, which are interrupted by the first process too, put in order what they have all the same."""
    interrupt("run in parallel", lambda running: os.killpg(running.pid, signal.SIGINT), tmp_path, fake_command)


def test_the_workers_of_a_parallel_run_are_interrupted_at_once() -> None:
    """Left to itself, xdist would let them be at their cases for some seconds."""
    execnet = pytest.importorskip("execnet", reason="pip install pytest-xdist")
    gateway = execnet.makegateway("popen//execmodel=main_thread_only")
    try:
        channel = gateway.remote_exec(WAITS)
        assert channel.receive(60) == "waits"
        interruption = WorkerInterruption()
        interruption.pytest_testnodeready(SimpleNamespace(gateway=gateway))
        interruption.pytest_keyboard_interrupt()
        assert channel.receive(60) == "interrupted"
    finally:
        gateway.exit()


WAITS = """
import time
try:
    channel.send("waits")
    time.sleep(600)
except KeyboardInterrupt:
    channel.send("interrupted")
"""


def interrupt(
    name: str,
    give_signal: Callable[[subprocess.Popen[bytes]], None],
    tmp_path: Path,
    fake_command: Callable[[str], str],
) -> None:
    """Give a front end a signal while an implementation hangs, and look at what is left of them."""
    command, seals = FRONT_ENDS[name]
    implementation = f"rpc:{fake_command('hangs_with_a_daemon')} {tmp_path}"
    given = [f"--impl={implementation}", f"--report-dir={tmp_path / 'report'}"] if seals else [implementation]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "conformance/harness", ROOT / "reference"))),
    }
    running = subprocess.Popen(
        [*command, *given],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        limit = time.monotonic() + 120
        while not pids_in(tmp_path) and time.monotonic() < limit and running.poll() is None:
            time.sleep(0.02)
        assert len(pids_in(tmp_path)) >= 2, running.communicate(timeout=1)
        give_signal(running)
        output, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode != 0
    assert b"Traceback" not in output
    pids = pids_in(tmp_path)
    limit = time.monotonic() + 5
    while any(map(is_alive, pids)) and time.monotonic() < limit:
        time.sleep(0.1)
    assert [pid for pid in pids if is_alive(pid)] == []
    assert [path.name for path in scratch.glob("tessera-*")] == []
    if seals:
        report = read(tmp_path / "report" / "report.jsonl")
        assert (report.problem, report.claim) == (None, "failure")
        assert report.footer is not None
        assert "the run was interrupted" in report.footer["problems"]
