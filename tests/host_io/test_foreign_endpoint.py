"""An endpoint that nobody made from the reference, judged by its messages alone: what counts against it is its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.reports.claim import outcomes_of_musts
from tessera_conformance.reports.journal import Report

FOREIGN = Path(__file__).parent / "foreign"
DEFECTS = {"no_value": "HIO-D5-20", "no_fp16": "HIO-D5-17", "any_cube": "HIO-D6-04"}
"""The clauses that each defect of the endpoint breaks."""
TOUCHED = "test_accepted or test_agreement or test_fields or test_patterns or test_reads"
"""The files that can see a defect; in the others, where silence takes seconds, the endpoint is as the sound one."""

Judge = Callable[..., Report]


@pytest.fixture
def judge(run_suite: Callable[..., Any], tmp_path: Path) -> Iterator[Judge]:
    """Runs the cases of the messages against the endpoint with some defects."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*defects: str, options: Sequence[str] = ()) -> Report:
        socket = tmp_path / "io.sock"
        started.append(subprocess.Popen([sys.executable, str(FOREIGN / "endpoint.py"), str(socket), *defects]))
        while not socket.exists():
            time.sleep(0.02)
        implementation = f"--impl=hostio:unix:{socket},description={FOREIGN / 'endpoint.toml'}"
        return run_suite(implementation, *options, "conformance/abi/host_io").report

    yield run
    for process in started:
        process.terminate()
        process.wait()


def counting(report: Report) -> dict[str, list[str]]:
    """The cases that count against the endpoint, with their clauses."""
    settled = {"pass", "unsupported", "inapplicable"}
    lines = [observation for observation in report.observations if observation["verdict"] not in settled]
    return {line["case"]: line["clauses"] for line in lines if line["disposition"] != "other_reading"}


def test_nothing_counts_against_it(judge: Judge) -> None:
    """It is judged by two hundred cases; where it reads a silence otherwise, that is listed and does not count."""
    report = judge()
    assert counting(report) == {}
    verdicts = [observation["verdict"] for observation in report.observations]
    assert verdicts.count("pass") > 200
    readings = {
        observation["interpretation"]
        for observation in report.observations
        if observation["disposition"] == "other_reading"
    }
    assert {"AMB-HIO-05", "AMB-HIO-14", "AMB-HIO-20", "AMB-HIO-21", "AMB-HIO-53"} <= readings


def test_its_defects_are_what_counts(judge: Judge) -> None:
    """Each of three defects fails its clause, and no case fails that does not judge one of the three."""
    report = judge(*DEFECTS, options=["-k", TOUCHED])
    failed = counting(report)
    assert failed
    assert [case for case, clauses in failed.items() if not {*clauses} & {*DEFECTS.values()}] == []
    outcomes = outcomes_of_musts(report.plan, report.observations)
    assert {name: outcomes[name] for name in DEFECTS.values()} == dict.fromkeys(DEFECTS.values(), "fail")
