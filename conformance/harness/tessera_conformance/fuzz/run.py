"""A run of the fuzzer against an implementation: `tessera-conformance fuzz`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tessera_conformance.cases import parse_shard
from tessera_conformance.documents import read_json
from tessera_conformance.fuzz.mutations import tokens_of
from tessera_conformance.fuzz.statements import FEATURES
from tessera_conformance.fuzz.tree import replayed
from tessera_conformance.fuzz.trials import (
    KINDS,
    Kind,
    Problem,
    Tally,
    Trial,
    as_json,
    chooser_of,
    judge,
    make_trial,
    trial_from,
)
from tessera_conformance.protocol import Fault, Hello
from tessera_conformance.session import Session
from tessera_conformance.tensors import MalformedTensor
from tessera_conformance.terminal import reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate

# Shrinking of findings: a generated program to fewer and simpler decisions, a mutated text to fewer tokens.


T = TypeVar("T")


def limited(keeps: Callable[[list[T]], bool], attempts: int) -> Callable[[list[T]], bool]:
    """Return the same question, which after so many attempts is not asked again: the answer is no."""
    left = iter(range(attempts))
    return lambda tried: next(left, None) is not None and keeps(tried)


def pruned(
    numbers: Sequence[int],
    parts_of: Callable[[list[int]], Sequence[tuple[int, int]]],
    keeps: Callable[[list[int]], bool],
    attempts: int,
) -> list[int]:
    """Return decisions without as many parts as possible, or with their simplest choices; longest parts go first."""
    best, keeps = list(numbers), limited(keeps, attempts)
    while True:
        parts = sorted(parts_of(best), key=lambda part: part[0] - part[1])
        smaller = (
            [*best[:start], *instead, *best[end:]]
            for start, end in parts
            for instead in ([], [0])
            if len(instead) < end - start
        )
        tried = next(filter(keeps, smaller), None)
        if tried is None:
            return best
        best = tried


SMALL_PARTS = 8
"""The largest size of parts that are tried from every start."""


def shorter(items: Sequence[T], keeps: Callable[[list[T]], bool], attempts: int) -> list[T]:
    """Return fewer items with the same problem: without halves, quarters and so on, then without every small part."""
    best, keeps = list(items), limited(keeps, attempts)
    for size in _sizes(len(best)):
        place = 0
        while place < len(best):
            tried = best[:place] + best[place + size :]
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
    """Return numbers as near to 0 as the problem allows: each is tried as 0, then as its half."""
    best, keeps = list(numbers), limited(keeps, attempts)
    for place, number in enumerate(best):
        smaller = (
            [*best[:place], half, *best[place + 1 :]] for half in dict.fromkeys((0, number // 2)) if half < number
        )
        best = next(filter(keeps, smaller), best)
    return best


# Findings as files: the trial, its problem, and its smallest form, so that the trial can be repeated.


FORMAT = 1


class MalformedFinding(ValueError):
    """The file is no finding of this version."""


@dataclass(frozen=True)
class Finding:
    """A problem, the trial that found it, and a smaller trial with the same problem."""

    implementation: str
    seed: int
    index: int
    features: tuple[str, ...]
    problem: Problem
    minimal: Trial
    trial: Trial

    @property
    def title(self) -> str:
        """The finding in one line."""
        return f"trial {self.index} of seed {self.seed} ({self.trial.what}): {self.problem.name}: {self.problem.detail}"


def save(finding: Finding, folder: Path) -> Path:
    """Write a finding, and the smallest program beside it as text; return the path of the finding."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", finding.problem.name.lower()).strip("-")[:40]
    path = folder / f"{finding.seed}-{finding.index}-{slug}.json"
    message = {"format": FORMAT, **as_json(finding)}
    path.write_text(json.dumps(message, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    path.with_suffix(".tsr").write_bytes(finding.minimal.subject.source.encode("utf-8", "surrogatepass"))
    return path


def load(path: Path) -> Finding:
    """Return the finding in a file. Raises `MalformedFinding` for another content, `OSError` if it cannot be read."""
    try:
        message = read_json(path.read_text(encoding="utf-8"))
        if message["format"] != FORMAT:
            raise ValueError(f"format {message['format']!r}")
        return Finding(
            str(message["implementation"]),
            int(message["seed"]),
            int(message["index"]),
            tuple(message["features"]),
            Problem(str(message["problem"]["name"]), str(message["problem"]["detail"])),
            trial_from(message["minimal"]),
            trial_from(message["trial"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, MalformedTensor) as error:
        raise MalformedFinding(f"{path}: no finding of format {FORMAT}: {error}") from None


# Runs trials against one implementation, counts its answers, and shrinks the findings.


ATTEMPTS = 800
"""The most smaller forms of a finding that are tried; `PATIENCE` if each may take a whole deadline."""
PATIENCE = 12
EACH_KIND = 2
"""The most findings of one signature that are kept; the others are counted."""


@dataclass(frozen=True)
class Plan:
    """The trials to make: the first `count` of a seed, or one of `shards` parts of them."""

    seed: int = 0
    count: int = 1000
    shard: tuple[int, int] = (1, 1)
    features: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = KINDS

    def indices(self) -> range:
        """Return the numbers of the trials."""
        number, shards = self.shard
        return range(number - 1, self.count, shards)

    def trial(self, index: int) -> tuple[Trial, list[int]]:
        """Return a trial, and the decisions that produced it."""
        chooser = chooser_of(self.seed, index)
        return make_trial(chooser, self.features, self.kinds), chooser.tape


@dataclass
class Outcome:
    """The outcome of a plan: numbers of trials by kind, answers, problems by signature, and the kept findings."""

    trials: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    problems: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def tried(session: Session, trial: Trial, tally: Tally) -> Problem | None:
    """Make one trial, reset the implementation, and return the problem of either."""
    problem = judge(session.call, trial, tally)
    fault = session.reset()
    return problem or (None if fault is None else Problem(f"{fault.kind} at reset", fault.detail))


def run(session: Session, plan: Plan, report: Callable[[Finding], None] = lambda finding: None) -> Outcome:
    """Make the trials of a plan; report each finding once it is shrunk."""
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
            finding = Finding(session.label, plan.seed, index, plan.features, problem, minimal, trial)
            outcome.findings.append(finding)
            report(finding)
    return outcome


def reduced(session: Session, plan: Plan, trial: Trial, tape: list[int], problem: Problem) -> Trial:
    """Return a smaller trial with the same problem: from fewer decisions, and a mutated text from fewer tokens too."""
    attempts = PATIENCE if problem.name == "hang" else ATTEMPTS

    def parts_of(decisions: list[int]) -> list[tuple[int, int]]:
        chooser = replayed(decisions)
        make_trial(chooser, plan.features, plan.kinds)
        return chooser.parts

    def remade(decisions: list[int]) -> Trial:
        return make_trial(replayed(decisions), plan.features, plan.kinds)

    def same(other: Trial) -> bool:
        outcome = tried(session, other, Tally())
        return outcome is not None and outcome.signature == problem.signature

    def keeps(decisions: list[int]) -> bool:
        return same(remade(decisions))

    smaller = pruned(tape, parts_of, keeps, attempts)
    smaller = simpler(shorter(smaller, keeps, attempts), keeps, attempts // 2)
    best = remade(pruned(smaller, parts_of, keeps, attempts))
    if trial.kind != "mutant":
        return best

    def of_tokens(tokens: list[str]) -> Trial:
        return replace(best, subject=replace(best.subject, source="".join(tokens)))

    return of_tokens(shorter(tokens_of(best.subject.source), lambda rest: same(of_tokens(rest)), attempts))


# The command line `tessera-conformance fuzz`: generated programs against one implementation.
#
# Exit codes: 0 if every answer is as required; 1 if there is a finding, or no answer was judged; 2 if the trials cannot
# be made.


ABOUT = """Generate legal, illegal and mutated programs and judge the answers of an implementation: never a crash or a
hang, legal programs accepted, illegal ones refused, two texts of one meaning answered alike. Trial I of seed S is the
same program everywhere."""


class CannotFuzz(Exception):
    """The implementation did not start."""


def configure_fuzz(parser: argparse.ArgumentParser) -> None:
    """The command `fuzz`."""
    parser.description = ABOUT
    parser.add_argument("--impl", default="reference", metavar="IMPL", help=FORMS)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="trials (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="K/N", help="every N-th trial, from the K-th on"
    )
    parser.add_argument("--only", action="append", choices=KINDS, help="this kind of trial; may be repeated")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write every finding there")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try a saved finding again")
    parser.add_argument("--show", type=int, metavar="I", help="print trial I instead of running")
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call (default: 10)")
    parser.set_defaults(handler=reporting_errors(command, CannotFuzz, ImplementationUnavailable, MalformedFinding))


def command(arguments: argparse.Namespace) -> int:
    """Run, replay or print trials."""
    session = Session(locate(arguments.impl), arguments.deadline)
    try:
        hello = session.open()
        if isinstance(hello, Fault):
            raise CannotFuzz(f"{arguments.impl} does not start: {hello.detail}")
        if arguments.replay:
            return replay(session, load(arguments.replay))
        plan = Plan(arguments.seed, arguments.count, arguments.shard, claimed(hello), tuple(arguments.only or KINDS))
        if arguments.show is not None:
            trial, _ = plan.trial(arguments.show)
            print(shown(trial))
            return 0
        return fuzz(session, plan, arguments.save)
    finally:
        session.close()


def claimed(hello: Hello) -> tuple[str, ...]:
    """Return the features that an implementation claims and the generator knows."""
    return tuple(feature for feature in FEATURES if hello.has(feature))


def fuzz(session: Session, plan: Plan, folder: Path | None) -> int:
    """Make the trials, print and save every finding, and print a summary."""

    def report(finding: Finding) -> None:
        print(finding.title)
        if folder is not None:
            print(f"  saved: {save(finding, folder)}")
        print("\n".join(f"  | {line}" for line in shown(finding.minimal).splitlines()), flush=True)

    started = time.perf_counter()
    outcome = run(session, plan, report)
    sys.stdout.write(summary(outcome, time.perf_counter() - started))
    if not outcome.tally.judged:
        print("nothing was judged: every answer was `unsupported`")
        return 1
    return 1 if outcome.problems else 0


def summary(outcome: Outcome, seconds: float) -> str:
    """Return the trials, answers and findings in lines of text."""
    count = sum(outcome.trials.values())
    lines = [
        f"{count} trials in {seconds:.1f} s, {count / max(seconds, 1e-9):.0f} a second: "
        + ", ".join(f"{outcome.trials[kind]} {kind}" for kind in KINDS)
    ]
    lines += [f"  {answer:24} {number}" for answer, number in sorted(outcome.tally.answers.items())]
    if outcome.tally.unsupported:
        lines.append("unsupported:")
        lines += [f"  {feature:40} {number}" for feature, number in outcome.tally.unsupported.most_common(20)]
    lines.append(f"{sum(outcome.problems.values())} findings of {len(outcome.problems)} sorts")
    lines += [f"  {number:6} {signature}" for signature, number in outcome.problems.most_common()]
    return "\n".join(lines) + "\n"


def replay(session: Session, finding: Finding) -> int:
    """Make a finding's trial again, whole and reduced; return 0 if neither has a problem any more."""
    has_problem = False
    for name, trial in (("whole", finding.trial), ("reduced", finding.minimal)):
        problem = tried(session, trial, Tally())
        has_problem = has_problem or problem is not None
        print(f"{name}: {'nothing found' if problem is None else f'{problem.name}: {problem.detail}'}")
    print("\n".join(f"  | {line}" for line in shown(finding.minimal).splitlines()))
    return 1 if has_problem else 0


def shown(trial: Trial) -> str:
    """Return a trial as text for people: its programs, and the call that is executed."""
    parts = [f"// {trial.kind}: {trial.what}", trial.subject.source]
    if trial.subject.function:
        inputs = [
            f"{name}: {operand.dtype}{list(operand.shape)} {operand.bits()[:48]}"
            for name, operand in trial.subject.inputs.items()
        ]
        parts.append(f"// execute {trial.subject.function}({', '.join(inputs)})")
    if trial.twin is not None:
        parts += ["// twin", trial.twin.source]
    return "\n".join(parts)


def _shard(text: str) -> tuple[int, int]:
    try:
        return parse_shard(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
