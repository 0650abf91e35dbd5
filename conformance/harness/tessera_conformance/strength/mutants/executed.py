"""Which cases execute which lines of a package: the cases that can tell a mutant."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.registry import Registry
from tessera_conformance.strength.matrix import DEADLINE, judge
from tessera_conformance.strength.mutants.sites import Line
from tessera_conformance.strength.processes import isolated
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.direct import DirectTransport

__all__ = ["Executions", "executions"]

TraceFunction = Callable[[types.FrameType, str, object], Any]
CHUNK = 60
"""Cases that a process runs: each new process begins without what an implementation keeps between cases."""
SLOWED = 10
"""A traced case may take so many times the deadline."""
PATIENCE = 3600.0
"""Seconds for a chunk."""


@dataclass(frozen=True)
class Executions:
    """The control's run: what each case took, and the cases that execute each line, by place in the suite."""

    seconds: Mapping[int, float]
    cases: Mapping[Line, Sequence[int]]


def executions(
    items: Sequence[pytest.Function],
    registry: Registry,
    control: Callable[[], Adapter],
    lines: Collection[Line],
    jobs: int,
) -> Executions:
    """Run every case against the control, in processes of their own; cases that it does not pass are left out."""
    wanted: dict[str, set[int]] = {}
    for path, number in lines:
        wanted.setdefault(path, set()).add(number)

    def trace(first: int) -> tuple[dict[int, float], dict[Line, list[int]]]:
        transport = DirectTransport(control, "control")
        run = SuiteRun(transport, registry, deadlines=(SLOWED * DEADLINE, SLOWED * DEADLINE))
        seconds: dict[int, float] = {}
        cases: dict[Line, list[int]] = {}
        for place in range(first, min(first + CHUNK, len(items))):
            start = time.monotonic()
            with _Trace(wanted) as seen:
                verdict = judge(run, items[place]).verdict
            if verdict == "pass":
                seconds[place] = time.monotonic() - start
                for line in seen:
                    cases.setdefault(line, []).append(place)
        return seconds, cases

    seconds: dict[int, float] = {}
    cases: dict[Line, list[int]] = {}
    for _, found in isolated(jobs, trace, range(0, len(items), CHUNK), patience=PATIENCE):
        of_cases, of_lines = found or ({}, {})
        seconds |= of_cases
        for line, places in of_lines.items():
            cases.setdefault(line, []).extend(places)
    return Executions(seconds, cases)


class _Trace:
    """The lines, among those of interest in each file, that are executed meanwhile in this thread."""

    def __init__(self, wanted: Mapping[str, Collection[int]]) -> None:
        self._wanted = wanted
        self._seen: dict[Line, None] = {}
        self._of_interest: dict[types.CodeType, bool] = {}

    def __enter__(self) -> dict[Line, None]:
        sys.settrace(self._called)
        return self._seen

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _called(self, frame: types.FrameType, event: str, argument: object) -> TraceFunction | None:
        code = frame.f_code
        if code not in self._of_interest:
            wanted = self._wanted.get(code.co_filename, ())
            self._of_interest[code] = any(line in wanted for _, _, line in code.co_lines())
        return self._executed if self._of_interest[code] else None

    def _executed(self, frame: types.FrameType, event: str, argument: object) -> TraceFunction:
        path, line = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and line in self._wanted[path]:
            self._seen[path, line] = None
        return self._executed
