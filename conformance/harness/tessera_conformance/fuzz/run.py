"""Runs trials against one implementation; shrinks findings and writes them as files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.documents import read_json
from tessera_conformance.fuzz.choices import TapeChooser
from tessera_conformance.fuzz.mutations import tokens_of
from tessera_conformance.fuzz.trials import (
    KINDS,
    Kind,
    Problem,
    Tally,
    Trial,
    chooser_of,
    judge,
    make_trial,
    trial_from,
    trial_message,
)
from tessera_conformance.session import Session
from tessera_conformance.tensors import MalformedTensor

# Shrinks findings: a generated program to fewer and simpler decisions, a mutated text to fewer tokens.


T = TypeVar("T")


Stretch = tuple[int, int]


def pruned(
    numbers: Sequence[int],
    parts_of: Callable[[list[int]], Sequence[Stretch]],
    keeps: Callable[[list[int]], bool],
    attempts: int,
) -> list[int]:
    """Decisions with as many parts as possible left out, or made of their simplest choice; the longest go first."""
    best, left, smaller = list(numbers), attempts, True
    while smaller:
        smaller = False
        for start, end in sorted(parts_of(best), key=lambda part: part[0] - part[1]):
            for instead in ([], [0]):
                tried = [*best[:start], *instead, *best[end:]]
                if len(tried) >= len(best):
                    continue
                if left <= 0:
                    return best
                left -= 1
                smaller = keeps(tried)
                if smaller:
                    break
            if smaller:
                best = tried
                break
    return best


SMALL_PARTS = 8
"""Parts of at most so many items are tried wherever they may start."""


def shorter(items: Sequence[T], keeps: Callable[[list[T]], bool], attempts: int) -> list[T]:
    """As few of the items as still show the problem: halves, quarters and so on are left out, then every small part."""
    best, left = list(items), attempts
    for size in _sizes(len(best)):
        place = 0
        while place < len(best):
            if left <= 0:
                return best
            tried = best[:place] + best[place + size :]
            left -= 1
            if keeps(tried):
                best = tried
            else:
                place += size if size > SMALL_PARTS else 1
    return best


def _sizes(count: int) -> list[int]:
    """Return the sizes of the parts to leave out, the largest first."""
    sizes = []
    while count // 2 > SMALL_PARTS:
        count //= 2
        sizes.append(count)
    return sizes + list(range(min(SMALL_PARTS, count), 0, -1))


def simpler(numbers: Sequence[int], keeps: Callable[[list[int]], bool], attempts: int) -> list[int]:
    """Numbers as near to 0 as still show the problem: each is tried as 0, then as its half."""
    best, left = list(numbers), attempts
    for place, number in enumerate(best):
        for smaller in dict.fromkeys((0, number // 2)):
            if left <= 0:
                return best
            if smaller < best[place]:
                left -= 1
                tried = [*best[:place], smaller, *best[place + 1 :]]
                if keeps(tried):
                    best = tried
                    break
    return best


# Findings as files: what was tried, what went wrong, and the smallest form of it; enough to try it again.


FORMAT = 1


class MalformedFinding(ValueError):
    """A file that holds no finding of this version."""


@dataclass(frozen=True)
class Finding:
    """A problem, the trial that found it, and a smaller trial with the same problem."""

    implementation: str
    seed: int
    index: int
    features: tuple[str, ...]
    problem: Problem
    trial: Trial
    minimal: Trial

    @property
    def title(self) -> str:
        """One line for people."""
        return f"trial {self.index} of seed {self.seed} ({self.trial.what}): {self.problem.name}: {self.problem.detail}"


def save(finding: Finding, folder: Path) -> Path:
    """Write a finding, and the smallest program beside it as text; the path of the finding."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", finding.problem.name.lower()).strip("-")[:40]
    path = folder / f"{finding.seed}-{finding.index}-{slug}.json"
    path.write_text(json.dumps(_message(finding), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    path.with_suffix(".tsr").write_bytes(finding.minimal.subject.source.encode("utf-8", "surrogatepass"))
    return path


def load(path: Path) -> Finding:
    """The finding in a file.

    Raises:
        MalformedFinding: it holds something else.
        OSError: it cannot be read.
    """
    try:
        return _finding(read_json(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError, AttributeError, MalformedTensor) as error:
        raise MalformedFinding(f"{path}: no finding of format {FORMAT}: {error}") from None


def _message(finding: Finding) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "implementation": finding.implementation,
        "seed": finding.seed,
        "index": finding.index,
        "features": list(finding.features),
        "problem": {"name": finding.problem.name, "detail": finding.problem.detail},
        "minimal": trial_message(finding.minimal),
        "trial": trial_message(finding.trial),
    }


def _finding(message: Mapping[str, Any]) -> Finding:
    if message["format"] != FORMAT:
        raise ValueError(f"format {message['format']!r}")
    return Finding(
        str(message["implementation"]),
        int(message["seed"]),
        int(message["index"]),
        tuple(message["features"]),
        Problem(str(message["problem"]["name"]), str(message["problem"]["detail"])),
        trial_from(message["trial"]),
        trial_from(message["minimal"]),
    )


# Runs trials against one implementation, counts its answers, and shrinks what is found.


ATTEMPTS = 800
"""The most smaller forms of a finding that are tried; `PATIENCE` where each may take a whole deadline."""
PATIENCE = 12
EACH_KIND = 2
"""Findings that are kept of one signature; the others are counted."""


@dataclass(frozen=True)
class Plan:
    """The trials to make: the first `count` of a seed, or of these one in `shards`."""

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
    """The outcome of a plan: trials made of each kind, answers, problems by signature, and the findings kept."""

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
