"""Meshes: devices along four axes (runtime specification, 2, 4.2 and 18)."""

from __future__ import annotations

from math import prod

import pytest

from tessera_conformance.chapters.runtime.kit.calls import HANDLES, legal_call
from tessera_conformance.chapters.runtime.kit.encoding import elements
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    MeshSession,
    axes_of,
    devices,
    meshed,
    opened,
    presume_devices,
    refused,
)
from tessera_conformance.chapters.runtime.kit.readings import (
    ended_while_busy,
    ended_with_contents,
    has_arrived,
    rejected,
)
from tessera_conformance.marks import clause, feature

ONES = elements("int32", *[1] * COUNT)
NAMES = ("tp", "pp", "dp", "ep")
SHAPES = {
    "one device": (1, 1, 1, 1),
    "tp": (4, 1, 1, 1),
    "pp": (0, 4, 0, 0),
    "dp": (0, 0, 4, 0),
    "ep": (1, 1, 1, 4),
    "sample": (2, 1, 4, 0),
    "cube": (2, 2, 2, 1),
    "three and two": (3, 0, 0, 2),
    "outer and inner": (2, 0, 1, 3),
}
"""Sizes of tp, pp, dp and ep; 0 is an absent axis, and 1 an axis of one rank (AMB-RT-01, AMB-RT-03)."""


def shaped(impl, check, shape: tuple[int, ...]) -> MeshSession:
    """A session on a mesh of this shape."""
    return opened(impl, check, prod(max(size, 1) for size in shape), **dict(zip(NAMES, shape, strict=True)))


@clause("RT-02-07", "RT-04.2-04")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_each_axis_has_the_ranks_that_it_was_given(impl, check, shape):
    """The sum of ones along an axis is the number of ranks along it, and an axis of one rank changes nothing."""
    session = shaped(impl, check, shape)
    for name, size in zip(NAMES, shape, strict=True):
        pointer = session.upload(ONES)
        answer = session.reducing(pointer, axis=name)
        absent = size == 0 and rejected(answer, "TESS_ERR_INVALID_VALUE")
        check.reading("AMB-RT-03", "an absent axis is an error", absent)
        check.returns(answer, "tessAllReduce succeeds")
        check.equal(session.integers(pointer), [max(size, 1)] * COUNT, f"the sum of ones along {name}")


@feature("rank-memory")
@clause("RT-02-07", "RT-04.2-04")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_ranks_count_row_major_over_the_axes(impl, check, shape):
    """The ranks of a group along an axis agree in the three other coordinates; ep counts fastest (AMB-RT-02)."""
    session = shaped(impl, check, shape)
    sizes = [max(size, 1) for size in shape]
    strides = [1] * len(sizes)
    for place in reversed(range(len(sizes) - 1)):
        strides[place] = strides[place + 1] * sizes[place + 1]
    for name, size, stride in zip(NAMES, sizes, strides, strict=True):
        pointer = session.allocate(BYTES)
        for rank in range(session.ranks):
            session.poke(rank, pointer, elements("int32", *[1 << rank] * COUNT))
        session.all_reduce(pointer, axis=name)
        for rank in range(session.ranks):
            first = rank - rank // stride % size * stride
            members = sum(1 << first + stride * place for place in range(size))
            actual = session.integers_of_rank(rank, pointer)
            check.equal(actual, [members] * COUNT, f"the group of rank {rank} along {name}, as bits")


@clause("RT-18-02", "RT-04.2-04")
def test_the_mesh_of_the_sample_can_be_created(impl, check):
    """Eight devices, tp = 2, pp = 1, dp = 4 and ep = 0 (AMB-RT-01)."""
    session = opened(impl, check, ranks=8, tp=2, pp=1, dp=4, ep=0)
    check.true(session.mesh != 0, "the mesh is not NULL", session.mesh)
    check.equal(session.integers(session.upload(ONES)), [1] * COUNT, "what was copied there and back")


@clause("RT-18-02")
@pytest.mark.parametrize("ep", [0, 1])
@pytest.mark.parametrize("pp", [0, 1])
def test_an_absent_axis_of_the_sample_counts_as_one(impl, check, pp, ep):
    """0 and 1 mean the same, and 2 is one device too many (AMB-RT-01)."""
    session = opened(impl, check, ranks=8, tp=2, pp=pp, dp=4, ep=ep)
    arguments = {"context": session.context, "deviceIds": devices(impl, check, 8)}
    answer = session.attempt("tessMeshCreate", axes=axes_of(tp=2, pp=pp, dp=4, ep=2), **arguments)
    refused(check, answer, "TESS_ERR_INVALID_VALUE")


@clause("RT-04.2-04")
@pytest.mark.parametrize("function", [name for name, handles in HANDLES.items() if "mesh" in handles])
def test_a_new_mesh_is_accepted(impl, check, function):
    """By every call that takes a mesh, and its handle is not NULL."""
    session = opened(impl, check)
    check.true(session.mesh != 0, "the mesh is not NULL", session.mesh)
    session.ask(function, **legal_call(session, function))


@clause("RT-04.2-04")
@pytest.mark.parametrize("ranks", [1, 2])
def test_only_as_many_ids_are_read_as_there_are_devices(impl, check, ranks):
    """nDevices says how long the array is; what stands behind is not looked at."""
    session = opened(impl, check)
    known = devices(impl, check, ranks)
    beyond = [*known, known[0], max(known) + 999]
    given = {"context": session.context, "deviceIds": beyond, "nDevices": ranks}
    created = session.attempt("tessMeshCreate", axes=axes_of(dp=ranks), **given)
    presume_devices(impl, check, ranks, created)
    mesh = check.returns(created, "tessMeshCreate succeeds")["mesh"]
    pointer = session.ask("tessMalloc", mesh=mesh, bytes=BYTES)["devPtr"]
    session.ask("tessFree", mesh=mesh, devPtr=pointer)


@clause("RT-04.2-04")
@pytest.mark.parametrize("choose", [lambda ids: ids[::-1], lambda ids: ids[3:], lambda ids: [ids[5], ids[1]]])
def test_any_devices_in_any_order_make_a_mesh(impl, check, choose):
    """The ids need not ascend, nor begin with the first."""
    ids = choose(devices(impl, check, 8))
    context = check.returns(impl.runtime.tessInit())["context"]
    session = meshed(impl, check, context, ids)
    pointer = session.upload(ONES)
    session.all_reduce(pointer, axis="dp")
    check.equal(session.integers(pointer), [len(ids)] * COUNT, "the sum of ones along dp")


@clause("RT-04.2-04")
def test_meshes_may_share_devices(impl, check):
    """Two meshes over the same device have memory and streams of their own (AMB-RT-51)."""
    session = opened(impl, check)
    other = meshed(impl, check, session.context, devices(impl, check, 1), tp=1)
    check.true(session.mesh != other.mesh, "two meshes have two handles")
    twos = elements("int32", *[2] * COUNT)
    first, second = session.upload(ONES), other.upload(twos)
    check.equal(session.download(first, BYTES).hex(), ONES.hex(), "the memory of the one")
    check.equal(other.download(second, BYTES).hex(), twos.hex(), "the memory of the other")


@clause("RT-04.2-05")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_live_mesh_can_be_destroyed(impl, check, shape):
    """After its stream, and then a mesh over the same devices can be created anew."""
    session = shaped(impl, check, shape)
    session.ask("tessStreamDestroy", stream=session.stream)
    check.equal(session.ask("tessMeshDestroy", mesh=session.mesh), {}, "no outputs")
    shaped(impl, check, shape)


@clause("RT-04.2-05")
@pytest.mark.parametrize(("ranks", "others"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_destroying_a_mesh_leaves_others_alone(impl, check, ranks, others):
    """Also one over the same devices, or some of them, or more, with its memory and its stream (AMB-RT-51)."""
    session = opened(impl, check, ranks)
    other = meshed(impl, check, session.context, devices(impl, check, others), dp=others)
    data = elements("int32", *range(COUNT))
    pointer = other.upload(data)
    ended_with_contents(session, "tessMeshDestroy", mesh=session.mesh)
    check.equal(other.download(pointer, BYTES).hex(), data.hex(), "the memory of the other")


@clause("RT-04.2-05")
def test_destroying_a_mesh_lets_queued_work_finish(impl, check):
    """A copy on the device and one back to the host are done when tessMeshDestroy returns (AMB-RT-50)."""
    session = opened(impl, check)
    data = elements("int32", *[43] * COUNT)
    target = session.round_trip(data)
    ended_while_busy(session, "tessMeshDestroy", mesh=session.mesh)
    has_arrived(session, target, data)
