"""Runs trials against one implementation, counts its answers, and shrinks what is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from tessera_conformance.fuzz.choices import TapeChooser
from tessera_conformance.fuzz.findings import Finding
from tessera_conformance.fuzz.mutator import tokens_of
from tessera_conformance.fuzz.properties import Problem, Tally, judge
from tessera_conformance.fuzz.shrinking import pruned, shorter, simpler
from tessera_conformance.fuzz.trials import KINDS, Kind, Trial, chooser_of, make_trial
from tessera_conformance.session import Session

ATTEMPTS = 800
"""How often a smaller form of a finding is tried; `PATIENCE` times where each may take a whole deadline."""
PATIENCE = 12
EACH_KIND = 2
"""Findings that are kept of one signature; the others are counted."""


@dataclass(frozen=True)
class Plan:
    """Which trials to make: the first `count` of a seed, or of these one in `shards`."""

    seed: int = 0
    count: int = 1000
    shard: tuple[int, int] = (1, 1)
    features: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = KINDS

    def indices(self) -> Iterator[int]:
        """The numbers of the trials."""
        number, shards = self.shard
        return iter(range(number - 1, self.count, shards))

    def trial(self, index: int) -> tuple[Trial, list[int]]:
        """A trial, and the decisions that it came from."""
        chooser = chooser_of(self.seed, index)
        return make_trial(chooser, self.features, self.kinds), chooser.tape


@dataclass
class Outcome:
    """What came of a plan: trials made of each kind, answers, problems by signature, and the findings kept."""

    trials: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    problems: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def tried(session: Session, trial: Trial, tally: Tally) -> Problem | None:
    """Make one trial, and bring the implementation back to its first state."""
    problem = judge(session.call, trial, tally)
    fault = session.reset()
    return problem or (None if fault is None else Problem(f"{fault.kind} at reset", fault.detail))


def run(session: Session, plan: Plan, report: Callable[[Finding], None] = lambda finding: None) -> Outcome:
    """Make the trials of a plan; each finding is reported as soon as it is small."""
    outcome = Outcome()
    for index in plan.indices():
        trial, tape = plan.trial(index)
        outcome.trials[trial.kind] += 1
        problem = tried(session, trial, outcome.tally)
        if problem is None:
            continue
        outcome.problems[problem.signature] += 1
        if outcome.problems[problem.signature] <= EACH_KIND:
            minimal = reduced(session, plan, trial, tape, problem)
            finding = Finding(session.label, plan.seed, index, plan.features, problem, trial, minimal)
            outcome.findings.append(finding)
            report(finding)
    return outcome


def reduced(session: Session, plan: Plan, trial: Trial, tape: list[int], problem: Problem) -> Trial:
    """A smaller trial with the same problem: from fewer decisions, and a mutated text from fewer tokens too."""
    attempts = PATIENCE if problem.name == "hang" else ATTEMPTS

    def remade(decisions: list[int]) -> Trial:
        return make_trial(TapeChooser(decisions), plan.features, plan.kinds)

    def parts_of(decisions: list[int]) -> list[tuple[int, int]]:
        chooser = TapeChooser(decisions)
        make_trial(chooser, plan.features, plan.kinds)
        return chooser.parts

    def same(other: Trial) -> bool:
        found = tried(session, other, Tally())
        return found is not None and found.signature == problem.signature

    def keeps(decisions: list[int]) -> bool:
        return same(remade(decisions))

    smaller = pruned(tape, parts_of, keeps, attempts)
    smaller = simpler(shorter(smaller, keeps, attempts), keeps, attempts // 2)
    best = remade(pruned(smaller, parts_of, keeps, attempts))
    if trial.kind != "mutant":
        return best
    tokens = shorter(tokens_of(best.subject.source), lambda rest: same(_with_source(best, rest)), attempts)
    return _with_source(best, tokens)


def _with_source(trial: Trial, tokens: Collection[str]) -> Trial:
    return replace(trial, subject=replace(trial.subject, source="".join(tokens)))
