"""Questions that were answered wrongly, the distance of the answers in bits, and the places of the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import prod
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from tessera_conformance.cases import slug, vectors_directory
from tessera_conformance.diagnosis.departure import Budget, Departure
from tessera_conformance.diagnosis.kernels import Call, answer
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.oracle.exact import COMPONENTS, FORMATS, FloatFormat
from tessera_conformance.tensors import MalformedTensor, Tensor, from_wire
from tessera_conformance.vectors import Vector, load
from tessera_conformance.vectors.files import VectorProblem

# The distance of two answers, counted in bits, and the comparison of an answer with a hypothesis.
#
# An element counts as many bits as its distance from the right answer has, in steps between neighbouring numbers: one
# for a neighbour, two for a distance of two or three steps. -0 is the step below +0, NaN the one above infinity, and an
# element counts at most `MOST_BITS`: a single element proves little, however wrong it is. Integers count by their
# difference.


MOST_BITS = 4
FEWEST_BITS = 16
"""A hypothesis is not named if fewer bits of the failing cases distinguish it from the right answer."""
FEWEST_BITS_OF_SOME = 48
"""The same for a hypothesis about some dtypes, if nothing explains the others."""


def float_form(dtype: str) -> FloatFormat | None:
    """Return the format of a dtype's floats, or of the parts of its complex numbers; None for integers."""
    form = FORMATS[COMPONENTS.get(dtype, dtype)]
    return form if isinstance(form, FloatFormat) else None


def steps_between(one: int, other: int, dtype: str) -> int:
    """Return the distance of two codes, in steps between neighbouring numbers."""
    form = float_form(dtype)
    return abs(one - other) if form is None else abs(_position(one, form) - _position(other, form))


def bits_between(one: int, other: int, dtype: str) -> int:
    """Return the evidence of one element."""
    return min(steps_between(one, other, dtype).bit_length(), MOST_BITS)


def codes_of(x: Tensor) -> Sequence[int]:
    """Return the codes of a tensor, with the canonical one for every NaN."""
    form, codes = float_form(x.dtype), list[int](x.words().tolist())
    if form is None:
        return codes
    infinity, sign = form.largest_code + form.has_infinity, form.sign_bit - 1
    return [form.nan_code if code & sign > infinity else code for code in codes]


def _position(code: int, form: FloatFormat) -> int:
    """Return the position of a code on the number line."""
    magnitude = code & (form.sign_bit - 1)
    infinity = form.largest_code + form.has_infinity
    if magnitude > infinity:
        return infinity + 1
    return -magnitude - 1 if code & form.sign_bit else magnitude


# A question, and the comparison of its answer with those of hypotheses.


NO_MEANING = (ArithmeticError, ValueError, LookupError, TypeError, AssertionError)
"""The exceptions of a kernel for operands on which a departure is undefined."""


@dataclass(frozen=True, eq=False)
class Question:
    """An operation that a case called, and its answer."""

    case: str
    clauses: Sequence[str]
    call: Call
    found: Tensor
    right: Tensor | None
    """The frozen answer; None if the case does not have it."""


@dataclass(frozen=True, eq=False)
class Compared(Question):
    """A question with its right answer, whose answers are compared with those of hypotheses."""

    right: Tensor
    budget: Budget
    _fits: dict[Departure, bool] = field(default_factory=dict)

    @property
    def work(self) -> int:
        """A measure of how much there is to compute."""
        terms = self.call.inputs[0].shape[-1:] if self.call.operation == "matmul" else ()
        return self.found.size * prod(terms) + sum(x.size for x in self.call.inputs)

    @property
    def group(self) -> tuple[str, str]:
        """The dtypes of the operands and of the result."""
        return self.call.dtype, self.right.dtype

    @cached_property
    def found_codes(self) -> Sequence[int]:
        """The observed answer."""
        return codes_of(self.found)

    @cached_property
    def differing(self) -> Sequence[tuple[int, int]]:
        """The actual and the right code of each differing element."""
        pairs = zip(self.found_codes, codes_of(self.right), strict=True)
        return [(actual, right) for actual, right in pairs if actual != right]

    @cached_property
    def bits(self) -> int:
        """The evidence of all elements."""
        return sum(bits_between(*pair, self.right.dtype) for pair in self.differing)

    @property
    def has_fit(self) -> bool:
        """True if a hypothesis tried so far gives the observed answer."""
        return any(self._fits.values())

    def fits(self, departure: Departure) -> bool:
        """True if the departure gives the observed answer in every bit."""
        if departure not in self._fits:
            self._fits[departure] = self._compare(departure)
        return self._fits[departure]

    def _compare(self, departure: Departure) -> bool:
        compared = 0
        try:
            for place, code in answer(self.call, departure, self.budget, self.right.shape, self.right.dtype):
                if code != self.found_codes[place]:
                    return False
                compared += 1
        except NO_MEANING:
            return False
        return compared == len(self.found_codes)


def evidence_of(questions: Iterable[Compared]) -> int:
    """Return the bits that distinguish the answers to questions from the right ones."""
    return sum(question.bits for question in questions)


# The distances of answers that no hypothesis explains, and the places of their differences.


RANGES = ((1, "1"), (2, "2"), (4, "3 to 4"), (16, "5 to 16"), (256, "17 to 256"))
"""The upper ends of the ranges of a histogram, in units in the last place."""
BY_CHANCE = 0.9
"""The share of wrong elements in a tile that is not written: the others are right by chance."""
TILES = (64, 32, 16, 8, 4)


def description(questions: Sequence[Compared]) -> str:
    """Return the end of a sentence: a histogram of distances, the places of the elements, the smallest shape; or ""."""
    if not questions:
        return ""
    smallest = min((question.call for question in questions), key=lambda call: sum(x.size for x in call.inputs))
    shapes = " and ".join(str(list(x.shape)) for x in smallest.inputs)
    return f"; {_histogram(questions)}; {_places(questions)}; smallest operands {shapes} {smallest.dtype}"


def _histogram(questions: Sequence[Compared]) -> str:
    counted = Counter(_kind(*pair, question.right.dtype) for question in questions for pair in question.differing)
    order = [*(name for _, name in RANGES), "more"]
    numbers = [f"{counted[name]} by {name}" for name in order if counted[name]]
    special = [f"{number} {name}" for name, number in counted.items() if name not in order]
    ulps = f"elements off by ULP: {', '.join(numbers)}" if numbers else ""
    return ", ".join([*([ulps] if ulps else []), *special])


def is_special(actual: int, right: int, dtype: str) -> str:
    """Return the special value that distinguishes two codes, in words; "" if both are numbers."""
    form = float_form(dtype)
    if form is None:
        return ""
    sizes = [code & (form.sign_bit - 1) for code in (actual, right)]
    if max(sizes) > form.largest_code:
        return "with NaN or infinity for another value"
    return "with a zero of the wrong sign" if sizes == [0, 0] else ""


def lies_beyond(size: int, questions: Sequence[Compared]) -> bool:
    """True if only elements beyond a multiple of `size` in the last axis differ, and nearly all of those do.

    An element may be right by chance. Results whose last axis is shorter are wrong as a whole, and prove nothing alone.
    """
    differing = beyond = longer = 0
    for mask in map(_mask, questions):
        whole = mask.shape[-1] // size * size if mask.ndim else 0
        if mask.ndim == 0 or mask[..., :whole].any():
            return False
        longer += whole > 0
        differing += int(mask.sum())
        beyond += mask[..., whole:].size
    return longer > 1 and differing >= BY_CHANCE * beyond


def _kind(actual: int, right: int, dtype: str) -> str:
    """Return the range that holds a distance, or the special value."""
    if special := is_special(actual, right, dtype):
        return special
    distance = steps_between(actual, right, dtype)
    return next((name for end, name in RANGES if distance <= end), "more")


def _places(questions: Sequence[Compared]) -> str:
    """Return the places of the differing elements that all questions share."""
    masks = [_mask(question) for question in questions]
    kinds: list[tuple[str, Callable[[np.ndarray], bool]]] = [
        ("all elements", lambda mask: bool(mask.all())),
        *((f"only beyond a multiple of {size} in the last axis", _beyond(size)) for size in TILES),
        ("only the last row", lambda mask: mask.ndim > 1 and not mask[..., :-1, :].any()),
        ("only the first row", lambda mask: mask.ndim > 1 and not mask[..., 1:, :].any()),
        ("one row of each result", lambda mask: mask.ndim > 1 and mask.shape[-2] > 1 and _lines(mask, -1) == 1),
        ("one column of each result", lambda mask: mask.ndim > 1 and mask.shape[-1] > 1 and _lines(mask, -2) == 1),
        ("one element of each result", lambda mask: int(mask.sum()) == 1),
    ]
    differing, size = sum(int(mask.sum()) for mask in masks), sum(mask.size for mask in masks)
    place = next((name for name, holds in kinds if all(map(holds, masks))), "")
    return place or f"{differing} of {size} elements differ"


def _mask(question: Compared) -> np.ndarray:
    found, right = (np.array(codes_of(answer), dtype=object) for answer in (question.found, question.right))
    words, shape = question.right.format.words, question.right.shape
    mask: np.ndarray = (found != right).astype(bool).reshape(-1, words).any(axis=1).reshape(shape)
    return mask


def _beyond(size: int) -> Callable[[np.ndarray], bool]:
    def holds(mask: np.ndarray) -> bool:
        whole = mask.shape[-1] // size * size if mask.ndim else 0
        return whole > 0 and not mask[..., :whole].any()

    return holds


def _lines(mask: np.ndarray, axis: int) -> int:
    """Return the number of indices along an axis at which some element differs, leading axes taken together."""
    lines = mask.any(axis=axis)
    return int(lines.reshape(-1, lines.shape[-1]).any(axis=0).sum())


# The questions that the lines of a report answer wrongly: operation, operands, right and actual answer.
#
# The exchanges of a case hold the operands and the answer. The golden vector of a case identifies its program: it names
# the function of the oracle that confirmed it.


Line = Mapping[str, Any]


def golden_vector(line: Line) -> Vector | None:
    """Return the golden vector of a case, or None if it has none."""
    beginning, golden, rest = line["case"].rpartition("/golden")
    place = PurePosixPath(beginning)
    vectors = _vectors(place.parent.as_posix(), place.name) if golden else {}
    return vectors.get((rest.partition("/")[2], line["title"]))


@cache
def _vectors(chapter: str, name: str) -> Mapping[tuple[str, str], Vector]:
    """Return the vectors for a file of cases, by the last part of a case's id and its title.

    They are in the files of the chapter with its name in theirs; those with the shortest names count first.
    """
    topics = [path.stem for path in (vectors_directory() / chapter).glob("*.jsonl") if name in slug(path.stem)]
    vectors: dict[tuple[str, str], Vector] = {}
    for topic in sorted(topics, key=lambda topic: (len(topic), topic), reverse=True):
        with suppress(VectorProblem):  # of a damaged file
            vectors.update({(slug(one.name), one.comment): one for one in load(f"{chapter}/{topic}")})
    return vectors


def _operation(vector: Vector) -> str:
    return vector.provenance.check.function.removeprefix("oracle.")


ONE_OPERATION = ("numerics.evaluate", "collectives.all_reduce")


@dataclass(frozen=True)
class TooLong:
    """An operation whose tensors are too long for a report, which has their beginnings and hashes."""

    case: str
    operation: str


def asked(lines: Sequence[Line]) -> Iterator[Question | TooLong]:
    """Yield the arithmetic that each failing case called, in the order of the lines."""
    for line in lines:
        last = line["checks"][-1] if line["verdict"] == "fail" and line["checks"] else {"passed": True}
        if not last["passed"] and last["kind"] in ("bits", "within", "equal"):
            yield from _of_case(line)


def _of_case(line: Line) -> Sequence[Question | TooLong]:
    answered = [exchange for exchange in line["exchanges"] if "returned" in exchange["observation"]]
    answered = [exchange for exchange in answered if exchange["method"] in (*ONE_OPERATION, "language.execute")]
    questions: list[Question] = []
    for exchange in answered:
        try:
            call = _call_of(line, exchange)
            if call is not None:
                questions += _questions(line, exchange, call, alone=len(answered) == 1)
        except MalformedTensor:
            assert call is not None
            return [TooLong(line["case"], call.operation)]
        except (LookupError, TypeError, AttributeError):
            return []  # the run accepts no such answer
    return questions


def _questions(line: Line, exchange: Line, call: Call, *, alone: bool) -> Iterator[Question]:
    """Return the question of an exchange; its right answer is that of the check, if there is only one."""
    outputs = from_wire(exchange["observation"]["returned"])["outputs"]
    inputs = from_wire(list(call.inputs))
    bits = [check for check in line["checks"] if check["kind"] == "bits"]
    right = from_wire(bits[0]["expected"]) if alone and bits else None
    if outputs and isinstance(outputs[0], Tensor):
        yield Question(line["case"], line["clauses"], replace(call, inputs=inputs), outputs[0], right)


def _call_of(line: Line, exchange: Line) -> Call | None:
    """Return the call of an exchange with the report's tensors; None if the oracle has no such function."""
    params = exchange["params"]
    if exchange["method"] == "numerics.evaluate":
        call = Call(params["operation"], params["inputs"], params.get("attributes", {}))
    elif exchange["method"] == "collectives.all_reduce":
        call = Call("all_reduce", params["inputs"], {"op": params["op"]})
    else:
        vector = golden_vector(line)
        if vector is None:
            return None
        check, inputs = vector.provenance.check, params.get("inputs", {})
        if set(check.operands) - set(inputs):
            return None
        call = Call(_operation(vector), [inputs[name] for name in check.operands], check.arguments)
    return call if f"oracle.{call.operation}" in FUNCTIONS else None
