"""The host API as an object, with its extensions for tests, planning and explanations (runtime spec 4, 8.2, 13, 17)."""

# ruff: noqa: N802, N803, the names are those of the C API
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..abi.cache import CacheEntry
from ..abi.fatbin.metadata import COLLECTIVES
from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import CollOp
from ..collectives.selection import ALGORITHMS, Selection
from ..mesh.engine import Choices, FirstCome, Replayed, Seeded
from ..mesh.memory import Finding, byte_view
from ..numerics.formats import DTYPES, shown
from . import calls  # noqa: F401, registers its functions
from .collectives import FUNCTIONS as CALLS
from .collectives import Issued, collective_work, read_call
from .contexts import Environment, ModulePolicy, read_faults
from .machine import SIZE, integer, invalid, named, of_type, reported_by
from .state import FUNCTIONS, Line, State, entry, infallible, submit
from .streams import Carried

# Extensions for tests: host memory, copies of ranks, findings, faults, settings (AMB-RT-05, -67, -79 to -88).


POLICIES: Mapping[str, Callable[[int, Sequence[int]], Choices]] = {
    "fifo": lambda seed, record: FirstCome(),
    "seeded": lambda seed, record: Seeded(seed),
    "replay": lambda seed, record: Replayed(record),
}


@entry("hostPtr")
def tessxHostMemory(state: State, bytes: int) -> int:
    """Allocate ordinary host memory, which is not pinned."""
    return state.machine.memory.allocate_host(integer("bytes", bytes, SIZE), pinned=False)


@entry("data")
def tessxHostRead(state: State, hostPtr: Any, bytes: int) -> Any:
    """Return bytes of host memory."""
    region = state.machine.memory.find(hostPtr, integer("bytes", bytes, SIZE), "tessxHostRead", "hostPtr", "host")
    return state.machine.memory.peek(region, 0, bytes)


@entry()
def tessxHostWrite(state: State, hostPtr: Any, data: bytes) -> None:
    """Write bytes into host memory."""
    view = byte_view(data, "data")
    region = state.machine.memory.find(hostPtr, len(view), "tessxHostWrite", "hostPtr", "host")
    state.machine.memory.write(region, 0, view)


@entry("hostPtr")
def tessxAdoptHost(state: State, memory: Any) -> int:
    """Return an address for host memory of the caller, which the runtime uses in place."""
    return state.machine.memory.adopt_host(memory)


@entry("devPtr")
def tessxAdoptDevice(state: State, mesh: Any, memory: Any) -> int:
    """Return a device pointer for memory of the caller, which all ranks of a mesh share in place."""
    on = state.mesh(mesh)
    return state.machine.memory.adopt_device(on.devices, memory, owner=mesh)


@entry("data")
def tessxPeek(state: State, mesh: Any, rank: int, devPtr: Any, bytes: int) -> Any:
    """Return bytes of one rank's copy of device memory, once all work of the mesh is done (AMB-RT-79)."""
    region = _of_rank(state, "tessxPeek", mesh, rank, devPtr, integer("bytes", bytes, SIZE))
    return state.machine.memory.peek(region, rank, bytes)


@entry()
def tessxPoke(state: State, mesh: Any, rank: int, devPtr: Any, data: bytes) -> None:
    """Write bytes into one rank's copy of device memory, once all work of the mesh is done (AMB-RT-79)."""
    view = byte_view(data, "data")
    region = _of_rank(state, "tessxPoke", mesh, rank, devPtr, len(view))
    state.machine.memory.write(region, rank, view)


def _of_rank(state: State, function: str, mesh: Any, rank: int, pointer: Any, size: int) -> Any:
    on = state.mesh(mesh)
    integer("rank", rank, (0, len(on.devices) - 1))
    on.drain()
    region = state.machine.memory.find(pointer, size, function, "devPtr", "device")
    if region.allocation.devices != on.devices:
        raise invalid(f"devPtr is memory of devices {list(region.allocation.devices)}", "memory of the mesh")
    return region


@infallible
def tessxLastError(state: State) -> str:
    """Return the message of the last failure (AMB-RT-82)."""
    return state.last_error


@infallible
def tessxFindings(state: State) -> Sequence[Finding]:
    """Return the wrong uses of memory found so far (AMB-RT-83)."""
    return tuple(state.machine.memory.findings)


@infallible
def tessxLog(state: State) -> Sequence[Line]:
    """Return the lines of the log."""
    return tuple(state.log.lines)


@entry()
def tessxSetSchedule(state: State, policy: str, seed: int, choices: Sequence[int], untimed: bool) -> None:
    """Set the policy that orders concurrent work, before any stream exists (AMB-RT-80)."""
    named("policy", policy, tuple(POLICIES))
    if not isinstance(choices, list | tuple) or not all(type(choice) is int and choice >= 0 for choice in choices):
        raise invalid(f"choices is {shown(choices)}", "a list of whole numbers from 0")
    if state.handles.live("stream"):
        raise invalid("a schedule when there are streams already", "a call before tessStreamCreate")
    state.machine.engine.choose_by(POLICIES[policy](integer("seed", seed, SIZE), choices))
    state.machine.timed = not untimed


@entry()
def tessxSetFaults(state: State, ctx: Any, faults: Sequence[Mapping[str, Any]]) -> None:
    """Replace the planned faults (AMB-RT-81)."""
    links = tuple(link.name for link in state.machine.topology.links)
    state.context(ctx).faults = read_faults(faults, links, state.machine.host_time)


@entry()
def tessxSetTimeout(state: State, ctx: Any, nanoseconds: int) -> None:
    """Limit the time that work of a context may take; 0 means no limit (AMB-RT-67)."""
    allowed = integer("nanoseconds", nanoseconds, SIZE)
    state.context(ctx).timeout = allowed * 1000 or None


@entry()
def tessxSetDescriptor(state: State, ctx: Any, descriptor: Descriptor) -> None:
    """Set the descriptor that is attached to launches and collectives from now on (RT-11-01, AMB-RT-23)."""
    state.context(ctx).descriptor = of_type("descriptor", descriptor, Descriptor)


@entry("descriptors")
def tessxDescriptors(state: State, stream: Any) -> Sequence[Carried]:
    """Return the descriptors attached to the launches and collectives queued on a stream, in order."""
    return tuple(state.stream(stream).carried)


@entry()
def tessxSetModulePolicy(state: State, ctx: Any, policy: ModulePolicy) -> None:
    """Set what a context permits its modules and work to do (runtime spec 15, AMB-RT-88)."""
    state.context(ctx).module_policy = of_type("policy", policy, ModulePolicy)


@entry()
def tessxSetStreamLimit(state: State, stream: Any, bytes: int) -> None:
    """Limit the memory that queued work of a stream may refer to; 0 means no limit (AMB-RT-87)."""
    state.stream(stream).limit = integer("bytes", bytes, SIZE)


@entry("settings")
def tessxSettings(state: State, ctx: Any) -> Environment:
    """Return the settings that a context took from the environment."""
    return state.context(ctx).environment


@infallible
def tessxSetIdentity(
    state: State, driver: str | None = None, abi_hash: str | None = None, arch: str | None = None
) -> None:
    """Change the driver version, the ABI hash or the architecture's revision (AMB-RT-69)."""
    state.machine.driver = driver or state.machine.driver
    state.machine.abi_hash = abi_hash or state.machine.abi_hash
    state.machine.revision = arch or state.machine.revision
    for _, module in state.handles.live("module"):
        module.executables.clear()


# Extensions: algorithms, collectives of one rank, the contents of the cache, explanations (spec 8.2, 13, 17).


BOOL = DTYPES["bool"].abi_id


@dataclass(frozen=True)
class Explained:
    """The explanation of a module, as text and as a value (RT-17-03, RT-17-08, RT-17-09)."""

    text: str
    value: Mapping[str, Any]


@entry()
def tessxIssue(
    state: State,
    mesh: Any,
    rank: int,
    collective: str,
    buffer: Any,
    count: int,
    dtype: int,
    stream: Any,
    op: Any = None,
    axis: Any = None,
    root: Any = None,
    algorithm: str | None = None,
    descriptor: Descriptor | None = None,
    policy: Any = None,
) -> None:
    """Issue a collective on one rank; the n-th calls of a stream's ranks form one collective (AMB-RT-41)."""
    on, queue = state.mesh(mesh), state.stream(stream)
    integer("rank", rank, (0, len(on.devices) - 1))
    queue.require_of(on)
    named("collective", collective, COLLECTIVES)
    if algorithm is not None:
        named("algorithm", algorithm, ALGORITHMS)
    if descriptor is not None:
        of_type("descriptor", descriptor, Descriptor)
    if policy is not None:
        of_type("policy", policy, NumericsPolicy)
    with reported_by(CALLS[collective]):
        call = read_call(on, state.code, collective, count, dtype, op=op, axis=axis, root=root, algorithm=algorithm)
        work = collective_work(call, buffer, queue, policy or on.context.governing(), descriptor, rank)
    issued = state.issued.setdefault(queue, Issued())
    number = issued.counts.get(rank, 0) + 1
    work.rendezvous = issued.rendezvous.setdefault(number, {})
    submit(state, work, captured=False)
    issued.counts[rank] = number


@entry("plan")
def tessxCollectivePlan(state: State, mesh: Any, collective: str, count: int, dtype: int, axis: Any) -> Selection:
    """Return the algorithm that a collective would use, and the reason (RT-13-03 to -08)."""
    on = state.mesh(mesh)
    named("collective", collective, COLLECTIVES)
    root, along = (0, None) if collective == "broadcast" else (None, axis)
    op = CollOp.TESS_COLL_MAX if dtype == BOOL else CollOp.TESS_COLL_SUM  # one that the dtype has
    return read_call(on, state.code, collective, count, dtype, op=int(op), axis=along, root=root).plan


@entry()
def tessxSetAlgorithm(state: State, ctx: Any, collective: str, algorithm: str | None, source: str) -> None:
    """Set a schedule's or an autotuner's algorithm of a collective; None removes it (RT-13-06, RT-13-07)."""
    context = state.context(ctx)
    named("collective", collective, COLLECTIVES)
    named("source", source, ("hint", "autotuner"))
    chosen = context.hints if source == "hint" else context.tuned
    if algorithm is None:
        chosen.pop(collective, None)
    else:
        named("algorithm", algorithm, ALGORITHMS)
        chosen[collective] = algorithm


@entry("explanation")
def tessxExplain(state: State, module: Any) -> Explained:
    """Return fusion groups, tile shapes and collective plans of a module (runtime spec 17, AMB-RT-36)."""
    from ..compilation.images import explanation_text, explanation_value

    metadata = state.module(module).fatbin.metadata
    return Explained(explanation_text(metadata), explanation_value(metadata))


@entry("entries")
def tessxCacheEntries(state: State) -> Sequence[tuple[Path, CacheEntry]]:
    """Return the entries in the cache directories of the live contexts (AMB-RT-69). Raises TESS_ERR_CACHE_CORRUPT."""
    entries: dict[Path, CacheEntry] = {}
    for _, context in state.handles.live("context"):
        store = state.code.store(context)
        if store is not None:
            entries.update((store.path(entry.kind, entry.key), entry) for entry in store.entries())
    return tuple(entries.items())


# The host API as an object: every function of `entries.FUNCTIONS` is a method of `Runtime` (runtime spec 4).


class Runtime(State):
    """A runtime on a simulated machine of its own."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """Return a function of the API."""


for _name, _function in FUNCTIONS.items():
    setattr(Runtime, _name, _function)
