"""The recurrence over ranks: the times of the engine, message by message, and the bits of an algorithm's trees."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.delivery import Sent
from tessera_reference.collectives.operations import messages, run
from tessera_reference.collectives.rank_vectors import combined
from tessera_reference.collectives.recurrence import Irregular, recurrence
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import Transfer, travel
from tessera_reference.mesh.topology import End, Topology, uniform
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

NAMES = tuple(ALGORITHMS)
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
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
    """Whether the recurrence gives the times of the engine; None where it refuses."""
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("machine", MACHINES)
def test_times_are_those_of_the_engine(machine: str, name: str) -> None:
    """Shares of one size and of two, fewer elements than ranks, chunks within shares and across them."""
    topology = MACHINES[machine]
    ranks = len(topology.devices)
    found = Counter[bool | None]()
    for operation in OPERATIONS if ranks <= 8 else ("all_reduce",):
        if operation == "all_to_all" and name not in ("ring", "direct"):
            continue
        sizes: list[tuple[int, int | None]] = [(ranks * 40, None), (ranks * 8, 4)]
        if operation != "all_to_all":
            sizes += [(ranks * 40 + ranks // 2, None), (ranks // 2 + 1, None), (ranks * 6 + 3, 13)]
        found.update(regular(topology, operation, name, count, chunk) for count, chunk in sizes)
    assert found[False] == 0
    if name == "ring" or (len(topology.nodes) == 1 and ranks in POWERS):
        assert found[True] > 0


@pytest.mark.parametrize("name", NAMES)
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
    """Whether messages took a link in another order than theirs."""
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
    for name in NAMES:
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


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    nodes=st.integers(1, 6),
    per_node=st.integers(1, 4),
    kind=st.sampled_from(["fp32", "bf16", "fp8_e4m3", "int8", "complex64"]),
    op=st.sampled_from(["sum", "prod"]),
    data=st.data(),
)
def test_bits_are_those_of_the_trees(
    name: str, nodes: int, per_node: int, kind: str, op: str, data: st.DataObject
) -> None:
    ranks, of = nodes * per_node, dtype(kind)
    count = data.draw(st.integers(0, 30))
    bits = np.random.Generator(np.random.Philox(data.draw(st.integers(0, 99)))).bytes(ranks * count * of.storage_bytes)
    whole = Array.from_bits(of, (ranks, count), bits)
    buffers = [Array(of, each) for each in whole.values]
    found = combined(buffers, op, name, per_node)
    expected = run("all_reduce", buffers, op=op, name=name, per_node=per_node, level="deterministic").outputs[0]
    assert found.to_bits() == expected.to_bits()
