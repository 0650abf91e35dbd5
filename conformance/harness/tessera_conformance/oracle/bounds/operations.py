"""Enclosures of every function of the oracle that yields floats, and the settled results that have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import isqrt
from math import prod as product_of
from typing import Any, TypeAlias

import gmpy2

from tessera_conformance.oracle import collectives, exact, functions_of, movement, reductions
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    FAST,
    FUNCTION_ULPS,
    INFINITE,
    POINT_ZERO,
    QUOTIENT,
    UP,
    ZERO,
    Enclosure,
    Enclosures,
    Interval,
    Steps,
    Terms,
    Unpromised,
    accumulator_of,
    along_tree,
    any_order,
    enclosed,
    enclosure,
    finished,
    gamma,
    gamma_number,
    image,
    in_any_order,
    may_flush,
    number,
    point,
    promised,
    terms_of,
    total,
    underflow,
)
from tessera_conformance.oracle.compositions import matrices, rows_to_transform, scale_factor
from tessera_conformance.oracle.elementwise import (
    HALF,
    OPERATIONS,
    TANH_FACTOR,
    cast,
    cosine_and_sine,
    root_of_two_over_pi,
)
from tessera_conformance.oracle.exact import (
    BadArgument,
    Complex,
    FloatFormat,
    Value,
    finite,
    float_format,
    fraction,
    grouped,
    is_finite,
    values_of,
)
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.oracle.movement import broadcast, transpose
from tessera_conformance.oracle.reductions import operands
from tessera_conformance.oracle.trees import Order
from tessera_conformance.tensors import Tensor

# Enclosures of elementwise results.


Composition: TypeAlias = Callable[..., Interval]
"""Maps steps, the accumulator's format and the operands to the result before the final rounding."""

ONE_ROUNDING = "one rounding"
EXACTLY = "exact, but for subnormals flushed"
SINGLE_ONE = Interval.around(1)
A_HALF = Interval.around(HALF)
ROOT_OF_HALF = Interval(DOWN.sqrt(HALF), UP.sqrt(HALF))
ROOT_OF_TWO_OVER_PI = Interval(*root_of_two_over_pi(DOWN, UP))


def each(
    compute: Callable[..., Interval], groups: Sequence[Sequence[Value]], rule: str, steps: Steps = FAST
) -> Enclosures:
    """Return the enclosure of a result of each group of operands, which is computed once for equal groups."""

    def single(group: Sequence[Value]) -> Enclosure | None:
        return enclosed(lambda steps, operands: [compute(steps, *operands)], group, 1, rule, steps)[0]

    by_group = {group: single(group) for group in set(groups)}
    return [by_group[group] for group in groups]


def elementwise(
    composition: Composition, rule: str, *inputs: Tensor, steps: Steps = FAST, wide: bool = False
) -> Enclosures:
    """Return a composition at each place, in the accumulator type and rounded once more if it is to be `wide`."""
    result = float_format(inputs[0].dtype)
    inner = accumulator_of(inputs[0].dtype) if wide else result

    def compute(steps: Steps, *group: Interval) -> Interval:
        read = (steps.operand(operand, result) for operand in group)
        return steps.stored(composition(steps, inner, *read), inner, result)

    return each(compute, grouped(*inputs)[1], rule, steps)


def along(
    composition: Callable[..., Sequence[Interval]], x: Tensor, axis: int, rule: str, *vectors: Tensor
) -> Enclosures:
    """Return a composition over each row along an axis and over vectors beside it; None for a nonfinite row."""
    result, inner = float_format(x.dtype), accumulator_of(x.dtype)
    values, beside = values_of(x), [value for vector in vectors for value in values_of(vector)]
    enclosures: Enclosures = [None] * x.size
    length = x.shape[axis]

    def compute(steps: Steps, operands: list[Interval]) -> list[Interval]:
        read = [steps.operand(operand, result) for operand in operands]
        rows = [read[start : start + length] for start in range(0, len(read), length)]
        return [steps.stored(value, inner, result) for value in composition(steps, inner, *rows)]

    for places in filter(None, exact.along(x.shape, axis)):
        row = enclosed(compute, [*(values[place] for place in places), *beside], length, rule)
        for place, single in zip(places, row, strict=True):
            enclosures[place] = single
    return enclosures


def sigmoid(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    """1 / (1 + exp(-x)); an exponential beyond the range gives zero."""
    denominator = steps.rounded(SINGLE_ONE + steps.function("exp", format_, -x), format_)
    return steps.quotient(SINGLE_ONE, denominator, format_)


def _silu(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    return steps.rounded(x * sigmoid(steps, format_, x), format_)


def _gelu(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    scaled = steps.rounded(x * steps.rounded(ROOT_OF_HALF, format_), format_)
    return _half_of(steps, format_, x, steps.function("erf", format_, scaled))


def _gelu_by_tanh(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
    root, factor = (steps.rounded(number, format_) for number in (ROOT_OF_TWO_OVER_PI, Interval.around(TANH_FACTOR)))
    cube = steps.rounded(steps.rounded(x * x, format_) * x, format_)
    inner = steps.rounded(x + steps.rounded(factor * cube, format_), format_)
    return _half_of(steps, format_, x, steps.function("tanh", format_, steps.rounded(root * inner, format_)))


def _half_of(steps: Steps, format_: FloatFormat, x: Interval, shape: Interval) -> Interval:
    half = steps.rounded(A_HALF * x, format_)
    return steps.rounded(half * steps.rounded(SINGLE_ONE + shape, format_), format_)


def _activation(rules: Mapping[str, Composition], x: Tensor, *, approximate: str = "none") -> Enclosures:
    if approximate not in rules:
        raise BadArgument("approximate", approximate, "none or tanh")
    return elementwise(rules[approximate], "its steps, each rounded or within 4 ulp", x, wide=True)


def function(
    name: str, *inputs: Tensor, overflow: str = "saturate", ulps: float = FUNCTION_ULPS, flushes: bool = True
) -> Enclosures:
    """Return enclosures of an elementary function with errors of at most `ulps` units in the last place of the dtype.

    With `flushes`, subnormal operands and results may be flushed to zero.
    """

    def evaluate(steps: Steps, format_: FloatFormat, *operands: Interval) -> Interval:
        return steps.function(name, format_, *operands)

    return elementwise(evaluate, f"{ulps:g} ulp of {name}", *inputs, steps=Steps(ulps, flushes))


def _binary(operation: Callable[[Interval, Interval], Interval], a: Tensor, b: Tensor) -> Enclosures:
    return elementwise(lambda steps, format_, x, y: steps.rounded(operation(x, y), format_), ONE_ROUNDING, a, b)


def _scale(a: Tensor, *, factor: str) -> Enclosures:
    def evaluate(steps: Steps, format_: FloatFormat, x: Interval) -> Interval:
        return steps.rounded(x * steps.rounded(Interval.around(Fraction(factor)), format_), format_)

    return elementwise(evaluate, "a literal and a product, each rounded once", a)


def _multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    def evaluate(steps: Steps, format_: FloatFormat, x: Interval, y: Interval, z: Interval) -> Interval:
        return steps.rounded(steps.rounded(x * y, format_) + z, format_)

    return elementwise(evaluate, "a product and a sum, each rounded once, or fused", a, b, c)


def unchanged(values: Sequence[Value], format_: FloatFormat) -> Enclosures:
    """Return enclosures of results that are copied."""
    return each(lambda steps, x: steps.operand(x, format_), [(value,) for value in values], EXACTLY)


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

    def evaluate(steps: Steps, x: Interval) -> Interval:
        return steps.rounded(steps.operand(x, source), target)

    return each(evaluate, [(value,) for value in values], ONE_ROUNDING)


# Results of elementary functions that are exact at any accuracy: special values, and numbers far beyond the range.


def settled(name: str, *inputs: Tensor, ulps: float, flushes: bool) -> list[bool]:
    """Return True for each element whose bits are settled (IEEE 754-2019, 9.2.1) although it has no enclosure.

    They are settled if an operand is infinite or NaN, or if the function has no value or a pole. They are also settled
    if no error of `ulps` brings a too large result back into the range. With `flushes` a subnormal operand may be read
    as zero, which settles nothing.
    """
    format_ = float_format(inputs[0].dtype)
    groups = grouped(*inputs)[1]
    by_group = {group: _is_settled(name, group, format_, ulps, flushes and may_flush(format_)) for group in set(groups)}
    return [by_group[group] for group in groups]


def _is_settled(name: str, group: Sequence[Value], format_: FloatFormat, ulps: float, flushes: bool) -> bool:
    if flushes and any(isinstance(value, Fraction) and 0 < abs(value) < format_.smallest_normal for value in group):
        return False
    try:
        value = image(name, *map(point, group))
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
    for which, row, column in product(range(product_of(batch)), range(rows), range(columns)):
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
    starts = [exact.ZERO] * len(products) if addend is None else values_of(addend)
    extra = int(addend is not None)
    pairs = zip(products, starts, strict=True)
    return [promised(_inner_product, terms, start, extra, inner, result) for terms, start in pairs]


def _inner_product(terms: Terms | None, start: Value, extra: int, inner: FloatFormat, result: FloatFormat) -> Enclosure:
    """Return the enclosure of a sum of products and of a start value, which may be an extra term."""
    if terms is None:
        raise Unpromised("an operand that is not finite")
    first = number(start)
    whole = Terms(terms.exact + first, terms.magnitude + abs(first), terms.count + extra, terms.flushed)
    return in_any_order(whole, inner, result, products=True)


def _add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    """Return the enclosures of a product that is rounded before c is added, or that starts from c."""
    format_, inner = float_format(a.dtype), accumulator_of(a.dtype)

    def single(terms: Terms | None, start: Value) -> Enclosure:
        apart = _inner_product(terms, exact.ZERO, 0, inner, format_)
        together = _inner_product(terms, start, 1, inner, format_)
        rounded = FAST.rounded(Interval.around(apart.exact, apart.error) + point(start), format_)
        whole = rounded.hull(Interval.around(together.exact, together.error))
        return enclosure(Interval.around(together.exact), whole, f"{apart.rule}, and a sum rounded once")

    starts = values_of(broadcast(c, shape=(a.shape[-2], b.shape[-1])))
    return [promised(single, terms, start) for terms, start in zip(inner_products(a, b), starts, strict=True)]


# Enclosures of sums, means, products and extremes along an axis.


MANY_TERMS = 512
"""The least number of terms for which exact sums are sums of integers."""


def sums(x: Tensor, axis: int, tree: Order | None = None, inner: FloatFormat | None = None) -> Enclosures:
    """Return enclosures of the sums along an axis, in the order of a tree or, without one, in any order.

    Every node is rounded to `inner`, by default the accumulator's format.
    """
    inner, result = inner or accumulator_of(x.dtype), exact.component_format(x.dtype)
    if tree is None and x.dtype not in exact.COMPONENTS and x.shape[axis] >= MANY_TERMS:
        many = _many_terms(x, axis, inner)
        return [None if terms is None else promised(in_any_order, terms, inner, result) for terms in many]
    return [promised(sum_of, row, inner, result, tree) for row in exact.parts_along(x, axis)]


def _sum(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    return sums(x, axis)


def sum_of(row: list[Value], inner: FloatFormat, result: FloatFormat, tree: Order | None = None) -> Enclosure:
    """Return the enclosure of a sum in a known order, or in any. Raises `Unpromised`: a term is infinite or NaN."""
    values = list(map(number, row))
    terms = terms_of(values, inner)
    if tree is None:
        return in_any_order(terms, inner, result)
    error = along_tree(tree, values, inner) + terms.flushed + terms.count * fraction(underflow(inner))
    return finished(terms, error, inner, result, f"a known tree of {terms.count} terms, depth-weighted")


def _many_terms(x: Tensor, axis: int, inner: FloatFormat) -> list[Terms | None]:
    """The terms of the sums along an axis, each of which may be subnormal and flushed."""
    count = x.shape[axis]
    lost = count * fraction(underflow(inner))
    totals, sizes = (exact_sum(x, axis, magnitudes=magnitudes) for magnitudes in (False, True))
    return [
        None if total is None or size is None else Terms(total, size, count, lost)
        for total, size in zip(totals, sizes, strict=True)
    ]


def _mean(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    inner, result = accumulator_of(x.dtype), exact.component_format(x.dtype)

    def single(row: list[Value]) -> Enclosure:
        if not row:
            raise Unpromised("no terms")
        terms = sum_of(row, inner, inner)
        count = FAST.rounded(Interval.around(len(row)), inner)
        quotient = FAST.quotient(Interval.around(terms.exact, terms.error), count, inner)
        ideal = Interval.around(terms.exact / len(row))
        return enclosure(ideal, FAST.stored(quotient, inner, result), f"{terms.rule}, and a quotient")

    return [promised(single, row) for row in exact.parts_along(x, axis)]


def _prod(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    """Return the enclosure in any order, if no order can leave the range of normal numbers."""
    inner, result = accumulator_of(x.dtype), exact.component_format(x.dtype)
    rows = exact.rows_of(x, axis)
    if x.dtype in exact.COMPONENTS:
        return [promised(_complex_prod, row, part, result) for row in rows for part in (0, 1)]
    return [promised(_prod_of, row, inner, result) for row in rows]


def _prod_of(row: list[Value], inner: FloatFormat, result: FloatFormat) -> Enclosure:
    values, one = list(map(number, row)), Fraction(1)
    product = product_of(values, start=one)
    error = gamma(max(len(values) - 1, 0), inner)
    sizes = list(map(abs, values))
    most = (1 + error) * product_of([size for size in sizes if size > one], start=one)
    least = (1 - error) * product_of([size for size in sizes if 0 < size < one], start=one)
    if most > inner.largest or least < inner.smallest_normal or abs(product) * (1 + error) > result.largest:
        raise Unpromised("some order may leave the range")
    actual = FAST.stored(Interval.around(product, abs(product) * error), inner, result)
    return enclosure(Interval.around(product), actual, f"any order of {len(values)} factors, gamma({len(values) - 1})")


def _complex_prod(factors: list[Complex], part: int, format_: FloatFormat) -> Enclosure:
    """Each complex product errs by less than 4 units of roundoff of its modulus (Higham, 3.6)."""
    numbers, one = [(number(real), number(imaginary)) for real, imaginary in factors], Fraction(1)
    sizes = [abs(real) + abs(imaginary) for real, imaginary in numbers]
    error = gamma(4 * len(factors), format_) * product_of(sizes, start=one)
    most = product_of([max(size, one) for size in sizes], start=one)
    least = product_of([min(size, one) for size in sizes if size], start=one)
    if 2 * most > format_.largest or least < 2 * format_.smallest_normal:
        raise Unpromised("some order may leave the range")
    real, imaginary = one, Fraction(0)
    for a, b in numbers:
        real, imaginary = real * a - imaginary * b, real * b + imaginary * a
    rule = f"any order of {len(factors)} complex factors, gamma({4 * len(factors)})"
    return Enclosure((real, imaginary)[part], error, rule)


# Enclosures of the results of all-reduce.


def _all_reduce(*inputs: Tensor, op: str = "sum", tree: Order = "pairwise", algorithm: str | None = None) -> Enclosures:
    """Return enclosures in any order; every rank may round a narrow sum to its dtype, the dtype of the transfer.

    Products and means have none.
    """
    if op in ("prod", "mean"):
        return [None] * inputs[0].size
    if op != "sum":
        return _moved(collectives.all_reduce, *inputs, op=op)
    return sums(exact.stacked(inputs), 0, inner=exact.component_format(inputs[0].dtype))


# Enclosures of data movement: elements are copied exactly, and only scatter_add computes.


def _moved(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor, **arguments: Any) -> Enclosures:
    """Return the enclosures of the first result of a function that copies elements."""
    results = function(*inputs, **arguments)
    first = results[0] if isinstance(results, tuple) else results
    return unchanged(values_of(first), exact.component_format(first.dtype))


def _scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Enclosures:
    """Return the enclosure of a sum in any order for every element."""
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    return [promised(sum_of, row, inner, result) for row in movement.scattered(x, indices, updates, axis)]


MOVED: Mapping[str, Callable[..., Enclosures]] = {
    name: partial(_moved, function) for name, function in functions_of(movement).items() if name != "scatter_add"
}
"""The functions that move, select or join elements."""


# Enclosures of softmax and of the logarithm of a sum of exponentials, in steps or in one pass.


Row: TypeAlias = list[Interval]

EXPONENT_UNITS = 3
"""Units of roundoff in an exponent: the difference itself, and one scaled to base 2 by a rounded constant."""
WEIGHT_UNITS = 2 * FUNCTION_ULPS + 1
"""Units of roundoff that one rescaling of a weight costs, an exponential and a product."""


def _softmax(x: Tensor, axis: int = -1, *, tree: Order = "pairwise") -> Enclosures:
    count = x.shape[axis]
    rule = f"softmax of {count}: differences, exponentials within {FUNCTION_ULPS} ulp, any order"
    return along(softmax, x, axis, rule)


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

    def composition(steps: Steps, *operands: Interval) -> Interval:
        row = [steps.operand(x, result) for x in operands]
        top = Interval(max(x.low for x in row), max(x.high for x in row))
        _, total = _weights(steps, row, inner)
        return steps.stored(steps.rounded(steps.function("log", inner, total) + top, inner), inner, result)

    rule = f"logsumexp: exponentials and logarithm within {FUNCTION_ULPS} ulp, any order"
    return each(composition, list(map(tuple, exact.rows_of(x, axis))), rule)


# Enclosures of normalizations along an axis: sums in any order, the variance from centred elements.


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: int = -1, eps: float = 1e-5) -> Enclosures:
    def composition(steps: Steps, format_: FloatFormat, row: Row, factors: Row, addends: Row) -> Row:
        middle = _average(steps, row, 0, format_)
        centred = [steps.rounded(value - middle, format_) for value in row]
        scaled = _scaled(steps, centred, factors, eps, format_)
        return [steps.rounded(value + addend, format_) for value, addend in zip(scaled, addends, strict=True)]

    return along(composition, x, axis, _normalized(x, axis), gamma, beta)


def _rms_norm(x: Tensor, gamma: Tensor, *, axis: int = -1, eps: float = 1e-6) -> Enclosures:
    def composition(steps: Steps, format_: FloatFormat, row: Row, factors: Row) -> Row:
        return _scaled(steps, row, factors, eps, format_)

    return along(composition, x, axis, _normalized(x, axis), gamma)


def _scaled(steps: Steps, row: Row, factors: Row, eps: float, format_: FloatFormat) -> Row:
    """Return each value over the root of their mean square, times its factor; Unpromised if that may vanish."""
    square = _average(steps, [value * value for value in row], 1, format_).clipped(ZERO, INFINITE)
    term = steps.rounded(Interval.around(Fraction(eps)), format_)
    root = steps.function("rsqrt", format_, steps.rounded(square + term, format_))
    units = [steps.rounded(value * root, format_) for value in row]
    return [steps.rounded(unit * factor, format_) for unit, factor in zip(units, factors, strict=True)]


def _average(steps: Steps, row: Row, roundings: int, format_: FloatFormat) -> Interval:
    """Return the mean of terms that have had so many roundings."""
    count = steps.rounded(Interval.around(len(row)), format_)
    return steps.quotient(steps.sum(row, format_, roundings), count, format_)


def _normalized(x: Tensor, axis: int) -> str:
    return f"{x.shape[axis]} elements normalized: any order, a root within {FUNCTION_ULPS} ulp"


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
    products, elements = inner_products(q, transpose(k)), operands(v)
    rounded = f"weights rounded to {dtype}," if wide_scores else f"its steps rounded to {dtype}"
    result = float_format(dtype)
    score = accumulator_of(dtype) if wide_scores else result
    enclosures: Enclosures = []
    for row in range(q.shape[-2]):
        attended = row + 1 if causal else count
        terms, values = products[row * count : row * count + attended], elements[: attended * columns]
        compute = partial(_attended, terms, factor, columns, dtype, score)
        enclosures += enclosed(compute, values, columns, f"attention over {attended} keys, {rounded} in any order")
    return enclosures


def _attended(
    terms: Sequence[Terms | None],
    factor: Interval,
    columns: int,
    dtype: str,
    score: FloatFormat,
    steps: Steps,
    values: Row,
) -> Row:
    """Return one row of the result, its scores rounded to a format. Raises `Unpromised`: operands are not finite."""
    result, inner = float_format(dtype), accumulator_of(dtype)
    scores = []
    for term in terms:
        if term is None:
            raise Unpromised("an operand that is not finite")
        error = Fraction(0) if steps.exact else any_order(term, inner, products=True)
        product = steps.rounded(Interval.around(term.exact, error), score)
        scores.append(steps.rounded(product * steps.rounded(factor, score), score))
    weights = [steps.stored(weight, inner, result) for weight in softmax(steps, inner, scores)]
    if dtype == "tf32":
        weights = [steps.rounded(weight, exact.TF32_OPERAND) for weight in weights]
    read = [steps.operand(value, result) for value in values]
    enclosures = []
    for column in range(columns):
        parts = [weight * value for weight, value in zip(weights, read[column::columns], strict=True)]
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
    turns = [
        tuple(Interval(*enclose(DOWN, UP)) for enclose in cosine_and_sine(Fraction(m if inverse else -m, n)))
        for m in range(n)
    ]
    enclosures: Enclosures = []
    for row in rows:
        try:
            enclosures += _row(row, turns, factor, format_)
        except Unpromised:
            enclosures += [None] * (2 * n)
    return enclosures


def _row(row: list[Complex], turns: list[tuple[Interval, ...]], factor: Interval, format_: FloatFormat) -> Enclosures:
    n = len(row)
    parts = [tuple(map(point, element)) for element in row]
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
            enclosures.append(promised(enclosure, part * factor, actual, rule))
    return enclosures


def _prime_factors(n: int) -> list[int]:
    factors, factor = [], 2
    while n > 1:
        while n % factor == 0:
            factors.append(factor)
            n //= factor
        factor += 1
    return factors


RULES: Mapping[str, Callable[..., Enclosures]] = {
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
    "matmul": _matmul,
    "add_to_product": _add_to_product,
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "max": partial(_moved, reductions.max_),
    "min": partial(_moved, reductions.min_),
    "all_reduce": _all_reduce,
    "top_k": partial(_moved, collectives.top_k),
    "scatter_add": _scatter_add,
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "attention": _attention,
    "flash_attention": _flash_attention,
    "fft": partial(_transform, False),
    "ifft": partial(_transform, True),
    **MOVED,
}
"""The rule of each function, by its name in the oracle."""
