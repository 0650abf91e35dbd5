"""Enclosures of compositions: softmax, normalization, attention and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import TypeAlias

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    EXACT,
    FAST,
    FUNCTION_ULPS,
    INFINITE,
    POINT_ZERO,
    QUOTIENT,
    UP,
    ZERO,
    Enclosures,
    Interval,
    Steps,
    Unpromised,
    accumulator_of,
    enclosure,
    gamma_number,
    image,
    total,
    underflow,
)
from tessera_conformance.oracle.bounds.operations import (
    composed,
    composed_along,
    inner_products,
    point,
)
from tessera_conformance.oracle.compositions import matrices, rows_to_transform, scale_factor
from tessera_conformance.oracle.elementwise import Context, Number, cast
from tessera_conformance.oracle.exact import Complex, FloatFormat, finite, float_format
from tessera_conformance.oracle.movement import transpose
from tessera_conformance.oracle.reductions import operands
from tessera_conformance.oracle.trees import Order
from tessera_conformance.tensors import Tensor

# Enclosures of softmax and of the logarithm of a sum of exponentials, in steps or in one pass.


Row: TypeAlias = list[Interval]

EXPONENT_UNITS = 3
"""Units of roundoff in an exponent: the difference itself, and one scaled to base 2 by a rounded constant."""
WEIGHT_UNITS = 2 * FUNCTION_ULPS + 1
"""Units of roundoff that one rescaling of a weight costs, an exponential and a product."""


def _softmax(x: Tensor, axis: int = -1, *, tree: Order = "pairwise") -> Enclosures:
    count = x.shape[axis]
    rule = f"softmax of {count}: differences, exponentials within {FUNCTION_ULPS} ulp, any order"
    return composed_along(softmax, x, axis, rule)


def softmax(steps: Steps, inner: FloatFormat, row: Row) -> Row:
    """Return weights over their sum; in one pass over the row too, where each new maximum rescales earlier weights."""
    weights, total = _weights(steps, row, inner)
    most = steps.relative(Interval.around(1), len(row) + QUOTIENT, inner).high
    return [steps.quotient(weight, total, inner).clipped(ZERO, most) for weight in weights]


def _weights(steps: Steps, row: Row, inner: FloatFormat) -> tuple[Row, Interval]:
    """Return the exponentials of the differences from the maximum and their sum, at least that of the maximum."""
    top = Interval(max(x.low for x in row), max(x.high for x in row))
    weights = [_weight(steps, x - top, len(row), inner) for x in row]
    total = steps.sum(weights, inner)
    least = _weight(steps, POINT_ZERO, len(row), inner).low
    return weights, total.clipped(least, INFINITE)


def _weight(steps: Steps, difference: Interval, count: int, inner: FloatFormat) -> Interval:
    exponent = steps.relative(difference.clipped(-INFINITE, ZERO), EXPONENT_UNITS, inner)
    power = steps.function("exp", inner, exponent.clipped(-INFINITE, ZERO))
    return steps.relative(power, WEIGHT_UNITS * (count - 1), inner).clipped(ZERO, INFINITE)


def _logsumexp(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)

    def composition(steps: Steps, format_: FloatFormat, *row: Interval) -> Interval:
        top = Interval(max(x.low for x in row), max(x.high for x in row))
        _, total = _weights(steps, list(row), format_)
        return steps.rounded(steps.function("log", format_, total) + top, format_)

    rule = f"logsumexp: exponentials and logarithm within {FUNCTION_ULPS} ulp, any order"
    return [composed(composition, list(map(point, row)), result, inner, result, rule) for row in exact.rows_of(x, axis)]


# Enclosures of normalizations along an axis: sums in any order, the variance from centred elements.


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: int = -1, eps: float = 1e-5) -> Enclosures:
    def composition(steps: Steps, format_: FloatFormat, row: Row, factors: Row, addends: Row) -> Row:
        middle = _mean(steps, row, 0, format_)
        centred = [steps.rounded(value - middle, format_) for value in row]
        scaled = _scaled(steps, centred, factors, eps, format_)
        return [steps.rounded(value + addend, format_) for value, addend in zip(scaled, addends, strict=True)]

    return _along(x, axis, composition, gamma, beta)


def _rms_norm(x: Tensor, gamma: Tensor, *, axis: int = -1, eps: float = 1e-6) -> Enclosures:
    def composition(steps: Steps, format_: FloatFormat, row: Row, factors: Row) -> Row:
        return _scaled(steps, row, factors, eps, format_)

    return _along(x, axis, composition, gamma)


def _scaled(steps: Steps, row: Row, factors: Row, eps: float, format_: FloatFormat) -> Row:
    """Return each value over the root of their mean square, times its factor; Unpromised if that may vanish."""
    square = _mean(steps, [value * value for value in row], 1, format_).clipped(ZERO, INFINITE)
    term = steps.rounded(Interval.around(Fraction(eps)), format_)
    root = steps.function("rsqrt", format_, steps.rounded(square + term, format_))
    units = [steps.rounded(value * root, format_) for value in row]
    return [steps.rounded(unit * factor, format_) for unit, factor in zip(units, factors, strict=True)]


def _mean(steps: Steps, row: Row, roundings: int, format_: FloatFormat) -> Interval:
    """Return the mean of terms that have had so many roundings."""
    count = steps.rounded(Interval.around(len(row)), format_)
    return steps.quotient(steps.sum(row, format_, roundings), count, format_)


def _along(x: Tensor, axis: int, composition: Callable[..., Row], *vectors: Tensor) -> Enclosures:
    rule = f"{x.shape[axis]} elements normalized: any order, a root within {FUNCTION_ULPS} ulp"
    return composed_along(composition, x, axis, rule, *vectors)


# Enclosures of attention: as separate steps, and as one operation, which may take the keys in one pass.


def _flash_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, causal: bool = False, block: int | None = None
) -> Enclosures:
    factor = image("rsqrt", Interval.around(q.shape[-1])) if scale is None else Interval.around(Fraction(scale))
    enclosures: Enclosures = []
    for queries, keys, values in zip(*map(matrices, (q, k, v)), strict=True):
        enclosures += _of_matrix(queries, keys, values, factor, causal, q.dtype)
    return enclosures


def _attention(q: Tensor, k: Tensor, v: Tensor, *, factor: str) -> Enclosures:
    """Every result of a step is rounded to the operands' type, or kept wider."""
    return _of_matrix(q, k, v, Interval.around(Fraction(factor)), False, q.dtype, wide_scores=False)


def _of_matrix(
    q: Tensor, k: Tensor, v: Tensor, factor: Interval, causal: bool, dtype: str, *, wide_scores: bool = True
) -> Enclosures:
    count, columns = k.shape[-2], v.shape[-1]
    products, elements = inner_products(q, transpose(k)), [point(value) for value in operands(v)]
    rounded = f"weights rounded to {dtype}," if wide_scores else f"its steps rounded to {dtype}"
    enclosures: Enclosures = []
    for row in range(q.shape[-2]):
        attended = row + 1 if causal else count
        terms, values = products[row * count : row * count + attended], elements[: attended * columns]
        try:
            ideal, actual = (
                _attended(steps, terms, factor, values, columns, dtype, wide_scores) for steps in (EXACT, FAST)
            )
        except Unpromised:
            enclosures += [None] * columns
            continue
        rule = f"attention over {attended} keys, {rounded} in any order"
        enclosures += [enclosure(x, y, rule) for x, y in zip(ideal, actual, strict=True)]
    return enclosures


def _attended(
    steps: Steps,
    terms: Sequence[intervals.Terms | None],
    factor: Interval,
    values: Sequence[Interval | None],
    columns: int,
    dtype: str,
    wide_scores: bool,
) -> Row:
    """Return one row of the result; Unpromised without finite operands. Scores are rounded to the dtype unless wide."""
    result, inner = float_format(dtype), accumulator_of(dtype)
    score = inner if wide_scores else result
    scores = []
    for term in terms:
        if term is None:
            raise Unpromised("an operand that is not finite")
        error = Fraction(0) if steps is EXACT else intervals.any_order(term, inner, products=True)
        product = steps.rounded(Interval.around(term.exact, error), score)
        scores.append(steps.rounded(product * steps.rounded(factor, score), score))
    weights = softmax(steps, inner, scores)
    weights = weights if result == inner else [steps.rounded(weight, result) for weight in weights]
    if dtype == "tf32":
        weights = [steps.rounded(weight, exact.TF32_OPERAND) for weight in weights]
    enclosures = []
    for column in range(columns):
        values_known = [value for value in values[column::columns] if value is not None]
        if len(values_known) < len(weights):
            raise Unpromised("a value that is not finite")
        parts = [weight * steps.operand(value, result) for weight, value in zip(weights, values_known, strict=True)]
        enclosures.append(steps.rounded(steps.sum(parts, inner, 1), result))
    return enclosures


# Enclosures of Fourier transforms, by any common algorithm.
#
# Let G be the factor by which the sum of the moduli of a row bounds the error of an element, in units of roundoff. A
# root of unity, correctly rounded, errs by 1, a complex product by less than 3 (Higham, 3.6) and a complex sum by 1;
# so the definition in any order takes n + 4, and mixed radices p + 4 for each prime factor p of n (Higham, 24.1).
# Bluestein's algorithm, which libraries use for large prime factors, takes three transforms of a power of two of at
# least 2n - 1; the 2-norm of the chirp, which is below the square root of 2n, multiplies their error.


LARGEST_RADIX = 13
"""The largest prime factor that is transformed directly; Bluestein's algorithm transforms larger ones."""
SCALING_UNITS = 2
"""The roundings of the factor and of the product with it."""


def error_units(n: int) -> int:
    """Return G: the error of every algorithm in units of roundoff of the sum of the moduli."""
    factors = _prime_factors(n)
    units = max(n + 4, sum(factor + 4 for factor in factors))
    if factors and factors[-1] > LARGEST_RADIX:
        stages = (2 * n).bit_length() + 1
        units = max(units, 3 * 5 * stages * (isqrt(2 * n) + 1))
    return units


def _transform(inverse: bool, x: Tensor, *, norm: str = "ortho") -> Enclosures:
    x = cast(x, dtype=exact.complex_dtype(x.dtype))
    rows, n = rows_to_transform(x), x.shape[-1]
    format_ = exact.component_format(x.dtype)
    scaled = scale_factor(n, norm, inverse, format_) is not None
    factor = Interval.around(Fraction(1, n) if scaled else 1)
    if norm == "ortho":
        factor = image("rsqrt", Interval.around(n))
    parts = [Fraction(m if inverse else -m, n) % 1 for m in range(n)]
    turns = [(_cosine(part), _cosine((part - Fraction(1, 4)) % 1)) for part in parts]
    enclosures: Enclosures = []
    for row in rows:
        try:
            enclosures += _row(row, turns, factor, format_)
        except Unpromised:
            enclosures += [None] * (2 * n)
    return enclosures


def _row(
    row: list[Complex], turns: list[tuple[Interval, Interval]], factor: Interval, format_: FloatFormat
) -> Enclosures:
    n = len(row)
    if any(point(part) is None for element in row for part in element):
        raise Unpromised("an operand that is not finite")
    parts = [tuple(Interval.around(finite(part)) for part in element) for element in row]
    moduli = ZERO
    for real, imaginary in parts:
        moduli = UP.add(moduli, UP.hypot(real.low, imaginary.low))
    units = error_units(n)
    radius = UP.add(UP.mul(moduli, gamma_number(units, format_)), UP.mul(units + n, underflow(format_)))
    if UP.add(moduli, radius) > format_.largest:
        raise Unpromised("some order may overflow")
    rule = f"a transform of {n} by any algorithm, gamma({units})"
    enclosures: Enclosures = []
    for k in range(n):
        pairs = [(x, turns[j * k % n]) for j, x in enumerate(parts)]
        for part in (
            total([part for (a, b), (c, s) in pairs for part in (a * c, -(b * s))]),
            total([part for (a, b), (c, s) in pairs for part in (a * s, b * c)]),
        ):
            actual = FAST.relative(part.widened(radius) * factor, SCALING_UNITS, format_)
            enclosures.append(enclosure(part * factor, actual, rule))
    return enclosures


def _cosine(part: Fraction) -> Interval:
    """Return the cosine of a part of a full turn."""
    part = min(part, 1 - part)
    if part == Fraction(1, 4):
        return POINT_ZERO
    if part > Fraction(1, 4):
        return -_cosine(Fraction(1, 2) - part)
    return Interval(DOWN.cos(_angle(part, UP)), UP.cos(_angle(part, DOWN)))


def _angle(part: Fraction, context: Context) -> Number:
    return context.div(context.mul(context.mul(2, context.const_pi()), part.numerator), part.denominator)


def _prime_factors(n: int) -> list[int]:
    factors, factor = [], 2
    while n > 1:
        while n % factor == 0:
            factors.append(factor)
            n //= factor
        factor += 1
    return factors


RULES: Mapping[str, Callable[..., Enclosures]] = {
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "attention": _attention,
    "flash_attention": _flash_attention,
    "fft": partial(_transform, False),
    "ifft": partial(_transform, True),
}
"""The rule of each function."""
