"""Answers that follow a listed alternative of an interpretation: other readings, no failures.

Products of int8 may saturate at every level. Where NaN or zeros of both signs are among the operands, and where a
number lies beyond a narrow type, the decision of an interpretation is asserted at the level strict alone. An element
may then be what the decision or an alternative gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.oracle import elementwise, products, reductions
from tessera_conformance.oracle.exact import NAN, NEGATIVE_ZERO, ZERO, Value, minimum
from tessera_conformance.oracle.fields import along
from tessera_conformance.oracle.formats import values_of
from tessera_conformance.tensors import Tensor

NAN_IGNORED = "NaN ignored"
EQUAL_ZEROS = "-0 and +0 equal"
NAN_UNORDERED = "a comparison with NaN is false, so that the order of comparisons decides"
NONFINITE = "overflow to infinity or NaN by default"
NEAREST = "float to integer rounds to the nearest, to even in the middle"

Alternative = Callable[[Tensor, Mapping[str, Any]], Sequence[Value]]


def recognize(
    check: Check, function: str, inputs: Sequence[Tensor], arguments: Mapping[str, Any], found: Any, frozen: Tensor
) -> None:
    """End the case as another reading where each element that departs from the decision follows one alternative.

    Raises:
        OtherReading: it does.
    """
    if function == "oracle.all_reduce" and arguments["op"] in ("max", "min"):
        recognize_extremes(check, [values_of(each) for each in inputs], arguments["op"], found, frozen)
        return
    known = ALTERNATIVES.get(function.removeprefix("oracle."), {})
    if not known or not isinstance(found, Tensor) or (found.dtype, found.shape) != (frozen.dtype, frozen.shape):
        return
    decision, actual = values_of(frozen), values_of(found)
    departing = [place for place, value in enumerate(actual) if not _are_equal(value, decision[place])]
    for alternative, compute in known.items():
        other = compute(inputs[0], arguments) if departing else ()
        follows = bool(other) and all(_are_equal(actual[place], other[place]) for place in departing)
        if alternative in CASTS:
            check.reading("AMB-LANG-105", alternative, follows)
        else:
            check.reading("AMB-LANG-134", alternative, follows)


def recognize_saturation(check: Check, inputs: Sequence[Tensor], found: Any, frozen: Tensor) -> None:
    """End the case as another reading where a product of int8 has the nearest int8 in each place.

    Raises:
        OtherReading: it has, and the decision has another in some place.
    """
    if {each.dtype for each in (*inputs, frozen)} != {"int8"}:
        return
    a, b = inputs
    exact = values_of(products.matmul(a, b, out="int32"))
    nearest = [min(max(value, Fraction(-128)), Fraction(127)) for value in exact if isinstance(value, Fraction)]
    follows = isinstance(found, Tensor) and found.dtype == "int8" and values_of(found) == nearest
    check.reading("AMB-LANG-40", "int8 saturating", follows and nearest != values_of(frozen))


def recognize_extremes(check: Check, rows: Sequence[Sequence[Value]], op: str, found: Any, frozen: Tensor) -> None:
    """As `recognize`, of the extremes over ranks, each of which brings a row.

    Raises:
        OtherReading: every element that departs from the decision follows an alternative of AMB-LANG-134.
    """
    if not isinstance(found, Tensor) or (found.dtype, found.shape) != (frozen.dtype, frozen.shape):
        return
    followed: list[str | None] = []
    for decision, actual, column in zip(values_of(frozen), values_of(found), zip(*rows, strict=True), strict=True):
        if decision == actual:
            continue
        numbers = _numbers(column)
        extreme = reductions.greatest(numbers) if op == "max" else reduce(minimum, numbers)
        if NAN not in column:
            followed.append(EQUAL_ZEROS if _are_equal(decision, actual) and actual in column else None)
        elif _are_equal(actual, extreme):
            followed.append(NAN_IGNORED)
        else:
            followed.append(NAN_UNORDERED if any(_are_equal(actual, value) for value in column) else None)
    if followed and None not in followed:
        check.reading("AMB-LANG-134", str(followed[0]), True)


def _are_equal(a: Value, b: Value) -> bool:
    zeros = (ZERO, NEGATIVE_ZERO)
    return a == b or (a in zeros and b in zeros)


def _rows(x: Tensor, arguments: Mapping[str, Any]) -> list[list[Value]]:
    values = values_of(x)
    return [[values[place] for place in line] for line in along(x.shape, arguments["axis"]).places]


def _numbers(row: Sequence[Value]) -> list[Value]:
    """The elements that are numbers, with one zero; the row itself where it has none."""
    return [ZERO if value is NEGATIVE_ZERO else value for value in row if value is not NAN] or list(row)


def _first_of(row: Sequence[Value]) -> Value:
    """The place of the first NaN, or of the first largest, -0 and +0 being equal."""
    plain = [ZERO if value is NEGATIVE_ZERO else value for value in row]
    return Fraction(plain.index(NAN if NAN in plain else reductions.greatest(plain)))


def _first_number(row: Sequence[Value]) -> Value:
    plain = [ZERO if value is NEGATIVE_ZERO else value for value in row]
    return Fraction(plain.index(reductions.greatest(_numbers(row))))


def _by_rows(rule: Callable[[Sequence[Value]], Value]) -> Alternative:
    return lambda x, arguments: [rule(row) for row in _rows(x, arguments)]


def _overflowing(x: Tensor, arguments: Mapping[str, Any]) -> Sequence[Value]:
    if "overflow" in arguments:
        return ()
    return values_of(elementwise.cast(x, dtype=arguments["dtype"], overflow="nonfinite"))


def _nearest(x: Tensor, arguments: Mapping[str, Any]) -> Sequence[Value]:
    """The numbers rounded to the nearest integer, which a cast then keeps."""
    if not arguments["dtype"].startswith("int") or not x.format.is_float:
        return ()
    return [Fraction(round(value)) if isinstance(value, Fraction) else value for value in values_of(x)]


CASTS: Mapping[str, Alternative] = {NONFINITE: _overflowing, NEAREST: _nearest}
ALTERNATIVES: Mapping[str, Mapping[str, Alternative]] = {
    "cast": CASTS,
    "argmax": {EQUAL_ZEROS: _by_rows(_first_of), NAN_IGNORED: _by_rows(_first_number)},
    "max": {NAN_IGNORED: _by_rows(lambda row: reductions.greatest(_numbers(row)))},
    "min": {NAN_IGNORED: _by_rows(lambda row: reduce(minimum, _numbers(row)))},
}
"""The alternatives of a function of the oracle, as the values of the result's elements."""
