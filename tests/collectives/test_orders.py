"""The orders of algorithms against what their messages combine, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives import operations
from tessera_reference.collectives.operations import orders, run
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import REDUCTIONS, reduced, share_of
from tessera_reference.numerics.formats import dtype


def test_many_ranks_have_orders_too_deep_for_nested_lists() -> None:
    """A ring of many ranks is a fold."""
    assert str(orders("ring", 300)[0]).count("(") == 299


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ({"name": "rings"}, Status.TESS_ERR_INVALID_VALUE, "ring"),
        ({"op": "add"}, Status.TESS_ERR_INVALID_VALUE, "sum, prod, mean, max, min"),
        ({"op": None}, Status.TESS_ERR_INVALID_VALUE, "no operator"),
        ({"root": 1}, Status.TESS_ERR_INVALID_VALUE, "none for the others"),
        ({"groups": [[0], [2]]}, Status.TESS_ERR_INVALID_VALUE, "each of 0 to 2 once"),
        ({"groups": [[0, 1, 2], []]}, Status.TESS_ERR_INVALID_VALUE, "each of 0 to 2 once"),
        ({"name": "hierarchical", "per_node": 2}, Status.TESS_ERR_UNSUPPORTED, "as many ranks on each node"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(wrong: dict[str, Any], status: Status, words: str) -> None:
    rows = [Array(dtype("fp32"), np.zeros(3, np.float32)) for _ in range(3)]
    with pytest.raises(Failure, match=words) as refused:
        run("all_reduce", rows, **{"op": "sum", **wrong})
    assert refused.value.status == status


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(tuple(ALGORITHMS)),
    nodes=st.integers(1, 6),
    per_node=st.integers(1, 4),
    kind=st.sampled_from(["fp32", "bf16", "fp8_e4m3", "int8", "complex64"]),
    op=st.sampled_from(["sum", "prod", "mean", "max"]),
    operation=st.sampled_from(["all_reduce", "reduce_scatter"]),
    data=st.data(),
)
def test_messages_combine_in_the_declared_order(
    name: str, nodes: int, per_node: int, kind: str, op: str, operation: str, data: st.DataObject
) -> None:
    """Message by message, or for a ring all ranks at once; the bits are those of the tree of each share."""
    ranks, of = nodes * per_node, dtype(kind)
    if of.kind not in REDUCTIONS[op].kinds:
        op = "sum"
    count = data.draw(st.integers(0, 40))
    bits = np.random.Generator(np.random.Philox(data.draw(st.integers(0, 99)))).bytes(ranks * count * of.storage_bytes)
    buffers = [Array(of, value) for value in Array.from_bits(of, (ranks, count), bits).values]
    shares = [share_of(count, rank, ranks) for rank in range(ranks)]
    rows = [[Array(of, buffer.values[share]) for buffer in buffers] for share in shares]
    sums = [reduced(op, row, tree).values for row, tree in zip(rows, orders(name, ranks, per_node), strict=True)]
    own = sums if operation == "reduce_scatter" else [np.concatenate(sums)] * ranks
    for first in (2, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operations, "ROTATED_FROM", first)
            actual = run(operation, buffers, op=op, name=name, per_node=per_node, level="deterministic")
        for output, expected in zip(actual.outputs, own, strict=True):
            assert output.to_bits() == Array(of, expected).to_bits()
