"""From the lines of a report, or the golden vectors, to the questions that were answered wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

from tessera_conformance.cases import slug
from tessera_conformance.diagnosis.kernels import Call
from tessera_conformance.locations import vectors_directory
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.tensors import MalformedTensor, Tensor, from_wire

# The golden vectors as far as a diagnosis needs them: which function of the oracle a program stands for.
#
# Only the files of the cases in question are read, and not held against their hashes: what a report says was asked
# and answered counts. The package of the vectors runs on the executor, which stands above the reports, and is not
# imported.


@dataclass(frozen=True)
class Golden:
    """A golden vector; its tensors are messages."""

    comment: str
    operation: str
    operands: Sequence[str]
    arguments: Mapping[str, Any]
    inputs: Mapping[str, Any]
    expected: Any


def golden_vector(case: str, title: str) -> Golden | None:
    """The golden vector of a case, if it is the case of one."""
    if "/golden" not in case:
        return None
    beginning, _, rest = case.rpartition("/golden")
    name = rest.partition("/")[2]
    for path in _files(PurePosixPath(beginning).parent.as_posix(), PurePosixPath(beginning).name):
        found = _vectors(path).get(name)
        if found is not None and found.comment == title:
            return found
    return None


@cache
def _files(chapter: str, name: str) -> Sequence[Path]:
    """The files that may hold the vectors of a file of cases: those of the chapter that have its name in theirs."""
    files = (vectors_directory() / chapter).glob("*.jsonl")
    return sorted((path for path in files if name in slug(path.stem)), key=lambda path: (len(path.stem), path.stem))


@cache
def _vectors(path: Path) -> Mapping[str, Golden]:
    """The vectors of a file by the last part of their case's id."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return {slug(name): vector for name, vector in (_vector(line, path.parent) for line in lines)}


def _vector(line: str, folder: Path) -> tuple[str, Golden]:
    case = json.loads(line, object_hook=lambda entry: _placed(entry, folder))
    origin, params = case["provenance"], case["call"]["params"]
    inputs = params.get("inputs", {})
    named = inputs if isinstance(inputs, dict) else {str(place): each for place, each in enumerate(inputs)}
    operation = origin["independent"].removeprefix("oracle.")
    expected = case["expected"]["outputs"][0]
    return case["name"], Golden(case["comment"], operation, origin["operands"], origin["arguments"], named, expected)


def _placed(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An object of a line; a tensor that is a file names it by its whole path."""
    return entry | {"file": str(folder / entry["file"])} if "file" in entry and "sha256" in entry else entry


def inputs_of(vector: Golden) -> Iterator[Any]:
    """The operands of a vector in the order in which the oracle takes them."""
    return (vector.inputs[name] for name in vector.operands)


# From the lines of a report to the questions that were answered wrongly: operation, operands, right and given answer.
#
# The operands and the answer of a case stand in its exchanges. A program is known by the golden vector of its case,
# which names the function of the oracle that confirmed it; vectors are read by topic, and only for programs.


Line = Mapping[str, Any]
Vectors = Callable[[str, str], Golden | None]
"""From a case and its title to its golden vector."""

ONE_OPERATION = ("numerics.evaluate", "collectives.all_reduce")


@dataclass(frozen=True)
class Question:
    """An operation that a failing case asked for, and its answer."""

    case: str
    clauses: Sequence[str]
    call: Call
    found: Tensor
    right: Tensor | None
    """The frozen answer; None where the case does not have it."""

    @property
    def work(self) -> int:
        """A measure of how much there is to compute."""
        terms = self.call.inputs[0].shape[-1:] if self.call.operation == "matmul" else ()
        return self.found.size * prod(terms) + sum(x.size for x in self.call.inputs)


@dataclass(frozen=True)
class Long:
    """A question whose answer is too long for a report, which has its hash; the operands are those of its vector."""

    case: str
    call: Call
    right: Tensor
    sha256: str


@dataclass(frozen=True)
class Asked:
    """The questions of a failing case; `too_long` where its tensors are not in the report."""

    case: str
    operation: str
    questions: Sequence[Question] = ()
    too_long: bool = False
    long: Long | None = None


def asked(lines: Sequence[Line], vectors: Vectors) -> Iterator[Asked]:
    """The arithmetic that each failing case asked for, in the order of the lines."""
    for line in lines:
        if line["verdict"] == "fail" and line["checks"] and _is_arithmetic(line["checks"][-1]):
            found = _of_case(line, vectors)
            if found is not None:
                yield found


def passed(line: Line, operation: str, vectors: Vectors) -> Question | None:
    """The question of a case that passed, by its golden vector, if it asked for an operation."""
    vector = vectors(line["case"], line["title"])
    if vector is None or vector.operation != operation:
        return None
    try:
        call = Call(operation, from_wire(list(inputs_of(vector))), vector.arguments)
        right = from_wire(vector.expected)
    except MalformedTensor:
        return None  # a large one, in a file of its own
    return Question(line["case"], line["clauses"], call, right, right)


def _is_arithmetic(check: Mapping[str, Any]) -> bool:
    """True if a failing check compares tensors."""
    return not check["passed"] and check["kind"] in ("bits", "within", "equal")


def _of_case(line: Line, vectors: Vectors) -> Asked | None:
    answered = [each for each in line["exchanges"] if "returned" in each["observation"]]
    answered = [each for each in answered if each["method"] in (*ONE_OPERATION, "language.execute")]
    if not answered:
        return None
    questions: list[Question] = []
    operation = ""
    for exchange in answered:
        try:
            call = _call_of(line, exchange, vectors)
            if call is None:
                continue
            operation = call.operation
            questions += _questions(line, exchange, call, alone=len(answered) == 1)
        except MalformedTensor:
            return _long_case(line, exchange, operation, vectors)
        except (LookupError, TypeError, AttributeError):
            return None  # no answer that a run takes for one
    return Asked(line["case"], operation, questions) if operation else None


def _long_case(line: Line, exchange: Line, operation: str, vectors: Vectors) -> Asked:
    """A case with tensors that the report shortens: operands are those of its vector, if these have their hashes."""
    vector = vectors(line["case"], line["title"])
    unknown = Asked(line["case"], operation, too_long=True)
    if vector is None or vector.operation != operation:
        return unknown
    try:
        inputs, right = from_wire(list(inputs_of(vector))), from_wire(vector.expected)
    except MalformedTensor:
        return unknown
    asked_of = exchange["params"]["inputs"]
    given = [asked_of[name] for name in vector.operands] if isinstance(asked_of, Mapping) else asked_of
    if len(given) != len(inputs) or any(_hash(one) != other.sha256 for one, other in zip(given, inputs, strict=True)):
        return unknown
    call, output = Call(operation, inputs, vector.arguments), exchange["observation"]["returned"]["outputs"][0]
    try:
        question = Question(line["case"], line["clauses"], call, from_wire(output), right)
        return Asked(line["case"], operation, [question])
    except MalformedTensor:
        return Asked(line["case"], operation, too_long=True, long=Long(line["case"], call, right, _hash(output)))


def _hash(message: Any) -> str:
    """The SHA-256 of a tensor of a report, whole or shortened."""
    body = message["$tensor"]
    return str(body["sha256"] if "sha256" in body else from_wire(message).sha256)


def _questions(line: Line, exchange: Line, call: Call, *, alone: bool) -> Iterator[Question]:
    """The question of an exchange; its right answer is that of the check where there is only one."""
    outputs = from_wire(exchange["observation"]["returned"])["outputs"]
    inputs = from_wire(list(call.inputs))
    bits = [check for check in line["checks"] if check["kind"] == "bits"]
    right = from_wire(bits[0]["expected"]) if alone and bits else None
    if outputs and isinstance(outputs[0], Tensor):
        yield Question(line["case"], line["clauses"], replace(call, inputs=inputs), outputs[0], right)


def _call_of(line: Line, exchange: Line, vectors: Vectors) -> Call | None:
    """The call of an exchange, its tensors as the report has them; None where the oracle has no such function."""
    params = exchange["params"]
    if exchange["method"] == "numerics.evaluate":
        call = Call(params["operation"], params["inputs"], params.get("attributes", {}))
    elif exchange["method"] == "collectives.all_reduce":
        call = Call("all_reduce", params["inputs"], {"op": params["op"]})
    else:
        vector = vectors(line["case"], line["title"])
        if vector is None or set(vector.operands) - set(params.get("inputs", {})):
            return None
        call = Call(vector.operation, [params["inputs"][name] for name in vector.operands], vector.arguments)
    return call if f"oracle.{call.operation}" in FUNCTIONS else None
