"""A runtime on threads, made without the reference: its failures are its own defects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wsp.thread_runtime import ThreadRuntime

from tessera_conformance.reports.claim import outcomes_of_musts
from tessera_conformance.reports.journal import Report, read

ROOT = Path(__file__).resolve().parents[2]


class Defective(ThreadRuntime):
    """Three defects: a token may be lost, times of processes are added, reports call every channel empty."""

    defects = frozenset({"lost", "sum", "empty"})


BLOCKS = 40
"""Blocks of random programs, put to the defects with TESSERA_EVERY=1 alone: to make failures smaller takes a minute."""

SHOWN = {
    *("WSP-02.1-04", "WSP-02.2-10", "WSP-02.3-03"),  # the tokens of several producers
    *("WSP-01.2-01", "WSP-02.4-01", "WSP-02.4-05"),  # the makespan
    *("WSP-03.3-06", "WSP-03.3-10"),  # the channels of a report, and their states
}
"""The clauses that the defects break."""


def judged(runtime: type[ThreadRuntime], directory: Path, *options: str) -> Report:
    """The report of a run of the document's cases."""
    implementation = f"py:{runtime.__module__}:{runtime.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance/runtime/wsp"]
    subprocess.run(
        [*command, f"--impl={implementation}", f"--report-dir={directory}", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        check=False,
        timeout=300,
    )
    return read(directory / "report.jsonl")


def failed(report: Report) -> set[str]:
    """The core MUST clauses that fail."""
    return {name for name, outcome in outcomes_of_musts(report.plan, report.observations).items() if outcome == "fail"}


@pytest.mark.slow
def test_a_runtime_on_threads_passes_all_that_the_core_asks(tmp_path: Path) -> None:
    report = judged(ThreadRuntime, tmp_path)
    verdicts = [line["verdict"] for line in report.observations]
    assert set(verdicts) == {"pass", "unsupported"}
    assert verdicts.count("pass") >= 340
    assert {line["cause"] for line in report.observations if line["verdict"] == "unsupported"} == {"feature"}


@pytest.mark.slow
def test_its_defects_show_in_their_clauses_and_no_others(tmp_path: Path, every: Callable[[int], int]) -> None:
    part = [] if every(BLOCKS) == 1 else ["-k", "not test_network_random"]
    assert failed(judged(Defective, tmp_path, *part)) == SHOWN
