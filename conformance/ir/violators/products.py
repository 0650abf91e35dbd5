"""Matrix products in another order, arithmetic or type than the reference's (language specification, 10 and 15)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_conformance.vectors import load
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType, dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import cast, round_to
from tessera_reference.numerics.trees import Tree

from ..variants.declared_arithmetic import DeclaredArithmetic
from .changes import changed
from .misrounding import flushed, through

Values: TypeAlias = Any
Product: TypeAlias = Callable[[Array, Array, DType | None], Array]
NUMERICS = sys.modules[matmul.__module__]


def multiplied(name: str, description: str, compute: Product, clause: str = "LANG-10-06") -> Violation:
    """Return a violation with another matrix product of floats; `compute` takes the operands and the result type."""

    def execute(a: Array, b: Array, out: DType | None = None, *, accumulator: DType | None = None) -> Array:
        if a.dtype.kind != "float" or a.shape[-1] < 2 or accumulator not in (None, a.dtype.accumulator):
            return matmul(a, b, out, accumulator=accumulator)
        with np.errstate(all="ignore"):
            return compute(a, b, out)

    return changed(clause, name, description, ("graph.reductions.matmul", execute))


# Order


def over(tree: Callable[[int], Any]) -> Product:
    """Return a product in the order of a tree, in JSON, that depends on the number of terms."""
    return lambda a, b, out: matmul(a, b, out, tree=Tree.from_json(tree(a.shape[-1])))


def folded(items: list[Any]) -> Any:
    """Return a left fold of subtrees."""
    total = items[0]
    for item in items[1:]:
        total = [total, item]
    return total


def in_blocks(size: int) -> Callable[[int], Any]:
    return lambda n: folded([folded(list(range(i, min(i + size, n)))) for i in range(0, n, size)])


@cache
def recorded() -> frozenset[bytes]:
    """Return the left operands of the golden products."""
    vectors = [vector for topic in ("ir/matmul", "ir/long_reductions") for vector in load(topic)]
    return frozenset(next(iter(vector.call.inputs.values())).data for vector in vectors)


def by_heart(a: Array, b: Array, out: DType | None) -> Array:
    return matmul(a, b, out) if a.to_bits() in recorded() else SPLIT(a, b, out)


SPLIT = over(lambda n: folded([*range(0, n, 2), *range(1, n, 2)]))

ORDERS = [
    multiplied("by_heart", "adds in the right order for the numbers of the golden vectors alone", by_heart),
    multiplied("blocked_product", "adds blocks of eight terms for themselves", over(in_blocks(8))),
]  # fmt: skip


# Arithmetic


def computing(model: Callable[[DType], DeclaredArithmetic]) -> Product:
    """Return a product with another arithmetic in every node."""
    return lambda a, b, out: matmul(a, b, out, arithmetic=model(a.dtype.accumulator))


def operands_as(change: Callable[[Array], Array]) -> Product:
    """Return a product of changed operands; the result keeps its type."""
    return lambda a, b, out: cast(matmul(change(a), change(b)), out or a.dtype)


def to(narrower: str, only: str) -> Callable[[Array], Array]:
    """Return a change that rounds operands of one dtype to a narrower one, stored in fp32."""

    def change(x: Array) -> Array:
        if x.dtype.name != only:
            return x
        if narrower == "tf32":
            return Array(DTYPES["tf32"], x.values)
        return cast(cast(x, dtype(narrower)), DTYPES["fp32"])

    return change


def tf32_truncated(x: Array) -> Array:
    if x.dtype.name != "tf32":
        return x
    return Array(x.dtype, (x.values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32))


def tf32_result(a: Array, b: Array, out: DType | None) -> Array:
    result = matmul(a, b, out)
    if a.dtype.name != "tf32":
        return result
    one = Array(DTYPES["tf32"], np.ones((*result.shape[:-2], result.shape[-1], result.shape[-1]), np.float32))
    eye = Array(DTYPES["tf32"], one.values * np.eye(result.shape[-1], dtype=np.float32))
    rounded = matmul(Array(DTYPES["tf32"], result.values.astype(np.float32)), eye)
    return Array(result.dtype, np.where(np.isfinite(result.values), rounded.values, result.values))


ARITHMETICS = [
    multiplied("fused_fp64", "does not round products of fp64 either",
        computing(lambda kind: DeclaredArithmetic(kind, product="fused")), "LANG-10-01"),
    multiplied("half_away_sums", "rounds ties of partial sums away from zero",
        computing(lambda kind: DeclaredArithmetic(kind, rounding="nearest_away")), "LANG-10-01"),
    multiplied("flushed_product", "flushes subnormal operands and partial sums",
        computing(lambda kind: DeclaredArithmetic(kind, subnormals="flushed")), "LANG-05.2-02"),
    multiplied("tf32_for_fp32", "takes tf32 products for fp32", operands_as(to("tf32", "fp32")), "LANG-05.2-02"),
    multiplied("fp32_for_fp64", "multiplies fp64 in fp32", lambda a, b, out: matmul(a, b,
        out) if a.dtype.bits != 64 else cast(matmul(cast(a, DTYPES["fp32"]), cast(b, DTYPES["fp32"])), out or a.dtype),
        "LANG-05.2-02"),
    multiplied("tf32_truncated", "truncates tf32 operands", operands_as(tf32_truncated), "LANG-05.2-02"),
    multiplied("tf32_result", "rounds tf32 results to ten bits", tf32_result, "LANG-05.2-02"),
]  # fmt: skip


# The final rounding


def rounded(name: str, description: str, rule: Callable[..., Values]) -> Violation:
    """Return a violation that rounds the accumulator to a narrow result differently."""

    def to_result(x: Array, kind: DType) -> Array:
        return Array(kind, rule(x.values, kind)) if kind.is_narrow else cast(x, kind)

    return changed("LANG-10-02", name, description, (NUMERICS, "cast", to_result))


ROUNDED = [
    rounded("flushed_results", "flushes subnormal narrow results to zero", flushed),
    rounded("fp16_between", "rounds to fp16 before fp8",
        lambda values, kind: (through("fp16")(values, kind) if kind.bits == 8 else round_to(values, kind))),
]  # fmt: skip
