"""A mutant against the suite: the cases that execute its line, and which of them catches it."""

from __future__ import annotations

import resource
import sys
import time
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry
from tessera_conformance.strength.matrix import DEADLINE, KILLS, judge
from tessera_conformance.strength.mutants.sites import Line, Mutant, install
from tessera_conformance.strength.processes import isolated
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.direct import DirectTransport

# Which cases execute which lines of a package: the cases that can tell a mutant.


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


# A mutant against the suite: which case catches it, if any.
#
# A mutant is judged in a forked process that has run nothing yet: nothing that the unchanged code computed is kept.
# The cases that execute the changed line come in an order that finds out soon: what caught it in an earlier run,
# those of clauses that its module names, and the quick ones before the slow ones.


Fate = Literal["killed", "survived", "not executed", "not installed"]
MEMORY = 6 << 30
"""Bytes that the process of a mutant may have: one that asks for more without end is caught, not the machine's end."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant: the case that caught it and its verdict, or of how many nobody did."""

    fate: Fate
    killer: str = ""
    verdict: str = ""
    near: bool = False
    """Whether the case judges a clause that the module names."""
    cases: int = 0


@dataclass(frozen=True)
class Trials:
    """The suite and what its cases execute.

    `most` cases of each kind are put to a mutant before it counts as survived. `known` has by the name of a mutant the
    case that caught it in an earlier run.
    """

    items: Sequence[pytest.Function]
    registry: Registry
    control: Callable[[], Adapter]
    executions: Executions
    most: int
    known: Mapping[str, str] = field(default_factory=dict)

    def judge(self, mutant: Mutant) -> Result:
        """Change this process for good and run the cases, until one catches the mutant."""
        places = self._in_order(mutant)
        if not places:
            return Result("not executed")
        if not install(mutant):
            return Result("not installed")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        run = SuiteRun(DirectTransport(self.control, mutant.name), self.registry, deadlines=(DEADLINE, DEADLINE))
        for number, place in enumerate(places, 1):
            judgement = judge(run, self.items[place])
            verdict = judgement.verdict
            if verdict in KILLS and not judgement.interpretation:
                case = self.items[place].stash[CASE].id
                return Result("killed", case, verdict, self._is_near(mutant, place), number)
        return Result("survived", cases=len(places))

    def _in_order(self, mutant: Mutant) -> list[int]:
        """The cases that execute its line: near ones first, then quick ones, at most so many of each kind."""
        seconds = self.executions.seconds
        executing = sorted(self.executions.cases.get(mutant.reached, ()), key=lambda place: (seconds[place], place))
        near = [place for place in executing if self._is_near(mutant, place)]
        others = [place for place in executing if not self._is_near(mutant, place)]
        caught = [place for place in executing if self.items[place].stash[CASE].id == self.known.get(mutant.name)]
        chosen = _spread(near, self.most) + _spread(others, self.most)
        return caught + [place for place in chosen if place not in caught]

    def _is_near(self, mutant: Mutant, place: int) -> bool:
        return not mutant.clauses.isdisjoint(self.items[place].stash[CASE].clause_ids)


def _spread(places: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly from the whole: neighbours often ask the same."""
    if len(places) <= most:
        return list(places)
    return [places[index * len(places) // most] for index in range(most)]
