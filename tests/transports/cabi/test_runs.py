"""Runs of the suite against libraries: verdicts, the same over the line protocol, and a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SUITE = [sys.executable, "-m", "tessera_conformance"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


@pytest.mark.slow
def test_a_crash_is_the_verdict_of_its_cases_alone_over_the_line_protocol_too(build, run_suite, tmp_path):
    def run(name, *options):
        place, environment = "conformance/runtime/test_contexts.py", {"MISBEHAVE": "segfault"}
        done = run_suite(place, *options, report=tmp_path / name, environment=environment)
        assert done.exit_code == 1, done.output
        return {line["case"]: (line["verdict"], line["reason"]) for line in done.report.observations}

    library = build("misbehaving")
    actual = run("own", f"--impl=cabi:{library}")
    crashes = {case: reason for case, (verdict, reason) in actual.items() if verdict == "crash"}
    assert "runtime/contexts/the-version-has-three-numbers" in crashes
    called = r"runtime\.(\w+): the implementation ended with signal SIGSEGV in \1"
    assert [reason for reason in crashes.values() if re.fullmatch(called, reason) is None] == []
    assert 0 < len(crashes) < len(actual)
    assert {"harness_error", "not_run"}.isdisjoint(verdict for verdict, _ in actual.values())
    served = f"rpc:{sys.executable} -m tessera_conformance serve cabi:{library}"
    wire = run("wire", f"--impl={served}", "--compiler=reference")
    assert {case: verdict for case, (verdict, _) in wire.items()} == {
        case: verdict for case, (verdict, _) in actual.items()
    }


@pytest.mark.slow
def test_a_case_can_be_reproduced_by_its_script(build, tmp_path):
    case = "runtime/contexts/the-version-has-three-numbers"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "MISBEHAVE": "status", "TMPDIR": str(scratch)}
    command = [*SUITE, "reproduce", case, f"--impl=cabi:{build('misbehaving')}"]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    (script,) = (tmp_path / "reproduction").glob("reproduce-*.py")
    again = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stdout + again.stderr
    environment.pop("MISBEHAVE")
    mended = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert mended.returncode in (0, 3), mended.stdout + mended.stderr
    assert list(scratch.glob("tessera-*")) == []


def processes_with(text: str) -> list[int]:
    """The processes in whose command line a text stands; zombies have none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_bytes().decode(errors="replace") and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_for(what, seconds: float = 60.0) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if what():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_no_process_stays_behind(build, tmp_path, number):
    library = tmp_path / "libhanging.so"
    library.write_bytes(build("misbehaving").read_bytes())
    place = f"{ROOT}/conformance/runtime/test_contexts.py"
    command = [*PYTEST, place, f"--impl=cabi:{library}", f"--report-dir={tmp_path}", "--deadline=300"]
    environment = {**os.environ, "MISBEHAVE": "hang", "MARK": str(tmp_path / "mark"), "TMPDIR": str(tmp_path)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **quiet)
    try:
        assert wait_for((tmp_path / "mark").exists)
        assert processes_with(str(library))
        os.killpg(running.pid, number)
        running.wait(timeout=30)
        assert wait_for(lambda: not processes_with(str(library)), 15)
    finally:
        for process in processes_with(str(library)):
            os.kill(process, signal.SIGKILL)


SAMPLE = (
    "abi/test_kernel_convention.py",
    "runtime/test_contexts.py",
    "runtime/test_graphs.py",
    "runtime/test_last_error.py",
    "runtime/test_policy.py",
)
QUARTER = "--shard=1/4"
"""A part of the cases of these files, by the digests of their ids."""
NOT_CLAIMED = {"runtime/policy/with-fast-math-the-result-stays-within-the-bound": "unsupported"}


@pytest.mark.slow
def test_the_verdicts_are_those_of_the_reference_through_c_and_over_the_wire(libtessera, run_suite, tmp_path):
    """In process every case passes but that of fast mathematics, or the tests of the suite fail."""
    library = libtessera / "lib/libtessera.so"
    served = f"rpc:{sys.executable} -m tessera_conformance serve cabi:{library}"
    actual = {}
    for how, implementation in (("c", f"cabi:{library}"), ("wire", served)):
        places = [f"conformance/{file}" for file in SAMPLE]
        done = run_suite(f"--impl={implementation}", QUARTER, *places, report=tmp_path / how)
        actual[how] = {line["case"]: line["verdict"] for line in done.report.observations}
    assert actual["wire"] == actual["c"]
    assert {case: verdict for case, verdict in actual["c"].items() if verdict != "pass"} == NOT_CLAIMED
    assert Counter(actual["c"].values())["pass"] > 40
