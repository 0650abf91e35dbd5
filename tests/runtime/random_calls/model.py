"""The model of a runtime: memory, the order of accesses, live objects, queued work, and arguments that are wrong."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.runtime.launches import LaunchConfig

T = TypeVar("T")


class Choose(Protocol):
    """Draws whole numbers; everything else is made of them."""

    def below(self, count: int) -> int:
        """A number from 0 to before `count`."""


class Seeded:
    """From a seed."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))

    def below(self, count: int) -> int:
        return self._random.randrange(count)


def pick(choose: Choose, options: Sequence[T]) -> T:
    """One of several."""
    return options[choose.below(len(options))]


def chance(choose: Choose, percent: int) -> bool:
    """True in so many of a hundred cases."""
    return choose.below(100) >= 100 - percent


NEVER_WRITTEN = 0xA5


@dataclass(eq=False)
class Block:
    """An allocation: one copy for each device, or one in all where it is of the host or shared."""

    address: int
    size: int
    devices: tuple[int, ...] = ()
    owner: int = 0
    shared: bool = False
    read_only: bool = False
    freed: bool = False
    actual: Any = None
    """The allocation of the runtime, for comparison."""
    copies: list[bytearray] = field(default_factory=list)
    known: list[bytearray] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.devices) if self.devices and not self.shared else 1
        self.copies = self.copies or [bytearray([NEVER_WRITTEN]) * self.size for _ in range(count)]
        self.known = [bytearray([1]) * self.size for _ in range(count)]

    @property
    def of_device(self) -> bool:
        return bool(self.devices)

    def copy_on(self, device: int) -> int:
        """The copy that a device uses."""
        return self.devices.index(device) if self.devices and not self.shared else 0

    def read(self, copy: int, start: int, size: int) -> tuple[bytes, bytes]:
        """Bytes, and which of them are known."""
        return bytes(self.copies[copy][start : start + size]), bytes(self.known[copy][start : start + size])

    def write(self, copy: int, start: int, data: bytes, known: bytes | None = None) -> None:
        """Put bytes there."""
        self.copies[copy][start : start + len(data)] = data
        self.known[copy][start : start + len(data)] = bytes([1]) * len(data) if known is None else known

    def forget(self, start: int = 0, size: int | None = None) -> None:
        """Nothing is known of these bytes, on any copy; what cannot be written stays known."""
        if self.read_only:
            return
        stop = self.size if size is None else start + size
        for known in self.known:
            known[start:stop] = bytes(stop - start)

    def differs(self, copy: int, found: Sequence[int]) -> int | None:
        """Return the first place at which the bytes read differ from the known bytes."""
        expected, known = self.copies[copy], self.known[copy]
        if expected == found:
            return None
        return next((i for i in range(self.size) if known[i] and expected[i] != found[i]), None)


@dataclass(frozen=True, eq=False)
class Place:
    """Part of a block."""

    block: Block
    start: int
    size: int

    @property
    def address(self) -> int:
        return self.block.address + self.start


Clock = dict[int, int]
"""Of each stream, the last operation that is known to be over."""


@dataclass(frozen=True, eq=False)
class Use:
    """An access, on one rank of a mesh or, where that is None, on all."""

    place: Place
    write: bool
    rank: int | None = None


@dataclass(frozen=True, eq=False)
class Noted:
    use: Use
    devices: frozenset[int]
    stream: int
    time: int


@dataclass
class Order:
    """The clocks of the streams and of the host, and the accesses that the host does not know to be over."""

    clocks: dict[int, Clock] = field(default_factory=dict)
    host: Clock = field(default_factory=dict)
    noted: list[Noted] = field(default_factory=list)
    races: int = 0
    """Unordered pairs that the runtime has to find."""
    possible_races: int = 0

    def clock(self, stream: int) -> Clock:
        """A stream knows what the host knows."""
        return join(self.clocks.setdefault(stream, {}), self.host)

    def note(self, stream: int, ranks: Sequence[int], uses: Iterable[Use]) -> bool:
        """An operation with these accesses is queued, on a mesh with these devices as its ranks; whether one is
        unordered with an earlier one."""
        uses = list(uses)
        clock = self.clock(stream)
        if not uses:
            return False
        clock[stream] = clock.get(stream, 0) + 1
        raced = False
        on = [frozenset(ranks if use.rank is None else (ranks[use.rank],)) for use in uses]
        for use, devices in zip(uses, on, strict=True):
            for earlier in self.noted:
                if conflicting(use, earlier.use) and earlier.time > clock.get(earlier.stream, 0):
                    raced = True
                    if devices & earlier.devices or not use.place.block.of_device:
                        self.races += 1
                    self.possible_races += 1
        self.noted += [Noted(*each, stream, clock[stream]) for each in zip(uses, on, strict=True)]
        return raced

    def record(self, stream: int) -> Clock:
        """Return the clock of a recording on a stream."""
        return dict(self.clock(stream))

    def wait(self, stream: int, recorded: Clock) -> None:
        """A stream learns what a recording knew."""
        join(self.clock(stream), recorded)

    def synchronize(self, stream: int) -> None:
        """The host learns what a stream knows."""
        join(self.host, self.clock(stream))
        self.noted = [each for each in self.noted if each.time > self.host.get(each.stream, 0)]

    def is_quiet(self, block: Block, writes_only: bool = False) -> bool:
        """No queued work uses a block, or writes it."""
        return not any(each.use.place.block is block and (each.use.write or not writes_only) for each in self.noted)


def join(clock: Clock, other: Clock) -> Clock:
    for stream, time in other.items():
        clock[stream] = max(time, clock.get(stream, 0))
    return clock


def conflicting(one: Use, other: Use) -> bool:
    """Both touch some byte, and one of them writes it."""
    a, b = one.place, other.place
    if a.block is not b.block or not (one.write or other.write):
        return False
    return a.start < b.start + b.size and b.start < a.start + a.size


ASYNCHRONOUS = frozenset(
    {
        Status.TESS_ERR_INVALID_VALUE,
        Status.TESS_ERR_LAUNCH_FAILED,
        Status.TESS_ERR_COLLECTIVE_MISMATCH,
        Status.TESS_ERR_DETERMINISM_VIOLATION,
        Status.TESS_ERR_TIMEOUT,
    }
)
"""Statuses that a synchronization may report if the model does not know the outcome."""
STRICT = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}


@dataclass
class Faults:
    """A fault plan, and what it has counted."""

    told: Sequence[Mapping[str, Any]] = ()
    launches: dict[str, int] = field(default_factory=dict)
    allocations: int = 0


@dataclass(eq=False)
class Context:
    environment: Mapping[str, str]
    policy: Mapping[str, int] | None = None
    forbid_fast_math: bool = False
    enforce_determinism: bool = False
    timeout: int = 0
    seed: int = 0
    faults: Faults = field(default_factory=Faults)

    def governing(self, module: Mapping[str, int] | None = None, deterministic: bool = False) -> Mapping[str, int]:
        """The policy of work that is queued now."""
        asked = self.environment.get("TESS_DETERMINISTIC")
        default = STRICT if asked is None else {**STRICT, "deterministic": int(asked)}
        policy = self.policy or module or default
        return {**policy, "deterministic": 1} if deterministic else policy

    def forbids(self, policy: Mapping[str, int]) -> bool:
        return (self.enforce_determinism and not policy["deterministic"]) or (
            self.forbid_fast_math and bool(policy["allowFastMath"])
        )


@dataclass(eq=False)
class Mesh:
    handle: int
    context: Context
    devices: tuple[int, ...]
    axes: MeshAxes
    targets: frozenset[str]


@dataclass(frozen=True, eq=False)
class Queued:
    """Work: what it touches, and what it does where nothing goes wrong; it gives the statuses that it ends in."""

    uses: Sequence[Use]
    apply: Callable[[], Sequence[Status]]
    kind: str = "copy"
    again: Callable[[], Queued] | None = None
    """The work of a replay, if it differs."""
    seeds: Sequence[int] = ()
    """Of the descriptors that it carries."""


@dataclass(frozen=True, eq=False)
class Node:
    work: Queued
    after: tuple[int, ...]


@dataclass(eq=False)
class Capture:
    """Captured nodes, and the nodes that the next one on each stream follows."""

    nodes: list[Node] = field(default_factory=list)
    before: dict[int, frozenset[int]] = field(default_factory=dict)
    running: bool = True


@dataclass(eq=False)
class Stream:
    handle: int
    mesh: Mesh
    capture: Capture | None = None
    errors: list[Status] = field(default_factory=list)
    maybe: set[Status] = field(default_factory=set)
    busy: bool = False
    persistent: int = 0
    """Persistent launches since the last synchronization."""
    limit: int = 0
    queued: list[Block] = field(default_factory=list)
    """Device blocks that queued work refers to."""
    carried: list[int] = field(default_factory=list)
    """The seeds of the descriptors."""
    issued: int = 0


@dataclass(eq=False)
class Event:
    mesh: Mesh | None = None
    """Of the last recording."""
    clock: Clock = field(default_factory=dict)
    capture: Capture | None = None
    before: frozenset[int] = frozenset()


@dataclass(eq=False)
class Module:
    context: Context
    targets: frozenset[str]
    policy: Mapping[str, int] | None
    kernels: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class World:
    """Everything by handle, as it has to be."""

    contexts: dict[int, Context] = field(default_factory=dict)
    meshes: dict[int, Mesh] = field(default_factory=dict)
    streams: dict[int, Stream] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    modules: dict[int, Module] = field(default_factory=dict)
    kernels: dict[int, tuple[Module, str]] = field(default_factory=dict)
    graphs: dict[int, tuple[Mesh, tuple[Node, ...]]] = field(default_factory=dict)
    profilers: dict[int, Context] = field(default_factory=dict)
    dead: dict[int, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    freed: list[Block] = field(default_factory=list)
    order: Order = field(default_factory=Order)
    murky: bool = False
    """Something was queued whose end depends on what is queued later, or on how long everything takes."""

    def kinds(self) -> Mapping[str, dict[int, Any]]:
        """Live objects by kind."""
        return {
            "context": self.contexts,
            "mesh": self.meshes,
            "stream": self.streams,
            "event": self.events,
            "module": self.modules,
            "kernel": self.kernels,
            "graph": self.graphs,
            "profiler": self.profilers,
        }

    def end(self, kind: str, handle: int) -> None:
        """A handle dies."""
        del self.kinds()[kind][handle]
        self.dead[handle] = kind

    def free(self, block: Block) -> None:
        """Memory goes."""
        block.freed = True
        self.blocks.remove(block)
        self.freed.append(block)

    def forget(self) -> None:
        """Nothing is known of any memory."""
        for block in self.blocks:
            block.forget()

    def cloud(self) -> None:
        """From now until all is done, work may end in any way."""
        self.murky = True
        self.forget()
        for stream in self.streams.values():
            stream.maybe |= {*ASYNCHRONOUS, *stream.errors}
            if stream.busy:  # what has not run yet may still go well
                stream.errors.clear()

    def enqueue(self, stream: Stream, work: Queued) -> None:
        """Queue work on a stream, and do it at once."""
        stream.busy = True
        stream.carried += work.seeds
        stream.queued += [use.place.block for use in work.uses if use.place.block.of_device]
        errors = work.apply()
        if self.order.note(stream.handle, stream.mesh.devices, work.uses):
            self.forget()
        if self.murky or stream.mesh.context.timeout == 1:
            stream.maybe |= ASYNCHRONOUS
            for use in work.uses:
                if use.write:
                    use.place.block.forget()
        stream.errors += errors

    def submit(self, stream: Stream, work: Queued) -> None:
        """Queue work, or add it to the capture of its stream."""
        capture = stream.capture
        if capture is None:
            self.enqueue(stream, work)
            return
        after = tuple(sorted(capture.before.get(stream.handle, frozenset())))
        capture.nodes.append(Node(work, after))
        capture.before[stream.handle] = frozenset({len(capture.nodes) - 1})

    def drain(self, streams: Sequence[Stream] | None = None) -> None:
        """All queued work of these streams is done, or of all."""
        for stream in list(self.streams.values()) if streams is None else streams:
            stream.busy, stream.persistent = False, 0
            stream.queued.clear()
            self.order.synchronize(stream.handle)
        if not any(stream.busy for stream in self.streams.values()):
            self.murky = False

    def of_mesh(self, mesh: Mesh) -> list[Stream]:
        """Its streams."""
        return [each for each in self.streams.values() if each.mesh is mesh]

    def of_context(self, context: Context) -> list[Stream]:
        """The streams of its meshes."""
        return [each for each in self.streams.values() if each.mesh.context is context]

    def end_capture(self, capture: Capture) -> None:
        """A capture is over: its streams run their work again."""
        capture.running = False
        for each in self.streams.values():
            if each.capture is capture:
                each.capture = None

    def end_stream(self, stream: Stream) -> None:
        """A stream dies, its work being done."""
        self.drain([stream])
        self.end("stream", stream.handle)


SOURCE = """module kernels {
  mesh pair = mesh<axes=[dp], shape=[2]>;
  kernel fill(v: int32, x: tensor<8xint32>) { x[0:8] = v; }
  kernel digit(v: int32, x: tensor<8xint32>) { x = x * 10 + v; }
  kernel copy(x: tensor<8xint32>, y: tensor<8xint32>) { y = x; }
  kernel divide(n: int32, x: tensor<8xint32>) { x[0] = 64 / n; }
  kernel index(n: int32, x: tensor<8xint32>) { x[n] = 1; }
  kernel any(N: int32, x: tensor<Nxint32>) { x = x + 1; }
  kernel met(x: tensor<8xint32>) { x = dist.all_reduce(x, axis=dp, op="sum"); }
  kernel nothing() { }
}
"""
"""`divide` and `index` fail for n = 0 and n = 8, `met` on any mesh that has not two ranks."""
Numbers = list[int | None]
"""None is not known."""
Cut = Callable[[], Sequence[tuple[int, int]]]
"""The pairs of ranks between which nothing passes when work runs."""
Kernel = Callable[[int, Sequence[Numbers]], Numbers | None]


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def each(function: Callable[[int], int], values: Numbers) -> Numbers:
    return [None if value is None else wrapped(function(value)) for value in values]


def put(values: Numbers, place: int, value: int) -> Numbers:
    return [*values[:place], value, *values[place + 1 :]]


KERNELS: Mapping[str, Kernel] = {
    "fill": lambda v, tensors: [v] * 8,
    "digit": lambda v, tensors: each(lambda x: x * 10 + v, tensors[0]),
    "copy": lambda v, tensors: tensors[0],
    "divide": lambda n, tensors: put(tensors[0], 0, 64 // n) if n else None,
    "index": lambda n, tensors: put(tensors[0], n, 1) if 0 <= n < 8 else None,
    "any": lambda n, tensors: each(lambda x: x + 1, tensors[0]),
}
"""From the scalar and the tensors: what the last of them then holds, or None where the kernel fails."""


def numbers(place: Place, copy: int, size: int) -> Numbers:
    """The integers of `size` bytes at a place."""
    data, known = place.block.read(copy, place.start, place.size)
    values = (int.from_bytes(data[i : i + size], "little", signed=True) for i in range(0, len(data), size))
    return [value if all(known[i * size : (i + 1) * size]) else None for i, value in enumerate(values)]


def store(place: Place, copy: int, size: int, values: Numbers) -> Sequence[Status]:
    """Put integers there; memory that is read-only refuses."""
    if place.block.read_only:
        return [Status.TESS_ERR_INVALID_VALUE] if values else []
    data = b"".join((0 if value is None else value).to_bytes(size, "little", signed=True) for value in values)
    place.block.write(copy, place.start, data, bytes(value is not None for value in values for _ in range(size)))
    return []


def shares(uses: Sequence[Use], mesh: Mesh) -> bool:
    """Several ranks use the same bytes, in whatever order."""
    blocks = [use.place.block for use in uses]
    return len(mesh.devices) > 1 and any(block.shared and not block.read_only for block in blocks)


def forgotten(uses: Sequence[Use]) -> Sequence[Status]:
    """The bytes written are not known."""
    for use in uses:
        if use.write:
            use.place.block.forget(use.place.start, use.place.size)
    refused = any(use.write and use.place.block.read_only for use in uses)
    return [Status.TESS_ERR_INVALID_VALUE] if refused else []


def copy(mesh: Mesh, direction: int, target: Place, source: Place) -> Queued:
    """H2D writes every rank, D2H reads rank 0, D2D stays on each rank (AMB-RT-05)."""
    uses = [Use(source, False), Use(target, True)]

    def apply() -> Sequence[Status]:
        if target.block.read_only:
            return [Status.TESS_ERR_INVALID_VALUE]
        if shares(uses, mesh):
            return forgotten(uses)
        for device in mesh.devices[:1] if direction == 1 else mesh.devices:
            data, known = source.block.read(source.block.copy_on(device), source.start, source.size)
            target.block.write(target.block.copy_on(device), target.start, data, known)
        return []

    return Queued(uses, apply)


def kernel(mesh: Mesh, name: str, scalar: int, tensors: Sequence[Place], trapped: Sequence[int], cut: Cut) -> Queued:
    """A launch, which fails on some ranks."""
    uses = [Use(place, name != "copy" or place is tensors[-1]) for place in tensors]

    def apply() -> Sequence[Status]:
        failed = [Status.TESS_ERR_LAUNCH_FAILED]
        if not tensors:
            return failed if trapped else []
        if name == "met":
            return rendezvous()
        if shares(uses, mesh):
            return [*forgotten(uses), *(failed if trapped or KERNELS[name](scalar, [[0] * 8]) is None else [])]
        errors: list[Status] = []
        for rank, device in enumerate(mesh.devices):
            found = [numbers(place, place.block.copy_on(device), 4) for place in tensors]
            result = None if rank in trapped else KERNELS[name](scalar, found)
            if result is None:
                errors += failed
            else:
                errors += store(tensors[-1], tensors[-1].block.copy_on(device), 4, result)
        return errors

    def rendezvous() -> Sequence[Status]:
        if trapped:
            missing = [Status.TESS_ERR_COLLECTIVE_MISMATCH] if len(trapped) < len(mesh.devices) else []
            return [Status.TESS_ERR_LAUNCH_FAILED, *missing]
        if (0, 1) in map(tuple, map(sorted, cut())):
            return [Status.TESS_ERR_TIMEOUT if mesh.context.timeout else Status.TESS_ERR_LAUNCH_FAILED]  # AMB-RT-171
        if len(mesh.devices) != 2:
            return [Status.TESS_ERR_LAUNCH_FAILED]
        if shares(uses, mesh):
            return forgotten(uses)
        (place,) = tensors
        found = [numbers(place, place.block.copy_on(device), 4) for device in mesh.devices]
        total = combined(found, 0, 4)
        return [error for device in mesh.devices for error in store(place, place.block.copy_on(device), 4, total)]

    return Queued(uses, apply, "launch")


WHOLE = {7: 1, 8: 2, 9: 4, 10: 8}
"""Bytes of the dtypes whose combinations the model knows."""


def combined(found: Sequence[Numbers], operator: int, size: int) -> Numbers:
    """Element by element; a sum wraps."""
    half = 1 << (8 * size - 1)
    total: Numbers = []
    for column in zip(*found, strict=True):
        known = [value for value in column if value is not None]
        if len(known) < len(column) or (operator == 0 and size < 4):
            total.append(None)
        else:
            value = (sum, max, min)[operator](known)
            total.append((value + half) % (2 * half) - half)
    return total


def collective(
    mesh: Mesh,
    name: str,
    places: Sequence[Place | None],
    dtype: int,
    *,
    operator: int = 0,
    axis: str | None = None,
    root: int = 0,
    cut: Cut = lambda: (),
    uses: Sequence[Use] = (),
    disagreeing: Mapping[tuple[int, ...], Status] = MappingProxyType({}),
) -> Queued:
    """A collective in which rank r brings `places[r]`; groups that disagree fail so, the others meet (AMB-COLL-76)."""
    whole = tuple(range(len(mesh.devices)))
    groups = [whole] if axis is None else list(mesh.axes.groups(axis))

    def apply() -> Sequence[Status]:
        late = Status.TESS_ERR_TIMEOUT if mesh.context.timeout else Status.TESS_ERR_LAUNCH_FAILED  # AMB-RT-81
        failed = {group: late for group in groups if any(a in group and b in group for a, b in cut())} | disagreeing
        met = [group for group in groups if group not in failed]
        members = [(group, [place for rank in group if (place := places[rank]) is not None]) for group in met]
        members = [(group, held) for group, held in members if len(group) > 1 and held]
        written = [Use(place, True) for _, held in members for place in held]
        if dtype not in WHOLE or shares(written, mesh) or any(use.place.block.read_only for use in written):
            return [*list(failed.values())[:1], *forgotten(written)]
        for group, held in members:
            meet(group, held)
        return list(failed.values())[:1]

    def meet(group: Sequence[int], held: Sequence[Place]) -> None:
        size = WHOLE[dtype]
        copies = [place.block.copy_on(mesh.devices[rank]) for rank, place in zip(group, held, strict=True)]
        found = [numbers(place, copy, size) for place, copy in zip(held, copies, strict=True)]
        for position, result in enumerate(results(name, found, operator, root, size)):
            store(held[position], copies[position], size, result)

    return Queued(uses, apply, "collective")


def results(name: str, found: Sequence[Numbers], operator: int, root: int, size: int) -> Sequence[Numbers]:
    """Return the bytes of each rank of a group afterwards (AMB-RT-02, AMB-RT-04)."""
    if name == "broadcast":
        return [found[root]] * len(found)
    share = len(found[0]) // len(found)
    if name == "all_gather":
        gathered = [value for rank, values in enumerate(found) for value in values[rank * share : (rank + 1) * share]]
        return [gathered] * len(found)
    total = combined(found, operator, size)
    if name == "all_reduce":
        return [total] * len(found)
    return [
        [*values[: rank * share], *total[rank * share : (rank + 1) * share], *values[(rank + 1) * share :]]
        for rank, values in enumerate(found)
    ]


def buffer(name: str, scalar: int, pointers: Sequence[int]) -> bytes:
    """The parameter buffer of a launch (runtime spec 10.1)."""
    if name in ("met", "nothing"):
        return b"".join(struct.pack("<Q", pointer) for pointer in pointers)
    if name == "copy":
        return struct.pack("<QQ", *pointers)
    return struct.pack("<i4xQ", scalar, *pointers)


INVALID = frozenset({Status.TESS_ERR_INVALID_VALUE})
UNINITIALIZED = frozenset({Status.TESS_ERR_NOT_INITIALIZED})
WRONG_TYPES: Sequence[Any] = (None, "8", 1.5, True, b"8", [], {}, float("nan"), object())
NO_BYTES: Sequence[Any] = (None, 1.5, "text", object(), [1, 2], True)
VALUES: Mapping[str, Sequence[Any]] = {
    "int": (*WRONG_TYPES, 2**31, -(2**31) - 1, 10**400),
    "size": (*WRONG_TYPES, -1, 2**64, 10**400),
    "memory kind": (*WRONG_TYPES, 0, 2, -1),
    "copy kind": (*WRONG_TYPES, 3, -1, 2**32),
    "dtype": (*WRONG_TYPES, 0, 14, -1, 2**70),
    "operator": (*WRONG_TYPES, 3, -1),
    "axis": (None, "", "zz", "DP", 5, b"dp", [], 1.0),
    "rank": (*WRONG_TYPES, -1, 8, 2**40),
    "ids": (None, 5, 1.5, "01", b"\0\1", {0: 1}, object()),
    "axes": (None, 5, "dp", {"dp": 1}, (1, 1, 1, 1), MeshAxes(tp=2**31 - 1)),
    "config": (
        None,
        5,
        "x",
        {},
        *(LaunchConfig(each) for each in ((0, 1, 1), (1, 1), None, (1.0, 1, 1), (1, 1, 2**31), "abc", (1, True, 1))),
        *(LaunchConfig((1, 1, 1), each) for each in ((-1, 1, 1), None, (1, 1, 2**40), [])),
        *(LaunchConfig((1, 1, 1), shmemBytes=each) for each in (-1, 2**64, None, 0.0)),
        *(LaunchConfig((1, 1, 1), flags=each) for each in (16, 2**31, 2**32, -1, None, True, "1")),
    ),
    "argument bytes": (*NO_BYTES, 0, 7, 2**60, b""),
    "image": (*NO_BYTES, 0, 7, 2**60, b"", b"\x7fELF", bytes(4096)),
    "name": (None, "", "nope", 5, b"fill", "\0", [], 1.0, "fill "),
    "policy": (None, 5, "strict", {}, {"deterministic": 1}, []),
    "path": (None, 0, "", "/no/such/directory/trace.json", 5, "\0", "/", 1.5, [], object()),
    "faults": (
        None,
        "x",
        5,
        {},
        [None],
        [{}],
        ["kernel_trap"],
        [{"kind": "flood"}],
        [{"kind": []}],
        [{"kind": "kernel_trap", "nth": -1}],
        [{"kind": "kernel_trap", "kernel": 5}],
        [{"kind": "kernel_hang", "rank": "0"}],
        [{"kind": "kernel_slow", "nanoseconds": 2**64}],
        [{"kind": "link_down"}],
        [{"kind": "link_down", "ranks": [1]}],
        [{"kind": "link_down", "ranks": [0, -1]}],
        [{"kind": "out_of_memory", "colour": 1}],
    ),
    "descriptor": (None, 5, {}, "pairwise"),
    "module policy": (None, 5, {}, True),
    "collective": (None, "", "gather", 5, [], b"all_reduce"),
    "algorithm": ("star", "", 5, [], b"ring", True),
    "source": (None, "", "default", 5, []),
    "schedule": (None, "", "random", 5, [], {}),
    "data": (None, 5, 1.5, "text", object(), [1]),
    "memory": (None, 5, 1.5, "text", object(), [1]),
}
"""By kind of argument. All of them are TESS_ERR_INVALID_VALUE."""


def bad_value(choose: Choose, kind: str) -> Any:
    """A value that no argument of a kind may have."""
    return pick(choose, VALUES[kind])


def bad_handle(choose: Choose, kind: str, world: World) -> tuple[Any, frozenset[Status]]:
    """A handle that is none of a kind, and what it is answered with (AMB-RT-38)."""
    live = [handle for other, held in world.kinds().items() if other != kind for handle in held]
    same = list(world.kinds()[kind])
    numbers = [0, -1, 10**6, 2**70, *live, *world.dead]
    others = [
        None,
        True,
        "1",
        b"1",
        [],
        {},
        float("nan"),
        *(float(each) for each in same),
        *(str(each) for each in same),
    ]
    value: Any = pick(choose, numbers + others)
    if kind not in ("context", "mesh"):
        return value, INVALID
    if type(value) is int and (value in live or world.dead.get(value, kind) != kind):
        return value, INVALID
    return value, UNINITIALIZED


def bad_pointer(choose: Choose, world: World, device: bool) -> Any:
    """Return a value that points to no byte of the wanted space."""
    other = [each.address for each in world.blocks if each.of_device != device and each.size]
    freed = [each.address for each in world.freed if each.size]
    ends = [each.address + each.size + 1 for each in world.blocks]
    before = [each.address - 1 for each in world.blocks]
    return pick(
        choose, [None, 0, -1, 1, 2**63, 2**64, 10**400, "p", 1.5, True, b"", [], *other, *freed, *ends, *before]
    )
