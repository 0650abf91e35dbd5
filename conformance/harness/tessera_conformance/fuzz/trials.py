"""Trials of generated programs, the properties that all answers to them must have, and `tessera-conformance fuzz`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from tessera_conformance.check import first_difference
from tessera_conformance.fuzz.mutations import break_program, mutate, tokens_of
from tessera_conformance.fuzz.statements import FEATURES, Output, Subject, generate, vary
from tessera_conformance.fuzz.tree import Chooser, replayed, seeded
from tessera_conformance.protocol import (
    Diagnostic,
    Fault,
    Hello,
    Observation,
    Rejected,
    Returned,
    Unsupported,
    describe,
    read_diagnostic,
)
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.terminal import reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate

# The subject of a trial: one program, or two of one meaning, and facts about them; all follow from the decisions.


Kind = Literal["legal", "variant", "illegal", "mutant"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SHARES: tuple[Kind, ...] = (*("legal",) * 3, *("variant",) * 2, *("illegal",) * 2, *("mutant",) * 3)

Declarations = list[tuple[str, list[tuple[str, str]]]]


@dataclass(frozen=True)
class Trial:
    """A question, and the facts known beforehand.

    A `legal` program is accepted, declares `declared` and returns `outputs`. A `variant` has the meaning of its `twin`.
    An `illegal` one is refused with one of `categories`. Nothing is known about a `mutant`: it is executed if it is
    accepted.
    """

    kind: Kind
    what: str
    subject: Subject
    twin: Subject | None = None
    categories: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    declared: Declarations | None = None
    thorough: bool = False
    """True if the program is also parsed, lowered, and executed a second time."""


def chooser_of(seed: int, index: int) -> Chooser:
    """Return the source of decisions for trial `index` of a seed."""
    return seeded(f"{seed}/{index}")


def make_trial(chooser: Chooser, features: Collection[str] = (), kinds: Collection[Kind] = KINDS) -> Trial:
    """Return a trial of one of the kinds, for the core and the features."""
    kind = chooser.pick([share for share in SHARES if share in kinds])
    program = generate(chooser, features)
    subject = Subject(program.source, program.function, program.inputs, program.ranks)
    if kind == "legal":
        thorough, what = chooser.chance(4), "legal by construction"
        return Trial("legal", what, subject, outputs=program.outputs, declared=program.declared, thorough=thorough)
    if kind == "variant":
        what, twin = vary(program, chooser)
        return Trial("variant", what, subject, twin)
    if kind == "illegal":
        what, source, categories = break_program(program, chooser)
        return Trial("illegal", what, replace(subject, source=source), categories=categories)
    source = mutate(program.source, chooser)
    runs_long = re.search(r"\b(?:for|while)\b|\d{3}", source) is not None  # loops or large numbers
    mutated = Subject(source) if runs_long else replace(subject, source=source)
    return Trial("mutant", "mutated text", mutated, thorough=chooser.chance(8))


# The properties that the answers of every implementation must have.
#
# Any text gets an answer in time that follows the protocol, and diagnostics that lie inside the text. A legal program
# is not refused before execution, has the right declarations and result types, and gives the same bits again. An
# illegal one is refused with a fitting category. Two texts of one meaning get one answer.


BEFORE_EXECUTION = ("lex", "parse", "verify")
MOST_OF_A_SIGNATURE = 160
CATEGORIES = ("syntax", "types", "shapes", "layouts", "schedule", "tile", "distributed", "numerics")


@dataclass
class Problem(Exception):
    """A property that does not hold, and details."""

    name: str
    detail: str

    @property
    def signature(self) -> str:
        """The problem without names, numbers and quoted words: mostly equal for findings with one cause."""
        return f"{self.name}: {_general(self.detail)}"


@dataclass
class Tally:
    """Counts of answers of each sort, and of unsupported features."""

    answers: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)

    @property
    def judged(self) -> int:
        """The number of answers other than `unsupported`."""
        return sum(count for what, count in self.answers.items() if not what.endswith("unsupported"))

    def add(self, method: str, observation: Observation) -> None:
        """Count one answer."""
        self.answers[f"{method} {type(observation).__name__.lower()}"] += 1
        if isinstance(observation, Unsupported):
            self.unsupported[observation.feature] += 1


Call: TypeAlias = Callable[[str, Mapping[str, Any]], Observation]
"""Calls one method of the protocol, by its full name."""


def judge(call: Call, trial: Trial, tally: Tally) -> Problem | None:
    """Make the calls of the trial; return the first violated property, if any."""
    try:
        getattr(_Judge(call, tally), trial.kind)(trial)
    except Problem as problem:
        return problem.with_traceback(None)
    return None


@dataclass(frozen=True)
class _Judge:
    """Makes the calls for each kind of trial, counts the answers, and checks each."""

    ask: Call
    tally: Tally

    def legal(self, trial: Trial) -> None:
        """Check a program that must be accepted, and execute it."""
        subject = trial.subject
        accepted = self.verify(subject.source)
        _require(not isinstance(accepted, Rejected), "legal program refused", accepted)
        if trial.thorough:
            self.parse(trial)
            lowered = self.call("lower", subject.source, to="graph")
            _require(not isinstance(lowered, Rejected), "legal program not lowered", lowered)
        if not isinstance(accepted, Returned) or not subject.function:
            return
        executed = self.execute(subject)
        _require(not isinstance(executed, Rejected) or executed.phase == "execute", "legal program refused", executed)
        for outputs in _all_outputs(executed):
            _require_outputs(trial, outputs)
        if trial.thorough:
            _require_equal("executed twice, two answers", executed, self.execute(subject))

    def parse(self, trial: Trial) -> None:
        """Check that the parser finds the declarations of the program."""
        parsed = self.call("parse", trial.subject.source)
        _require(not isinstance(parsed, Rejected), "legal program not parsed", parsed)
        if isinstance(parsed, Returned) and trial.declared is not None:
            declared = [
                (module["name"], [(entry["kind"], entry["name"]) for entry in module["declarations"]])
                for module in parsed.value["modules"]
            ]
            if declared != trial.declared:
                raise Problem("other declarations", f"found {declared}, declared {trial.declared}")

    def illegal(self, trial: Trial) -> None:
        """Check a program that the first method to read it must refuse."""
        answer = self.verify(trial.subject.source)
        if isinstance(answer, Unsupported):
            return
        if isinstance(answer, Returned):
            raise Problem("illegal program accepted", trial.what)
        assert isinstance(answer, Rejected)
        errors = [diagnostic.category for diagnostic in answer.diagnostics if diagnostic.severity == "error"]
        reported, fitting = errors or [answer.code], ", ".join(trial.categories)
        if not set(reported) & set(trial.categories):
            raise Problem("other category", f"{trial.what}: found {', '.join(reported)}, fits {fitting}")
        if trial.subject.function and isinstance(self.execute(trial.subject), Returned):
            raise Problem("illegal program executed", trial.what)

    def variant(self, trial: Trial) -> None:
        """Check two texts of one meaning."""
        assert trial.twin is not None
        if trial.subject.function:
            answers = [self.execute(program) for program in (trial.subject, trial.twin)]
        else:
            answers = [self.verify(program.source) for program in (trial.subject, trial.twin)]
        _require_equal("two texts of one meaning, two answers", *answers)

    def mutant(self, trial: Trial) -> None:
        """Check the answer to any text, and that it agrees with those of the other methods."""
        answer = self.verify(trial.subject.source)
        if trial.thorough:
            parsed = self.call("parse", trial.subject.source)
            if isinstance(parsed, Rejected) and isinstance(answer, Returned):
                raise Problem("accepted, but not parsed", describe(parsed))
        if isinstance(answer, Returned) and trial.subject.function:
            executed = self.execute(trial.subject)
            if isinstance(executed, Rejected) and executed.phase in BEFORE_EXECUTION:
                raise Problem("accepted, but refused when executed", describe(executed))

    # Questions

    def verify(self, source: str) -> Observation:
        """Return the answer of `language.verify`; a refusal must name a phase before lowering."""
        answer = self.call("verify", source)
        if isinstance(answer, Rejected) and answer.phase not in BEFORE_EXECUTION:
            raise Problem("refused in another phase", describe(answer))
        if isinstance(answer, Returned):
            _require_places(source, map(read_diagnostic, answer.value["warnings"]))
        return answer

    def execute(self, subject: Subject) -> Observation:
        """Return the answer of executing the function, on the ranks of the subject."""
        inputs = dict(subject.inputs)
        if subject.ranks:
            return self.call("execute_ranks", subject.source, function=subject.function, ranks=[inputs] * subject.ranks)
        return self.call("execute", subject.source, function=subject.function, inputs=inputs)

    def call(self, method: str, source: str, **params: Any) -> Observation:
        """Return one answer; a fault is a problem of every request, and so is a diagnostic outside the text."""
        answer = self.ask(f"language.{method}", {"source": source, **params})
        self.tally.add(method, answer)
        if isinstance(answer, Fault):
            raise Problem(answer.kind, f"language.{method}: {answer.detail}")
        if isinstance(answer, Rejected):
            _require_places(source, answer.diagnostics)
        return answer


def _all_outputs(answer: Observation) -> list[list[Tensor]]:
    """Return the returned values of every rank; [] if nothing was returned, as by `language.verify`."""
    ranks = answer.value.get("ranks", [answer.value]) if isinstance(answer, Returned) else []
    return [rank.get("outputs", []) for rank in ranks]


def _require(condition: bool, name: str, answer: Observation) -> None:
    if not condition:
        raise Problem(name, describe(answer))


def _require_places(source: str, diagnostics: Iterable[Diagnostic]) -> None:
    """Require categories of section 11, and places inside the text whose ends follow their starts.

    The end of the text counts as a character that a diagnostic may name.
    """
    lines = [len(line) for line in source.split("\n")]
    count = max(len(lines), len(source.splitlines()))
    for diagnostic in diagnostics:
        start, end = (diagnostic.line, diagnostic.column), (diagnostic.end_line, diagnostic.end_column)
        place = f"{start[0]}:{start[1]} to {end[0]}:{end[1]}"
        text = f"{diagnostic.category} at {place}: {diagnostic.message}"
        if diagnostic.category not in CATEGORIES or not diagnostic.message.strip():
            raise Problem("diagnostic without category or message", text)
        for (line, column), beyond in ((start, 1), (end, 2)):
            if line is not None and not 1 <= line <= count:
                raise Problem("diagnostic outside the text", text)
            width = lines[line - 1] if count == len(lines) and line is not None else len(source)
            if column is not None and not 1 <= column <= width + beyond:
                raise Problem("diagnostic outside the text", text)
        if None not in (*start, *end) and end < start:
            raise Problem("diagnostic that ends before it starts", text)


def _require_outputs(trial: Trial, outputs: list[Tensor]) -> None:
    """Require the number of results, their dtypes and, where they are known, their shapes."""
    expected = [(output.dtype, output.shape) for output in trial.outputs]
    unknown = {place for place, (_, shape) in enumerate(expected) if shape is None}
    types = [(tensor.dtype, None if place in unknown else tensor.shape) for place, tensor in enumerate(outputs)]
    if types != expected:
        raise Problem("other results than the types say", f"found {types}, expected {expected}")


def _require_equal(name: str, first: Observation, second: Observation) -> None:
    """Require equal bits, except NaN payloads, or the same refusal; an unsupported call is not compared."""
    if isinstance(first, Unsupported) or isinstance(second, Unsupported):
        return
    if isinstance(first, Returned) and isinstance(second, Returned):
        left, right = ([output for rank in _all_outputs(answer) for output in rank] for answer in (first, second))
        if len(left) != len(right):
            raise Problem(name, f"{len(left)} values; {len(right)} values")
        for one, other in zip(left, right, strict=True):
            difference = first_difference(other, one)
            if difference is not None:
                raise Problem(name, difference.sentence())
    elif _without_place(first) != _without_place(second):
        raise Problem(name, f"{describe(first)}; {describe(second)}")


def _without_place(answer: Observation) -> str:
    """Return an answer without details that another spelling of the text may change."""
    if isinstance(answer, Rejected):
        return f"rejected in phase {answer.phase} with {answer.code}"
    return "returned a result" if isinstance(answer, Returned) else describe(answer)


def _general(text: str) -> str:
    """Return a text without quoted parts, names, types and numbers."""
    text = re.sub(r"'.*'|\".*\"", "'...'", text, flags=re.DOTALL)
    text = re.sub(r"@[\w.]+", "@...", text)
    text = re.sub(r"tensor<[^>]*>|\b(?:fp|int|bf|tf)\d\w*", "a type", text)
    return re.sub(r"\b[0-9a-f]*\d[0-9a-f]*|\d+", "N", text)[:MOST_OF_A_SIGNATURE]


# Shrinking of findings: a generated program to fewer and simpler decisions, a mutated text to fewer tokens.


T = TypeVar("T")
SIMPLER = ((), (0,))
"""The substitutes for decisions: none, or the simplest choice."""


def limited(keeps: Callable[[list[T]], bool], attempts: int) -> Callable[[list[T]], bool]:
    """Return the same question, which after so many attempts is not asked again: the answer is no."""
    left = iter(range(attempts))
    return lambda tried: next(left, None) is not None and keeps(tried)


def shorter(
    items: Sequence[T], keeps: Callable[[list[T]], bool], substitutes: Sequence[Sequence[T]] = ((),)
) -> list[T]:
    """Return fewer items with the same problem: ever smaller stretches, which overlap, give way to a substitute."""
    best, size = list(items), len(items) // 2
    while size:
        place = 0
        while place < len(best):
            before, after = best[:place], best[place + size :]
            smaller = ([*before, *substitute, *after] for substitute in substitutes)
            tried = next((other for other in smaller if other != best and keeps(other)), None)
            if tried is None:
                place += max(size // 4, 1)
            else:
                best = tried
        size = size * 3 // 4
    return best


# Findings, which are saved as programs to read.


@dataclass(frozen=True)
class Finding:
    """A problem, the trial that found it, and a smaller trial with the same problem."""

    seed: int
    index: int
    problem: Problem
    minimal: Trial
    trial: Trial

    @property
    def title(self) -> str:
        """The finding in one line."""
        return f"trial {self.index} of seed {self.seed} ({self.trial.what}): {self.problem.name}: {self.problem.detail}"


def save(finding: Finding, folder: Path) -> Path:
    """Write the smallest program, after the finding in a comment; return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", finding.problem.name.lower()).strip("-")[:40]
    path = folder / f"{finding.seed}-{finding.index}-{slug}.tsr"
    title, *_ = finding.title.splitlines()
    path.write_bytes(f"// {title}\n{shown(finding.minimal)}".encode("utf-8", "surrogatepass"))
    return path


# Runs trials against one implementation, counts its answers, and shrinks the findings.


ATTEMPTS = 2400
"""The most smaller forms of a finding that are tried; `PATIENCE` if each may take a whole deadline."""
PATIENCE = 12
EACH_KIND = 2
"""The most findings of one signature that are kept; the others are counted."""


@dataclass(frozen=True)
class Plan:
    """The trials to make: some of a seed, by their numbers."""

    seed: int
    indices: range
    features: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = KINDS

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
    for index in plan.indices:
        trial, tape = plan.trial(index)
        outcome.trials[trial.kind] += 1
        problem = tried(session, trial, outcome.tally)
        if problem is None:
            continue
        outcome.problems[problem.signature] += 1
        if outcome.problems[problem.signature] <= EACH_KIND:
            minimal = reduced(session, plan, trial, tape, problem)
            finding = Finding(plan.seed, index, problem, minimal, trial)
            outcome.findings.append(finding)
            report(finding)
    return outcome


def reduced(session: Session, plan: Plan, trial: Trial, tape: list[int], problem: Problem) -> Trial:
    """Return a smaller trial with the same problem: from fewer decisions, and a mutated text from fewer tokens too."""
    attempts = PATIENCE if problem.name == "hang" else ATTEMPTS

    def remade(decisions: list[int]) -> Trial:
        return make_trial(replayed(decisions), plan.features, plan.kinds)

    def same(other: Trial) -> bool:
        outcome = tried(session, other, Tally())
        return outcome is not None and outcome.signature == problem.signature

    def shows(decisions: list[int]) -> bool:
        return same(remade(decisions))

    keeps = limited(shows, attempts)
    for _ in range(2):
        tape = shorter(tape, keeps, SIMPLER)
    best = remade(tape)
    if trial.kind != "mutant":
        return best

    def of_tokens(tokens: list[str]) -> Trial:
        return replace(best, subject=replace(best.subject, source="".join(tokens)))

    fewer = shorter(tokens_of(best.subject.source), limited(lambda tokens: same(of_tokens(tokens)), attempts))
    return of_tokens(fewer)


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
    parser.add_argument("--only", action="append", choices=KINDS, help="this kind of trial; may be repeated")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the program of every finding there")
    parser.add_argument("--trial", type=int, metavar="I", help="print trial I, and make it alone")
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call (default: 10)")
    parser.set_defaults(handler=reporting_errors(command, CannotFuzz, ImplementationUnavailable))


def command(arguments: argparse.Namespace) -> int:
    """Make trials."""
    session = Session(locate(arguments.impl), arguments.deadline)
    try:
        hello = session.open()
        if isinstance(hello, Fault):
            raise CannotFuzz(f"{arguments.impl} does not start: {hello.detail}")
        kinds = tuple(arguments.only or KINDS)
        plan = Plan(arguments.seed, range(arguments.count), claimed(hello), kinds)
        if arguments.trial is not None:
            plan = replace(plan, indices=range(arguments.trial, arguments.trial + 1))
            print(shown(plan.trial(arguments.trial)[0]))
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
