"""Steps: copies, and which memory work of a stream mostly takes (runtime spec 4.4)."""

from __future__ import annotations

from tessera_reference.abi.status import Status

from .live_objects import Stream
from .memory import Block, Place
from .queued_work import copy
from .session import OK, Session
from .steps_live import INVALID
from .steps_memory import EXHAUSTED

__all__ = ["STEPS", "limit_of", "memcpy", "move", "ordered", "read_only", "tidy_place"]


def limit_of(stream: Stream, blocks: list[Block]) -> tuple[set[Status], set[Status]]:
    """What a memory limit must answer, or may, to work that refers to these blocks (AMB-RT-87)."""
    own = sum(each.size for each in dict.fromkeys(blocks) if each.of_device)
    most = sum(each.size for each in dict.fromkeys([*stream.queued, *blocks]) if each.of_device)
    if not stream.limit or most <= stream.limit or stream.capture is not None:
        return set(), set()
    return ({EXHAUSTED}, set()) if own > stream.limit else (set(), {EXHAUSTED, OK})


def ordered(session: Session, stream: Stream, place: Place | None) -> bool:
    """Nothing that is queued elsewhere, unknown to the stream, uses the block."""
    clock = session.world.order.clock(stream.handle)
    return place is not None and not any(
        each.use.place.block is place.block and each.time > clock.get(each.stream, 0)
        for each in session.world.order.noted
    )


def tidy_place(session: Session, stream: Stream, size: int, *, host: bool = False, step: int = 1) -> Place | None:
    """A place for work of a stream: mostly one that no other stream uses."""
    devices = None if host else stream.mesh.devices
    place = session.place(size, devices=devices, step=step)
    for _ in range(3):
        if ordered(session, stream, place) or session.chance(2):
            break
        place = session.place(size, devices=devices, step=step)
    else:
        return None
    return place


def read_only(written: list[Place]) -> set[Status]:
    """What is answered where memory that must not be written would be."""
    return {INVALID} if any(each.block.read_only for each in written) else set()


def memcpy(session: Session, stream: int | None = None) -> None:
    on = session.world.streams.get(session.any("stream") if stream is None else stream)
    if on is None:
        return
    direction, size = session.below(3), session.pick((1, 8, 32, 32, 0))
    target = tidy_place(session, on, size, host=direction == 1)
    source = tidy_place(session, on, size, host=direction == 0)
    if target is not None and source is not None:
        move(session, on, direction, target, source)


def move(session: Session, on: Stream, direction: int, target: Place, source: Place) -> None:
    """Queue a copy."""
    size = source.size
    wrong: set[Status] = set()
    maybe: set[Status] = set()
    if size:
        wrong, maybe = limit_of(on, [target.block, source.block])
        wrong = read_only([target]) or wrong
    device, host = "device pointer", "host pointer"
    kinds = {"dst": host if direction == 1 else device, "src": host if direction == 0 else device}
    kinds |= {"bytes": "size", "kind": "copy kind", "stream": "stream"}
    arguments = {"dst": target.address, "src": source.address, "bytes": size, "kind": direction, "stream": on.handle}
    unspoilt = () if size else ("dst", "src")
    status, _ = session.call("tessMemcpyAsync", arguments, kinds, wrong, maybe=maybe, unspoilt=unspoilt)
    if status is OK and size:
        session.world.submit(on, copy(on.mesh, direction, target, source))


STEPS = {memcpy: 16}
