"""Products: fused or rounded, wider accumulators, flushed subnormals, matrix units, narrow operands."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tessera_conformance.arithmetic import FOLD, NodeArithmetic
from tessera_conformance.probe import Finding, Subject


def subject(dtype: str = "fp32", shape: tuple[int, ...] = (2, 16, 2), **options: Any) -> Subject:
    return Subject("matmul", shape, dtype, **options)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("rounded_products", NodeArithmetic("fp32")),
        ("fused_products", NodeArithmetic("fp32", "fused")),
        ("wide_products", NodeArithmetic("fp64", start="none")),
        ("flushed_products", NodeArithmetic("fp32", subnormals="flushed")),
    ],
)
def test_arithmetics_of_a_fold(
    name: str, model: NodeArithmetic, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(subject(), products=getattr(orders, name))
    assert found.tree == FOLD.over(16)
    assert found.arithmetic is not None
    assert found.arithmetic.model == model
    if model.accumulator == "fp32":
        assert found.arithmetic.alike == ()
    assert found.seen is not None
    assert found.seen.start == ("+0" if name != "wide_products" else "none")


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_a_matrix_unit(dtype: str, probed: Callable[..., Finding], orders: ModuleType) -> None:
    """Blocks of four exact products beside the running sum, cut at 24 bits, rounded toward zero."""
    found = probed(subject(dtype, (1, 16, 1), out="fp32"), products=orders.truncated_products)
    assert found.pattern == "fold in fused blocks of 4"
    assert found.arithmetic is not None
    wanted = NodeArithmetic("fp32", "fused", "toward_zero", 24)
    assert wanted in (found.arithmetic.model, *found.arithmetic.alike)


def test_the_watched_element(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(shape=(3, 8, 2), element=(2, 1)), products=orders.fused_products)
    assert found.tree == FOLD.over(8)


def test_products_of_narrow_operands_are_exact_so_that_fusing_cannot_be_told(
    probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(
        subject("bf16", (1, 12, 1), out="fp32"),
        products=lambda a, b: orders.rounded_products(a.astype("float32"), b.astype("float32")),
    )
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")
    assert NodeArithmetic("fp32", "fused") in found.arithmetic.alike


def test_a_program_where_single_operations_are_not_supported(
    probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(subject(shape=(1, 8, 1)), by_program=True)
    assert found.tree == FOLD.over(8)
    assert probed(Subject("sum", (8,), "fp32"), by_program=True).tree == FOLD.over(8)


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_large_terms_swallow_many_units(
    dtype: str, kind: str, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    """Products of fp8 have few binades, so that units are counted in parts; fp64 does not lose a bit of fp8_e4m3."""
    products = orders.in_type  # the sum of exact products
    found = probed(
        subject(dtype, (1, 100, 1), out="fp32"),
        products=lambda a, b: products(kind, orders.pairwise)(a.astype("float32") * b.astype("float32")),
    )
    exact = (dtype, kind) == ("fp8_e4m3", "float64")
    assert found.kind == ("exact sum" if exact else "tree")
    assert exact or found.pattern == "pairwise"


def test_flushed_subnormals_leave_smaller_parts(probed: Callable[..., Finding], orders: ModuleType) -> None:
    def flushed(x: Any) -> Any:
        x = x.astype("float32")
        return np.where(np.abs(x) < 2.0**-6, x * 0, x)

    found = probed(
        subject("fp8_e4m3", (1, 64, 1), out="fp32"), products=lambda a, b: orders.pairwise(flushed(a) * flushed(b))
    )
    assert found.pattern == "pairwise"


def test_an_aligned_node_beside_another(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """((0..15) 16..31) of exact products of fp8_e4m3, 24 bits kept."""
    tree = (tuple(range(16)), *range(16, 32))
    found = probed(
        subject("fp8_e4m3", (1, 32, 1), out="fp32"),
        products=lambda a, b: orders.nested(tree, 24)(a.astype("float32") * b.astype("float32")),
    )
    assert found.tree is not None
    assert found.tree.to_text() == f"(({' '.join(map(str, range(16)))}) {' '.join(map(str, range(16, 32)))})"


def test_the_second_of_two_fused_leaves_rounded_first(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """fma(a0, b0, a1 * b1), and on from there."""

    def swapped(left: Any, right: Any) -> Any:
        order = [1, 0, *range(2, len(left))]
        return orders.fused_products(left[order], right[order])

    found = probed(subject(), products=swapped)
    assert found.tree == FOLD.over(16)
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32", "fused")
    assert found.arithmetic.tree.to_text().startswith("(" * 15 + "1 0)")
