"""Enclosures of elementwise operations and of products, and a statistical test of products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any, TypeAlias

import gmpy2

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    EXACT,
    FAST,
    FUNCTION_ULPS,
    UP,
    Enclosure,
    Enclosures,
    Fast,
    Interval,
    Steps,
    Terms,
    Unpromised,
    accumulator_of,
    enclosure,
    image,
    may_flush,
)
from tessera_conformance.oracle.elementwise import HALF, OPERATIONS, TANH_FACTOR, paired
from tessera_conformance.oracle.exact import BadArgument, FloatFormat, Value, finite, float_format, is_finite, values_of
from tessera_conformance.oracle.reductions import operands
from tessera_conformance.tensors import Tensor

# Enclosures of elementwise results.


Composition: TypeAlias = Callable[..., Interval]
"""Maps steps, the accumulator's format and the operands to the result before the final rounding."""

ONE_ROUNDING = "one rounding"
EXACTLY = "exact, but for subnormals flushed"
SINGLE_ONE = Interval.around(1)
A_HALF = Interval.around(HALF)


def point(value: Value) -> Interval | None:
    """Return the interval of one number; None for NaN and infinities."""
    return Interval.around(finite(value)) if is_finite(value) else None


def points(tensor: Tensor) -> list[Interval | None]:
    """Return the intervals of all elements, two for a complex one."""
    return [point(value) for value in values_of(tensor)]


def composed(
    composition: Composition,
    operands: Sequence[Interval | None],
    source: FloatFormat,
    inner: FloatFormat,
    result: FloatFormat,
    rule: str,
    steps: Steps = FAST,
) -> Enclosure | None:
    """Return the enclosure of a composition: exact, and with the errors of the level fast and a final rounding."""
    finite = [operand for operand in operands if operand is not None]
    if len(finite) < len(operands):
        return None
    try:
        ideal = composition(EXACT, inner, *finite)
        actual = composition(steps, inner, *(steps.operand(operand, source) for operand in finite))
        return enclosure(ideal, actual if result == inner else steps.rounded(actual, result), rule)
    except Unpromised:
        return None


def composed_along(
    composition: Callable[..., list[Interval]], x: Tensor, axis: int, rule: str, *vectors: Tensor
) -> Enclosures:
    """Return a composition over each row along an axis and over vectors beside it; None for a nonfinite row."""
    result = float_format(x.dtype)
    inner = float_format(exact.ACCUMULATORS[x.dtype])
    elements, beside = points(x), [points(vector) for vector in vectors]
    enclosures: Enclosures = [None] * x.size
    for places in exact.along(x.shape, axis):
        rows = [[elements[place] for place in places], *beside]
        finite = [[value for value in row if value is not None] for row in rows]
        if not places or [len(row) for row in finite] != [len(row) for row in rows]:
            continue
        try:
            ideal = composition(EXACT, inner, *finite)
            actual = composition(FAST, inner, *([FAST.operand(value, result) for value in row] for row in finite))
        except Unpromised:
            continue
        for place, sought, reached in zip(places, ideal, actual, strict=True):
            enclosures[place] = enclosure(sought, reached if result == inner else FAST.rounded(reached, result), rule)
    return enclosures


def rounded_once(operation: Callable[..., Interval]) -> Composition:
    """The composition of one exact operation and one rounding."""
    return lambda steps, format_, *operands: steps.rounded(operation(*operands), format_)


def unary(composition: Composition, rule: str, x: Tensor) -> Enclosures:
    """A composition over each element, in the accumulator type, rounded once more to the dtype."""
    result = float_format(x.dtype)
    inner = float_format(exact.ACCUMULATORS[x.dtype])
    values = values_of(x)
    by_value = {value: composed(composition, [point(value)], result, inner, result, rule) for value in set(values)}
    return [by_value[value] for value in values]


def sigmoid(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    """1 / (1 + exp(-x)); an exponential beyond the range gives zero."""
    denominator = steps.rounded(SINGLE_ONE + steps.function("exp", format_, -x), format_)
    return steps.quotient(SINGLE_ONE, denominator, format_)


def _silu(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    return steps.rounded(x * sigmoid(steps, format_, x), format_)


def _gelu(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    scaled = steps.rounded(x * _root_of_half(steps, format_), format_)
    return _half_of(steps, format_, x, steps.function("erf", format_, scaled))


def _gelu_by_tanh(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    root, factor = _tanh_constants(steps, format_)
    cube = steps.rounded(steps.rounded(x * x, format_) * x, format_)
    inner = steps.rounded(x + steps.rounded(factor * cube, format_), format_)
    return _half_of(steps, format_, x, steps.function("tanh", format_, steps.rounded(root * inner, format_)))


@cache
def _root_of_half(steps: Steps, format_: FloatFormat) -> Interval:
    return steps.rounded(Interval(DOWN.sqrt(HALF), UP.sqrt(HALF)), format_)


@cache
def _tanh_constants(steps: Steps, format_: FloatFormat) -> tuple[Interval, Interval]:
    root = Interval(DOWN.sqrt(DOWN.div(2, UP.const_pi())), UP.sqrt(UP.div(2, DOWN.const_pi())))
    return steps.rounded(root, format_), steps.rounded(Interval.around(TANH_FACTOR), format_)


def _half_of(steps: Steps, format_: FloatFormat, x: Interval, shape: Interval) -> Interval:
    half = steps.rounded(A_HALF * x, format_)
    return steps.rounded(half * steps.rounded(SINGLE_ONE + shape, format_), format_)


def _activation(rules: Mapping[str, Composition], x: Tensor, *, approximate: str = "none") -> Enclosures:
    if approximate not in rules:
        raise BadArgument("approximate", approximate, "none or tanh")
    return unary(rules[approximate], "its steps, each rounded or within 4 ulp", x)


def function(
    name: str, *inputs: Tensor, overflow: str = "saturate", ulps: float = FUNCTION_ULPS, flushes: bool = True
) -> Enclosures:
    """Return enclosures of an elementary function with errors of at most `ulps` units in the last place of the dtype.

    With `flushes`, subnormal operands and results may be flushed to zero.
    """
    format_ = float_format(inputs[0].dtype)
    groups = [(value,) for value in values_of(inputs[0])] if len(inputs) == 1 else paired(*inputs)[1]

    def evaluate(steps: Steps, format_: FloatFormat, *operands: Interval) -> Interval:
        return steps.function(name, format_, *operands)

    rule, fast = f"{ulps:g} ulp of {name}", Fast(ulps, flushes)
    by_group = {
        group: composed(evaluate, [point(value) for value in group], format_, format_, format_, rule, fast)
        for group in set(groups)
    }
    return [by_group[group] for group in groups]


def _binary(operation: Callable[[Interval, Interval], Interval], a: Tensor, b: Tensor) -> Enclosures:
    format_, evaluate = float_format(a.dtype), rounded_once(operation)
    pairs = paired(a, b)[1]
    return [composed(evaluate, [point(x), point(y)], format_, format_, format_, ONE_ROUNDING) for x, y in pairs]


def _scale(a: Tensor, *, factor: str) -> Enclosures:
    format_ = float_format(a.dtype)

    def evaluate(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
        return steps.rounded(x * steps.rounded(Interval.around(Fraction(factor)), format_), format_)

    rule = "a literal and a product, each rounded once"
    return [composed(evaluate, [x], format_, format_, format_, rule) for x in points(a)]


def _multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    format_ = float_format(a.dtype)

    def evaluate(steps: Steps, format_: FloatFormat, x: Interval, y: Interval, z: Interval) -> Interval:
        return steps.rounded(steps.rounded(x * y, format_) + z, format_)

    shape, pairs = paired(a, b)
    places = paired(Tensor(a.dtype, shape, bytes(len(pairs) * a.format.word_bytes)), c)[1]
    if len(places) != len(pairs):
        raise BadArgument("c", list(c.shape), f"a shape that broadcasts to {list(shape)}")
    operands = [(point(x), point(y), point(z)) for (x, y), (_, z) in zip(pairs, places, strict=True)]
    rule = "a product and a sum, each rounded once, or fused"
    return [composed(evaluate, group, format_, format_, format_, rule) for group in operands]


def unchanged(values: Sequence[Value], format_: FloatFormat) -> Enclosures:
    """Return enclosures of results that are copied."""
    return [composed(lambda steps, _, x: x, [point(value)], format_, format_, format_, EXACTLY) for value in values]


def _rebuilt(function: Callable[[Fraction], Fraction], x: Tensor) -> Enclosures:
    """Return enclosures of an exact function of the finite elements."""
    values = [function(finite(value)) if is_finite(value) else value for value in values_of(x)]
    return unchanged(values, exact.component_format(x.dtype))


def _cast(x: Tensor, *, dtype: str, overflow: str = "saturate") -> Enclosures:
    target = exact.component_format(dtype)
    values: Sequence[Any] = exact.elements_of(x)
    if dtype in exact.COMPONENTS:
        values = [part for z in values for part in (z if x.dtype in exact.COMPONENTS else (z, Fraction(0)))]
    source = exact.component_format(x.dtype) if x.format.is_float else target

    evaluate = rounded_once(lambda value: value)
    return [composed(evaluate, [point(value)], source, target, target, ONE_ROUNDING) for value in values]


ELEMENTWISE: Mapping[str, Callable[..., Enclosures]] = {
    **{name: partial(function, name) for name in OPERATIONS},
    "add": partial(_binary, Interval.__add__),
    "subtract": partial(_binary, Interval.__sub__),
    "multiply": partial(_binary, Interval.__mul__),
    "divide": partial(_binary, Interval.__truediv__),
    "multiply_add": _multiply_add,
    "scale": _scale,
    "sigmoid": partial(_activation, {"none": sigmoid}),
    "silu": partial(_activation, {"none": _silu}),
    "gelu": partial(_activation, {"none": _gelu, "tanh": _gelu_by_tanh}),
    "negate": partial(_rebuilt, lambda number: -number),
    "relu": partial(_rebuilt, lambda number: max(number, Fraction(0))),
    "cast": _cast,
}
"""The rule of each function."""

# Results of elementary functions that are exact at any accuracy: special values, and numbers far beyond the range.


def settled(name: str, *inputs: Tensor, ulps: float, flushes: bool) -> list[bool]:
    """Return True for each element whose bits are settled (IEEE 754-2019, 9.2.1) although it has no enclosure.

    They are settled if an operand is infinite or NaN, or if the function has no value or a pole. They are also settled
    if no error of `ulps` brings a too large result back into the range. With `flushes` a subnormal operand may be read
    as zero, which settles nothing.
    """
    format_ = float_format(inputs[0].dtype)
    groups = [(value,) for value in values_of(inputs[0])] if len(inputs) == 1 else paired(*inputs)[1]
    by_group = {group: _is_settled(name, group, format_, ulps, flushes and may_flush(format_)) for group in set(groups)}
    return [by_group[group] for group in groups]


def _is_settled(name: str, group: Sequence[Value], format_: FloatFormat, ulps: float, flushes: bool) -> bool:
    if flushes and any(isinstance(value, Fraction) and 0 < abs(value) < format_.smallest_normal for value in group):
        return False
    operands = [point(value) for value in group]
    finite = [operand for operand in operands if operand is not None]
    if len(finite) < len(operands):
        return True
    try:
        value = image(name, *finite)
    except Unpromised:
        return True
    reach = 1 + (ulps + 1) * gmpy2.exp2(-format_.fraction_bits)
    return bool(min(abs(value.low), abs(value.high)) > gmpy2.mpfr(gmpy2.mpq(format_.largest)) * reach)


# Inner products of many rows and columns, exactly: as integers that count multiples of one power of two.


def inner_products(a: Tensor, b: Tensor) -> list[Terms | None]:
    """The terms of each element of a product of real numbers; None where not all are finite."""
    *batch, rows, inner = a.shape
    columns = b.shape[-1]
    format_ = float_format(a.dtype)
    lefts, rights = operands(a), operands(b)
    products: list[Terms | None] = []
    for which, row, column in product(range(prod(batch)), range(rows), range(columns)):
        left = lefts[(which * rows + row) * inner :][:inner]
        right = rights[which * inner * columns + column : (which + 1) * inner * columns : columns]
        products.append(_terms(left, right, format_))
    return products


def _terms(left: Sequence[Value], right: Sequence[Value], format_: FloatFormat) -> Terms | None:
    if not all(map(is_finite, (*left, *right))):
        return None
    xs, x_scale = _integers(left)
    ys, y_scale = _integers(right)
    products = [x * y for x, y in zip(xs, ys, strict=True)]
    unit = x_scale * y_scale
    flushed = Fraction(0)
    if may_flush(format_):
        bounds = int(format_.smallest_normal / x_scale), int(format_.smallest_normal / y_scale)
        flushed = unit * sum(
            abs(x * y) for x, y in zip(xs, ys, strict=True) if abs(x) < bounds[0] or abs(y) < bounds[1]
        )
    return Terms(unit * sum(products), unit * sum(map(abs, products)), len(products), flushed)


def _integers(values: Sequence[Value]) -> tuple[list[int], Fraction]:
    """Return the values as multiples of the largest power of two that divides them all."""
    numbers = [finite(value) for value in values]
    denominator = max((number.denominator for number in numbers), default=1)
    return [number.numerator * (denominator // number.denominator) for number in numbers], Fraction(1, denominator)


# Enclosures of matrix products, the products added in any order.


def _matmul(a: Tensor, b: Tensor, addend: Tensor | None = None, out: str | None = None) -> Enclosures:
    """Return the enclosures; None for an element with an operand that is not finite, or if some order may overflow."""
    inner, result = accumulator_of(a.dtype), float_format(out or a.dtype)
    products = inner_products(a, b)
    starts = [None] * len(products) if addend is None else values_of(addend)
    return [_inner_product(terms, start, inner, result) for terms, start in zip(products, starts, strict=True)]


def _inner_product(
    terms: Terms | None, start: Value | None, inner: FloatFormat, result: FloatFormat
) -> Enclosure | None:
    if terms is None or (start is not None and point(start) is None):
        return None
    if start is not None:
        number = finite(start)
        terms = Terms(terms.exact + number, terms.magnitude + abs(number), terms.count + 1, terms.flushed)
    rule = f"any order of {terms.count} products, gamma({terms.count})"
    try:
        error = intervals.any_order(terms, inner, products=True) if terms.count else Fraction(0)
    except Unpromised:
        return None
    return intervals.finished(terms, error, inner, result, rule)


def _add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    """Return the enclosures of a product that is rounded before c is added, or that starts from c."""
    format_, inner = float_format(a.dtype), accumulator_of(a.dtype)
    enclosures: Enclosures = []
    places = paired(
        c, Tensor(c.dtype, (a.shape[-2], b.shape[-1]), bytes(a.shape[-2] * b.shape[-1] * c.format.word_bytes))
    )[1]
    for terms, (start, _) in zip(inner_products(a, b), places, strict=True):
        apart = _inner_product(terms, None, inner, format_)
        together = _inner_product(terms, start, inner, format_)
        if apart is None or together is None:
            enclosures.append(None)
            continue
        rounded = FAST.rounded(Interval.around(apart.exact, apart.error) + Interval.around(finite(start)), format_)
        whole = rounded.hull(Interval.around(together.exact, together.error))
        enclosures.append(enclosure(Interval.around(together.exact), whole, f"{apart.rule}, and a sum rounded once"))
    return enclosures


RULES: Mapping[str, Callable[..., Enclosures]] = {**ELEMENTWISE, "matmul": _matmul, "add_to_product": _add_to_product}
"""The rule of each function."""
