"""The objects that are live according to the model, and the errors that queued work may have caused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes

from .access_order import Clock, Order, Use
from .memory import Block

__all__ = ["Capture", "Context", "Event", "Faults", "Mesh", "Module", "Node", "Queued", "Stream", "World"]

ASYNCHRONOUS = frozenset(
    {
        Status.TESS_ERR_INVALID_VALUE,
        Status.TESS_ERR_LAUNCH_FAILED,
        Status.TESS_ERR_COLLECTIVE_MISMATCH,
        Status.TESS_ERR_DETERMINISM_VIOLATION,
        Status.TESS_ERR_TIMEOUT,
    }
)
"""What a synchronization may report where the model does not know what happened."""

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
    """What a replay of it is, where that is not the same."""
    seeds: Sequence[int] = ()
    """Of the descriptors that it carries."""


@dataclass(frozen=True, eq=False)
class Node:
    work: Queued
    after: tuple[int, ...]


@dataclass(eq=False)
class Capture:
    """What is captured: nodes, and what the next one on each stream follows."""

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
        """What is live, by kind."""
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
