"""Sums in place: the bits of `reductions.sum`, node by node, over any tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.collectives.groups import BLOCK, add_over, is_addable, share_of
from tessera_reference.collectives.operations import orders, run
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree

ADDABLE = tuple(name for name in DTYPES if is_addable(dtype(name)))
TREES = {
    "fold": FOLD,
    "pairwise": PAIRWISE,
    "ring": Tree.ring(3),
    "unbalanced": Tree.parse("((0 (1 2)) (((3 4) (5 6)) (7 ((8 9) (10 (11 12))))))"),
}


def stacked(kind: str, ranks: int, count: int, seed: int) -> Array:
    """Random bits, so NaN, infinities and subnormals too."""
    of = dtype(kind)
    bits = np.random.Generator(np.random.Philox(seed)).bytes(ranks * count * of.storage_bytes)
    return Array.from_bits(of, (ranks, count), bits)


def test_which_dtypes_are_added_by_numpy() -> None:
    """Those whose accumulator is held as they are; complex numbers and what is widened first are not."""
    assert {"fp32", "fp64", "int32", "int64"} <= set(ADDABLE)
    assert not {"bool", "complex64", "int8", "int16"} & set(ADDABLE)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("kind", ADDABLE)
@settings(max_examples=40)
@given(st.integers(0, 40), st.integers(0, 99))
def test_bits_are_those_of_the_tree(tree: str, kind: str, count: int, seed: int) -> None:
    """Of 13 rows; the rows stay as they were."""
    rows = stacked(kind, 13, count, seed)
    before, total = rows.to_bits(), np.empty(count, rows.values.dtype)
    add_over(TREES[tree], list(rows.values), total)
    found = cast(Array(rows.dtype.accumulator, total), rows.dtype)
    assert found.to_bits() == reductions.sum(rows, 0, tree=TREES[tree]).to_bits()
    assert rows.to_bits() == before


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_meet(count: int) -> None:
    """No element is left out or added twice where one block ends and the next begins."""
    rows = stacked("fp32", 6, count, 1)
    total = np.empty(count, np.float32)
    add_over(PAIRWISE, list(rows.values), total)
    assert Array(rows.dtype, total).to_bits() == reductions.sum(rows, 0).to_bits()


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 13])
def test_an_algorithm_has_the_bits_of_its_trees(name: str, ranks: int) -> None:
    """Share by share, in the order that it declares, whatever the shares' sizes."""
    count = 5 * ranks + ranks // 2
    for kind in ("fp32", "bf16", "fp16", "int32"):
        rows = stacked(kind, ranks, count, ranks)
        brought = [Array(rows.dtype, each) for each in rows.values]
        found = run("all_reduce", brought, op="sum", name=name, level="deterministic").outputs[0].values
        for rank, tree in enumerate(orders(name, ranks)):
            share = share_of(count, rank, ranks)
            expected = reductions.sum(Array(rows.dtype, rows.values[:, share]), 0, tree=tree)
            assert Array(rows.dtype, found[share]).to_bits() == expected.to_bits()


def test_a_tree_over_other_rows_is_refused() -> None:
    with pytest.raises(LeafCount):
        add_over(Tree.parse("((0 1) 2)"), list(np.ones((4, 5), np.float32)), np.empty(5, np.float32))
