"""Steps: collectives (runtime spec 4.6)."""

from __future__ import annotations

from typing import Any

from tessera_reference.abi.status import Status

from .access_order import Use
from .live_objects import Mesh, Queued
from .queued_work import WHOLE, collective
from .session import OK, Session
from .steps_copies import limit_of, read_only, tidy_place
from .steps_live import INVALID

__all__ = ["SIZES", "STEPS", "asked", "collective_call", "cut_of"]

VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
CORRUPT = Status.TESS_ERR_CACHE_CORRUPT
SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 1, 12: 8, 13: 16}
FUNCTIONS = {
    "all_reduce": ("tessAllReduce", "buffer"),
    "reduce_scatter": ("tessReduceScatter", "inout"),
    "all_gather": ("tessAllGather", "inout"),
    "broadcast": ("tessBroadcast", "buffer"),
}


def asked(session: Session, mesh: Mesh) -> tuple[str, int, int, int, str | None, int, set[Status]]:
    """A collective with its count, dtype, operator, axis and root, and what is wrong with them."""
    name = session.pick(tuple(FUNCTIONS))
    dtype = session.pick((9, 9, 9, 10, 7, 8, 5, 3, 1, 11, 12))
    operator = session.below(3) if name in ("all_reduce", "reduce_scatter") else 0
    axis = None if name == "broadcast" else session.pick(("dp", "tp", "pp", "ep", "dp"))
    count = session.pick((4, 8, 2, 0, 1, 3))
    root = session.below(len(mesh.devices) + 1) if name == "broadcast" else 0
    wrong: set[Status] = set()
    undefined = (operator == 0 and dtype == 11) or (operator and dtype in (12, 13))
    if name in ("all_reduce", "reduce_scatter") and undefined:
        wrong |= {Status.TESS_ERR_UNSUPPORTED}
    if name in ("reduce_scatter", "all_gather") and count % mesh.axes.size_along(axis):
        wrong |= {INVALID}
    if name == "broadcast" and root >= len(mesh.devices):
        wrong |= {INVALID}
    return name, count, dtype, operator, axis, root, wrong


def cut_of(mesh: Mesh) -> Any:
    """The pairs of ranks that are cut off from each other when the collective runs."""
    return lambda: [
        tuple(each["ranks"])
        for each in mesh.context.faults.told
        if each["kind"] == "link_down" and each["mesh"] == mesh.handle
    ]


def collective_call(session: Session, stream: int | None = None) -> None:
    world, stream = session.world, session.any("stream") if stream is None else stream
    on = world.streams.get(stream)
    if on is None:
        return
    mesh = on.mesh if not session.chance(3) else world.meshes[session.any("mesh")]
    name, count, dtype, operator, axis, root, wrong = asked(session, mesh)
    place = tidy_place(session, on, count * SIZES[dtype], step=min(8, SIZES[dtype]))
    if place is None:
        return
    if on.mesh is not mesh:
        wrong |= {INVALID}
    wrong |= read_only([place] if count else [])
    if mesh.context.forbids(mesh.context.governing()):
        wrong |= {VIOLATION}
    must, maybe = limit_of(on, [place.block]) if count else (set(), set())
    if session.corrupted:
        maybe |= {CORRUPT, OK}
    function, argument = FUNCTIONS[name]
    arguments: dict[str, Any] = {"mesh": mesh.handle, argument: place.address, "count": count, "dtype": dtype}
    kinds = {"mesh": "mesh", argument: "device pointer", "count": "size", "dtype": "dtype"}
    if name in ("all_reduce", "reduce_scatter"):
        arguments["op"], kinds["op"] = operator, "operator"
    if name == "broadcast":
        arguments["root"], kinds["root"] = root, "rank"
    else:
        arguments["axis"], kinds["axis"] = axis, "axis"
    arguments["stream"], kinds["stream"] = stream, "stream"
    unspoilt = () if count else (argument,)
    status, _ = session.call(function, arguments, kinds, wrong or must, maybe=maybe, unspoilt=unspoilt)
    if status is not OK:
        return
    places = [place if count else None] * len(mesh.devices)
    work = collective(mesh, name, places, dtype, operator=operator, axis=axis, root=root, cut=cut_of(mesh))
    uses = [Use(place, True)] if count else []
    world.submit(on, Queued(uses, work.apply, "collective", seeds=(mesh.context.seed,)))


STEPS = {collective_call: 12}
assert set(WHOLE) <= set(SIZES)
