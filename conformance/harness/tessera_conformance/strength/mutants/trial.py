"""A mutant against the suite: which case catches it, if any.

A mutant is judged in a forked process that has run nothing yet: nothing that the unchanged code computed is kept. The
cases that execute the changed line come in an order that finds out soon: what caught it in an earlier run, those of
clauses that its module names, and the quick ones before the slow ones.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry
from tessera_conformance.strength.matrix import DEADLINE, KILLS, judge
from tessera_conformance.strength.mutants.executed import Executions
from tessera_conformance.strength.mutants.sites import Mutant, install
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.direct import DirectTransport

__all__ = ["Fate", "Result", "Trials"]

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
