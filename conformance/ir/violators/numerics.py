"""Implementations that differ from the reference arithmetic in one respect (language specification, 10 and 15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.graph.reductions import MatMul, Softmax
from tessera_reference.ir.operation import Environment
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.arithmetic import larger
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import exp
from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.rounding import cast, round_to
from tessera_reference.numerics.trees import fold, pairwise

from .changes import changed
from .misrounding import as_tf32, half_away, toward_zero, unsaturated, without_subnormals

Values = Any
NARROW = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2")
EXECUTE = MatMul.execute


# Matrix products


def terms(a: Array, b: Array, carrier: type[np.floating[Any]]) -> Values:
    """Return all products, (..., M, N, K), rounded in a carrier."""
    left, right = a.values.astype(carrier), b.values.astype(carrier)
    return left[..., :, None, :] * np.moveaxis(right, -1, -2)[..., None, :, :]


def accumulating(accumulator: str, dtypes: Sequence[str]) -> Callable[..., Array]:
    """Return a left fold that rounds every step to `accumulator`, for operands of some dtypes."""

    def execute(self: MatMul, a: Array, b: Array, env: Environment) -> Array:
        if a.dtype.name not in dtypes or a.shape[-1] == 0:
            return EXECUTE(self, a, b, env)
        kind = dtype(accumulator)
        with np.errstate(all="ignore"):
            products = round_to(terms(a, b, np.float64), kind)
            total = fold(products, -1, lambda x, y: round_to(x.astype(np.float64) + y.astype(np.float64), kind))
        return cast(Array(kind, total), self.out or a.dtype)

    return execute


def fused_product(self: MatMul, a: Array, b: Array, env: Environment) -> Array:
    if a.dtype.name != "fp32" or a.shape[-1] == 0:
        return EXECUTE(self, a, b, env)
    with np.errstate(all="ignore"):
        total = fold(terms(a, b, np.float64), -1, lambda x, y: (x + y).astype(np.float32).astype(np.float64))
        return Array(a.dtype, total.astype(np.float32))


def product(clause: str, name: str, description: str, execute: Callable[..., Array]) -> Violation:
    """Return a violation of matmul."""
    return changed(clause, name, description, ("graph.reductions.MatMul.execute", execute))


PRODUCTS = [
    product("LANG-15-06", "e4m3_accumulator", "sums e4m3 products in e4m3", accumulating("fp8_e4m3", ["fp8_e4m3"])),
    product("LANG-15-14", "e5m2_accumulator", "sums e5m2 products in e5m2", accumulating("fp8_e5m2", ["fp8_e5m2"])),
    product("LANG-10-02", "wide_accumulator", "sums narrow products in fp64", accumulating("fp64", NARROW)),
    product("LANG-10-01", "fused_product", "does not round fp32 products before adding them", fused_product),
]


# Softmax


def softmax_with(
    shift: Callable[[Values], Values] | None = None,
    total: Callable[[Values], Values] | None = None,
    exponential: Callable[[Values, DType], Values] = exp,
) -> Callable[..., Array]:
    """Return a softmax along the last axis of a float tensor with another shift, total or exponential."""

    def execute(self: Softmax, x: Array, env: Environment) -> Array:
        values = np.moveaxis(x.values, self.axis, -1)
        with np.errstate(all="ignore"):
            shifted = values - (shift or largest)(values)
            powers = exponential(shifted, x.dtype.accumulator)
            result = round_to(powers / (total or tree_sum)(powers), x.dtype)
        return Array(x.dtype, np.moveaxis(result, -1, self.axis))

    return execute


def by_reciprocal(self: Softmax, x: Array, env: Environment) -> Array:
    return normalized(self, x, x.dtype.accumulator, lambda powers, total, shifted: powers * (1 / total))


def narrow_exponentials(self: Softmax, x: Array, env: Environment) -> Array:
    def quotient(powers: Values, total: Values, shifted: Values) -> Values:
        rounded = round_to(powers, x.dtype)
        return rounded / tree_sum(rounded)

    return normalized(self, x, x.dtype.accumulator, quotient)


def normalized(self: Softmax, x: Array, kind: DType, quotient: Callable[[Values, Values, Values], Values]) -> Array:
    """Return a softmax, computed in some type, of exponentials, their sum and the shifted elements."""
    values = np.moveaxis(x.values, self.axis, -1).astype(kind.carrier)
    with np.errstate(all="ignore"):
        shifted = np.asarray(values - largest(values))
        powers = exp(shifted, kind)
        result = round_to(np.asarray(quotient(powers, tree_sum(powers), shifted)), x.dtype)
    return Array(x.dtype, np.moveaxis(result, -1, self.axis))


def largest(values: Values) -> Values:
    """Return the maximum of each row, by the reference arithmetic."""
    return pairwise(values, -1, larger)[..., None]


def tree_sum(values: Values) -> Values:
    """Return the sum of each row over the canonical tree."""
    return pairwise(values, -1)[..., None]


def one_ulp_off(values: Values, kind: DType) -> Values:
    exact = exp(values, kind)
    return np.where(np.abs(exact) % 2.0**-4 < 2.0**-6, np.nextafter(exact, exact.dtype.type(0)), exact)


def softmax(clause: str, name: str, description: str, execute: Callable[..., Array]) -> Violation:
    """Return a violation of softmax."""
    return changed(clause, name, description, ("graph.reductions.Softmax.execute", execute))


def nothing(values: Values) -> Values:
    return np.zeros_like(values[..., :1])


SOFTMAXES = [
    softmax("LANG-05.4-03", "maximum_of_a_block", "subtracts the maximum of the first 1,024 elements",
        softmax_with(lambda x: largest(x[..., :1024]))),
    softmax("LANG-15-08", "first_element", "subtracts the first element", softmax_with(lambda x: x[..., :1])),
    softmax("LANG-15-09", "forgetful_total", "leaves the first element out of the sum",
        softmax_with(total=lambda x: tree_sum(x) - x[..., :1] if x.shape[-1] > 1 else tree_sum(x))),
    softmax("LANG-10-06", "folded_softmax", "sums from left to right",
        softmax_with(total=lambda x: fold(x, -1)[..., None])),
    softmax("LANG-15-07", "approximate_exponential", "takes an exponential that is now and then one unit off",
        softmax_with(exponential=one_ulp_off)),
    softmax("LANG-15-07", "reciprocal_softmax", "multiplies by the inverse of the sum", by_reciprocal),
    softmax("LANG-15-07", "narrow_exponentials", "rounds exponentials to the operand's type", narrow_exponentials),
]  # fmt: skip


# Rounding of operators


def rounding_with(rule: Callable[[Values, DType], Values]) -> Callable[..., Values]:
    """Return another rounding of narrow results."""

    def narrowing(kind: DType, overflow: str = "saturate") -> Callable[[Values], Values]:
        return lambda values: rule(np.asarray(values), kind)

    return narrowing


def rounding(clause: str, name: str, description: str, rule: Callable[[Values, DType], Values]) -> Violation:
    """Return a violation of the operators on narrow types."""
    return changed(clause, name, description, ("numerics.arithmetic.narrowing", rounding_with(rule)))


ROUNDINGS = [
    rounding("LANG-02.3-61", "half_away", "rounds ties away from zero", half_away),
    rounding("LANG-02.3-64", "no_saturation", "lets fp8 overflow to infinity or NaN", unsaturated),
]


# Operators on all floats


ROUNDED_ONCE = arithmetic._rounded_once


def computed(clause: str, name: str, description: str, compute: Callable[[Any, Array, Array], Array]) -> Violation:
    """Return a violation with another + - * / of floats; `compute` takes the operator and the operands."""

    def rounded_once(operator: Any, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return compute(operator, a, b) if a.dtype.kind == "float" else ROUNDED_ONCE(operator, a, b)

    return changed(clause, name, description, ("numerics.arithmetic._rounded_once", rounded_once))


def in_fp32(rule: Callable[..., Values]) -> Callable[[Any, Array, Array], Array]:
    """Return fp32 operators that compute in fp64 and round the result."""

    def compute(operator: Any, a: Array, b: Array) -> Array:
        if a.dtype.name != "fp32":
            return ROUNDED_ONCE(operator, a, b)
        return Array(a.dtype, rule(operator(a.values.astype(np.float64), b.values.astype(np.float64)), a.dtype))

    return compute


def kept(x: Array) -> Array:
    """Return the array with zeros in place of subnormals."""
    return Array(x.dtype, without_subnormals(x.values, x.dtype))


def one_for_nothing(operator: Any, a: Array, b: Array) -> Array:
    if 0 in (a.values.size, b.values.size) and () in (a.shape, b.shape):
        return Array(a.dtype, np.zeros(1, a.dtype.carrier))
    return ROUNDED_ONCE(operator, a, b)


OPERATORS = [
    changed("LANG-03.2-02", "one_for_nothing", "makes one element of a scalar and none",
            ("numerics.arithmetic._rounded_once", one_for_nothing)),
    computed("LANG-02.3-61", "half_away_fp32", "rounds ties of fp32 away from zero", in_fp32(half_away)),
    computed("LANG-02.3-62", "truncated_fp32", "truncates fp32", in_fp32(toward_zero)),
    computed("LANG-02.3-63", "tf32_for_fp32", "keeps ten fraction bits of fp32", in_fp32(as_tf32)),
    computed("LANG-02.3-61", "flushed_operands", "takes subnormal operands for zero",
        lambda operator, a, b: (ROUNDED_ONCE(operator, kept(a), kept(b)))),
]  # fmt: skip
