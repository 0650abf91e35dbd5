"""The kill matrix: which violation is caught by which case.

The control is the implementation that the violations are variants of; a case that the control does not pass proves
nothing and is left out. A violation is judged at the numerics level that it claims, and so is the control beside it. It
is killed when a case tagged with its clause no longer passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.collected import CollectedSuite
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry
from tessera_conformance.session import Implementation
from tessera_conformance.strength.violation import Violation
from tessera_conformance.suite_run import Case, SuiteRun
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.verdicts import Judgement

Fate = Literal["killed", "killed_by_fault", "killed_by_unrelated", "survived", "untested"]
KILLS = frozenset({"fail", "crash", "hang", "protocol_error"})
DEADLINE = 20.0
FIXTURES = ("impl", "check")


@dataclass(frozen=True)
class Kill:
    """One row of the matrix."""

    violation: Violation
    fate: Fate
    killers: tuple[str, ...] = ()
    tagged: int = 0
    level: str = "strict"


@dataclass(frozen=True)
class KillMatrix:
    """All rows, and what the control itself did not pass."""

    kills: Sequence[Kill]
    cases: int
    control_failures: Sequence[str]

    @property
    def survivors(self) -> list[Kill]:
        """Violations that no case of their clause judged wrong.

        One that only crashes may have broken itself, not the clause; one that only others notice leaves its clause
        without a case that bites.
        """
        return [kill for kill in self.kills if kill.fate != "killed"]


def kill_matrix(
    suite: CollectedSuite, registry: Registry, violations: Sequence[Violation], control: Callable[[], Adapter]
) -> KillMatrix:
    """Run the tests of each violation's clause against it, and all others where those let it pass."""
    claimed = [level_of(violation, registry) for violation in violations]
    trusted: dict[str, list[pytest.Function]] = {}
    failures: list[str] = []
    for level in dict.fromkeys(claimed):
        trusted[level], failed = _with_control(suite, registry, control, level)
        failures += failed
    kills = [
        _fate(violation, level, trusted[level], registry) for violation, level in zip(violations, claimed, strict=True)
    ]
    cases = {item.stash[CASE].id for items in trusted.values() for item in items}
    return KillMatrix(kills, len(cases), failures)


def level_of(violation: Violation, registry: Registry) -> str:
    """The numerics level that a violator claims in its Hello."""
    with violation.broken() as adapter:
        return SuiteRun(DirectTransport(lambda: adapter, violation.name), registry).level


def _with_control(
    suite: CollectedSuite, registry: Registry, control: Callable[[], Adapter], level: str
) -> tuple[list[pytest.Function], list[str]]:
    """The tests that the control passes at a level, and in words those that it should but does not."""
    run = SuiteRun(DirectTransport(control, "control"), registry, level=level, deadlines=(DEADLINE, DEADLINE))
    judged = [(item, judge(run, item)) for item in suite.items]
    at = "" if level == "strict" else f" at level {level}"
    failures = [
        f"{item.stash[CASE].id}{at}: {judgement.verdict}: {judgement.reason}"
        for item, judgement in judged
        if judgement.verdict not in ("pass", "unsupported", "inapplicable")
    ]
    return [item for item, judgement in judged if judgement.verdict == "pass"], failures


def _fate(violation: Violation, level: str, trusted: Sequence[pytest.Function], registry: Registry) -> Kill:
    twin = registry.clause(violation.clause).duplicate_of
    names = {violation.clause, *([twin] if twin else [])}
    tagged = [item for item in trusted if names & set(item.stash[CASE].clause_ids)]
    with violation.broken() as adapter:
        run = SuiteRun(DirectTransport(lambda: adapter, violation.name), registry, deadlines=(DEADLINE, DEADLINE))
        verdicts = {item.stash[CASE].id: judge(run, item).verdict for item in tagged}
        killers = tuple(case for case, verdict in verdicts.items() if verdict in KILLS)
        if killers:
            judged = "fail" in verdicts.values()
            return Kill(violation, "killed" if judged else "killed_by_fault", killers, len(tagged), level)
        others = [item for item in trusted if item not in tagged]
        unrelated = next((item.stash[CASE].id for item in others if judge(run, item).verdict in KILLS), None)
    if unrelated is not None:
        return Kill(violation, "killed_by_unrelated", (unrelated,), len(tagged), level)
    return Kill(violation, "survived" if tagged else "untested", (), len(tagged), level)


def judge(run: SuiteRun, item: pytest.Function) -> Judgement:
    """Run one collected test against an implementation, outside pytest's own loop."""
    planned = item.stash[CASE]
    case = Case(planned.id, planned.title, planned.clauses, planned.levels, planned.features)
    judgement = run.judge_before(case)
    if judgement is not None:
        return judgement
    fixtures = {"impl": Implementation(run.session, run.level), "check": case.check}
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    arguments = {name: fixtures[name] for name in FIXTURES if name in item.fixturenames} | dict(parameters)
    error: BaseException | None = None
    try:
        item.obj(**arguments)
    except Exception as raised:
        error = raised
    return run.judge_after(case, error)
