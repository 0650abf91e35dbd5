"""Reduce-scatter, all-gather and broadcast: what ranks hold (runtime specification, 4.6)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import (
    DTYPE_OPERATORS,
    MESH_AXES,
    MESHES,
    OPERATORS,
    asking,
    contributions,
    done,
    filled,
    gathered,
    groups,
    held,
    joined,
    judge_reduced,
    mapping_of_ranks,
    parts_of,
    share,
)
from tessera_conformance.chapters.runtime.kit.encoding import elements, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, devices, meshed
from tessera_conformance.chapters.runtime.kit.policies import LEVELS
from tessera_conformance.chapters.runtime.kit.readings import INVALID, rejected
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned
from tessera_conformance.tensors import Tensor


@feature("rank-memory")
@clause("RT-04.6-11")
@pytest.mark.parametrize("op", OPERATORS, ids=OPERATORS.values())
@pytest.mark.parametrize(("sizes", "axis"), MESH_AXES)
def test_reduce_scatter_leaves_each_rank_its_share(impl, check, sizes, axis, op):
    """Rank r of n has elements r*count/n up to (r+1)*count/n of the reduction; the rest is not judged (AMB-RT-04)."""
    session = gathered(impl, check, **sizes)
    lists = groups(axis, **sizes)
    count = 3 * len(lists[0])
    inputs = contributions("fp32", count, session.ranks, seed=760)
    pointer = filled(session, inputs)
    done(session, "reduce_scatter", pointer, count, "fp32", op=op, axis=axis)
    actual = held(session, pointer, inputs)
    for rank, (place, group) in mapping_of_ranks(lists).items():
        shares = [share(inputs[member], place, len(group)) for member in group]
        own = share(actual[rank], place, len(group))
        judge_reduced(impl, check, own, shares, op, f"the share of rank {rank}")


@feature("rank-memory")
@clause("RT-04.6-11", "RT-04.6-15")
@pytest.mark.parametrize(("dtype", "op"), DTYPE_OPERATORS.values(), ids=DTYPE_OPERATORS)
def test_reduce_scatter_of_every_dtype(impl, check, dtype, op):
    """On four ranks with two elements each (AMB-RT-04)."""
    session = gathered(impl, check, dp=4)
    inputs = contributions(dtype, 8, 4, seed=780)
    pointer = filled(session, inputs)
    done(session, "reduce_scatter", pointer, 8, dtype, op=op, axis="dp")
    actual = held(session, pointer, inputs)
    for rank in range(4):
        shares = [share(operand, rank, 4) for operand in inputs]
        judge_reduced(impl, check, share(actual[rank], rank, 4), shares, op, f"the share of rank {rank}")


@feature("rank-memory")
@clause("RT-04.6-12")
@pytest.mark.parametrize(("sizes", "axis"), MESH_AXES)
def test_all_gather_concatenates_the_shares(impl, check, sizes, axis):
    """Every member holds the share of each, in order of the coordinate (AMB-RT-04)."""
    session = gathered(impl, check, **sizes)
    lists = groups(axis, **sizes)
    count = 2 * len(lists[0])
    inputs = contributions("int32", count, session.ranks, seed=800)
    pointer = filled(session, inputs)
    done(session, "all_gather", pointer, count, "int32", axis=axis)
    actual = held(session, pointer, inputs)
    for rank, (_, group) in mapping_of_ranks(lists).items():
        expected = joined([share(inputs[member], place, len(group)) for place, member in enumerate(group)])
        check.bits(actual[rank], expected, f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-12", "RT-04.6-15")
@pytest.mark.parametrize("dtype", DTYPE_IDS)
def test_all_gather_of_every_dtype(impl, check, dtype):
    """Elements are moved bit by bit, whatever they mean, NaN and truth values included (AMB-RT-04, AMB-RT-56)."""
    session = gathered(impl, check, dp=3)
    inputs = contributions(dtype, 6, 3, seed=820)
    pointer = filled(session, inputs)
    done(session, "all_gather", pointer, 6, dtype, axis="dp")
    expected = joined([share(operand, place, 3) for place, operand in enumerate(inputs)])
    for rank, tensor in enumerate(held(session, pointer, inputs)):
        check.equal(tensor.data.hex(), expected.data.hex(), f"what rank {rank} has")


ROWS = [[1, 2, 3, 4, 5, 6, 7, 8], [10, 20, 30, 40, 50, 60, 70, 80]]
"""The numbers of two ranks at first."""


def shared_out(collective: str, rank: int, count: int) -> list[int | None]:
    """Return a rank's share of so many elements of `ROWS`; None for elements that are not judged."""
    half, (first, second) = count // 2, ROWS
    if collective == "all_gather":
        return [*first[:half], *second[half:count], *ROWS[rank][count:]]
    own = range(rank * half, (rank + 1) * half)
    sums = [first[place] + second[place] if place in own else None for place in range(count)]
    return [*sums, *ROWS[rank][count:]]


@feature("rank-memory")
@pytest.mark.parametrize(
    "collective",
    [
        pytest.param("reduce_scatter", marks=clause("RT-04.6-11")),
        pytest.param("all_gather", marks=clause("RT-04.6-12")),
    ],
)
def test_the_count_is_that_of_the_whole_buffer(impl, check, collective):
    """Two ranks share four of eight elements, two for each; those behind are as they were (AMB-RT-04)."""
    session = gathered(impl, check, dp=2)
    inputs = [Tensor("int32", (8,), elements("int32", *row)) for row in ROWS]
    pointer = filled(session, inputs)
    done(session, collective, pointer, 4, "int32", **parts_of(collective))
    actual = [values_of("int32", tensor.data) for tensor in held(session, pointer, inputs)]

    def judged(count: int) -> list[list[float | None]]:
        expected = [shared_out(collective, rank, count) for rank in range(2)]
        return [
            [None if one is None else other for one, other in zip(*rows, strict=True)]
            for rows in zip(expected, actual, strict=True)
        ]

    shares = judged(8) == [shared_out(collective, rank, 8) for rank in range(2)]
    check.reading("AMB-RT-04", "count is the elements of one share", shares)
    check.equal(judged(4), [shared_out(collective, rank, 4) for rank in range(2)], "what the ranks have")


def is_along_one_axis(actual: list[Tensor], inputs: list[Tensor], sizes: dict[str, int]) -> bool:
    """True if the ranks along one of several axes have what the first of them had."""
    return any(
        all(actual[rank] == inputs[group[0]] for group in groups(axis, **sizes) for rank in group)
        for axis, size in sizes.items()
        if 1 < size < len(inputs)
    )


@feature("rank-memory")
@clause("RT-04.6-13")
@pytest.mark.parametrize("sizes", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_broadcast_spans_the_mesh(impl, check, sizes, last):
    """Whatever its axes: every rank holds the data of the root (AMB-RT-02)."""
    session = gathered(impl, check, **sizes)
    root = session.ranks - 1 if last else 0
    inputs = contributions("int32", 5, session.ranks, seed=840)
    pointer = filled(session, inputs)
    done(session, "broadcast", pointer, 5, "int32", root=root)
    actual = held(session, pointer, inputs)
    along = root == 0 and is_along_one_axis(actual, inputs, sizes)
    check.reading("AMB-RT-02", "broadcast along one default axis", along)
    for rank, tensor in enumerate(actual):
        check.bits(tensor, inputs[root], f"what rank {rank} has")


@feature("rank-memory")
@pytest.mark.parametrize(
    "collective",
    [
        pytest.param("reduce_scatter", marks=clause("RT-04.6-11"), id="reduce_scatter"),
        pytest.param("all_gather", marks=clause("RT-04.6-12"), id="all_gather"),
        pytest.param("broadcast", marks=clause("RT-04.6-13"), id="broadcast"),
    ],
)
def test_a_collective_of_more_than_a_mebibyte_moves_each_element(impl, check, collective):
    """Two ranks bring numbers that differ from place to place; every element that a rank owns counts (AMB-RT-04)."""
    session = gathered(impl, check, dp=2)
    count = (1 << 18) + 1002
    half, rows = count // 2, [range(rank, count + rank) for rank in range(2)]
    pointer = filled(session, [Tensor("int32", (count,), elements("int32", *row)) for row in rows])
    parts = {"root": 1} if collective == "broadcast" else parts_of(collective)
    done(session, collective, pointer, count, "int32", **parts)
    for rank in range(2):
        actual = values_of("int32", session.peek(rank, pointer, 4 * count))
        expected = [*rows[1]] if collective == "broadcast" else [*rows[0][:half], *rows[1][half:]]
        if collective == "reduce_scatter":
            actual = actual[half * rank : half * (rank + 1)]
            expected = [2 * place + 1 for place in range(half * rank, half * (rank + 1))]
        wrong = next((place for place, value in enumerate(expected) if actual[place] != value), None)
        check.equal(wrong, None, f"the first place at which rank {rank} has another element")


@feature("rank-memory")
@clause("RT-04.6-13")
@pytest.mark.parametrize("root", range(8))
def test_broadcast_from_every_root(impl, check, root):
    """Ranks count row-major over tp, pp, dp and ep (AMB-RT-02)."""
    session = gathered(impl, check, tp=2, dp=2, ep=2)
    inputs = contributions("fp64", 3, 8, seed=860)
    pointer = filled(session, inputs)
    done(session, "broadcast", pointer, 3, "fp64", root=root)
    for rank, tensor in enumerate(held(session, pointer, inputs)):
        check.bits(tensor, inputs[root], f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-13")
def test_a_root_is_the_rank_and_not_the_id_of_a_device(impl, check):
    """On three devices in reverse order, of which rank 2 has the least id (AMB-RT-02)."""
    ids = devices(impl, check, 3)[::-1]
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    session = meshed(impl, check, context, ids)
    session.set_policy(LEVELS[impl.level])
    inputs = contributions("int32", 5, 3, seed=870)
    pointer = filled(session, inputs)
    answer = asking(session, "broadcast", pointer, 5, "int32", root=0)
    if 0 not in ids and rejected(answer, INVALID):
        by_id = asking(session, "broadcast", pointer, 5, "int32", root=ids[0])
        check.reading("AMB-RT-02", "root is a device id", isinstance(by_id, Returned))
    check.returns(answer, "a broadcast succeeds")
    actual = held(session, pointer, inputs)
    of_device = 0 in ids[1:] and actual == [inputs[ids.index(0)]] * 3
    check.reading("AMB-RT-02", "root is a device id", of_device)
    for rank, tensor in enumerate(actual):
        check.bits(tensor, inputs[0], f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-13", "RT-04.6-15")
@pytest.mark.parametrize("dtype", DTYPE_IDS)
def test_broadcast_of_every_dtype(impl, check, dtype):
    """Exactly the bytes of the elements are written (AMB-RT-56)."""
    session = gathered(impl, check, dp=2)
    inputs = contributions(dtype, 5, 2, seed=880)
    pointer = filled(session, inputs)
    done(session, "broadcast", pointer, 4, dtype, root=1)
    actual = held(session, pointer, inputs)
    size = 4 * len(inputs[0].data) // 5
    check.equal(actual[0].data.hex(), (inputs[1].data[:size] + inputs[0].data[size:]).hex(), "what rank 0 has")
    check.equal(actual[1].data.hex(), inputs[1].data.hex(), "what the root has")


@feature("rank-memory")
@clause("RT-04.6-13", "RT-04.6-15")
def test_each_truth_value_takes_a_byte(impl, check):
    """Eight of sixteen are sent, which are eight bytes and not one (AMB-RT-56)."""
    session = gathered(impl, check, dp=2)
    inputs = [Tensor("bool", (16,), bytes([value]) * 16) for value in (0, 1)]
    pointer = filled(session, inputs)
    done(session, "broadcast", pointer, 8, "bool", root=1)
    actual = held(session, pointer, inputs)[0].data
    check.reading("AMB-RT-56", "bool packed in bits", actual == bytes([1] + [0] * 15))
    check.equal(actual.hex(), bytes([1] * 8 + [0] * 8).hex(), "what rank 0 has")
