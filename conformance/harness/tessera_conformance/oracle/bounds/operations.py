"""Enclosures of elementwise operations and of products, and a statistical test of products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any, TypeAlias

import gmpy2

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
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    COMPONENTS,
    BadArgument,
    Complex,
    FloatFormat,
    Value,
    along,
    component_format,
    elements_of,
    finite,
    float_format,
    is_zero,
    negate,
    values_of,
)
from tessera_conformance.oracle.reductions import Tree, operands
from tessera_conformance.tensors import Tensor

# Enclosures of what is computed element by element.


Composition: TypeAlias = Callable[..., Interval]
"""Steps, the accumulator's format and the operands to the result before the final rounding."""

ONE_ROUNDING = "one rounding"
EXACTLY = "exact, but for subnormals flushed"
SINGLE_ONE = Interval.around(1)
A_HALF = Interval.around(HALF)


def point(value: Value) -> Interval | None:
    """The interval of one number; None where it is none."""
    return Interval.around(finite(value)) if isinstance(value, Fraction) or is_zero(value) else None


def points(tensor: Tensor) -> list[Interval | None]:
    """The intervals of all elements, two for a complex one."""
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
    """The enclosure of a composition: evaluated exactly, and with the errors of the level fast and a final rounding."""
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
    """A composition over each row along an axis and over vectors beside it; None for a row that is not finite."""
    result = float_format(x.dtype)
    inner = float_format(ACCUMULATORS[x.dtype])
    elements, beside = points(x), [points(vector) for vector in vectors]
    enclosures: Enclosures = [None] * x.size
    for places in along(x.shape, axis).places:
        rows = [[elements[place] for place in places], *beside]
        finite = [[value for value in row if value is not None] for row in rows]
        if not places or [len(row) for row in finite] != [len(row) for row in rows]:
            continue
        try:
            ideal = composition(EXACT, inner, *finite)
            actual = composition(FAST, inner, *([FAST.operand(value, result) for value in row] for row in finite))
        except Unpromised:
            continue
        for place, exact, reached in zip(places, ideal, actual, strict=True):
            enclosures[place] = enclosure(exact, reached if result == inner else FAST.rounded(reached, result), rule)
    return enclosures


def rounded_once(operation: Callable[..., Interval]) -> Composition:
    """The composition of one exact operation and one rounding."""
    return lambda steps, format_, *operands: steps.rounded(operation(*operands), format_)


def unary(composition: Composition, rule: str, x: Tensor) -> Enclosures:
    """A composition over each element, in the accumulator type, rounded once more to the dtype."""
    result = float_format(x.dtype)
    inner = float_format(ACCUMULATORS[x.dtype])
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
    """Enclosures of an elementary function that is off by at most `ulps` units in the last place of the dtype itself.

    `flushes` says whether subnormal operands and results may be taken for zero.
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
    if a.dtype in COMPONENTS:
        return _complex(operation, a, b)
    format_, evaluate = float_format(a.dtype), rounded_once(operation)
    pairs = paired(a, b)[1]
    return [composed(evaluate, [point(x), point(y)], format_, format_, format_, ONE_ROUNDING) for x, y in pairs]


def _complex(operation: Callable[[Interval, Interval], Interval], a: Tensor, b: Tensor) -> Enclosures:
    """Sums part by part; the product's parts take three roundings each, or two where one is fused."""
    format_ = component_format(a.dtype)

    def part(steps: Steps, format_: FloatFormat, w: Interval, x: Interval, y: Interval, z: Interval) -> Interval:
        left, right = steps.rounded(w * x, format_), steps.rounded(y * z, format_)
        return steps.rounded(left + right, format_)

    single = rounded_once(operation)
    enclosures: Enclosures = []
    for x, y in paired(a, b)[1]:
        (p, q), (r, s) = map(point, x), map(point, y)
        if operation is not Interval.__mul__:
            enclosures += [composed(single, pair, format_, format_, format_, ONE_ROUNDING) for pair in ((p, r), (q, s))]
            continue
        minus_q = -q if q is not None else None
        for factors in ((p, r, minus_q, s), (p, s, q, r)):
            enclosures.append(
                composed(part, factors, format_, format_, format_, "a complex product, every step rounded")
            )
    return enclosures


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
    """Results that nothing is computed for."""
    return [composed(_same, [point(value)], format_, format_, format_, EXACTLY) for value in values]


def _same(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    return x


def _negate(a: Tensor) -> Enclosures:
    return _rebuilt(a, lambda value: -finite(value))


def _relu(x: Tensor) -> Enclosures:
    return _rebuilt(x, lambda value: max(finite(value), Fraction(0)))


def _rebuilt(x: Tensor, function: Callable[[Value], Fraction]) -> Enclosures:
    format_ = component_format(x.dtype)
    values = [value if point(value) is None else function(value) for value in values_of(x)]
    return unchanged(values, format_)


def _cast(x: Tensor, *, dtype: str, overflow: str = "saturate") -> Enclosures:
    target = component_format(dtype)
    values: Sequence[Any] = elements_of(x)
    if dtype in COMPONENTS:
        values = [part for z in values for part in (z if x.dtype in COMPONENTS else (z, Fraction(0)))]
    source = component_format(x.dtype) if x.format.is_float else target

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
    "negate": _negate,
    "relu": _relu,
    "cast": _cast,
}
"""The rule of each function."""

# Results of elementary functions that no accuracy changes: special values, and numbers far beyond the range.


def settled(name: str, *inputs: Tensor, ulps: float, flushes: bool) -> list[bool]:
    """For each element, whether its bits are settled (IEEE 754-2019, 9.2.1) although no enclosure holds it.

    So they are where an operand is infinite or NaN, where the function has no value or a pole, and where the exact
    result is so large that no error of `ulps` moves it back into the range. With `flushes` a subnormal operand may be
    taken for zero, which settles nothing.
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
        exact = image(name, *finite)
    except Unpromised:
        return True
    reach = 1 + (ulps + 1) * gmpy2.exp2(-format_.fraction_bits)
    return bool(min(abs(exact.low), abs(exact.high)) > gmpy2.mpfr(gmpy2.mpq(format_.largest)) * reach)


# Inner products of many rows and columns, exactly: as integers that stand for multiples of one power of two.


def inner_products(a: Tensor, b: Tensor) -> list[Terms | None]:
    """The terms of each element of a product; a complex one has two, of twice as many terms. None: not all finite."""
    *batch, rows, inner = a.shape
    columns = b.shape[-1]
    format_ = component_format(a.dtype)
    lefts, rights = operands(a), operands(b)
    products: list[Terms | None] = []
    for which, row, column in product(range(prod(batch)), range(rows), range(columns)):
        left = lefts[(which * rows + row) * inner :][:inner]
        right = rights[which * inner * columns + column : (which + 1) * inner * columns : columns]
        if a.dtype in COMPONENTS:
            products.extend(_terms(*pair, format_) for pair in _parts(left, right))
        else:
            products.append(_terms(left, right, format_))
    return products


def _parts(left: Sequence[Complex], right: Sequence[Complex]) -> list[tuple[list[Value], list[Value]]]:
    """The real inner products that are the two parts of a complex one."""
    flat = [part for x in left for part in x]
    real = [part for x in right for part in (x[0], negate(x[1]))]
    imaginary = [part for x in right for part in (x[1], x[0])]
    return [(flat, real), (flat, imaginary)]


def _terms(left: Sequence[Value], right: Sequence[Value], format_: FloatFormat) -> Terms | None:
    if not all(isinstance(value, Fraction) or is_zero(value) for value in (*left, *right)):
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
    """The values as multiples of the largest power of two of which all are."""
    numbers = [finite(value) for value in values]
    denominator = max((number.denominator for number in numbers), default=1)
    return [number.numerator * (denominator // number.denominator) for number in numbers], Fraction(1, denominator)


# Enclosures of matrix products: any order of the products, or the one that was followed.


def matmul(
    a: Tensor,
    b: Tensor,
    addend: Tensor | None = None,
    out: str | None = None,
    *,
    order: str = "fold",
    tree: Tree | None = None,
    fused: bool = False,
    accumulator: str | None = None,
    known_order: bool = False,
) -> Enclosures:
    """An enclosure for each element of a product, row-major.

    None where nothing is promised: an operand is not finite, or some order may overflow.
    """
    inner, result = accumulator_of(a.dtype, accumulator), component_format(out or a.dtype)
    starts: list[Value] | None = None if addend is None else values_of(addend)
    if known_order and a.dtype not in COMPONENTS:
        return _matmul_along(order if tree is None else tree, a, b, starts, inner, result)
    enclosures: Enclosures = []
    for place, terms in enumerate(inner_products(a, b)):
        start = None if starts is None else starts[place]
        enclosures.append(_inner_product(terms, start, inner, result))
    return enclosures


def _inner_product(
    terms: intervals.Terms | None, start: Value | None, inner: FloatFormat, result: FloatFormat
) -> Enclosure | None:
    if terms is None or (start is not None and point(start) is None):
        return None
    if start is not None:
        number = finite(start)
        terms = intervals.Terms(terms.exact + number, terms.magnitude + abs(number), terms.count + 1, terms.flushed)
    rule = f"any order of {terms.count} products, gamma({terms.count})"
    try:
        error = intervals.any_order(terms, inner, products=True) if terms.count else Fraction(0)
    except Unpromised:
        return None
    return intervals.finished(terms, error, inner, result, rule)


def _matmul_along(
    tree: Tree, a: Tensor, b: Tensor, starts: Sequence[Value] | None, inner: FloatFormat, result: FloatFormat
) -> Enclosures:
    """Return the bounds of real products along a known tree."""
    *batch, rows, depth = a.shape
    columns = b.shape[-1]
    lefts, rights = operands(a), operands(b)
    enclosures: Enclosures = []
    for which, row, column in product(range(prod(batch)), range(rows), range(columns)):
        left = lefts[(which * rows + row) * depth :][:depth]
        right = rights[which * depth * columns + column : (which + 1) * depth * columns : columns]
        factors = [(point(x), point(y)) for x, y in zip(left, right, strict=True)]
        start = Fraction(0) if starts is None else starts[len(enclosures)]
        if any(None in pair for pair in factors) or point(start) is None:
            enclosures.append(None)
            continue
        products = [finite(x) * finite(y) for x, y in zip(left, right, strict=True)]
        terms = intervals.terms_of([*products, finite(start)], inner)
        error = intervals.along_tree(tree, products, inner, products=True, start=finite(start)) + terms.flushed
        enclosures.append(intervals.finished(terms, error, inner, result, "a known tree of products, depth-weighted"))
    return enclosures


def _add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    """The product is rounded before c is added, or c starts the accumulator."""
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


RULES: Mapping[str, Callable[..., Enclosures]] = {**ELEMENTWISE, "matmul": matmul, "add_to_product": _add_to_product}
"""The rule of each function."""


# A test that the errors of many inner products are those of roundings: bound, bias and variance, as TOSA has them.
#
# TOSA specification, "Dot product accuracy requirements", with the limits of its reference model of 2025. The error
# of each result is measured in units of u times the sum of the magnitudes of its products. Here u is the unit
# roundoff of the result type, or of the smallest normal number where that is more. With KS products, a start value
# counting as one more, and KSB = KS / 2**(difference of the fraction bits of accumulator and result), rounded up:
#
# - bound: no error is beyond 2 KSB;
# - variance: the mean of the squared errors is at most 1.6 KSB;
# - bias: the sum of T errors is at most sqrt(16 KSB T), for data whose products are not biased to one sign.
#
# The bound grows like the number of terms, and real errors only like its root. At KS = 512, operands that were
# rounded to tf32 still lie within it, and only the variance test refuses them.


BOUND = Fraction(2)
VARIANCE = Fraction(8, 5)
SQUARED_BIAS = 10 * VARIANCE


@dataclass(frozen=True)
class RuleResult:
    """One rule: the number that was found and its limit."""

    rule: str
    found: Fraction
    limit: Fraction

    @property
    def accepted(self) -> bool:
        """True if the limit is kept."""
        return self.found <= self.limit


@dataclass(frozen=True)
class StatisticalVerdict:
    """The verdict of each rule on the results."""

    rules: tuple[RuleResult, ...]

    @property
    def accepted(self) -> bool:
        """True if every rule accepts."""
        return all(rule.accepted for rule in self.rules)

    @property
    def refused_by(self) -> tuple[str, ...]:
        """The names of the rules that refuse."""
        return tuple(rule.rule for rule in self.rules if not rule.accepted)

    def sentence(self) -> str:
        """In words."""
        return "; ".join(
            f"{rule.rule} {'accepts' if rule.accepted else 'refuses'}: {float(rule.found):.4g} of at most "
            f"{float(rule.limit):.4g}"
            for rule in self.rules
        )


def judge_products(
    a: Tensor, b: Tensor, result: Tensor, *, addend: Tensor | None = None, unbiased: bool = False
) -> StatisticalVerdict:
    """Judge the matrix product of real floats (..., M, K) and (..., K, N).

    `unbiased` says that the products of the data are as often positive as negative, and adds the bias test.

    Raises `BadArgument`: the operands are not real floats, or the result has another shape.
    """
    if a.dtype in COMPONENTS or not a.format.is_float:
        raise BadArgument("a", a.dtype, "a real floating-point dtype")
    shape = (*a.shape[:-1], b.shape[-1])
    if result.shape != shape:
        raise BadArgument("result", list(result.shape), f"the shape {list(shape)}")
    target, accumulator = float_format(result.dtype), float_format(ACCUMULATORS[a.dtype])
    starts: list[Value] = [Fraction(0)] * result.size if addend is None else values_of(addend)
    units = _kernel_bound(a.shape[-1], any(not is_zero(start) for start in starts), accumulator, target)
    errors, worst = [], Fraction(0)
    for terms, start, value in zip(inner_products(a, b), starts, values_of(result), strict=True):
        error = _error(terms, start, value, units, target)
        if error is None:
            return StatisticalVerdict((RuleResult("bound", BOUND * units + 1, BOUND * units),))
        errors.append(error)
        worst = max(worst, abs(error))
    return _verdict(errors, worst, units, unbiased)


def _verdict(errors: list[Fraction], worst: Fraction, units: int, unbiased: bool) -> StatisticalVerdict:
    count = max(len(errors), 1)
    squares = sum((error * error for error in errors), Fraction(0))
    rules = [RuleResult("bound", worst, BOUND * units), RuleResult("variance", squares / count, VARIANCE * units)]
    if unbiased:
        total = sum(errors, Fraction(0))
        rules.append(RuleResult("bias, squared", total * total / count, SQUARED_BIAS * units))
    return StatisticalVerdict(tuple(rules))


def _kernel_bound(count: int, started: bool, accumulator: FloatFormat, target: FloatFormat) -> int:
    """KSB: a wide accumulator adds less than one rounding of the result for many products."""
    spare = max(accumulator.fraction_bits - target.fraction_bits, 0)
    return -(-count // (1 << spare)) + started


def _error(terms: Terms | None, start: Value, value: Value, units: int, target: FloatFormat) -> Fraction | None:
    """In units; zero where nothing is promised, None where a number is wanted and there is none."""
    if terms is None or not (isinstance(start, Fraction) or is_zero(start)):
        return Fraction(0)
    exact, magnitude = terms.exact + finite(start), terms.magnitude + abs(finite(start))
    unit_roundoff = Fraction(1, 2 << target.fraction_bits)
    if magnitude * (1 + BOUND * units * unit_roundoff) > target.largest:
        return Fraction(0)
    if not (isinstance(value, Fraction) or is_zero(value)):
        return None
    if magnitude == 0:
        return Fraction(0) if is_zero(value) else None
    # To 64 bits: the squares of errors with exact denominators would grow with every result.
    error = (finite(value) - exact) / max(magnitude * unit_roundoff, target.smallest_normal)
    return Fraction(round(error * (1 << 64)), 1 << 64)
