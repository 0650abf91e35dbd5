"""Products: fused or rounded, wider accumulators, flushed subnormals, matrix units, narrow operands."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

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
        ("wide_products", NodeArithmetic("fp64")),
        ("flushed_products", NodeArithmetic("fp32", subnormals="flushed")),
    ],
)
def test_arithmetics_of_a_fold(
    name: str, model: NodeArithmetic, probed: Callable[..., Finding], summing: ModuleType
) -> None:
    found = probed(subject(), products=getattr(summing, name))
    assert found.tree == FOLD.over(16)
    assert found.arithmetic is not None
    assert found.arithmetic.model == model
    if model.accumulator == "fp32":
        assert found.arithmetic.alike == ()
    assert found.seen is not None
    assert found.seen.start == ("+0" if name != "wide_products" else "none")


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_a_matrix_unit(dtype: str, probed: Callable[..., Finding], summing: ModuleType) -> None:
    """Blocks of four exact products beside the running sum, cut at 24 bits, rounded toward zero."""
    found = probed(subject(dtype, (1, 16, 1), out="fp32"), products=summing.truncated_products)
    assert found.pattern == "fold in fused blocks of 4"
    assert found.arithmetic is not None
    wanted = NodeArithmetic("fp32", "fused", "toward_zero", 24)
    assert wanted in (found.arithmetic.model, *found.arithmetic.alike)


def test_the_watched_element(probed: Callable[..., Finding], summing: ModuleType) -> None:
    found = probed(subject(shape=(3, 8, 2), element=(2, 1)), products=summing.fused_products)
    assert found.tree == FOLD.over(8)


def test_products_of_narrow_operands_are_exact_so_that_fusing_cannot_be_told(
    probed: Callable[..., Finding], summing: ModuleType
) -> None:
    found = probed(
        subject("bf16", (1, 12, 1), out="fp32"),
        products=lambda a, b: summing.rounded_products(a.astype("float32"), b.astype("float32")),
    )
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")
    assert NodeArithmetic("fp32", "fused") in found.arithmetic.alike


def test_a_program_where_single_operations_are_not_supported(
    probed: Callable[..., Finding], summing: ModuleType
) -> None:
    found = probed(subject(shape=(1, 8, 1)), by_program=True)
    assert found.tree == FOLD.over(8)
    assert probed(Subject("sum", (8,), "fp32"), by_program=True).tree == FOLD.over(8)
