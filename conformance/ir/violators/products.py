"""Matrix products in another order, arithmetic or type than the reference's (language specification, 10 and 15)."""

from functools import cache

import numpy as np

from tessera_conformance.vectors import load
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import cast, round_to
from tessera_reference.numerics.trees import Tree

from ..variants.declared_arithmetic import DeclaredArithmetic
from .changes import around, changed
from .misrounding import flushed, through


def multiplied(name, description, compute, clause="LANG-10-06"):
    """Return a violation with another matrix product of floats; `compute` takes the operands and the result type."""

    def execute(usual, a, b, out=None, *, accumulator=None):
        if a.dtype.kind != "float" or a.shape[-1] < 2 or accumulator not in (None, a.dtype.accumulator):
            return usual(a, b, out, accumulator=accumulator)
        return compute(a, b, out)

    return changed(clause, name, description, ("graph.reductions.matmul", around(execute)))


def over(tree):
    """Return a product in the order of a tree, in JSON, that depends on the number of terms."""
    return lambda a, b, out: matmul(a, b, out, tree=Tree.from_json(tree(a.shape[-1])))


def folded(items):
    total = items[0]
    for item in items[1:]:
        total = [total, item]
    return total


def in_blocks(size):
    return lambda n: folded([folded(list(range(i, min(i + size, n)))) for i in range(0, n, size)])


@cache
def recorded():
    vectors = [vector for topic in ("ir/matmul", "ir/long_reductions") for vector in load(topic)]
    return frozenset(next(iter(vector.call.inputs.values())).data for vector in vectors)


SPLIT = over(lambda n: folded([*range(0, n, 2), *range(1, n, 2)]))

ORDERS = [
    multiplied("by_heart", "adds in the right order for the numbers of the golden vectors alone",
        lambda a, b, out: matmul(a, b, out) if a.to_bits() in recorded() else SPLIT(a, b, out)),
    multiplied("blocked_product", "adds blocks of eight terms for themselves", over(in_blocks(8))),
]  # fmt: skip


def computing(**model):
    """Return a product with another arithmetic in every node."""
    return lambda a, b, out: matmul(a, b, out, arithmetic=DeclaredArithmetic(a.dtype.accumulator, **model))


def operands_as(change):
    """Return a product of changed operands; the result keeps its type."""
    return lambda a, b, out: cast(matmul(change(a), change(b)), out or a.dtype)


def to(narrower, only):
    """Return a change that rounds operands of one dtype to a narrower one, stored in fp32."""

    def change(x):
        if x.dtype.name != only:
            return x
        return Array(DTYPES["tf32"], x.values) if narrower == "tf32" else cast(cast(x, dtype(narrower)), x.dtype)

    return change


def tf32_result(a, b, out):
    result = matmul(a, b, out)
    if a.dtype.name != "tf32":
        return result
    eye = np.broadcast_to(np.eye(result.shape[-1], dtype=np.float32), (*result.shape[:-2], *result.shape[-1:] * 2))
    rounded = matmul(Array(DTYPES["tf32"], result.values.astype(np.float32)), Array(DTYPES["tf32"], eye))
    return Array(result.dtype, np.where(np.isfinite(result.values), rounded.values, result.values))


def rounded(clause, name, description, module, rule):
    """Return a violation with another rounding of a module of the arithmetic to narrow types."""

    def to(usual, x, kind):
        return Array(kind, rule(x.values, kind)) if kind.is_narrow else usual(x, kind)

    return changed(clause, name, description, (f"numerics.{module}.cast", around(to)))


VIOLATIONS = [
    multiplied("fused_fp64", "does not round products of fp64 either", computing(product="fused"), "LANG-10-01"),
    multiplied("half_away_sums", "rounds ties of partial sums away from zero", computing(rounding="nearest_away"),
        "LANG-10-01"),
    multiplied("flushed_product", "flushes subnormal operands and partial sums", computing(subnormals="flushed"),
        "LANG-05.2-02"),
    multiplied("tf32_for_fp32", "takes tf32 products for fp32", operands_as(to("tf32", "fp32")), "LANG-05.2-02"),
    multiplied("fp32_for_fp64", "multiplies fp64 in fp32", lambda a, b, out: matmul(a, b, out) if a.dtype.bits != 64
        else cast(matmul(cast(a, DTYPES["fp32"]), cast(b, DTYPES["fp32"])), out or a.dtype), "LANG-05.2-02"),
    multiplied("tf32_truncated", "truncates tf32 operands", operands_as(lambda x: x if x.dtype.name != "tf32"
            else Array(x.dtype, (x.values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32))), "LANG-05.2-02"),
    multiplied("tf32_result", "rounds tf32 results to ten bits", tf32_result, "LANG-05.2-02"),
    rounded("LANG-10-02", "flushed_results", "flushes subnormal narrow results to zero", "matmul", flushed),
    rounded("LANG-10-02", "fp16_between", "rounds to fp16 before fp8", "matmul",
        lambda values, kind: (through("fp16")(values, kind) if kind.bits == 8 else round_to(values, kind))),
]  # fmt: skip
