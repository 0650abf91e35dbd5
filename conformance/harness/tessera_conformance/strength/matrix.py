"""The kill matrix: it names the cases that catch each violation.

The control is the implementation that the violations are variants of. It runs every case that catches a violation; a
case that it does not pass proves nothing and is left out. A violation and the control are judged at the numerics level
that the violation claims. A violation is killed when a case tagged with its clause no longer passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.plugin import CASE, arguments
from tessera_conformance.registry import Registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.strength.violation import Violation
from tessera_conformance.suite_run import Case, SuiteRun
from tessera_conformance.transports import Transport
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.verdicts import FAULTY, Judgement

Fate = Literal["killed", "killed_by_fault", "killed_by_unrelated", "survived", "untested"]
Outcome = tuple[Fate, tuple[str, ...], int, str]
"""The fields of a `Kill` but its violation, which cannot be sent between processes."""
Judged = tuple[Outcome, list[str]]
"""The fate of a violation, and a line for each case that the control should have passed."""
DEADLINE = 20.0


@dataclass(frozen=True)
class Kill:
    """One row of the matrix."""

    violation: Violation
    fate: Fate
    killers: tuple[str, ...] = ()
    """The cases that caught it, the most specific first."""
    tagged: int = 0
    level: str = "strict"


@dataclass(frozen=True)
class KillMatrix:
    """All rows, and the cases that the control itself did not pass."""

    kills: Sequence[Kill]
    cases: int
    control_failures: Sequence[str]

    @property
    def survivors(self) -> list[Kill]:
        """Violations that no case of their clause failed.

        A violation that only crashes may have broken itself and not the clause. One that only other clauses' cases
        catch shows that its own clause has no case that detects it.
        """
        return [kill for kill in self.kills if kill.fate != "killed"]


def kill_matrix(
    suite: CollectedSuite,
    registry: Registry,
    violations: Sequence[Violation],
    control: Callable[[], Adapter],
    thorough: bool = False,
    killers: Mapping[str, Collection[str]] | None = None,
    judge_all: Callable[[Trial, Sequence[Violation]], Sequence[Judged]] | None = None,
) -> KillMatrix:
    """Judge each violation by the cases of its clause, then by all others if those pass it.

    One failing case is enough, unless `thorough` asks for all of them. `known` has the cases that caught each violation
    before, by its name; they run first. `judge_all` distributes the work where this process does not do all of it.
    """
    trial = Trial(suite.items, registry, control, thorough, killers or {})
    judged = list(map(trial.judge, violations)) if judge_all is None else judge_all(trial, violations)
    cases = {item.stash[CASE].id for violation in violations for item in trial.tagged(violation)}
    failures = dict.fromkeys(failure for _, found in judged for failure in found)
    kills = [Kill(violation, *outcome) for violation, (outcome, _) in zip(violations, judged, strict=True)]
    return KillMatrix(kills, len(cases), list(failures))


def level_of(violation: Violation, registry: Registry) -> str:
    """Return the numerics level that a violator claims in its Hello."""
    if violation.level is not None:
        return violation.level
    with violation.broken() as broken:
        return SuiteRun(transport_of(broken, violation.name), registry).level


def transport_of(broken: Adapter | Transport, name: str) -> Transport:
    """Return the transport to a violator: its own if it is one, else a direct transport to the adapter."""
    return broken if isinstance(broken, Transport) else DirectTransport(lambda: broken, name)


def suite_of(texts: Sequence[str]) -> CollectedSuite:
    """Return the suite, or its cases whose ids contain one of the texts; pytest then reads only their files.

    Raises `SuiteNotCollected`: pytest cannot collect it.
    """
    if not texts:
        return CollectedSuite()
    chosen = {name: case for name, case in case_index().items() if any(text in name for text in texts)}
    suite = CollectedSuite(files=sorted({case.node.partition("::")[0] for case in chosen.values()}))
    suite.items = [item for item in suite.items if item.stash[CASE].id in chosen]
    return suite


@dataclass
class Trial:
    """The suite, and the control with the cases judged so far; judges violations one by one."""

    items: Sequence[pytest.Function]
    registry: Registry
    control: Callable[[], Adapter]
    thorough: bool
    known: Mapping[str, Collection[str]]

    def __post_init__(self) -> None:
        self._of_clause: dict[str, dict[int, pytest.Function]] = {}
        for place, item in enumerate(self.items):
            for clause in item.stash[CASE].clause_ids:
                self._of_clause.setdefault(clause, {})[place] = item
        self._controls: dict[str, SuiteRun] = {}
        self._passed: dict[tuple[str, str], Judgement] = {}

    def tagged(self, violation: Violation) -> list[pytest.Function]:
        """Return the tests of the clause that a violation breaks."""
        twin = self.registry.clause(violation.clause).duplicate_of
        names = [violation.clause, *([twin] if twin else [])]
        places = {place: item for name in names for place, item in self._of_clause.get(name, {}).items()}
        return [places[place] for place in sorted(places)]

    def judge(self, violation: Violation) -> Judged:
        """Return the fate of a violation, and a line for each case that the control should have passed."""
        level, own = level_of(violation, self.registry), self.tagged(violation)
        failures: list[str] = []
        killers = self.known.get(violation.name, ())
        # first the cases that caught the violation before, then those with the fewest clauses
        own.sort(key=lambda item: (item.stash[CASE].id not in killers, len(item.stash[CASE].clause_ids)))
        verdicts = self._kills(violation, level, own, {"fail"}, failures)
        fate: Fate = "killed" if "fail" in verdicts.values() else "killed_by_fault"
        if not verdicts:
            tagged = {item.stash[CASE].id for item in own}
            others = [item for item in self.items if item.stash[CASE].id not in tagged]
            verdicts = self._kills(violation, level, others, FAULTY, failures)
            fate = "killed_by_unrelated" if verdicts else "survived" if own else "untested"
        return (fate, tuple(verdicts), len(own), level), failures

    def _kills(
        self,
        violation: Violation,
        level: str,
        items: Sequence[pytest.Function],
        enough: Collection[str],
        failures: list[str],
    ) -> dict[str, str]:
        """Return the verdicts of cases that the control passes and the violation does not, until one is enough."""
        verdicts: dict[str, str] = {}
        waiting = iter(items)
        while suspected := self._suspected(violation, waiting, enough):
            for item, verdict in suspected:
                judgement = self._of_control(level, item)
                if judgement.verdict == "pass":
                    verdicts[item.stash[CASE].id] = verdict
                elif judgement.verdict not in ("unsupported", "inapplicable"):
                    at = "" if level == "strict" else f" at level {level}"
                    failures.append(f"{item.stash[CASE].id}{at}: {judgement.verdict}: {judgement.reason}")
            if not self.thorough and not set(enough).isdisjoint(verdicts.values()):
                break
        return verdicts

    def _suspected(
        self, violation: Violation, items: Iterator[pytest.Function], enough: Collection[str]
    ) -> list[tuple[pytest.Function, str]]:
        """Return the next cases that the violation does not pass, up to one with a verdict in `enough`."""
        suspected: list[tuple[pytest.Function, str]] = []
        with violation.broken() as broken:
            transport = transport_of(broken, violation.name)
            run = SuiteRun(transport, self.registry, deadlines=(DEADLINE, DEADLINE))
            for item in items:
                judgement = judge(run, item)
                if judgement.interpretation:
                    continue  # another reading breaks no clause
                verdict = judgement.verdict
                if verdict in FAULTY:
                    suspected.append((item, verdict))
                if verdict in enough and not self.thorough:
                    break
        return suspected

    def _of_control(self, level: str, item: pytest.Function) -> Judgement:
        """Return the control's judgement of a case, which runs once at each level."""
        key = level, item.stash[CASE].id
        if key not in self._passed:
            if level not in self._controls:
                transport = DirectTransport(self.control, "control")
                deadlines = (DEADLINE, DEADLINE)
                self._controls[level] = SuiteRun(transport, self.registry, level=level, deadlines=deadlines)
            self._passed[key] = judge(self._controls[level], item)
        return self._passed[key]


def write_results(directory: Path, name: str, document: Mapping[str, Any], page: str) -> None:
    """Write the JSON and the Markdown form of some results into a folder."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (directory / f"{name}.md").write_text(page, encoding="utf-8")


def judge(run: SuiteRun, item: pytest.Function) -> Judgement:
    """Run one collected test against an implementation, outside pytest's own loop."""
    return put(run, item)[1]


def put(run: SuiteRun, item: pytest.Function) -> tuple[Case, Judgement]:
    """Run one collected test against an implementation; return the case with its exchanges, and the judgement."""
    planned = item.stash[CASE]
    case = Case(planned.id, planned.title, planned.clauses, planned.levels, planned.features, cites=planned.cites)
    judgement = run.judge_before(case)
    if judgement is not None:
        return case, judgement
    with TemporaryDirectory() if "tmp_path" in item.fixturenames else nullcontext("") as folder:
        fixtures = {**arguments(run, case, item), "tmp_path": Path(folder)}
        error: BaseException | None = None
        try:
            item.obj(**{name: value for name, value in fixtures.items() if name in item.fixturenames})
        except Exception as raised:
            error = raised
        return case, run.judge_after(case, error)
