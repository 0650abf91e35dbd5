"""The algorithms of collectives: their messages bring every contribution once, and numbers follow them bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.groups import share_of
from tessera_reference.collectives.operations import order_of, orders, run
from tessera_reference.collectives.schedules import ALGORITHMS, algorithm, steps
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

NAMES = sorted(ALGORITHMS)
OPERATIONS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]


def held_at_first(operation: str, ranks: int, root: int) -> list[list[frozenset[int]]]:
    """Whose contributions each rank holds of each share."""
    nobody: frozenset[int] = frozenset()
    if operation == "broadcast":
        return [[frozenset((root,)) if rank == root else nobody] * ranks for rank in range(ranks)]
    if operation == "all_gather":
        return [[frozenset((s,)) if s == rank else nobody for s in range(ranks)] for rank in range(ranks)]
    return [[frozenset((rank,))] * ranks for rank in range(ranks)]


@given(
    name=st.sampled_from(NAMES),
    operation=st.sampled_from(OPERATIONS),
    nodes=st.integers(1, 9),
    per_node=st.integers(1, 7),
    data=st.data(),
)
def test_messages_bring_every_contribution_once(
    name: str, operation: str, nodes: int, per_node: int, data: st.DataObject
) -> None:
    ranks = nodes * per_node
    root = data.draw(st.integers(0, ranks - 1))
    held = held_at_first(operation, ranks, root)
    for step in steps(operation, algorithm(name, ranks, per_node), root):
        assert step
        sent = [held[message.source][message.first : message.last] for message in step]
        for message, shares in zip(step, sent, strict=True):
            assert message.source != message.target
            assert message.first < message.last
            for share, value in enumerate(shares, start=message.first):
                own = held[message.target][share]
                assert not (message.combines and own & value)
                held[message.target][share] = own | value if message.combines else value
    everyone = frozenset(range(ranks))
    for rank in range(ranks):
        for share in range(ranks):
            if operation == "all_reduce" or (operation == "reduce_scatter" and share == rank):
                assert held[rank][share] == everyone
            elif operation != "reduce_scatter":
                assert held[rank][share] == frozenset((root if operation == "broadcast" else share,))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 6, 7, 8, 13])
def test_numbers_that_follow_the_messages_have_the_bits_of_the_result(name: str, ranks: int) -> None:
    """In fp32, whose nodes are single additions of numpy."""
    rows = np.random.default_rng(5).normal(scale=1e3, size=(ranks, 29)).astype(np.float32)
    result = run("all_reduce", [Array(dtype("fp32"), row) for row in rows], op="sum", name=name, level="deterministic")
    held = rows.copy()
    for step in {each.step: None for each in result.sent}:
        before = held.copy()
        for each in [each for each in result.sent if each.step == step]:
            places = slice(each.first, each.first + each.count)
            sent, own = before[each.source, places], held[each.target, places]
            held[each.target, places] = own + sent if each.combines else sent
    for rank, output in enumerate(result.outputs):
        np.testing.assert_array_equal(output.values.view(np.uint32), held[rank].view(np.uint32))


@pytest.mark.parametrize("name", NAMES)
def test_a_share_has_one_order_and_elements_have_that_of_their_share(name: str) -> None:
    trees = orders(name, 5)
    assert len(trees) == 5
    for element in range(11):
        share = next(each for each in range(5) if element < share_of(11, each, 5).stop)
        assert order_of(name, 5, 11, element) == trees[share]


def test_orders_of_textbook_algorithms() -> None:
    assert [str(each) for each in orders("ring", 4)] == [
        "(0 (3 (2 1)))",
        "(1 (0 (3 2)))",
        "(2 (1 (0 3)))",
        "(3 (2 (1 0)))",
    ]
    assert {str(each) for each in orders("tree", 5)} == {"(((0 1) (2 3)) 4)"}
    assert str(orders("halving_doubling", 4)[0]) == "((0 2) (1 3))"
    assert str(orders("direct", 3)[1]) == "((1 0) 2)"
    assert str(orders("hierarchical", 4, 2)[0]) == "((0 1) (2 3))"


def test_many_ranks_have_orders_too_deep_for_nested_lists() -> None:
    """A ring of many ranks is a fold."""
    assert str(orders("ring", 300)[0]).count("(") == 299


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunk", [1, 4, 29, 1000])
def test_chunks_cut_messages_and_change_nothing_else(name: str, chunk: int) -> None:
    rows = [Array(dtype("int32"), np.arange(29, dtype=np.int32) * rank) for rank in range(6)]

    def elements(**chunked: Any) -> list[tuple[int, int, int, int]]:
        sent = run("all_reduce", rows, op="sum", name=name, **chunked).sent
        assert all(each.first // chunk == (each.first + each.count - 1) // chunk for each in sent if chunked)
        return sorted((e.step, e.source, e.target, e.first + place) for e in sent for place in range(e.count))

    assert elements(chunk=chunk) == elements()


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


@pytest.mark.parametrize(("op", "kind"), [("mean", "int32"), ("max", "complex64"), ("sum", "bool"), ("prod", "bool")])
def test_operators_that_a_dtype_does_not_have_are_unsupported(op: str, kind: str) -> None:
    rows = [Array(dtype(kind), np.zeros(3, dtype(kind).carrier)) for _ in range(2)]
    with pytest.raises(Failure) as refused:
        run("all_reduce", rows, op=op)
    assert refused.value.status == Status.TESS_ERR_UNSUPPORTED


def test_numbers_of_ranks_beyond_the_small_ones() -> None:
    for name in NAMES:
        used = algorithm(name, 513, 3)
        assert len(used.owners) == 513
        assert set(used.owners) <= set(range(513))
