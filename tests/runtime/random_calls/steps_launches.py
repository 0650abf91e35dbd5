"""Steps: launches (runtime spec 4.5, 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tessera_reference.abi.status import Status
from tessera_reference.runtime.launches import LaunchConfig

from .live_objects import Capture, Context, Mesh, Module, Queued, Stream
from .memory import Place
from .queued_work import buffer, kernel
from .session import OK, Session
from .steps_collectives import cut_of
from .steps_copies import limit_of, read_only, tidy_place
from .steps_live import INVALID

__all__ = ["CAPTURE", "STEPS", "launch_problems", "queue_launch"]

VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
ARCH = Status.TESS_ERR_ARCH_MISMATCH
CORRUPT = Status.TESS_ERR_CACHE_CORRUPT
DETERMINISTIC, CAPTURE, PERSISTENT, LOW_LATENCY = 1, 2, 4, 8


def befalls(session: Session, context: Context, name: str) -> list[dict[str, Any]]:
    """Count a launch; the faults that it meets (AMB-RT-81)."""
    plan = context.faults
    plan.launches[name] = count = plan.launches.get(name, 0) + 1
    return [
        dict(each)
        for each in plan.told
        if each["kind"].startswith("kernel_") and each.get("nth", 1) == count and each.get("kernel") in (None, name)
    ]


def launch(session: Session) -> None:
    world, handle = session.world, session.any("kernel")
    stream = session.any("stream")
    on = world.streams.get(stream)
    if on is None or not handle:
        return
    module, name = world.kernels[handle]
    mesh = on.mesh if not session.chance(4) else world.meshes[session.any("mesh")]
    flags = session.pick((0, 0, 0, 0, DETERMINISTIC, LOW_LATENCY, PERSISTENT, CAPTURE))
    scalar = session.pick((1, 2, 3, 4, 8, 0) if name != "any" else (8, 3, 1))
    size = scalar * 4 if name == "any" else 32
    count = {"nothing": 0, "copy": 2}.get(name, 1)
    tensors = [tidy_place(session, on, size, step=4) for _ in range(count)]
    if any(each is None for each in tensors):
        return
    places = [each for each in tensors if each is not None]
    pointers = [each.address for each in places]
    wrong = launch_problems(mesh, on, module, flags) | read_only(places[-1:])
    if pointers and session.chance(4):
        pointers[-1] = session.pick((0, pointers[-1] + 2, 2**63, 1, places[-1].block.address + places[-1].block.size))
        wrong |= {INVALID}
    must, maybe = (set(), set()) if flags & CAPTURE else queue_limit(on, [each.block for each in places])
    waiting = sum(each.persistent for each in world.streams.values())
    if flags & PERSISTENT and waiting >= 3:
        maybe |= {Status.TESS_ERR_UNSUPPORTED, OK}
    if session.corrupted:
        maybe |= {CORRUPT, OK}
    data = buffer(name, scalar, pointers)
    config = LaunchConfig(session.pick(((1, 1, 1), (4, 2, 1))), session.pick(((0, 0, 0), (32, 1, 1))), 0, flags)
    kinds = {"kernel": "kernel", "mesh": "mesh", "cfg": "config", "argBuffer": "argument bytes", "argSize": "size"}
    kinds |= {"stream": "stream"}
    given: Any = data + bytes(session.pick((0, 0, 8)))
    arguments = {
        "kernel": handle,
        "mesh": mesh.handle,
        "cfg": config,
        "argBuffer": given,
        "argSize": len(given),
        "stream": stream,
    }
    unspoilt = () if data else ("argBuffer",)
    status, _ = session.call("tessLaunch", arguments, kinds, wrong or must, maybe=maybe, unspoilt=unspoilt)
    if status is not OK:
        return
    faults = [] if flags & CAPTURE else befalls(session, mesh.context, name)
    queue_launch(session, on, name, scalar, places, flags, faults)


def queue_limit(stream: Stream, blocks: list[Any]) -> tuple[set[Status], set[Status]]:
    """As `limit_of`, for a launch that is not captured even where its stream is."""
    capture, stream.capture = stream.capture, None
    try:
        return limit_of(stream, blocks)
    finally:
        stream.capture = capture


def launch_problems(mesh: Mesh, on: Stream, module: Module, flags: int) -> set[Status]:
    """What of a launch cannot be, its pointers aside."""
    wrong: set[Status] = set()
    if on.mesh is not mesh or module.context is not mesh.context:
        wrong |= {INVALID}
    if not mesh.targets <= module.targets:
        wrong |= {ARCH}
    if mesh.context.forbids(mesh.context.governing(module.policy, bool(flags & DETERMINISTIC))):
        wrong |= {VIOLATION}
    return wrong


def queue_launch(
    session: Session,
    on: Stream,
    name: str,
    scalar: int,
    places: list[Place],
    flags: int,
    faults: list[dict[str, Any]],
) -> None:
    seeds = (on.mesh.context.seed,)
    work = replace(launch_work(session, on.mesh, name, scalar, places, faults), seeds=seeds)
    if flags & CAPTURE:
        mesh = on.mesh
        work = replace(
            work,
            again=lambda: launch_work(session, mesh, name, scalar, places, befalls(session, mesh.context, name)),
        )
        if on.capture is None:
            on.capture = Capture(before={on.handle: frozenset()})
        session.world.submit(on, work)
        return
    if flags & PERSISTENT:
        on.persistent += 1
    session.world.enqueue(on, work)


def launch_work(
    session: Session, mesh: Mesh, name: str, scalar: int, places: list[Place], faults: list[dict[str, Any]]
) -> Queued:
    """A launch that meets these faults."""
    bad = [each for each in faults if each["kind"] in ("kernel_trap", "kernel_hang")]
    trapped = [rank for rank in range(len(mesh.devices)) if any(each.get("rank") in (None, rank) for each in bad)]
    work = kernel(mesh, name, scalar, places, trapped, cut_of(mesh))
    hangs = any(each["kind"] == "kernel_hang" for each in bad) and bool(trapped)
    return clouded(session, work) if hangs or (name == "met" and trapped) else work


def clouded(session: Session, work: Queued) -> Queued:
    """Work that keeps others waiting: where there is a timeout, or ranks that meet, they may fail with it."""

    def apply() -> Any:
        errors = work.apply()
        session.world.cloud()
        return errors

    return replace(work, apply=apply)


STEPS = {launch: 24}
