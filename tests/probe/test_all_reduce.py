"""One leaf a rank; every chunk of a ring has an order of its own."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from tessera_conformance.arithmetic import ring
from tessera_conformance.probe import Finding, Subject


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_every_chunk_is_revealed(dtype: str, probed: Callable[..., Finding]) -> None:
    found = probed(Subject("all_reduce", (8, 16), dtype), chunked=True)
    assert found.tree == ring(1).over(8).canonical()
    assert [(group.first, group.last) for group in found.groups] == [(2 * k, 2 * k + 1) for k in range(8)]
    assert [group.tree for group in found.groups] == [ring(k + 1).over(8).canonical() for k in range(8)]
    assert found.ranks_agree


def test_one_order_for_all_elements(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(Subject("all_reduce", (6, 4), "fp32", element=(3,)), reduce=orders.halving)
    assert [(group.first, group.last) for group in found.groups] == [(0, 3)]
    assert found.pattern == "recursive halving"
