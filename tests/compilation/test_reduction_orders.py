"""The orders in which a kernel adds what rounds, by which a descriptor that fixes another is refused (AMB-RT-78)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.compilation.executables import reduction_orders
from tessera_reference.numerics.trees import FOLD, PAIRWISE

X = "X: tensor<4x4xfp32>"


@pytest.mark.parametrize(
    ("parameters", "body", "orders"),
    [
        (X, "X = X + X;", set()),
        (X, "X = X @ X;", {FOLD}),
        (f"{X}, Y: tensor<4xfp32>", "Y = op.sum(X, axis=0);", {PAIRWISE}),
        (f"{X}, Y: tensor<4xfp32>", "Y = op.max(X, axis=0);", set()),
        ("X: tensor<4x4xint32>, Y: tensor<4xint32>", "Y = op.sum(X, axis=0);", set()),
        (f"{X}, I: tensor<3xint32>, Y: tensor<3x4xfp32>", "X = op.scatter_add(X, I, Y, axis=0);", {FOLD}),
        (f"{X}, Y: tensor<4xfp32>, G: tensor<4xfp32>", "G = op.grad(X * Y, Y);", {FOLD, PAIRWISE}),
    ],
)
def test_an_operation_that_adds_tells_the_order(build: Any, parameters: str, body: str, orders: set[Any]) -> None:
    """Adjoints add in either: of a broadcast, such as the last, by a sum, of a gather term by term."""
    fatbin = build.compiled(f"module m {{ kernel k({parameters}) {{ {body} }} }}")
    assert reduction_orders(fatbin, "k", "sm_90") == orders
