"""Implementations that depart from the canon of arithmetic in one respect (language specification, 10 and 15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.graph.matmul import MatMul
from tessera_reference.graph.softmax import Softmax
from tessera_reference.ir.operation import Environment
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import exp
from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.rounding import cast, round_to
from tessera_reference.numerics.trees import fold, pairwise

Values = Any
NARROW = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2")
CANON = MatMul.execute


# Matrix products


def terms(a: Array, b: Array, carrier: type[np.floating[Any]]) -> Values:
    """All products, (..., M, N, K), rounded in a carrier."""
    left, right = a.values.astype(carrier), b.values.astype(carrier)
    return left[..., :, None, :] * np.moveaxis(right, -1, -2)[..., None, :, :]


def accumulating(accumulator: str, dtypes: Sequence[str]) -> Callable[..., Array]:
    """A left fold that rounds every step to `accumulator`, for operands of some dtypes."""

    def execute(self: MatMul, a: Array, b: Array, env: Environment) -> Array:
        if a.dtype.name not in dtypes or a.shape[-1] == 0:
            return CANON(self, a, b, env)
        kind = dtype(accumulator)
        with np.errstate(all="ignore"):
            products = round_to(terms(a, b, np.float64), kind)
            total = fold(products, -1, lambda x, y: round_to(x.astype(np.float64) + y.astype(np.float64), kind))
        return cast(Array(kind, total), self.out or a.dtype)

    return execute


def pairwise_product(self: MatMul, a: Array, b: Array, env: Environment) -> Array:
    """Products summed along the tree that sums take."""
    if a.dtype.kind != "float" or a.shape[-1] == 0:
        return CANON(self, a, b, env)
    with np.errstate(all="ignore"):
        total = pairwise(terms(a, b, a.dtype.accumulator.carrier.type), -1)
    return cast(Array(a.dtype.accumulator, total), self.out or a.dtype)


def fused_product(self: MatMul, a: Array, b: Array, env: Environment) -> Array:
    """fp32 products that are not rounded before they are added: exact in fp64, one rounding a step."""
    if a.dtype.name != "fp32" or a.shape[-1] == 0:
        return CANON(self, a, b, env)
    with np.errstate(all="ignore"):
        total = fold(terms(a, b, np.float64), -1, lambda x, y: (x + y).astype(np.float32).astype(np.float64))
        return Array(a.dtype, total.astype(np.float32))


def product(clause: str, name: str, description: str, execute: Callable[..., Array]) -> Violation:
    """A departure of matmul."""
    return replaced(clause, description, make, (MatMul, "execute", execute), name=name)


PRODUCTS = [
    product("LANG-15-04", "fp16_accumulator", "sums fp16 products in fp16", accumulating("fp16", ["fp16"])),
    product("LANG-15-05", "bf16_accumulator", "sums bf16 products in bf16", accumulating("bf16", ["bf16"])),
    product("LANG-15-06", "e4m3_accumulator", "sums e4m3 products in e4m3", accumulating("fp8_e4m3", ["fp8_e4m3"])),
    product("LANG-15-14", "e5m2_accumulator", "sums e5m2 products in e5m2", accumulating("fp8_e5m2", ["fp8_e5m2"])),
    product("LANG-10-02", "wide_accumulator", "sums narrow products in fp64", accumulating("fp64", NARROW)),
    product("LANG-10-02", "half_accumulator", "sums narrow products in fp16", accumulating("fp16", NARROW)),
    product("LANG-10-06", "pairwise_product", "sums products along a tree", pairwise_product),
    product("LANG-10-06", "fused_product", "does not round fp32 products before adding them", fused_product),
]


# Softmax


def softmax_with(
    shift: Callable[[Values], Values] | None = None,
    total: Callable[[Values], Values] | None = None,
    exponential: Callable[[Values, DType], Values] = exp,
) -> Callable[..., Array]:
    """A softmax along the last axis of a float tensor that differs in what it subtracts, divides by or takes."""

    def execute(self: Softmax, x: Array, env: Environment) -> Array:
        values = np.moveaxis(x.values, self.axis, -1)
        with np.errstate(all="ignore"):
            shifted = values - (shift or largest)(values)
            powers = exponential(shifted, x.dtype.accumulator)
            result = round_to(powers / (total or tree_sum)(powers), x.dtype)
        return Array(x.dtype, np.moveaxis(result, -1, self.axis))

    return execute


def largest(values: Values) -> Values:
    """The maximum of each row, as the canon has it."""
    return pairwise(values, -1, arithmetic._maximum)[..., None]


def tree_sum(values: Values) -> Values:
    """The sum of each row over the canonical tree."""
    return pairwise(values, -1)[..., None]


def one_ulp_off(values: Values, kind: DType) -> Values:
    """An exponential that misses the last place now and then, as fast libraries do."""
    exact = exp(values, kind)
    return np.where(np.abs(exact) % 2.0**-4 < 2.0**-6, np.nextafter(exact, exact.dtype.type(0)), exact)


def softmax(clause: str, name: str, description: str, execute: Callable[..., Array]) -> Violation:
    """A departure of softmax."""
    return replaced(clause, description, make, (Softmax, "execute", execute), name=name)


def nothing(values: Values) -> Values:
    """Nothing to subtract."""
    return np.zeros_like(values[..., :1])


def of_all_rows(values: Values) -> Values:
    """One maximum for the whole tensor."""
    return largest(values.reshape(1, -1)).reshape((1,) * values.ndim)


SOFTMAXES = [
    softmax("LANG-10-03", "unstable_softmax", "forgets to subtract the maximum", softmax_with(nothing)),
    softmax("LANG-15-07", "global_maximum", "subtracts the maximum of the whole tensor", softmax_with(of_all_rows)),
    softmax("LANG-15-08", "first_element", "subtracts the first element", softmax_with(lambda x: x[..., :1])),
    softmax(
        "LANG-15-09",
        "forgetful_total",
        "leaves the first element out of the sum",
        softmax_with(total=lambda x: tree_sum(x) - x[..., :1] if x.shape[-1] > 1 else tree_sum(x)),
    ),
    softmax(
        "LANG-10-06",
        "folded_softmax",
        "sums from left to right",
        softmax_with(total=lambda x: fold(x, -1)[..., None]),
    ),
    softmax(
        "LANG-10-11",
        "approximate_exponential",
        "takes an exponential that is now and then one unit off",
        softmax_with(exponential=one_ulp_off),
    ),
]


# Rounding of operators


def rounding_with(rule: Callable[[Values, DType], Values]) -> Callable[..., Values]:
    """The rounding of narrow results, done otherwise."""

    def rounded(values: Values, kind: DType, overflow: str = "saturate") -> Values:
        with np.errstate(all="ignore"):
            return rule(np.asarray(values), kind)

    return rounded


def half_away(values: Values, kind: DType) -> Values:
    """Ties away from zero."""
    wide = np.asarray(values, np.float64)
    _, exponent = np.frexp(wide)
    quantum = np.where(exponent - 1 > kind.min_exponent, exponent - 1, kind.min_exponent) - kind.fraction_bits
    scaled = np.ldexp(np.abs(wide), -quantum)
    tie = scaled - np.floor(scaled) == 0.5
    nudged = np.where(tie, np.copysign(np.ldexp(np.floor(scaled) + 1, quantum), wide), wide)
    return round_to(nudged, kind)


def toward_zero(values: Values, kind: DType) -> Values:
    """Truncation."""
    nearest = round_to(values, kind).astype(np.float64)
    _, exponent = np.frexp(np.asarray(values, np.float64))
    quantum = np.where(exponent - 1 > kind.min_exponent, exponent - 1, kind.min_exponent) - kind.fraction_bits
    over = np.abs(nearest) > np.abs(values)
    return np.where(over, nearest - np.copysign(np.ldexp(1.0, quantum), nearest), nearest).astype(np.float32)


def flushed(values: Values, kind: DType) -> Values:
    """Subnormal results become zero."""
    nearest = round_to(values, kind)
    return np.where(np.abs(nearest) < kind.min_normal, np.copysign(nearest.dtype.type(0), nearest), nearest)


def unsaturated(values: Values, kind: DType) -> Values:
    """Overflow to fp8 gives infinity or NaN."""
    return round_to(values, kind, "nonfinite")


def rounding(clause: str, name: str, description: str, rule: Callable[[Values, DType], Values]) -> Violation:
    """A departure of the operators on narrow types."""
    return replaced(clause, description, make, (arithmetic, "round_to", rounding_with(rule)), name=name)


ROUNDINGS = [
    rounding("LANG-02.3-61", "half_away", "rounds ties away from zero", half_away),
    rounding("LANG-02.3-63", "truncation", "truncates", toward_zero),
    rounding("LANG-02.3-63", "flush_to_zero", "flushes subnormal results to zero", flushed),
    rounding("LANG-02.3-64", "no_saturation", "lets fp8 overflow to infinity or NaN", unsaturated),
]
