"""The operations of the language under a departure, each as a formula over `Steps`.

A kernel yields the flat place and the code of each element of the result, so that a few elements exclude most
departures. The oracle computes operations without a kernel; only their operands and layout can depart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, partial, reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.diagnosis.departure import OWN, WIDE, Budget, Departure, Steps, function, limited
from tessera_conformance.oracle import FUNCTIONS, exact
from tessera_conformance.oracle.elementwise import OPERATIONS, TANH_FACTOR, sqrt_two_over_pi
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    COMPONENTS,
    FORMATS,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    ZERO,
    FloatFormat,
    IntegerFormat,
    Value,
    along,
    stacked,
    tensor_of,
    values_of,
)
from tessera_conformance.oracle.reductions import greatest
from tessera_conformance.tensors import Tensor

Codes: TypeAlias = Iterator[tuple[int, int]]
ONE, HALF = Fraction(1), Fraction(1, 2)


@dataclass(frozen=True)
class Call:
    """An operation of the oracle, its operands and its other arguments."""

    operation: str
    inputs: Sequence[Tensor]
    arguments: Mapping[str, Any]

    @property
    def dtype(self) -> str:
        """The dtype of the first operand."""
        return self.inputs[0].dtype if self.inputs else ""


class Work(Steps):
    """A call and the steps that compute it."""

    def __init__(self, call: Call, departure: Departure, budget: Budget) -> None:
        super().__init__(call.dtype, departure, budget)
        self.call, self.form = call, departure.form

    def values(self, place: int = 0, *, factors: bool = False) -> list[Value]:
        """Return the elements of an operand as the implementation reads them, row-major."""
        x = self.call.inputs[place]
        self.budget.spend(x.size // 4)
        values = list(_decoded(x))
        if (factors and x.dtype == "tf32") or self.departure.changed & {"operands", "flushed"}:
            operands = {value: self.operand(value, x.dtype, factor=factors) for value in set(values)}
            values = [operands[value] for value in values]
        read = self.departure.layout
        reread = read == "both" or (read == "left" and place == 0) or (read == "right" and place == 1)
        return [values[at] for at in by_columns(x.shape)] if reread else values

    def rows(self) -> Iterator[tuple[Sequence[int], list[Value]]]:
        """Yield the places and elements of each line along the axis, or along the one that the implementation uses."""
        values = self.values()
        axis: int = {"last_axis": -1, "first_axis": 0}.get(self.form, self.call.arguments.get("axis", -1))
        for line in along(self.call.inputs[0].shape, axis):
            yield line, [values[at] for at in line]

    def stored(self, value: Value, dtype: str) -> Value:
        """Return a value as a tensor of that dtype stores it."""
        return FORMATS[dtype].decode(self.code(value, dtype))


@lru_cache(maxsize=256)
def _decoded(x: Tensor) -> Sequence[Value]:
    """Return the elements of an operand, which hundreds of departures share."""
    return tuple(values_of(x))


Kernel: TypeAlias = Callable[[Work], Codes]


def by_columns(shape: Sequence[int]) -> list[int]:
    """Return, for each place of a row-major tensor of matrices, the place of its element in a column-major one."""
    *batch, rows, columns = shape if len(shape) > 1 else (1, prod(shape))
    stored = np.arange(prod(shape)).reshape(*batch, columns, rows)
    places: list[int] = stored.swapaxes(-1, -2).ravel().tolist()
    return places


def answer(call: Call, departure: Departure, budget: Budget, shape: Sequence[int], dtype: str) -> Codes:
    """Yield the places and codes of an implementation with this departure; `shape` and `dtype` are right.

    Raises `GaveUp`: the budget is used up.
    """
    kernel = KERNELS.get(call.operation)
    real = not any(name in COMPONENTS for name in (dtype, *(x.dtype for x in call.inputs)))
    codes = kernel(Work(call, departure, budget)) if kernel and real else _of_oracle(call, departure, budget, dtype)
    if departure.layout == "result":
        places = by_columns(shape)
        codes = ((places[place], code) for place, code in codes)
    if departure.tail is not None and departure.tail[0] == "results" and shape:
        size, last = departure.tail[1], shape[-1]
        codes = ((place, 0 if place % last >= last - last % size else code) for place, code in codes)
    return codes


def _of_oracle(call: Call, departure: Departure, budget: Budget, dtype: str) -> Codes:
    """Yield the oracle's answer for operands that the departure has changed."""
    if departure.changed - {"operands", "flushed", "layout", "tail"}:
        return
    budget.spend(40 * sum(x.size for x in call.inputs))
    changes = departure.changed - {"tail"} and call.dtype in ACCUMULATORS
    work = Work(call, departure, budget) if changes else None
    read = [_reread(work, place) for place in range(len(call.inputs))] if work else call.inputs
    result = FUNCTIONS[f"oracle.{call.operation}"](*read, **call.arguments)
    first = result[0] if isinstance(result, tuple) else result
    if work is not None and departure.flushed in ("results", "both") and dtype in FORMATS:
        yield from enumerate(work.code(value, dtype, nonfinite=True) for value in values_of(first))
    else:
        yield from enumerate(first.words().tolist())


def _reread(work: Work, place: int) -> Tensor:
    x = work.call.inputs[place]
    if x.dtype not in FORMATS:
        return x
    return tensor_of(x.dtype, x.shape, work.values(place), nonfinite=True)


# Reductions


def _sum(work: Work) -> Codes:
    order = work.call.arguments.get("order") or work.call.arguments.get("tree") or "pairwise"
    return _reduced(work, lambda row: work.total(row, order))


def _mean(work: Work) -> Codes:
    return _reduced(work, lambda row: average(work, row))


def average(work: Steps, row: Sequence[Value]) -> Value:
    """Return the sum divided by the number of terms, or multiplied by its reciprocal."""
    count = work.constant(len(row))
    total = work.total(row, "pairwise")
    if work.departure.form == "times_reciprocal":
        return work.multiply(total, work.divide(ONE, count))
    return work.divide(total, count)


def _prod(work: Work) -> Codes:
    multiplier = _Multiplier(work.call, work.departure, work.budget)
    return _reduced(work, lambda row: multiplier.total(row, "pairwise") if work.kept(row) else ONE)


class _Multiplier(Work):
    """Steps with products in place of sums."""

    neutral = ONE

    def add(self, x: Any, y: Any) -> Value:
        return self.multiply(x, y)

    def join(self, terms: Sequence[Any]) -> Value:
        return self.round(reduce(exact.multiply, terms))


def _reduced(work: Work, reduction: Callable[[list[Value]], Value], *, nonfinite: bool = False) -> Codes:
    """Yield a result for each line along the axis."""
    for place, (_, row) in enumerate(work.rows()):
        yield place, work.code(reduction(row), work.call.dtype, nonfinite=nonfinite)


def _all_reduce(work: Work) -> Codes:
    """Ranks along a new first axis."""
    operation = work.call.arguments.get("op", "sum")
    call = Call(operation, [stacked(tuple(work.call.inputs))], {"axis": 0})
    return KERNELS[operation](Work(call, work.departure, work.budget))


def _softmax(work: Work) -> Codes:
    rows = list(work.rows())
    whole = greatest([value for _, row in rows for value in row]) if work.form == "maximum_of_all" and rows else ZERO
    for line, row in rows:
        for at, value in zip(line, softmax_row(work, row, whole), strict=True):
            yield at, work.code(value, work.call.dtype)


def softmax_row(work: Steps, row: Sequence[Value], whole: Value = ZERO) -> list[Value]:
    """Return the softmax of one row; `whole` is subtracted instead of its own maximum, if the form says so."""
    form = work.departure.form
    if form != "no_maximum":
        largest = whole if form == "maximum_of_all" else greatest(list(row))
        row = [work.subtract(value, largest) for value in row]
    powers = [by_exp2(work, value) if form == "exp_by_exp2" else work.function("exp", value) for value in row]
    total = work.total(powers, "pairwise")
    if form == "times_reciprocal":
        inverse = work.divide(ONE, total)
        return [work.multiply(power, inverse) for power in powers]
    return [work.divide(power, total) for power in powers]


def by_exp2(work: Steps, value: Value) -> Value:
    """exp2(x log2 e)."""
    return work.function("exp2", work.multiply(value, work.format.round(_log2_e())))


@cache
def _log2_e() -> Value:
    return function("reciprocal", WIDE, function("log", WIDE, Fraction(2)))


def _logsumexp(work: Work) -> Codes:
    def reduction(row: list[Value]) -> Value:
        largest = greatest(row)
        finite = isinstance(largest, Fraction) or exact.is_zero(largest)
        shift = largest if finite and work.form != "no_maximum" else ZERO
        powers = [work.function("exp", work.subtract(value, shift)) for value in row]
        return work.add(work.function("log", work.total(powers, "pairwise")), shift)

    return _reduced(work, reduction)


# Products


def _matmul(work: Work) -> Codes:
    a, b = work.call.inputs[:2]
    *batch, rows, inner = a.shape
    columns = b.shape[-1]
    dtype = work.call.arguments.get("out") or a.dtype
    lefts, rights = work.values(0, factors=True), work.values(1, factors=True)
    starts = work.values(2) if len(work.call.inputs) > 2 else None
    for place in range(prod(batch) * rows * columns):
        row, column = divmod(place, columns)
        which = row // rows
        left = lefts[row * inner : (row + 1) * inner]
        right = rights[which * inner * columns + column : (which + 1) * inner * columns : columns]
        yield place, work.code(dot(work, left, right, starts[place] if starts else ZERO), dtype)


def dot(work: Steps, left: Sequence[Value], right: Sequence[Value], start: Value = ZERO) -> Value:
    """Return the inner product: by default a left fold from the start value."""
    terms = work.kept([work.factor(x, y) for x, y in zip(left, right, strict=True)])
    if work.departure.start == "none" and terms:
        return work.total(terms, "fold")
    if work.departure.order in ("", "fold") or work.departure.order.startswith("tensor_core"):
        if work.departure.tail is not None and work.departure.tail[0] == "terms":
            return work.round(reduce(work.add, terms, start))  # the start value is no term, and is not truncated
        return work.total([start, *terms], "fold")
    return work.add(work.total(terms, "fold"), start)


def _flash_attention(work: Work) -> Codes:
    """Attention as one operation: everything in the accumulator type, one rounding at the end."""
    q = work.call.inputs[0]
    wide = work.call.arguments.get("scale")
    scale = work.function("rsqrt", Fraction(q.shape[-1])) if wide is None else work.constant(Fraction(wide))
    causal = bool(work.call.arguments.get("causal"))
    yield from _attention_rows(work, lambda value: value, scale, causal)


def _attention(work: Work) -> Codes:
    """Attention as a program: each operation rounds to the operands' dtype."""
    scale = work.stored(Fraction(work.call.arguments["factor"]), work.call.dtype)
    yield from _attention_rows(work, lambda value: work.stored(value, work.call.dtype), scale, False)


def _attention_rows(work: Work, rounding: Callable[[Value], Value], scale: Value, causal: bool) -> Codes:
    q, k, v = work.call.inputs
    (*batch, queries, depth), keys, width = q.shape, k.shape[-2], v.shape[-1]
    lefts, rights, values = (work.values(place, factors=True) for place in range(3))
    for row in range(prod(batch) * queries):
        which = row // queries
        own = [rights[(which * keys + key) * depth : (which * keys + key + 1) * depth] for key in range(keys)]
        products = [rounding(dot(work, lefts[row * depth : (row + 1) * depth], key)) for key in own]
        scores = [rounding(work.multiply(product, scale)) for product in products]
        if causal:
            scores = [score if key <= row % queries else NEGATIVE_INFINITY for key, score in enumerate(scores)]
        weights = [rounding(weight) for weight in softmax_row(work, scores)]
        factors = [work.operand(weight, work.call.dtype, factor=True) for weight in weights]
        for column in range(width):
            column_values = values[which * keys * width + column : (which + 1) * keys * width : width]
            yield row * width + column, work.code(dot(work, factors, column_values), work.call.dtype)


# Normalization


def _normalized(work: Work, *, centre: bool) -> Codes:
    gamma, beta = work.values(1), work.values(2) if centre else None
    epsilon = work.constant(work.call.arguments.get("eps", 1e-5 if centre else 1e-6))
    for line, row in work.rows():
        middle = average(work, row) if centre else ZERO
        centred = [work.subtract(value, middle) for value in row] if centre else row
        spread = _spread(work, row, centred, middle)
        for place, (at, value) in enumerate(zip(line, centred, strict=True)):
            unit = work.multiply(_unit(work, value, spread, epsilon), gamma[place])
            yield at, work.code(work.add(unit, beta[place]) if beta else unit, work.call.dtype)


def _spread(work: Steps, row: Sequence[Value], centred: Sequence[Value], middle: Value) -> Value:
    """Return the mean square, or the variance by another formula."""
    form = work.departure.form
    if form == "mean_of_squares":
        return work.subtract(average(work, [work.multiply(x, x) for x in row]), work.multiply(middle, middle))
    squares = [work.multiply(x, x) for x in centred]
    if form == "unbiased":
        return work.divide(work.total(squares, "pairwise"), work.constant(len(row) - 1))
    return average(work, squares)


def _unit(work: Steps, value: Value, spread: Value, epsilon: Value) -> Value:
    """Return a value over its standard deviation."""
    form = work.departure.form
    if form == "divided":
        return work.divide(value, work.function("sqrt", work.add(spread, epsilon)))
    if form == "epsilon_outside":
        return work.divide(value, work.add(work.function("sqrt", spread), epsilon))
    if form == "root_then_reciprocal":
        return work.multiply(value, work.divide(ONE, work.function("sqrt", work.add(spread, epsilon))))
    return work.multiply(value, work.function("rsqrt", work.add(spread, epsilon)))


# Element by element


def _elementwise(compute: Callable[..., Value], *, nonfinite: bool = False) -> Kernel:
    """Return a kernel that rounds each result once; `compute` takes the work and an element of each operand."""

    def kernel(work: Work) -> Codes:
        for place, values in enumerate(_elements(work)):
            yield place, work.code(compute(work, *values), work.call.dtype, nonfinite=nonfinite)

    return kernel


def _elements(work: Work) -> list[tuple[Value, ...]]:
    """Return the elements of the operands that belong together; operands are broadcast."""
    if len(work.call.inputs) == 1:
        return [(value,) for value in work.values()]
    return exact.grouped(*(_reread(work, place) for place in range(len(work.call.inputs))))[1]


def _quotient(work: Work, x: Value, y: Value) -> Value:
    form = FORMATS[work.call.dtype]
    if isinstance(form, IntegerFormat):
        quotient = exact.finite(x) / exact.finite(y)
        return Fraction(quotient.__floor__() if work.form == "floor" else int(quotient))
    if work.form == "times_reciprocal":
        return exact.multiply(x, form.round(exact.divide(ONE, y)))
    return exact.divide(x, y)


def _scale(work: Work) -> Codes:
    factor = Fraction(work.call.arguments["factor"])
    form = FORMATS["fp32" if work.form == "fp32_literal" else work.call.dtype]
    literal = factor if work.form == "wide_literal" else form.round(factor)
    return _elementwise(lambda work, value: exact.multiply(value, literal))(work)


def _multiply_add(work: Work, x: Value, y: Value, addend: Value) -> Value:
    product = exact.multiply(x, y)
    return exact.add(product if work.departure.product == "fused" else work.stored(product, work.call.dtype), addend)


def _cast(work: Work) -> Codes:
    dtype, source = work.call.arguments["dtype"], FORMATS[work.call.dtype]
    nonfinite = work.call.arguments.get("overflow") == "nonfinite"
    target = FORMATS[dtype]
    for place, value in enumerate(work.values()):
        if dtype == "bool":
            yield place, int(value is NAN or not exact.is_zero(value))
        elif isinstance(target, IntegerFormat) and isinstance(source, FloatFormat):
            yield place, _integer(value, target, work.form)
        else:
            yield place, work.code(value, dtype, nonfinite=nonfinite)


def _integer(value: Value, target: IntegerFormat, form: str) -> int:
    """Return the code of a float truncated to an integer, or rounded by the form, and limited to the range."""
    if value is NAN:
        return 0
    if exact.is_infinite(value):
        return (1 << (target.bits - 1)) - (not exact.is_negative(value))
    number = exact.finite(value)
    whole = {"nearest": round(number), "floor": number.__floor__()}.get(form, int(number))
    return target.encode(Fraction(whole) if form == "wraps" else limited(Fraction(whole), target))


def _function(name: str) -> Kernel:
    """Return the kernel of an elementary function."""

    def kernel(work: Work) -> Codes:
        dtype = work.call.dtype
        own = FORMATS[dtype]
        assert isinstance(own, FloatFormat)
        nonfinite = work.call.arguments.get("overflow") == "nonfinite"
        departs = work.departure.changed & {"result", "through", "overflow"}
        own_steps = replace(work.departure, accumulator=work.departure.accumulator or OWN)
        steps = Work(work.call, own_steps, work.budget)
        composed = COMPOSED.get((name, work.form))
        for place, values in enumerate(_elements(work)):
            work.budget.spend(4)
            if composed:
                result = composed(steps, *values)
            elif work.departure.accumulator:
                result = steps.function(name, *values)
            else:
                result = function(name, WIDE if departs else own, *values)
            yield place, work.code(result, dtype, nonfinite=nonfinite)

    return kernel


def _by_exp(s: Steps, x: Value) -> Value:
    """tanh as 1 - 2 / (exp(2x) + 1)."""
    power = s.function("exp", s.multiply(Fraction(2), x))
    return s.subtract(ONE, s.divide(Fraction(2), s.add(power, ONE)))


COMPOSED: Mapping[tuple[str, str], Callable[..., Value]] = {
    ("rsqrt", "composed"): lambda s, x: s.divide(ONE, s.function("sqrt", x)),
    ("expm1", "composed"): lambda s, x: s.subtract(s.function("exp", x), ONE),
    ("log1p", "composed"): lambda s, x: s.function("log", s.add(ONE, x)),
    ("log2", "composed"): lambda s, x: s.divide(s.function("log", x), s.function("log", Fraction(2))),
    ("exp2", "composed"): lambda s, x: s.function("exp", s.multiply(x, s.function("log", Fraction(2)))),
    ("exp", "composed"): by_exp2,
    ("tan", "composed"): lambda s, x: s.divide(s.function("sin", x), s.function("cos", x)),
    ("tanh", "composed"): _by_exp,
    ("sinh", "composed"): lambda s, x: s.multiply(
        HALF, s.subtract(s.function("exp", x), s.function("exp", exact.negate(x)))
    ),
    ("cosh", "composed"): lambda s, x: s.multiply(
        HALF, s.add(s.function("exp", x), s.function("exp", exact.negate(x)))
    ),
    ("sqrt", "composed"): lambda s, x: s.multiply(x, s.function("rsqrt", x)),
    ("pow", "by_logarithm"): lambda s, x, y: s.function("exp", s.multiply(y, s.function("log", x))),
}
"""Functions composed of others, every step rounded."""


def _activation(compute: Callable[[Work, Value], Value]) -> Kernel:
    def kernel(work: Work) -> Codes:
        codes: dict[Value, int] = {}
        for place, value in enumerate(work.values()):
            if value not in codes:
                codes[value] = work.code(compute(work, value), work.call.dtype)
            yield place, codes[value]

    return kernel


def _sigmoid(s: Steps, x: Value) -> Value:
    if s.departure.form == "of_positive_power":
        power = s.function("exp", x)
        return s.divide(power, s.add(ONE, power))
    if s.departure.form == "by_tanh":
        return s.multiply(HALF, s.add(ONE, s.function("tanh", s.multiply(HALF, x))))
    return s.divide(ONE, s.add(ONE, s.function("exp", exact.negate(x))))


def _silu(s: Steps, x: Value) -> Value:
    if s.departure.form == "divided":
        return s.divide(x, s.add(ONE, s.function("exp", exact.negate(x))))
    return s.multiply(x, _sigmoid(s, x))


def _gelu(work: Work, x: Value) -> Value:
    by_tanh = (work.call.arguments.get("approximate", "none") == "tanh") != (work.form == "other_form")
    half = work.multiply(HALF, x)
    if by_tanh:
        form = work.format
        assert isinstance(form, FloatFormat)
        cube = work.multiply(work.multiply(x, x), x)
        inner = work.add(x, work.multiply(work.constant(TANH_FACTOR), cube))
        shape = work.function("tanh", work.multiply(sqrt_two_over_pi(form), inner))
    else:
        shape = work.function("erf", work.multiply(x, work.function("sqrt", HALF)))
    return work.multiply(half, work.add(ONE, shape))


# Choices


@cache
def chooser(largest: bool, form: str) -> Callable[[Value, Value], Value]:
    """Return the function for the larger or smaller of two, with the form's rule for NaN and zeros."""
    plain, sign = (exact.maximum, 1) if largest else (exact.minimum, -1)
    rules: Mapping[str, Callable[[Value, Value], Value]] = {
        "nan_ignored": lambda x, y: y if x is NAN else x if y is NAN else plain(x, y),
        "first_unless_better": lambda x, y: y if exact.compare(y, x) == sign else x,
        "second_unless_better": lambda x, y: x if exact.compare(x, y) == sign else y,
    }
    return rules.get(form, plain)


def _extreme(*, largest: bool) -> Kernel:
    """Return the kernel of the largest or smallest element of each line."""
    bound = NEGATIVE_INFINITY if largest else INFINITY

    def kernel(work: Work) -> Codes:
        pick = chooser(largest, work.form)

        def reduction(row: list[Value]) -> Value:
            values: list[Value] = list(work.kept(row))
            if work.form in ("from_zero", "nan_ignored") or not values:
                values = [ZERO if work.form == "from_zero" else bound, *values]
            return reduce(pick, values)

        return _reduced(work, reduction, nonfinite=True)

    return kernel


def _argmax(work: Work) -> Codes:
    zeros_equal, last = work.form.endswith("equal_zeros"), work.form.startswith("last")
    for place, (_, given) in enumerate(work.rows()):
        row = [ZERO if zeros_equal and value is NEGATIVE_ZERO else value for value in given]
        numbers = [value for value in row if value is not NAN]
        ignored = work.form == "nan_ignored" and bool(numbers)
        target = greatest(numbers) if ignored else NAN if NAN in row else greatest(row)
        places = [at for at, value in enumerate(row) if value == target]
        yield place, places[-1 if last else 0]


def _chosen(largest: bool) -> Kernel:
    """Return the kernel of the larger or smaller of two; the second of relu is zero."""
    return _elementwise(lambda work, x, y=ZERO: chooser(largest, work.form)(x, y), nonfinite=True)


def _negative(work: Work, value: Value) -> Value:
    return exact.subtract(ZERO, value) if work.form == "from_zero" else exact.negate(value)


KERNELS: Mapping[str, Kernel] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "all_reduce": _all_reduce,
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "matmul": _matmul,
    "flash_attention": _flash_attention,
    "attention": _attention,
    "layer_norm": partial(_normalized, centre=True),
    "rms_norm": partial(_normalized, centre=False),
    "add": _elementwise(lambda work, x, y: exact.add(x, y)),
    "subtract": _elementwise(lambda work, x, y: exact.subtract(x, y)),
    "multiply": _elementwise(lambda work, x, y: exact.multiply(x, y)),
    "divide": _elementwise(_quotient),
    "scale": _scale,
    "multiply_add": _elementwise(_multiply_add),
    "cast": _cast,
    **{name: _function(name) for name in OPERATIONS},
    "sigmoid": _activation(_sigmoid),
    "silu": _activation(_silu),
    "gelu": _activation(_gelu),
    "max": _extreme(largest=True),
    "min": _extreme(largest=False),
    "argmax": _argmax,
    "maximum": _chosen(True),
    "minimum": _chosen(False),
    "relu": _chosen(True),
    "negate": _elementwise(_negative, nonfinite=True),
}
