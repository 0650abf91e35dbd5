"""Steps: collectives that each rank issues by itself (AMB-RT-41)."""

from __future__ import annotations

from typing import Any

from tessera_reference.abi.policy import Descriptor, NumericsPolicy
from tessera_reference.abi.status import Status

from .access_order import Use
from .live_objects import ASYNCHRONOUS, STRICT, Mesh, Queued, Stream
from .memory import Place
from .queued_work import collective
from .session import FAST, OK, Session
from .steps_collectives import SIZES, asked, cut_of
from .steps_copies import tidy_place
from .steps_live import INVALID

__all__ = ["STEPS"]

VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
MISMATCH = Status.TESS_ERR_COLLECTIVE_MISMATCH
CORRUPT = Status.TESS_ERR_CACHE_CORRUPT


def issue_together(session: Session) -> None:
    """Each rank of a stream issues a collective by itself; one may ask for something else, or stay away."""
    world, stream = session.world, session.any("stream")
    on = world.streams.get(stream)
    if on is None:
        return
    mesh = on.mesh
    name, count, dtype, operator, axis, root, wrong = asked(session, mesh)
    if wrong or not count or on.limit:
        return
    places = [tidy_place(session, on, count * SIZES[dtype], step=min(8, SIZES[dtype])) for _ in mesh.devices]
    if any(each is None or each.block.read_only for each in places):
        return
    ranks = list(range(len(mesh.devices)))
    ranks = ranks[session.below(len(ranks)) :] + ranks[: session.below(len(ranks))]
    ranks = list(dict.fromkeys([*ranks, *range(len(mesh.devices))]))
    odd = session.pick(ranks) if session.chance(20) else None
    ends: set[Status] = set()
    astray = False
    absent = 1 if len(ranks) > 1 and session.chance(10) else 0
    forbidden = mesh.context.forbids(mesh.context.governing())
    for rank in ranks[: len(ranks) - absent]:
        named, difference = issued(session, mesh, name, operator, axis, root, rank == odd)
        ends |= difference
        astray |= named["axis"] != axis
        pointer = places[rank].address  # type: ignore[union-attr]
        arguments = {"mesh": mesh.handle, "rank": rank, "collective": name, "buffer": pointer, "count": count}
        arguments |= {"dtype": dtype, "stream": stream}
        maybe = {CORRUPT, OK} if session.corrupted else set()
        status, _ = session.judged("tessxIssue", arguments, maybe or {OK}, named=named)
        if status is not OK:
            world.cloud()
            return
        on.carried.append(named["descriptor"].seed if named["descriptor"] is not None else mesh.context.seed)
    del forbidden  # what single ranks bring is judged when they meet
    queue_issued(
        session,
        on,
        name,
        [each for each in places if each is not None],
        dtype,
        operator,
        axis,
        root,
        ranks,
        ends,
        absent,
        odd,
        astray,
    )


def issued(
    session: Session, mesh: Mesh, name: str, operator: int, axis: str | None, root: int, odd: bool
) -> tuple[dict[str, Any], set[Status]]:
    """The parameters of one rank, and how the rendezvous ends for it."""
    named: dict[str, Any] = {"op": operator, "axis": axis, "root": root, "algorithm": "ring"}
    named |= {"descriptor": Descriptor(seed=3), "policy": NumericsPolicy(**STRICT)}
    if name not in ("all_reduce", "reduce_scatter"):
        named["op"] = None
    if name != "broadcast":
        named["root"] = None
    if not odd or len(mesh.devices) == 1:
        return named, set()
    what = session.pick(("algorithm", "descriptor", "policy", "axis" if axis else "algorithm"))
    if what == "descriptor":
        return named | {"descriptor": Descriptor(seed=4)}, {VIOLATION}
    if what == "policy":
        return named | {"policy": FAST}, {VIOLATION}
    if what == "axis" and name == "all_reduce":
        other = "ep" if axis != "ep" else "tp"
        return named | {"axis": other}, {MISMATCH}
    return named | {"algorithm": "tree"}, {MISMATCH}


def queue_issued(
    session: Session,
    on: Stream,
    name: str,
    places: list[Place],
    dtype: int,
    operator: int,
    axis: str | None,
    root: int,
    ranks: list[int],
    ends: set[Status],
    absent: int,
    odd: int | None,
    astray: bool,
) -> None:
    """Queue what the ranks issued; `astray` is a rank along another axis, which may stop several groups or none."""
    world, mesh = session.world, on.mesh
    uses = [Use(places[rank], True, rank) for rank in ranks[: len(ranks) - absent]]
    groups = [tuple(range(len(mesh.devices)))] if axis is None else list(mesh.axes.groups(axis))
    disagreeing = {group: status for status in ends for group in groups if odd in group and len(group) > 1}
    cut = cut_of(mesh)
    settings = {"operator": operator, "axis": axis, "root": root, "cut": cut, "disagreeing": disagreeing}
    work = collective(mesh, name, places, dtype, **settings)  # type: ignore[arg-type]

    def apply() -> Any:
        if absent or astray or (disagreeing and cut()):  # which fails first is not known
            world.cloud()
            return []
        return work.apply()

    capture, on.capture = on.capture, None
    if any(not world.order.is_quiet(use.place.block) for use in uses):
        world.forget()
    first, *others = uses
    world.enqueue(on, Queued([first], apply, "collective"))
    for use in others:
        world.enqueue(on, Queued([use], list, "collective"))
    on.capture = capture
    if astray or (disagreeing and cut()):
        on.maybe |= ASYNCHRONOUS
    if absent:
        on.maybe |= ASYNCHRONOUS
        complete(session, on, name, ranks[-1], places, dtype, operator, axis, root)


def complete(
    session: Session,
    on: Stream,
    name: str,
    rank: int,
    places: list[Place],
    dtype: int,
    operator: int,
    axis: str | None,
    root: int,
) -> None:
    """The last rank issues too, whatever became of the others: the counts of the ranks agree again."""
    named, _ = issued(session, on.mesh, name, operator, axis, root, False)
    if session.chance(70):
        alone = axis is not None and any(group == (rank,) for group in on.mesh.axes.groups(axis))
        allowed = [MISMATCH, *ASYNCHRONOUS, *([OK] if alone else [])]  # nobody waits for a rank that meets none
        session.judged("tessStreamSynchronize", {"stream": on.handle}, allowed)
        on.errors, on.maybe = [], set()
        session.world.drain([on])
        session.world.cloud()
    arguments: dict[str, Any] = {"mesh": on.mesh.handle, "rank": rank, "collective": name}
    arguments |= {"buffer": places[rank].address, "count": places[rank].size // SIZES[dtype], "dtype": dtype}
    status, _ = session.judged("tessxIssue", arguments | {"stream": on.handle}, [OK], named=named)
    assert status is OK
    on.carried.append(3)
    capture, on.capture = on.capture, None
    session.world.enqueue(on, Queued([Use(places[rank], True, rank)], list, "collective"))
    on.capture = capture
    session.world.cloud()


def issue_refused(session: Session) -> None:
    """One rank's collective with an argument that cannot be."""
    world, stream = session.world, session.any("stream")
    on = world.streams.get(stream)
    if on is None:
        return
    place = session.place(32, devices=on.mesh.devices, step=4)
    if place is None or place.block.read_only:
        return
    arguments = {"mesh": on.mesh.handle, "rank": 0, "collective": "all_reduce", "buffer": place.address, "count": 8}
    arguments |= {"dtype": 9, "stream": stream}
    kinds = {"mesh": "mesh", "rank": "rank", "collective": "collective", "buffer": "device pointer", "count": "size"}
    kinds |= {"dtype": "dtype", "stream": "stream"}
    named: dict[str, Any] = {"op": 0, "axis": "dp"}
    if session.chance(40):
        wrong = session.pick(
            (
                ("op", 3),
                ("axis", "zz"),
                ("algorithm", "star"),
                ("descriptor", 5),
                ("policy", {}),
                ("axis", None),
                ("op", None),
            )
        )
        named |= dict((wrong,))
        session.judged("tessxIssue", arguments, {INVALID}, named=named)
        return
    name = session.pick(list(kinds))
    arguments[name], statuses = session._spoilt(kinds[name])
    session.judged("tessxIssue", arguments, statuses | ({CORRUPT} if session.corrupted else set()), named=named)


STEPS = {issue_together: 4, issue_refused: 2}
