"""A runtime on threads, made without the reference: its failures are its own defects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.wsp.thread_runtime import ThreadRuntime

from tessera_conformance.reports.claim import outcomes_of_musts
from tessera_conformance.reports.journal import Report

SUITE = "conformance/runtime/wsp"


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


def implementation(runtime: type[ThreadRuntime]) -> str:
    """The option that names a runtime."""
    return f"--impl=py:{runtime.__module__}:{runtime.__name__}"


def failed(report: Report) -> set[str]:
    """The core MUST clauses that fail."""
    return {name for name, outcome in outcomes_of_musts(report.plan, report.observations).items() if outcome == "fail"}


@pytest.mark.slow
def test_a_runtime_on_threads_passes_all_that_the_core_asks(run_suite: Callable[..., Any]) -> None:
    report = run_suite(SUITE, implementation(ThreadRuntime)).report
    verdicts = [line["verdict"] for line in report.observations]
    assert set(verdicts) == {"pass", "unsupported"}
    assert verdicts.count("pass") >= 340
    assert {line["cause"] for line in report.observations if line["verdict"] == "unsupported"} == {"feature"}


@pytest.mark.slow
def test_its_defects_show_in_their_clauses_and_no_others(
    run_suite: Callable[..., Any], every: Callable[[int], int]
) -> None:
    part = [] if every(BLOCKS) == 1 else ["-k", "not test_network_random"]
    assert failed(run_suite(SUITE, implementation(Defective), *part).report) == SHOWN
