"""Sums of collectives: patterns against trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives import operations
from tessera_reference.collectives.operations import orders, run
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import BLOCK, REDUCTIONS, add_over, is_addable
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Token, Tree

NAMES = sorted(ALGORITHMS)


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
    """A tree adds 13 rows and leaves them unchanged."""
    rows = stacked(kind, 13, count, seed)
    before, total = rows.to_bits(), np.empty(count, rows.values.dtype)
    add_over(TREES[tree], list(rows.values), total)
    actual = cast(Array(rows.dtype.accumulator, total), rows.dtype)
    assert actual.to_bits() == reductions.sum(rows, 0, tree=TREES[tree]).to_bits()
    assert rows.to_bits() == before


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_of_a_sum_meet(count: int) -> None:
    """No element is left out or added twice where one block ends and the next begins."""
    rows = stacked("fp32", 6, count, 1)
    total = np.empty(count, np.float32)
    add_over(PAIRWISE, list(rows.values), total)
    assert Array(rows.dtype, total).to_bits() == reductions.sum(rows, 0).to_bits()


def test_a_tree_over_other_rows_is_refused() -> None:
    with pytest.raises(LeafCount):
        add_over(Tree.parse("((0 1) 2)"), list(np.ones((4, 5), np.float32)), np.empty(5, np.float32))


ALGORITHM_NAMES = tuple(ALGORITHMS)


def without(tokens: tuple[Token, ...], ranks: int) -> tuple[Token, ...]:
    """Return a tree without the leaves of no rank, each of which is the second of a pair."""
    found = list(tokens)
    for at in reversed(range(len(found))):
        leaf = found[at]
        if isinstance(leaf, int) and leaf >= ranks:
            found[at - 2 : at + 2] = [found[at - 1]]
    return tuple(found)


@pytest.mark.parametrize("name", NAMES)
def test_the_pattern_of_an_algorithm_gives_the_tree_of_every_share(name: str) -> None:
    known = 0
    for ranks in range(2, 25):
        for per_node in [index for index in range(1, ranks + 1) if ranks % index == 0]:
            pattern = operations.pattern(name, ranks, per_node)
            if pattern is None:
                continue
            known += 1
            for share, tree in enumerate(orders(name, ranks, per_node)):
                places = list(range(pattern.leaves))
                if pattern.rank_of is not None:
                    places = [int(pattern.rank_of(leaf, np.array(share))) for leaf in places]
                tokens = tuple(places[token] if isinstance(token, int) else token for token in pattern.tree.tokens)
                assert without(tokens, ranks) == tree.tokens, (ranks, per_node, share)
    assert known >= 4


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(ALGORITHM_NAMES),
    nodes=st.integers(1, 6),
    per_node=st.integers(1, 4),
    kind=st.sampled_from(["fp32", "bf16", "fp8_e4m3", "int8", "complex64"]),
    op=st.sampled_from(["sum", "prod", "mean", "max"]),
    operation=st.sampled_from(["all_reduce", "reduce_scatter"]),
    data=st.data(),
)
def test_bits_by_pattern_are_those_of_the_trees(
    name: str, nodes: int, per_node: int, kind: str, op: str, operation: str, data: st.DataObject
) -> None:
    """Results and messages are the same whether the pattern of an algorithm or the tree of each share is evaluated."""
    ranks, of = nodes * per_node, dtype(kind)
    if of.kind not in REDUCTIONS[op][0]:
        op = "sum"
    count = data.draw(st.integers(0, 40))
    bits = np.random.Generator(np.random.Philox(data.draw(st.integers(0, 99)))).bytes(ranks * count * of.storage_bytes)
    buffers = [Array(of, value) for value in Array.from_bits(of, (ranks, count), bits).values]
    actual = []
    for first in (2, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operations, "PATTERNS_FROM", first)
            actual.append(run(operation, buffers, op=op, name=name, per_node=per_node, level="deterministic"))
    assert [output.to_bits() for output in actual[0].outputs] == [output.to_bits() for output in actual[1].outputs]
    assert actual[0].sent == actual[1].sent


def bits(arrays: list[Array]) -> list[bytes]:
    return [array.values.tobytes() for array in arrays]
