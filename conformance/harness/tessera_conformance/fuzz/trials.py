"""Trials of generated programs, and the properties that all answers to them must have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from tessera_conformance.check import first_difference
from tessera_conformance.fuzz.mutations import break_program, mutate
from tessera_conformance.fuzz.statements import Output, Subject, generate, vary
from tessera_conformance.fuzz.tree import Chooser, seeded
from tessera_conformance.protocol import (
    Diagnostic,
    Fault,
    Observation,
    Rejected,
    Returned,
    Unsupported,
    describe,
    read_diagnostic,
)
from tessera_conformance.tensors import Tensor, from_wire

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


# As JSON


def as_json(value: Any) -> Any:
    """Return a trial, or any object of fields, as JSON values."""
    if isinstance(value, Tensor):
        return value.to_message()
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    fields = vars(value) if is_dataclass(value) else value
    return {name: as_json(item) for name, item in fields.items()} if isinstance(fields, Mapping) else value


def trial_from(message: Mapping[str, Any]) -> Trial:
    """Return the trial of such JSON values.

    Raises `KeyError`, `TypeError` or `ValueError`: they have another form.
    """
    if message["kind"] not in KINDS:
        raise ValueError(f"unknown kind {message['kind']!r}")
    twin, declared = message["twin"], message["declared"]
    shapes = [(output["dtype"], output["shape"]) for output in message["outputs"]]
    return Trial(
        message["kind"],
        message["what"],
        _subject_from(message["subject"]),
        None if twin is None else _subject_from(twin),
        tuple(message["categories"]),
        tuple(Output(dtype, None if shape is None else tuple(shape)) for dtype, shape in shapes),
        None if declared is None else [(name, [(kind, found) for kind, found in names]) for name, names in declared],
        bool(message["thorough"]),
    )


def _subject_from(message: Mapping[str, Any]) -> Subject:
    inputs = dict(from_wire(message["inputs"]))
    return Subject(str(message["source"]), str(message["function"]), inputs, int(message["ranks"]))


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
        _Judge(call, tally).trial(trial)
    except Problem as problem:
        return problem.with_traceback(None)
    return None


class _Judge:
    """Asks questions, counts the answers, and checks each."""

    def __init__(self, call: Call, tally: Tally) -> None:
        self._call = call
        self._tally = tally

    def trial(self, trial: Trial) -> None:
        """Make the calls for the kind of the trial."""
        judges = {"legal": self.legal, "illegal": self.illegal, "variant": self.variant, "mutant": self.mutant}
        judges[trial.kind](trial)

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
        reported = [diagnostic.category for diagnostic in answer.diagnostics if diagnostic.severity == "error"] or [
            answer.code
        ]
        if not set(reported) & set(trial.categories):
            raise Problem(
                "other category", f"{trial.what}: found {', '.join(reported)}, fits {', '.join(trial.categories)}"
            )
        if trial.subject.function:
            executed = self.execute(trial.subject)
            if isinstance(executed, Returned):
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
        answer = self._call(f"language.{method}", {"source": source, **params})
        self._tally.add(method, answer)
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
