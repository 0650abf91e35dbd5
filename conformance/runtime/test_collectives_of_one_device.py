"""Collectives on a mesh of one device, with the functions of the text alone (runtime specification, 4.6).

A group of one rank has what that rank brings: every collective is legal, along every axis, and changes nothing.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import (
    AXES,
    DTYPE_OPERATORS,
    FUNCTIONS,
    GUARD,
    asking,
    contributions,
    done,
    parts_of,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import D2H, DTYPE_IDS, MAX, MIN, SUM, MeshSession, opened
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause
from tessera_conformance.tensors import Tensor

REDUCED = {SUM: "RT-04.6-08", MAX: "RT-04.6-09", MIN: "RT-04.6-10"}
OF_EVERY_DTYPE = [
    pytest.param(dtype, op, marks=clause(REDUCED[op]), id=name) for name, (dtype, op) in DTYPE_OPERATORS.items()
]
CLAUSES = {
    "all_reduce": "RT-04.6-08",
    "reduce_scatter": "RT-04.6-11",
    "all_gather": "RT-04.6-12",
    "broadcast": "RT-04.6-13",
}
EVERY = [pytest.param(function, marks=clause(CLAUSES[function]), id=function) for function in FUNCTIONS]
COUNT = 7


def brought(dtype: str) -> Tensor:
    """Return the elements that the rank contributes."""
    return contributions(dtype, COUNT, 1, seed=970)[0]


def kept(session: MeshSession, collective: str, begun: Tensor, **others: object) -> None:
    """A collective on this tensor succeeds, and leaves it and what stands behind it as they are."""
    pointer = session.upload(begun.data + GUARD)
    done(session, collective, pointer, COUNT, begun.dtype, **others)
    data = session.download(pointer, len(begun.data) + len(GUARD))
    session.check.bits(Tensor(begun.dtype, begun.shape, data[: len(begun.data)]), begun, "what the rank has")
    session.check.equal(data[len(begun.data) :].hex(), GUARD.hex(), "what stands behind the buffer")


@clause("RT-04.6-15")
@pytest.mark.parametrize(("dtype", "op"), OF_EVERY_DTYPE)
def test_an_all_reduce_of_one_is_what_it_brings(impl, check, dtype, op):
    """The result equals the operand, in every dtype, with every operator of it (AMB-RT-59)."""
    kept(opened(impl, check), "all_reduce", brought(dtype), op=op, axis="dp")


@clause("RT-04.6-15")
@pytest.mark.parametrize("dtype", DTYPE_IDS)
@pytest.mark.parametrize("collective", EVERY[2:])
def test_what_one_rank_moves_is_what_it_brings(impl, check, collective, dtype):
    """Gathered or broadcast, of every dtype (AMB-RT-56)."""
    kept(opened(impl, check), collective, brought(dtype), **parts_of(collective))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("collective", EVERY[:3])
def test_every_axis_of_one_device_has_one_rank(impl, check, collective, axis):
    """The whole is the share, whether the axis was named or is absent (AMB-RT-01, AMB-RT-04)."""
    kept(opened(impl, check, tp=1), collective, brought("int32"), **parts_of(collective, axis))


@pytest.mark.parametrize("collective", EVERY)
def test_a_collective_of_one_keeps_its_place_in_its_stream(impl, check, collective):
    """Behind a copy that writes the buffer, and before one that takes it away (AMB-RT-58)."""
    session, begun = opened(impl, check), brought("int32")
    pointer, target = session.upload(bytes(len(begun.data))), session.host(bytes(len(begun.data)))
    session.write(pointer, begun.data)
    done(session, collective, pointer, COUNT, "int32", **parts_of(collective))
    session.copy(target, pointer, len(begun.data), D2H)
    session.write(pointer, bytes(len(begun.data)))
    session.synchronize()
    actual = session.host_bytes(target, len(begun.data))
    check.bits(Tensor("int32", begun.shape, actual), begun, "what was taken away")


@pytest.mark.parametrize("collective", EVERY)
def test_a_collective_of_nothing_changes_nothing(impl, check, collective):
    """A collective of zero elements succeeds and changes nothing (AMB-RT-40)."""
    session = opened(impl, check)
    pointer = session.upload(GUARD)
    answer = asking(session, collective, pointer, 0, "int32", **parts_of(collective))
    check.reading("AMB-RT-40", "INVALID_VALUE everywhere", rejected(answer, "TESS_ERR_INVALID_VALUE"))
    check.returns(answer, "a collective of nothing succeeds")
    check.equal(session.download(pointer, len(GUARD)).hex(), GUARD.hex(), "the memory")
