"""Reduce-scatter, all-gather and broadcast: what ranks hold (runtime specification, 4.6)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import (
    DTYPE_OPERATORS,
    MESH_AXES,
    MESHES,
    OPERATORS,
    contributions,
    done,
    filled,
    gathered,
    groups,
    held,
    joined,
    judge_reduced,
    mapping_of_ranks,
    share,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS
from tessera_conformance.marks import clause, feature


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
    found = held(session, pointer, inputs)
    for rank, (place, group) in mapping_of_ranks(lists).items():
        shares = [share(inputs[each], place, len(group)) for each in group]
        own = share(found[rank], place, len(group))
        judge_reduced(impl, check, own, shares, op, f"the share of rank {rank}")


@feature("rank-memory")
@clause("RT-04.6-11", "RT-04.6-15")
@pytest.mark.parametrize(("dtype", "op"), DTYPE_OPERATORS.values(), ids=DTYPE_OPERATORS)
def test_reduce_scatter_of_every_dtype(impl, check, dtype, op):
    """On four ranks with two elements each."""
    session = gathered(impl, check, dp=4)
    inputs = contributions(dtype, 8, 4, seed=780)
    pointer = filled(session, inputs)
    done(session, "reduce_scatter", pointer, 8, dtype, op=op, axis="dp")
    found = held(session, pointer, inputs)
    for rank in range(4):
        shares = [share(each, rank, 4) for each in inputs]
        judge_reduced(impl, check, share(found[rank], rank, 4), shares, op, f"the share of rank {rank}")


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
    found = held(session, pointer, inputs)
    for rank, (_, group) in mapping_of_ranks(lists).items():
        wanted = joined([share(inputs[each], place, len(group)) for place, each in enumerate(group)])
        check.bits(found[rank], wanted, f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-12", "RT-04.6-15")
@pytest.mark.parametrize("dtype", DTYPE_IDS)
def test_all_gather_of_every_dtype(impl, check, dtype):
    """Elements are moved bit by bit, whatever they mean, NaN and truth values included."""
    session = gathered(impl, check, dp=3)
    inputs = contributions(dtype, 6, 3, seed=820)
    pointer = filled(session, inputs)
    done(session, "all_gather", pointer, 6, dtype, axis="dp")
    wanted = joined([share(each, place, 3) for place, each in enumerate(inputs)])
    for rank, each in enumerate(held(session, pointer, inputs)):
        check.equal(each.data.hex(), wanted.data.hex(), f"what rank {rank} has")


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
    for rank, each in enumerate(held(session, pointer, inputs)):
        check.bits(each, inputs[root], f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-13")
@pytest.mark.parametrize("root", range(8))
def test_broadcast_from_every_root(impl, check, root):
    """Ranks count row-major over tp, pp, dp and ep (AMB-RT-02)."""
    session = gathered(impl, check, tp=2, dp=2, ep=2)
    inputs = contributions("fp64", 3, 8, seed=860)
    pointer = filled(session, inputs)
    done(session, "broadcast", pointer, 3, "fp64", root=root)
    for rank, each in enumerate(held(session, pointer, inputs)):
        check.bits(each, inputs[root], f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-13", "RT-04.6-15")
@pytest.mark.parametrize("dtype", DTYPE_IDS)
def test_broadcast_of_every_dtype(impl, check, dtype):
    """As many bytes as the dtype takes, and no more."""
    session = gathered(impl, check, dp=2)
    inputs = contributions(dtype, 5, 2, seed=880)
    pointer = filled(session, inputs)
    done(session, "broadcast", pointer, 4, dtype, root=1)
    found = held(session, pointer, inputs)
    size = 4 * len(inputs[0].data) // 5
    check.equal(found[0].data.hex(), (inputs[1].data[:size] + inputs[0].data[size:]).hex(), "what rank 0 has")
    check.equal(found[1].data.hex(), inputs[1].data.hex(), "what the root has")
