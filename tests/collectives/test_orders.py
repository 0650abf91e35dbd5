"""Algorithms of collectives: messages bring every contribution once, and bits follow their trees in any delivery."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives import delivery, operations
from tessera_reference.collectives.delivery import Move, Sent, deliver
from tessera_reference.collectives.groups import through_devices
from tessera_reference.collectives.operations import OPERATIONS, messages, order_of, orders, run
from tessera_reference.collectives.recurrence import Irregular, recurrence
from tessera_reference.collectives.schedules import ALGORITHMS, algorithm, steps
from tessera_reference.collectives.travel import Transfer, travel
from tessera_reference.graph.futures import holds
from tessera_reference.mesh.topology import End, Topology, uniform
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array, code_dtype, decode, encode
from tessera_reference.numerics.collectives import BLOCK, REDUCTIONS, add_over, is_addable, share_of
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Token, Tree

NAMES = sorted(ALGORITHMS)
SHARED_OPERATIONS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]


def held_at_first(operation: str, ranks: int, root: int) -> list[list[frozenset[int]]]:
    """Return the ranks whose contributions each rank holds of each share."""
    nobody: frozenset[int] = frozenset()
    if operation == "broadcast":
        return [[frozenset((root,)) if rank == root else nobody] * ranks for rank in range(ranks)]
    if operation == "all_gather":
        return [[frozenset((s,)) if s == rank else nobody for s in range(ranks)] for rank in range(ranks)]
    return [[frozenset((rank,))] * ranks for rank in range(ranks)]


@given(
    name=st.sampled_from(NAMES),
    operation=st.sampled_from(SHARED_OPERATIONS),
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


def test_numbers_of_ranks_beyond_the_small_ones() -> None:
    for name in NAMES:
        used = algorithm(name, 513, 3)
        assert len(used.owners) == 513
        assert set(used.owners) <= set(range(513))


@pytest.mark.parametrize(
    ("tree", "ranks", "partials", "text"),
    [
        (PAIRWISE, 1, (1, 1), "0"),
        (FOLD, 3, (1, 1), "((0 1) 2)"),
        (FOLD, 2, (1, 3), "(((0 1) 2) ((3 4) 5))"),
        (FOLD, 2, (3, 1), "(((0 1) 2) ((3 4) 5))"),
        (PAIRWISE, 2, (2, 2), "(((0 1) (2 3)) ((4 5) (6 7)))"),
        (Tree.parse("(1 0)"), 2, (2, 3), "((((6 7) 8) ((9 10) 11)) (((0 1) 2) ((3 4) 5)))"),
    ],
)
def test_warps_are_innermost_then_blocks(tree: Tree, ranks: int, partials: tuple[int, int], text: str) -> None:
    assert str(through_devices(tree, ranks, partials)) == text


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
def test_blocks_of_a_sum_meet(count: int) -> None:
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
    devices = [each.id for each in topology.devices]
    root, per_node = len(devices) // 2 if operation == "broadcast" else 0, len(devices) // len(topology.nodes)
    sent = messages(operation, name, len(devices), count, root=root, per_node=per_node, chunk=chunk)
    engine = sorted(row(each) for each in travel(topology, devices, sent, 4, chunk=chunk))
    found: list[Row] = []
    try:
        for each in recurrence(topology, devices, operation, name, count, 4, root=root, per_node=per_node, chunk=chunk):
            found += [(each.step, *one) for one in np.stack(each[1:], axis=1).tolist()]
    except Irregular:
        assert name != "ring" or operation == "all_to_all" or chunk or count < len(devices) or operation == "broadcast"
        return None
    return sorted(found) == engine


def row(each: Transfer) -> Row:
    sent = each.sent
    return sent.step, sent.source, sent.target, sent.first, sent.count, each.start, each.end


@pytest.mark.parametrize("name", ALGORITHM_NAMES)
@pytest.mark.parametrize("machine", MACHINES)
def test_times_are_those_of_the_engine(machine: str, name: str) -> None:
    """Shares of one size and of two, fewer elements than ranks, chunks within shares and across them."""
    topology = MACHINES[machine]
    ranks = len(topology.devices)
    found = Counter[bool | None]()
    for operation in ALL_OPERATIONS if ranks <= 8 else ("all_reduce",):
        if operation == "all_to_all" and name not in ("ring", "direct"):
            continue
        sizes: list[tuple[int, int | None]] = [(ranks * 40, None), (ranks * 8, 4)]
        if operation != "all_to_all":
            sizes += [(ranks * 40 + ranks // 2, None), (ranks // 2 + 1, None), (ranks * 6 + 3, 13)]
        found.update(regular(topology, operation, name, count, chunk) for count, chunk in sizes)
    assert found[False] == 0
    if name == "ring" or (len(topology.nodes) == 1 and ranks in POWERS):
        assert found[True] > 0


@pytest.mark.parametrize("name", ALGORITHM_NAMES)
def test_whole_buffers_of_even_shares_on_a_switch_are_regular(name: str) -> None:
    """Of ranks that are no power of two, some come later in a tree or an exchange of halves, and others overtake."""
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
    links = {each.name: each for each in topology.links}
    places = {each: number for number, each in enumerate(sent)}
    taken: dict[tuple[str, End], list[tuple[int, int]]] = defaultdict(list)
    for each in transfers:
        end: End = each.sent.source
        for name in each.links:
            taken[name, end].append((each.start, places[each.sent]))
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
        for per_node in [each for each in range(1, ranks + 1) if ranks % each == 0]:
            pattern = operations.pattern(name, ranks, per_node)
            if pattern is None:
                continue
            known += 1
            for share, tree in enumerate(orders(name, ranks, per_node)):
                places = list(range(pattern.leaves))
                if pattern.rank_of is not None:
                    places = [int(pattern.rank_of(leaf, np.array(share))) for leaf in places]
                tokens = tuple(places[each] if isinstance(each, int) else each for each in pattern.tree.tokens)
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
    buffers = [Array(of, each) for each in Array.from_bits(of, (ranks, count), bits).values]
    found = []
    for first in (2, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operations, "PATTERNS_FROM", first)
            found.append(run(operation, buffers, op=op, name=name, per_node=per_node, level="deterministic"))
    assert [each.to_bits() for each in found[0].outputs] == [each.to_bits() for each in found[1].outputs]
    assert found[0].sent == found[1].sent


DELIVERED = sorted(ALGORITHMS)
LEVELS = ["strict", "deterministic"]


def cancelling(ranks: int, count: int, kind: str = "fp32") -> list[Array]:
    """Contributions of many binades and both signs, whose sum depends on its order."""
    random = np.random.default_rng(17)
    scales = np.exp2(random.integers(-20, 20, size=(ranks, count)))
    rows = random.choice([-1.0, 1.0], size=(ranks, count)) * scales * random.uniform(1, 2, size=(ranks, count))
    return [Array(dtype(kind), row.astype(dtype(kind).carrier)) for row in rows]


def bits(arrays: list[Array]) -> list[bytes]:
    return [each.values.tobytes() for each in arrays]


def orders_found(name: str, seeds: int, ranks: int = 7, **changes: Any) -> int:
    """Return the number of different results that the seeds and no seed give."""
    rows = cancelling(ranks, 4 * ranks + 1)
    given_to: dict[str, Any] = {"op": "sum", "name": name, "level": "deterministic", "chunk": 11, **changes}
    found = {tuple(bits(run("all_reduce", rows, seed=seed, **given_to).outputs)) for seed in range(seeds)}
    return len(found | {tuple(bits(run("all_reduce", rows, **given_to).outputs))})


@pytest.mark.parametrize(("name", "rule"), [
    ("direct", "_combines_after"),
    ("ring", "_leaves_after"),
    ("tree", "_leaves_after"),
    ("tree", "_combines_after"),
    ("halving_doubling", "_leaves_after"),
])  # fmt: skip
def test_without_one_of_the_rules_bits_differ(monkeypatch: pytest.MonkeyPatch, name: str, rule: str) -> None:
    monkeypatch.setattr(delivery, rule, lambda move, each: False)
    monkeypatch.setattr(delivery, "_order", delivery._order.__wrapped__)
    assert orders_found(name, 30) > 1


@given(
    operation=st.sampled_from(OPERATIONS),
    op=st.sampled_from(sorted(REDUCTIONS)),
    name=st.sampled_from(DELIVERED),
    kind=st.sampled_from(["fp32", "fp64", "bf16", "int16", "complex64"]),
    level=st.sampled_from([*LEVELS, "fast"]),
    nodes=st.integers(1, 3),
    per_node=st.integers(1, 3),
    size=st.integers(0, 9),
    chunk=st.one_of(st.none(), st.integers(1, 20)),
    seed=st.integers(0, 1 << 70),
)
def test_every_operation_has_the_bits_that_it_has_without_a_seed(
    operation: str, op: str, name: str, kind: str, level: str,
    nodes: int, per_node: int, size: int, chunk: int | None, seed: int,
) -> None:  # fmt: skip
    ranks = nodes * per_node
    combines = operation in ("all_reduce", "reduce_scatter")
    if (operation == "all_to_all" and name not in ("ring", "direct")) or (
        combines and dtype(kind).kind not in REDUCTIONS[op][0]
    ):
        return
    count = size * ranks if operation in ("all_to_all", "all_gather") else size
    rows = [Array(each.dtype, each.values[:size]) if operation == "all_gather" else each
            for each in cancelling(ranks, count, kind)]  # fmt: skip
    asked: dict[str, Any] = {"op": op} if combines else {}
    asked |= {"root": ranks - 1} if operation == "broadcast" else {}
    asked |= {"name": name, "level": level, "per_node": per_node, "chunk": chunk}
    found, wanted = run(operation, rows, seed=seed, **asked), run(operation, rows, **asked)
    assert bits(found.outputs) == bits(wanted.outputs)
    assert [each.shape for each in found.outputs] == [each.shape for each in wanted.outputs]
    assert found.sent == wanted.sent


def test_seeds_choose_when_messages_arrive_and_not_in_which_order_they_are_combined() -> None:
    """Names are joined: those of three ranks on a fourth, and one on each of three ranks."""
    together = [Move(0, source, 0, 0, 0, 1, True) for source in (1, 2, 3)]
    apart = [Move(0, 0, target, 0, 0, 1, True) for target in (1, 2, 3)]
    orders = set()
    for seed in range(20):
        held = np.array([["a"], ["b"], ["c"], ["d"]], dtype=object)
        deliver(together, held, lambda own, value: own + value, seed)
        assert held[:, 0].tolist() == ["abcd", "b", "c", "d"]
        seen: list[str] = []

        def combine(own: Any, value: Any, seen: list[str] = seen) -> Any:
            seen.append(own[0])
            return own + value

        held = np.array([["a"], ["b"], ["c"], ["d"]], dtype=object)
        deliver(apart, held, combine, seed)
        assert held[:, 0].tolist() == ["a", "ba", "ca", "da"]
        orders.add("".join(seen))
    assert orders == {"bcd", "bdc", "cbd", "cdb", "dbc", "dcb"}


def test_what_a_rank_has_yet_to_send_is_not_overwritten() -> None:
    """Two ranks that exchange what they hold, in one step."""
    moves = [Move(0, 0, 1, 0, 0, 2, False), Move(0, 1, 0, 0, 0, 2, False)]
    for seed in range(20):
        held = np.array([[1, 2], [3, 4]])
        deliver(moves, held, lambda own, value: value, seed)
        assert held.tolist() == [[3, 4], [1, 2]]


@pytest.mark.parametrize("wire", ["bf16", "fp16", "fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("data", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_a_wire_holds_a_dtype_when_every_number_comes_back(wire: str, data: str) -> None:
    dtype = DTYPES[data]
    values = decode(np.arange(1 << dtype.bits).astype(code_dtype(dtype)), dtype)
    every = Array(dtype, values[~np.isinf(values)])
    back = cast(cast(every, DTYPES[wire]), dtype)
    assert holds(DTYPES[wire], dtype) == np.array_equal(encode(back.values, dtype), encode(every.values, dtype))
