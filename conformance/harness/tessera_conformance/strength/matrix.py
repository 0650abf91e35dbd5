"""The kill matrix: which violation is caught by which case.

The control is the implementation that the violations are variants of, put to the cases that judge them; a case that it
does not pass proves nothing and is left out. A violation is judged at the numerics level that it claims, and so is the
control beside it. It is killed when a case tagged with its clause no longer passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.collected import CollectedSuite
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry
from tessera_conformance.session import Implementation
from tessera_conformance.strength.processes import share_out
from tessera_conformance.strength.violation import Violation
from tessera_conformance.suite_run import Case, SuiteRun
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.verdicts import Judgement

Fate = Literal["killed", "killed_by_fault", "killed_by_unrelated", "survived", "untested"]
KILLS = frozenset({"fail", "crash", "hang", "protocol_error"})
DEADLINE = 20.0
BATCH = 200
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
    suite: CollectedSuite,
    registry: Registry,
    violations: Sequence[Violation],
    control: Callable[[], Adapter],
    jobs: int = 1,
    thorough: bool = False,
) -> KillMatrix:
    """Run the tests of each violation's clause against it, and all others where those let it pass.

    One test that judges a violation wrong is enough, unless the matrix is to be thorough and name them all.
    """
    trial = _Trial(suite, registry, control, jobs, thorough)
    suspects = [_Suspect(entry, level_of(entry, registry), trial.tagged(entry)) for entry in violations]
    trial.run_control(suspects)
    fates = share_out(jobs, trial.fate_by_its_own, suspects)
    spared = [place for place, fate in enumerate(fates) if fate is None]
    trial.run_control([replace(suspects[place], tagged=suite.items) for place in spared])
    for place, fate in zip(spared, share_out(jobs, trial.fate_by_others, [suspects[it] for it in spared]), strict=True):
        fates[place] = fate
    kills = [
        Kill(suspect.violation, *fate, len(trial.trusted(suspect.level, suspect.tagged)), suspect.level)
        for suspect, fate in zip(suspects, fates, strict=True)
        if fate is not None
    ]
    return KillMatrix(kills, trial.cases(), trial.failures)


def level_of(violation: Violation, registry: Registry) -> str:
    """The numerics level that a violator claims in its Hello."""
    with violation.broken() as adapter:
        return SuiteRun(DirectTransport(lambda: adapter, violation.name), registry).level


@dataclass(frozen=True)
class _Suspect:
    """A violation, the level at which it is judged, and the tests that judge it."""

    violation: Violation
    level: str
    tagged: Sequence[pytest.Function]


class _Trial:
    """The suite, the control, and which tests the control passes."""

    def __init__(
        self, suite: CollectedSuite, registry: Registry, control: Callable[[], Adapter], jobs: int, thorough: bool
    ) -> None:
        self._items = suite.items
        self._registry = registry
        self._control = control
        self._jobs = jobs
        self._thorough = thorough
        self._passes: dict[tuple[str, str], bool] = {}
        self.failures: list[str] = []

    def tagged(self, violation: Violation) -> list[pytest.Function]:
        """The tests of the clause that a violation breaks."""
        twin = self._registry.clause(violation.clause).duplicate_of
        names = {violation.clause, *([twin] if twin else [])}
        return [item for item in self._items if names & set(item.stash[CASE].clause_ids)]

    def trusted(self, level: str, items: Sequence[pytest.Function]) -> list[pytest.Function]:
        """Those that the control passes."""
        return [item for item in items if self._passes.get((level, item.stash[CASE].id))]

    def cases(self) -> int:
        """How many cases the control passes, at whichever level."""
        return len({case for (_, case), passes in self._passes.items() if passes})

    def run_control(self, suspects: Sequence[_Suspect]) -> None:
        """Put the tests of all suspects to the control, each once a level."""
        wanted: dict[str, dict[str, pytest.Function]] = {}
        for suspect in suspects:
            named = wanted.setdefault(suspect.level, {})
            named |= {item.stash[CASE].id: item for item in suspect.tagged}
        batches: list[tuple[str, Sequence[pytest.Function]]] = []
        for level, named in wanted.items():
            items = [item for case, item in named.items() if (level, case) not in self._passes]
            batches += [(level, items[start : start + BATCH]) for start in range(0, len(items), BATCH)]
        for passes, failures in share_out(self._jobs, self._put_to_control, batches):
            self._passes |= passes
            self.failures += failures

    def _put_to_control(
        self, batch: tuple[str, Sequence[pytest.Function]]
    ) -> tuple[dict[tuple[str, str], bool], list[str]]:
        level, items = batch
        run = SuiteRun(
            DirectTransport(self._control, "control"), self._registry, level=level, deadlines=(DEADLINE, DEADLINE)
        )
        judged = [(item.stash[CASE].id, judge(run, item)) for item in items]
        at = "" if level == "strict" else f" at level {level}"
        failures = [
            f"{case}{at}: {judgement.verdict}: {judgement.reason}"
            for case, judgement in judged
            if judgement.verdict not in ("pass", "unsupported", "inapplicable")
        ]
        return {(level, case): judgement.verdict == "pass" for case, judgement in judged}, failures

    def fate_by_its_own(self, suspect: _Suspect) -> tuple[Fate, tuple[str, ...]] | None:
        """What the tests of its clause make of a violation, the most specific first; None where they let it pass."""
        verdicts: dict[str, str] = {}
        with suspect.violation.broken() as adapter:
            run = self._against(suspect, adapter)
            for item in sorted(self.trusted(suspect.level, suspect.tagged), key=_breadth):
                verdicts[item.stash[CASE].id] = verdict = judge(run, item).verdict
                if verdict == "fail" and not self._thorough:
                    break
        killers = tuple(sorted(case for case, verdict in verdicts.items() if verdict in KILLS))
        if not killers:
            return None
        return "killed" if "fail" in verdicts.values() else "killed_by_fault", killers

    def fate_by_others(self, suspect: _Suspect) -> tuple[Fate, tuple[str, ...]]:
        """What the rest of the suite makes of it, until one test notices."""
        own = self.trusted(suspect.level, suspect.tagged)
        with suspect.violation.broken() as adapter:
            run = self._against(suspect, adapter)
            for item in self.trusted(suspect.level, self._items):
                if item not in own and judge(run, item).verdict in KILLS:
                    return "killed_by_unrelated", (item.stash[CASE].id,)
        return "survived" if own else "untested", ()

    def _against(self, suspect: _Suspect, adapter: Adapter) -> SuiteRun:
        transport = DirectTransport(lambda: adapter, suspect.violation.name)
        return SuiteRun(transport, self._registry, deadlines=(DEADLINE, DEADLINE))


def _breadth(item: pytest.Function) -> int:
    return len(item.stash[CASE].clause_ids)


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
