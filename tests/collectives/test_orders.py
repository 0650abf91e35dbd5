"""Sums of collectives: fast times and patterns against the plain engine and trees."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives import operations
from tessera_reference.collectives.delivery import Sent
from tessera_reference.collectives.operations import messages, orders, run
from tessera_reference.collectives.recurrence import Irregular, recurrence
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import Transfer, travel
from tessera_reference.mesh.topology import End, Topology, uniform
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
ALL_OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
POWERS = (1, 2, 4, 8, 16)
MACHINES = {
    **{f"a switch of {ranks}": uniform(1, ranks) for ranks in range(1, 18)},
    "one credit": uniform(1, 8, credits=1),
    "two nodes": uniform(2, 4),
    "two small nodes": uniform(2, 2, credits=1, uplink_credits=3),
    "three nodes": uniform(3, 3, uplink_credits=1),
    "a shared uplink": uniform(4, 2, shared=True),
    "a narrow shared uplink": uniform(2, 4, shared=True, uplink_credits=1),
}
Row = tuple[int, ...]


def regular(topology: Topology, operation: str, name: str, count: int, chunk: int | None) -> bool | None:
    """Return True if the recurrence gives the times of the engine, and None if it refuses."""
    devices = [device.id for device in topology.devices]
    root, per_node = len(devices) // 2 if operation == "broadcast" else 0, len(devices) // len(topology.nodes)
    sent = messages(operation, name, len(devices), count, root=root, per_node=per_node, chunk=chunk)
    engine = sorted(row(each) for each in travel(topology, devices, sent, 4, chunk=chunk))
    rows: list[Row] = []
    try:
        for each in recurrence(topology, devices, operation, name, count, 4, root=root, per_node=per_node, chunk=chunk):
            rows += [(each.step, *one) for one in np.stack(each[1:], axis=1).tolist()]
    except Irregular:
        assert name != "ring" or operation == "all_to_all" or chunk or count < len(devices) or operation == "broadcast"
        return None
    return sorted(rows) == engine


def row(each: Transfer) -> Row:
    sent = each.sent
    return sent.step, sent.source, sent.target, sent.first, sent.elements, each.start, each.end


@pytest.mark.parametrize("name", ALGORITHM_NAMES)
@pytest.mark.parametrize("machine", MACHINES)
def test_times_are_those_of_the_engine(machine: str, name: str) -> None:
    """Shares of one size and of two, fewer elements than ranks, chunks within shares and across them."""
    topology = MACHINES[machine]
    ranks = len(topology.devices)
    actual = Counter[bool | None]()
    for operation in ALL_OPERATIONS if ranks <= 8 else ("all_reduce",):
        if operation == "all_to_all" and name not in ("ring", "direct"):
            continue
        sizes: list[tuple[int, int | None]] = [(ranks * 40, None), (ranks * 8, 4)]
        if operation != "all_to_all":
            sizes += [(ranks * 40 + ranks // 2, None), (ranks // 2 + 1, None), (ranks * 6 + 3, 13)]
        actual.update(regular(topology, operation, name, count, chunk) for count, chunk in sizes)
    assert actual[False] == 0
    if name == "ring" or (len(topology.nodes) == 1 and ranks in POWERS):
        assert actual[True] > 0


@pytest.mark.parametrize("name", ALGORITHM_NAMES)
def test_whole_buffers_of_even_shares_on_a_switch_are_regular(name: str) -> None:
    """If the ranks are no power of two, some join a tree or an exchange of halves later, and others overtake them."""
    for ranks in POWERS if name in ("tree", "halving_doubling") else range(1, 18):
        assert regular(MACHINES[f"a switch of {ranks}"], "all_reduce", name, ranks * 100, None)


def test_what_is_refused_is_out_of_order() -> None:
    """Uneven shares: a rank's third message leaves before its second, whose receiver is still busy."""
    topology, ranks = uniform(1, 8), range(8)
    sent = messages("all_reduce", "direct", 8, 100_003)
    with pytest.raises(Irregular, match="before one that comes earlier"):
        list(recurrence(topology, ranks, "all_reduce", "direct", 100_003, 4))
    assert overtaken(topology, sent, travel(topology, ranks, sent, 4))


def overtaken(topology: Topology, sent: list[Sent], transfers: list[Transfer]) -> bool:
    """Return True if messages took a link in another order than theirs."""
    links = {link.name: link for link in topology.links}
    places = {each: number for number, each in enumerate(sent)}
    taken: dict[tuple[str, End], list[tuple[int, int]]] = defaultdict(list)
    for transfer in transfers:
        end: End = transfer.sent.source
        for name in transfer.links:
            taken[name, end].append((transfer.start, places[transfer.sent]))
            end = links[name].other(end)
    return any([place for _, place in sorted(used)] != sorted(place for _, place in used) for used in taken.values())


def test_a_month_is_refused() -> None:
    """Times are 64-bit integers; what might not fit is not computed."""
    with pytest.raises(Irregular, match="may take more than"):
        list(recurrence(uniform(1, 2), (0, 1), "all_reduce", "ring", 1 << 60, 1))
    with pytest.raises(Irregular, match="a message takes"):
        list(recurrence(uniform(1, 2), (0, 1), "all_reduce", "tree", 1 << 61, 1))


def test_devices_that_are_cut_off_are_refused() -> None:
    for name in ALGORITHM_NAMES:
        with pytest.raises(Failure) as raised:
            list(recurrence(uniform(1, 3), (0, 1, 2), "all_reduce", name, 9, 1, down=frozenset(["nv1"]), per_node=3))
        assert raised.value.status is Status.TESS_ERR_LAUNCH_FAILED


def test_thousands_of_ranks_by_hand() -> None:
    """4,096 ranks on a switch: 8,190 steps, each of 2 us and of 1 MiB at 450 GB/s, rounded up."""
    alone = 2_000_000 + -(-(1 << 20) * 10**12 // (450 * 10**9))
    last = max(
        int(each.end.max()) for each in recurrence(uniform(1, 4096), range(4096), "all_reduce", "ring", 1 << 32, 1)
    )
    assert last == 8190 * alone


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
