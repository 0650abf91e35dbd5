"""Steps: policies, profiles, faults, schedules, limits and what is told of all that (runtime spec 4.7, 4.8, 15, 17)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tessera_reference.abi.policy import Descriptor
from tessera_reference.abi.status import Status
from tessera_reference.numerics.trees import Tree
from tessera_reference.runtime.contexts import ModulePolicy

from .model import KERNELS, STRICT, Context, Faults
from .session import OK, Session
from .steps_objects import INVALID, MISSING, missing, synchronized

VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
CORRUPT = Status.TESS_ERR_CACHE_CORRUPT


def settled(session: Session, context: Context) -> None:
    """Settings that change how queued work ends are changed when none is queued."""
    if session.chance(90):
        for stream in session.world.of_context(context):
            synchronized(session, stream.handle)
    if any(stream.busy for stream in session.world.of_context(context)):
        session.world.cloud()


def policy_set(session: Session) -> None:
    context = session.any("context")
    policy: dict[str, Any] = {name: session.below(2) for name in STRICT} if session.chance(50) else dict(STRICT)
    wrong = missing(context, MISSING)
    on = session.world.contexts.get(context)
    if session.chance(10):
        policy[session.pick(list(STRICT))] = session.pick((2, -1, True, None, "1", 1.0))
        wrong |= {INVALID}
    elif on is not None and on.forbid_fast_math and policy["allowFastMath"]:
        wrong |= {VIOLATION}
    kinds = {"ctx": "context", "policy": "policy"}
    status, _ = session.call("tessSetNumericsPolicy", {"ctx": context, "policy": policy}, kinds, wrong)
    if status is OK and on is not None:
        on.policy = policy


def policy_get(session: Session) -> None:
    context = session.any("context")
    arguments, kinds = {"ctx": context}, {"ctx": "context"}
    wrong = missing(context, MISSING)
    status, policy = session.call("tessGetNumericsPolicy", arguments, kinds, wrong, outputs=("policy",))
    if status is OK:
        expected = session.world.contexts[context].governing()
        if {name: getattr(policy, name) for name in STRICT} != expected:
            raise session.wrong(f"the policy is {policy}, not {expected}")


def profiler_start(session: Session) -> None:
    if len(session.world.profilers) >= 2:
        return
    context = session.any("context")
    wrong = missing(context, MISSING)
    status, profiler = session.call(
        "tessProfilerStart", {"ctx": context}, {"ctx": "context"}, wrong, outputs=("profiler",)
    )
    if status is OK:
        session.world.profilers[profiler] = session.world.contexts[context]


def profiler_stop(session: Session) -> None:
    profiler = session.any("profiler")
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/trace.json"
        arguments, kinds = {"profiler": profiler, "path": path}, {"profiler": "profiler", "path": "path"}
        status, _ = session.call("tessProfilerStop", arguments, kinds, missing(profiler))
        if status is OK:
            json.loads(Path(path).read_text())
    world, text = session.world, session.runtime.tessxLastError()
    if status is OK or (profiler and "outJsonPath" in text and "NULL" not in text):
        world.drain(world.of_context(world.profilers[profiler]))
    if status is OK:
        world.end("profiler", profiler)


def faults(session: Session) -> None:
    context = session.any("context")
    on = session.world.contexts.get(context)
    if on is None:
        return
    settled(session, on)
    told = [fault(session) for _ in range(session.below(3))]
    arguments, kinds = {"ctx": context, "faults": told}, {"ctx": "context", "faults": "faults"}
    status, _ = session.call("tessxSetFaults", arguments, kinds)
    if status is OK:
        on.faults = Faults(told)


def fault(session: Session) -> dict[str, Any]:
    kind = session.pick(("kernel_trap", "kernel_slow", "out_of_memory", "link_down", "kernel_hang"))
    if kind == "link_down":
        return {"kind": kind, "mesh": session.any("mesh"), "ranks": [0, 1 + session.below(3)]}
    told: dict[str, Any] = {"kind": kind, "nth": 1 + session.below(3)}
    if kind != "out_of_memory":
        told |= {"kernel": session.pick((*KERNELS, "met"))} if session.chance(50) else {}
        told |= {"rank": session.below(3)} if session.chance(50) else {}
    if kind == "kernel_slow":
        told["nanoseconds"] = 50
    return told


def timeout(session: Session) -> None:
    context = session.any("context")
    on = session.world.contexts.get(context)
    if on is None:
        return
    settled(session, on)
    nanoseconds = session.pick((0, 0, 10**9, 1))
    arguments, kinds = {"ctx": context, "ns": nanoseconds}, {"ctx": "context", "ns": "size"}
    status, _ = session.call("tessxSetTimeout", arguments, kinds)
    if status is OK:
        on.timeout = nanoseconds


def descriptor(session: Session) -> None:
    context, seed = session.any("context"), session.below(5)
    order = Tree("fold") if session.chance(20) else None
    arguments = {"ctx": context, "descriptor": Descriptor(order, seed=seed)}
    kinds = {"ctx": "context", "descriptor": "descriptor"}
    status, _ = session.call("tessxSetDescriptor", arguments, kinds, missing(context, MISSING))
    if status is OK:
        session.world.contexts[context].seed = seed


def descriptors(session: Session) -> None:
    stream = session.any("stream")
    arguments, kinds = {"stream": stream}, {"stream": "stream"}
    status, found = session.call("tessxDescriptors", arguments, kinds, missing(stream), outputs=("descriptors",))
    if status is OK:
        seeds = [each.descriptor.seed for each in found]
        if seeds != session.world.streams[stream].carried:
            raise session.wrong(f"descriptors have the seeds {seeds}, not {session.world.streams[stream].carried}")


def module_policy(session: Session) -> None:
    context = session.any("context")
    policy = ModulePolicy(session.chance(15), session.chance(15))
    arguments, kinds = {"ctx": context, "policy": policy}, {"ctx": "context", "policy": "module policy"}
    status, _ = session.call("tessxSetModulePolicy", arguments, kinds, missing(context, MISSING))
    if status is OK:
        on = session.world.contexts[context]
        on.forbid_fast_math, on.enforce_determinism = policy.forbid_fast_math, policy.enforce_determinism


def stream_limit(session: Session) -> None:
    stream = session.any("stream")
    limit = session.pick((0, 0, 64, 128, 2**64 - 1))
    kinds = {"stream": "stream", "bytes": "size"}
    status, _ = session.call("tessxSetStreamLimit", {"stream": stream, "bytes": limit}, kinds, missing(stream))
    if status is OK:
        session.world.streams[stream].limit = limit


def schedule(session: Session) -> None:
    wrong = {INVALID} if session.world.streams else set()
    policy = session.pick(("fifo", "seeded", "replay"))
    choices = [session.below(3) for _ in range(4)]
    untimed = session.chance(50)
    arguments = {"policy": policy, "seed": session.below(100), "choices": choices, "untimed": untimed}
    session.call("tessxSetSchedule", arguments, {"policy": "schedule", "seed": "size"}, wrong)


def resident(session: Session) -> None:
    mesh = session.any("mesh")
    arguments, kinds = {"mesh": mesh}, {"mesh": "mesh"}
    status, names = session.call("tessxResident", arguments, kinds, missing(mesh, MISSING), outputs=("kernels",))
    if status is OK:
        on = session.world.meshes[mesh]
        if names and not any(each.busy for each in session.world.of_mesh(on)):
            raise session.wrong(f"kernels {names} are resident on a mesh that has no work")


def settings(session: Session) -> None:
    context = session.any("context")
    arguments, kinds = {"ctx": context}, {"ctx": "context"}
    status, found = session.call("tessxSettings", arguments, kinds, missing(context, MISSING), outputs=("settings",))
    if status is OK and found.numerics != session.world.contexts[context].environment.get("TESS_NUMERICS"):
        raise session.wrong(f"the settings are {found}")


def plan(session: Session) -> None:
    mesh = session.any("mesh")
    name = session.pick(("all_reduce", "reduce_scatter", "all_gather", "broadcast"))
    arguments = {"mesh": mesh, "collective": name, "count": 24, "dtype": 1 + session.below(13), "axis": "dp"}
    kinds = {"mesh": "mesh", "collective": "collective", "count": "size", "dtype": "dtype", "axis": "axis"}
    maybe = {CORRUPT, OK} if session.corrupted and mesh else set()
    wrong = missing(mesh, MISSING)
    unspoilt = ("axis",) if name == "broadcast" else ()
    on = session.world.meshes.get(mesh)
    if on is not None and name in ("reduce_scatter", "all_gather") and 24 % on.axes.size_along("dp"):
        wrong = {INVALID}
    status, found = session.call(
        "tessxCollectivePlan", arguments, kinds, wrong, maybe=maybe, outputs=("plan",), unspoilt=unspoilt
    )
    if status is OK and found.source not in ("hint", "autotuner", "default"):
        raise session.wrong(f"the plan is {found}")


def algorithm(session: Session) -> None:
    context = session.any("context")
    name = session.pick(("all_reduce", "reduce_scatter", "all_gather", "broadcast"))
    arguments = {"ctx": context, "collective": name}
    arguments |= {"algorithm": session.pick((None, "ring", "tree", "hierarchical"))}
    arguments |= {"source": session.pick(("hint", "autotuner"))}
    kinds = {"ctx": "context", "collective": "collective", "algorithm": "algorithm", "source": "source"}
    session.call("tessxSetAlgorithm", arguments, kinds, missing(context, MISSING))


def identity(session: Session) -> None:
    session.runtime.tessxSetIdentity(driver=f"driver-{session.below(2)}")


def told(session: Session) -> None:
    """Call the functions without a status."""
    lines, text = session.runtime.tessxLog(), session.runtime.tessxLastError()
    if not isinstance(text, str) or any(each.level not in ("info", "debug", "trace") for each in lines):
        raise session.wrong(f"the log is {lines}")


def cache_entries(session: Session) -> None:
    maybe = {CORRUPT, OK} if session.corrupted else set()
    session.call("tessxCacheEntries", {}, {}, maybe=maybe, outputs=("entries",))


def cache_damaged(session: Session) -> None:
    """A file of the cache is altered or cut."""
    if session.scratch is None or not session.chance(40):
        return
    files = sorted(session.scratch.glob("cache*/*.tesscache"))
    if not files:
        return
    path = session.pick(files)
    data = bytearray(path.read_bytes())
    if session.chance(50):
        data[session.below(len(data))] ^= 1 + session.below(255)
    else:
        del data[session.below(len(data)) :]
    path.write_bytes(data)
    session.corrupted = True


STEPS = {
    policy_set: 2,
    policy_get: 1,
    profiler_start: 3,
    profiler_stop: 1,
    faults: 3,
    timeout: 1,
    descriptor: 1,
    descriptors: 2,
    module_policy: 1,
    stream_limit: 1,
    schedule: 1,
    resident: 1,
    settings: 1,
    plan: 2,
    algorithm: 1,
    identity: 1,
    told: 1,
    cache_entries: 1,
    cache_damaged: 2,
}
