"""Steps: memory (runtime spec 4.4), and how a suite reaches it."""

from __future__ import annotations

from typing import Any

from tessera_reference.abi.status import Status

from .memory import Block, Place
from .session import OK, Session
from .steps_live import INVALID, MISSING, missing

__all__ = ["EXHAUSTED", "STEPS"]

EXHAUSTED = Status.TESS_ERR_OUT_OF_MEMORY
MOST_BLOCKS = 10
SIZES = (32, 64, 64, 96, 40, 1, 0, 256)
ABSURD = (2**45, 2**52, 2**63, 2**64 - 1)


def full(session: Session) -> bool:
    return len(session.world.blocks) >= MOST_BLOCKS


def malloc(session: Session) -> None:
    mesh, wrong = session.any("mesh"), set()
    if full(session):
        return
    absurd = session.begun and session.chance(6)
    size = session.pick(ABSURD if absurd else SIZES)
    on = session.world.meshes.get(mesh)
    if on is None:
        wrong = {MISSING}
    elif absurd:
        wrong = {EXHAUSTED}
    kinds = {"mesh": "mesh", "bytes": "size"}
    spared = set(session.world.meshes)
    plan = None if on is None else on.context.faults
    if plan is not None and any(
        each["kind"] == "out_of_memory" and each.get("nth", 1) == plan.allocations + 1 for each in plan.told
    ):
        wrong = {EXHAUSTED}
    arguments = {"mesh": mesh, "bytes": size}
    status, pointer = session.call("tessMalloc", arguments, kinds, wrong, outputs=("devPtr",))
    reached = status in (OK, EXHAUSTED)
    if plan is not None and reached:
        plan.allocations += 1
    if status is OK and on is not None:
        session.adopt(Block(pointer, size, on.devices, owner=mesh))
    assert spared == set(session.world.meshes)


def free(session: Session) -> None:
    mine = [each for each in session.world.blocks if each.of_device]
    if not mine:
        return
    block = session.pick(mine)
    mesh, pointer, wrong = block.owner, block.address, set()
    if session.chance(10):
        other = session.any("mesh")
        pointer += session.pick((0, 1, 8))
        mesh = other
        wrong = set() if mesh == block.owner and pointer == block.address else {INVALID}
    kinds = {"mesh": "mesh", "devPtr": "device pointer"}
    status, _ = session.call("tessFree", {"mesh": mesh, "devPtr": pointer}, kinds, wrong)
    drained_by_free(session, status)
    if status is OK:
        session.world.free(block)


def drained_by_free(session: Session, status: Status) -> None:
    """A free lets all work finish, unless it is refused for a handle or for NULL."""
    if status is OK or (status is INVALID and ": pointer is" in session.runtime.tessxLastError()):
        session.world.drain()


def host_alloc(session: Session) -> None:
    if full(session):
        return
    absurd, size = session.chance(4), session.pick(SIZES)
    wrong = set() if session.world.contexts else {MISSING}
    size = session.pick(ABSURD) if absurd else size
    if absurd:
        wrong |= {EXHAUSTED}
    kinds = {"bytes": "size", "kind": "memory kind"}
    status, pointer = session.call("tessHostAlloc", {"bytes": size, "kind": 1}, kinds, wrong, outputs=("hostPtr",))
    if status is OK:
        session.adopt(Block(pointer, size))


def host_memory(session: Session) -> None:
    if full(session):
        return
    size = session.pick(SIZES)
    status, pointer = session.call("tessxHostMemory", {"bytes": size}, {"bytes": "size"}, outputs=("hostPtr",))
    if status is OK:
        session.adopt(Block(pointer, size))


def adopt_host(session: Session) -> None:
    if full(session):
        return
    data, fixed = session.bytes(session.pick(SIZES)), session.chance(30)
    held = data if fixed else bytearray(data)
    status, pointer = session.call("tessxAdoptHost", {"memory": held}, {"memory": "memory"}, outputs=("hostPtr",))
    if status is OK:
        session.adopt(Block(pointer, len(data), read_only=fixed or not data, copies=[bytearray(data)]))


def adopt_device(session: Session) -> None:
    if full(session):
        return
    mesh = session.any("mesh")
    data, fixed = session.bytes(session.pick(SIZES)), session.chance(30)
    held = data if fixed else bytearray(data)
    kinds = {"mesh": "mesh", "memory": "memory"}
    arguments = {"mesh": mesh, "memory": held}
    status, pointer = session.call("tessxAdoptDevice", arguments, kinds, missing(mesh, MISSING), outputs=("devPtr",))
    if status is OK:
        devices = session.world.meshes[mesh].devices
        fixed = fixed or not data
        made = Block(pointer, len(data), devices, mesh, shared=True, read_only=fixed, copies=[bytearray(data)])
        session.adopt(made)


def host_free(session: Session) -> None:
    mine = [each for each in session.world.blocks if not each.of_device]
    if not mine:
        return
    block = session.pick(mine)
    inside = session.chance(10)
    arguments = {"hostPtr": block.address + inside}
    wrong = {INVALID} if inside else set()
    status, _ = session.call("tessHostFree", arguments, {"hostPtr": "host pointer"}, wrong)
    drained_by_free(session, status)
    if status is OK:
        session.world.free(block)


def host_read(session: Session) -> None:
    place = session.place(session.pick((0, 1, 8, 32)), devices=None)
    if place is None:
        return
    kinds = {"hostPtr": "host pointer", "bytes": "size"}
    arguments = {"hostPtr": place.address, "bytes": place.size}
    status, data = session.call("tessxHostRead", arguments, kinds, unspoilt=() if place.size else ("hostPtr",))
    if status is OK and session.world.order.is_quiet(place.block, writes_only=True):
        check(session, place, 0, data)


def check(session: Session, place: Place, copy: int, data: Any) -> None:
    expected, known = place.block.read(copy, place.start, place.size)
    if len(data) != place.size or any(known[i] and data[i] != expected[i] for i in range(place.size)):
        raise session.wrong(f"read {bytes(data).hex()}, not {expected.hex()}")


def host_write(session: Session) -> None:
    size = session.pick((0, 1, 8, 32))
    place = session.place(size, devices=None, quiet=not session.chance(5))
    if place is None:
        return
    data = session.bytes(size)
    wrong = {INVALID} if place.block.read_only else set()
    kinds = {"hostPtr": "host pointer", "data": "data"}
    arguments = {"hostPtr": place.address, "data": data}
    unspoilt = () if size else ("hostPtr",)
    status, _ = session.call("tessxHostWrite", arguments, kinds, wrong, unspoilt=unspoilt)
    if status is not OK:
        return
    place.block.write(0, place.start, data)
    if not session.world.order.is_quiet(place.block):
        session.world.forget()


def of_rank(session: Session, size: int) -> tuple[int, int, Place | None, set[Status]]:
    """A mesh, a rank of it, memory of it, and what is wrong with them."""
    mesh = session.any("mesh")
    on = session.world.meshes.get(mesh)
    if on is None:
        return mesh, 0, None, {MISSING}
    place = session.place(size, devices=on.devices)
    wrong = set() if place is not None and place.block.devices == on.devices else {INVALID}
    return mesh, session.below(len(on.devices)), place, wrong


def peek(session: Session) -> None:
    size = session.pick((0, 1, 8, 32))
    mesh, rank, place, wrong = of_rank(session, size)
    if place is None:
        return
    kinds = {"mesh": "mesh", "rank": "rank", "devPtr": "device pointer", "bytes": "size"}
    arguments = {"mesh": mesh, "rank": rank, "devPtr": place.address, "bytes": size}
    unspoilt = () if size else ("devPtr",)
    status, data = session.call("tessxPeek", arguments, kinds, wrong, unspoilt=unspoilt)
    drained_by_reaching(session, mesh, status)
    if status is OK and session.world.order.is_quiet(place.block, writes_only=True):
        check(session, place, place.block.copy_on(session.world.meshes[mesh].devices[rank]), data)


def drained_by_reaching(session: Session, mesh: int, status: Status) -> None:
    """To reach memory lets the work of the mesh finish, also where it is then refused."""
    text = session.runtime.tessxLastError()
    if status is OK or ": devPtr is" in text or "read-only" in text:
        session.world.drain(session.world.of_mesh(session.world.meshes[mesh]))


def poke(session: Session) -> None:
    size = session.pick((0, 1, 8, 32))
    mesh, rank, place, wrong = of_rank(session, size)
    if place is None:
        return
    data = session.bytes(size)
    if place.block.read_only and not wrong:
        wrong = {INVALID}
    kinds = {"mesh": "mesh", "rank": "rank", "devPtr": "device pointer", "data": "data"}
    arguments = {"mesh": mesh, "rank": rank, "devPtr": place.address, "data": data}
    unspoilt = () if size else ("devPtr",)
    status, _ = session.call("tessxPoke", arguments, kinds, wrong, unspoilt=unspoilt)
    drained_by_reaching(session, mesh, status)
    if status is not OK:
        return
    place.block.write(place.block.copy_on(session.world.meshes[mesh].devices[rank]), place.start, data)
    if not session.world.order.is_quiet(place.block):
        session.world.forget()


STEPS = {
    malloc: 8,
    free: 2,
    host_alloc: 3,
    host_memory: 2,
    adopt_host: 1,
    adopt_device: 1,
    host_free: 2,
    host_read: 2,
    host_write: 5,
    peek: 4,
    poke: 5,
}
