"""Answers that follow a listed alternative of an interpretation of collectives: other readings, no failures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tessera_conformance.check import Check, first_difference
from tessera_conformance.oracle.exact import (
    FORMATS,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    ZERO,
    FloatFormat,
    Value,
    add,
    finite,
    float_format,
    infinity,
    is_infinite,
    is_negative,
    is_zero,
    subtract,
    values_of,
)
from tessera_conformance.protocol import Fault, Observation, Rejected, Returned, Unsupported
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

from .wires import WHOLE, WIRES, rows_of

SUMS_AND_EXTREMES = ("sum", "max", "min")


def refuses_remainders(observation: Observation, operation: str, count: int, ranks: int) -> bool:
    """True if a buffer that its ranks do not divide has no shares, as AMB-RT-04 says of the runtime."""
    has_shares = operation in ("reduce_scatter", "all_gather") and count % ranks > 0
    return has_shares and isinstance(observation, Rejected)


def recognize_operators(check: Check, observation: Observation, op: str) -> None:
    """Recognize an implementation without products and means: AMB-COLL-31."""
    lacking = isinstance(observation, Rejected | Unsupported) and op not in SUMS_AND_EXTREMES
    check.reading("AMB-COLL-31", "only sum, max and min", lacking)


def recognize_powers_of_two(check: Check, observation: Observation, algorithm: str, ranks: int) -> None:
    """Recognize halving and doubling that takes powers of two alone: AMB-COLL-33."""
    lacking = algorithm == "halving_doubling" and ranks & (ranks - 1) > 0 and isinstance(observation, Rejected)
    check.reading("AMB-COLL-33", "powers of two alone", lacking)


RARE = ("bool", "int16", "complex64", "complex128")
"""Dtypes that a library of collectives may lack (AMB-RT-59), beside those that are features."""


def is_lacking(observation: Observation) -> bool:
    """True if a library lacks an algorithm, here or at all, or a dtype, which it may (AMB-COLL-08, AMB-RT-59)."""
    unsupported = isinstance(observation, Rejected) and observation.code == "TESS_ERR_UNSUPPORTED"
    return unsupported or isinstance(observation, Unsupported)


def recognize_bare_fp8(check: Check, observation: Observation, wire: str) -> None:
    """Recognize an implementation whose fp8 formats have full names alone: AMB-COLL-07."""
    check.reading("AMB-COLL-07", "refuse bare fp8", wire == "fp8" and isinstance(observation, Rejected))


def recognize_chunk_orders(
    impl: Implementation, check: Check, call: Mapping[str, Any], chunk: int, outputs: Sequence[Tensor]
) -> None:
    """Recognize orders that depend on an element's place in its chunk, a collective of its own: AMB-COLL-29."""
    inputs: Sequence[Tensor] = call["inputs"]
    pieces: list[bytes] = [b""] * len(inputs)
    for first in range(0, inputs[0].size, chunk):
        parts = [Tensor.from_words(x.dtype, (len(words),), words) for x in inputs if (words := _slice(x, first, chunk))]
        answer = check.returns(impl.collectives.run(**{**call, "inputs": parts}))["outputs"]
        pieces = [data + part.data for data, part in zip(pieces, answer, strict=True)]
    check.reading("AMB-COLL-29", "the place in the chunk", pieces == [output.data for output in outputs])


def lies_within(output: Tensor, exact: Sequence[Fraction], bounds: Sequence[Fraction]) -> bool:
    """True if every element is finite and no farther from its exact value than its bound."""
    values = values_of(output)
    if len(values) != len(exact) or {NAN, INFINITY, NEGATIVE_INFINITY}.intersection(values):
        return False
    return all(abs(finite(v) - x) <= bound for v, x, bound in zip(values, exact, bounds, strict=True))


def recognize_rows(
    check: Check, output: Tensor, exact: Sequence[Fraction], bounds: Callable[[Sequence[slice]], Sequence[Fraction]]
) -> None:
    """Blocks begin anew at each row of a tensor: AMB-COLL-38. `bounds` are those of blocks that begin in each part."""
    of_rows, whole = (lies_within(output, exact, bounds(parts)) for parts in (rows_of(output.shape), WHOLE))
    check.reading("AMB-COLL-38", "blocks of a row", of_rows and not whole)


def recognize_infinities(check: Check, observation: Observation, gradients: Sequence[Tensor], wire: str) -> None:
    """Recognize infinite elements that are sent, or their largest number, and have no residual: AMB-COLL-39."""
    if not isinstance(observation, Returned):
        return
    single, gone = float_format("fp32"), False
    before: list[Value] = [ZERO] * gradients[0].size
    for step, gradient in enumerate(gradients):
        whole = [single.round(add(g, r)) for g, r in zip(values_of(gradient), before, strict=True)]
        sent, kept = (values_of(observation.value[name][step]) for name in ("sent", "residuals"))
        for value, there, here in zip(whole, sent, kept, strict=True):
            infinite = is_infinite(value) or is_infinite(there)
            largest = float_format(WIRES[wire]).largest * (-1 if is_negative(value) else 1)
            ends = (infinity(is_negative(value)), largest)
            if value is NAN or (infinite and (there not in ends or not is_zero(here))):
                return
            if not infinite and here != single.round(subtract(value, there)):
                return
            gone = gone or infinite
        before = kept
    check.reading("AMB-COLL-39", "an infinite element is sent and its residual reset", gone)


def recognize_negative_gaps(check: Check, dense: Tensor, expected: Tensor, sent: Collection[int]) -> None:
    """Elements that a message omits are -0: AMB-COLL-41. `sent` are the places of the others."""
    layout = FORMATS.get(dense.dtype)
    if not isinstance(layout, FloatFormat) or (dense.dtype, dense.shape) != (expected.dtype, expected.shape):
        return
    places = set(range(dense.size)).difference(sent)
    negative = [layout.sign_bit if place in places else word for place, word in enumerate(expected.words().tolist())]
    check.reading("AMB-COLL-41", "-0", bool(places) and dense.words().tolist() == negative)


def recognize_unquantized(check: Check, observation: Observation, plain: Sequence[Tensor]) -> None:
    """Recognize data that travel unrounded where bits are promised: AMB-COLL-05."""
    whole = isinstance(observation, Returned) and [output.data for output in observation.value["outputs"]] == [
        tensor.data for tensor in plain
    ]
    check.reading("AMB-COLL-05", "silently sent unquantized", whole)


PARTIAL = "partial sums are rounded as they travel"
OWN = "a rank's own contribution stays whole"
SHARE = "a reduce-scatter's share, which does not travel afterwards, is not rounded"
MOST_RANKS = 5
"""The most ranks whose sums are tried in every order."""


def recognize_sums_over_a_wire(
    check: Check, inputs: Sequence[Tensor], wire: str, parts: Sequence[tuple[slice, Tensor]], *, shares: bool
) -> None:
    """Recognize sums that are rounded to the wire at other places: AMB-COLL-61.

    `parts` are the results of the ranks with the elements that each holds; with `shares` each rank has its own.
    """
    target, data = float_format(WIRES[wire]), float_format(inputs[0].dtype)

    def rounded(value: Value) -> Fraction:
        return finite(target.round(value))

    def arrives(sums: Collection[Fraction], *, whole: bool = False) -> set[Value]:
        """Return the received form of sums: cast to the data's dtype, from the wire unless they stay whole."""
        return {_plus(data.round(total if whole else target.round(total))) for total in sums}

    def partial(column: Sequence[Fraction]) -> set[Value]:
        return arrives(_partial_sums(column, rounded)) if len(column) <= MOST_RANKS else set()

    def own(column: Sequence[Fraction]) -> set[Value]:
        total = sum(map(rounded, column), Fraction(0))
        return arrives([total - rounded(value) + value for value in column])

    def share(column: Sequence[Fraction]) -> set[Value]:
        return arrives([sum(map(rounded, column), Fraction(0))], whole=True)

    columns = list(zip(*(map(finite, values_of(x)) for x in inputs), strict=True))
    for alternative, results in ((PARTIAL, partial), (OWN, own), *([(SHARE, share)] if shares else [])):
        allowed = list(map(results, columns))
        follows = all(
            _plus(value) in one
            for place, output in parts
            for value, one in zip(values_of(output), allowed[place], strict=True)
        )
        check.reading("AMB-COLL-61", alternative, follows)


def _partial_sums(column: Sequence[Fraction], rounded: Any) -> set[Fraction]:
    """Return the sums in every order, each partial sum rounded; a rank adds its own value to it, whole or rounded."""
    ranks = range(len(column))
    sums = {frozenset([rank]): {rounded(column[rank])} for rank in ranks}
    for _ in range(len(column) - 1):
        for group in list(sums):
            for rank in ranks:
                if rank not in group:
                    joined = {rounded(a + b) for a in sums[group] for b in (column[rank], rounded(column[rank]))}
                    sums.setdefault(group | {rank}, set()).update(joined)
    return sums[frozenset(ranks)]


def _plus(value: Value) -> Value:
    return Fraction(0) if value is NEGATIVE_ZERO else value


def recognize_own_whole(
    check: Check, outputs: Sequence[Tensor], whole: Sequence[Tensor], expected: Sequence[Tensor]
) -> None:
    """Recognize moved data that are rounded to the wire, except on the rank that contributed them: AMB-COLL-61."""
    follows = not any(map(first_difference, outputs, whole)) and any(map(first_difference, whole, expected))
    check.reading("AMB-COLL-61", OWN, follows)


def takes_wide_wires(observation: Observation, wire: str, data: str, narrow: Callable[[], Observation]) -> bool:
    """True if a wire as wide as its data is accepted, and a narrower one, which `narrow` tries, is refused."""
    wide = ELEMENT_FORMATS[WIRES.get(wire, wire)].word_bytes >= ELEMENT_FORMATS[data].word_bytes
    return wide and isinstance(observation, Returned) and isinstance(narrow(), Rejected)


def recognize_unnoticed(check: Check, observation: Observation, awaited: bool) -> None:
    """Recognize a collective that never completes without an error, or hangs: AMB-COLL-50."""
    check.reading("AMB-COLL-50", "dropped unnoticed", isinstance(observation, Returned) and not awaited)
    check.reading("AMB-COLL-50", "a hang", isinstance(observation, Fault) and observation.kind == "hang")


def _slice(x: Tensor, first: int, count: int) -> list[int]:
    words: list[int] = x.words().tolist()
    return words[first : first + count]
