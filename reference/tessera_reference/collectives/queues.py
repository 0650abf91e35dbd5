"""The two queues of a device in virtual time, pipelines that fill them, and traces (collectives spec 4.1, 6 to 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from ..abi.status import invalid, mismatch, unsupported
from ..graph.futures import ALL_TO_ALL_ALGORITHMS
from ..ir.diagnostics import did_you_mean
from ..mesh.engine import Engine
from ..mesh.memory import Intervals
from ..mesh.topology import Topology
from ..mesh.trace import LinkCounter, Names, Record, chrome_trace, trace_text
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType, shown
from ..numerics.rounding import cast
from .delivery import Sent
from .links import nodes_of
from .operations import OPERATIONS, messages, run
from .schedules import ALGORITHMS, algorithm, require_known, require_within
from .travel import Part, Progress, Transfer, algorithms

# What the two queues of a device hold: computations and collectives, and what each of them waits for.
#
# Collectives spec 2.1, 4.1. A unit names the units whose values it uses, and waits for nothing else (COLL-02.1-02,
# -03).


NAME = "simulate"
MOST_UNITS = 1024
_LONGEST = 10**18
"""Picoseconds, and bytes, of one unit."""


@dataclass(frozen=True)
class Compute:
    """A tile or kernel for the compute queue of each of its ranks, which takes so many picoseconds there."""

    id: str
    picoseconds: int
    ranks: tuple[int, ...]
    after: tuple[str, ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class Collective:
    """A collective of its ranks over a full buffer of some bytes, for their communication queues, chunk by chunk.

    Chunk k holds the k-th part of every share, so that all ranks have a part in every chunk (AMB-COLL-68). `fused` is
    what each sender does to a chunk as it sends it: packing, casting.
    """

    id: str
    operation: str
    algorithm: str
    bytes: int
    chunk_bytes: int
    ranks: tuple[int, ...]
    root: int = 0
    after: tuple[str, ...] = ()
    priority: int = 0
    qos: str | None = None
    fused: tuple[str, ...] = ()

    @property
    def chunks(self) -> tuple[int, ...]:
        """The bytes of each chunk; the last may be short, and of no bytes there is none."""
        whole, rest = divmod(self.bytes, self.chunk_bytes)
        return (self.chunk_bytes,) * whole + ((rest,) if rest else ())


Unit: TypeAlias = Compute | Collective


def require_work(units: Sequence[Unit], ranks: int) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for work that can never be done, naming the unit and why."""
    require_within(NAME, "number of units", len(units), 0, MOST_UNITS)
    names = [unit.id for unit in units]
    for name in names:
        if names.count(name) > 1:
            raise invalid(NAME, f"two units {shown(name)}", "each id once")
    for unit in units:
        _require_unit_fits(unit, ranks)
        for earlier in unit.after:
            if earlier not in names:
                hint = did_you_mean(earlier, names)
                expected = "ids of units" + (f": {hint}" if hint else "")
                raise invalid(NAME, f"unit {shown(unit.id)} after {shown(earlier)}", expected)
    _require_order(units)


def _require_unit_fits(unit: Unit, ranks: int) -> None:
    name = f"unit {shown(unit.id)}"
    if not unit.ranks or len(set(unit.ranks)) != len(unit.ranks) or not all(0 <= rank < ranks for rank in unit.ranks):
        raise invalid(NAME, f"{name} with ranks {list(unit.ranks)}", f"some of 0 to {ranks - 1}, each once")
    if isinstance(unit, Compute):
        require_within(NAME, f"picoseconds of {name}:", unit.picoseconds, 0, _LONGEST)
        return
    require_known(NAME, f"operation of {name}:", unit.operation, OPERATIONS)
    require_known(NAME, f"algorithm of {name}:", unit.algorithm, tuple(ALGORITHMS))
    if unit.operation == "all_to_all" and unit.algorithm not in ALL_TO_ALL_ALGORITHMS:
        raise unsupported(NAME, f"{name}: all_to_all by {unit.algorithm!r}", "ring or direct (AMB-COLL-34)")
    require_within(NAME, f"bytes of {name}:", unit.bytes, 0, _LONGEST)
    require_within(NAME, f"chunk_bytes of {name}:", unit.chunk_bytes, 1, _LONGEST)
    require_within(NAME, f"root of {name}:", unit.root, 0, len(unit.ranks) - 1)


def _require_order(units: Sequence[Unit]) -> None:
    try:
        TopologicalSorter({unit.id: unit.after for unit in units}).prepare()
    except CycleError as problem:
        cycle = " after ".join(shown(argument) for argument in problem.args[1])
        raise invalid(NAME, f"units that wait for one another: {cycle}", "an order") from None


# The two queues of every device in virtual time: computations beside the chunks of collectives.
#
# Collectives spec 4.1, 4.2; AMB-COLL-18, -67 to -69. A compute queue runs one unit at a time, the communication queue
# keeps up to `max_inflight` chunks in flight. Among units that are ready, those of higher priority go first, then
# those listed first; a chunk for whose first messages a link lacks credits stands back for the next one. Chunks
# travel through the progress engine of `travel.py`.


MAX_INFLIGHT = 4
"""Chunks in flight on a device where nothing else is said."""

MOST_MESSAGES = 1 << 16
"""Messages of all collectives of one simulation."""


@dataclass(frozen=True)
class Slot:
    """The time of a computation on a device, or of a chunk in flight there: from its issue until its last message is
    with all ranks (AMB-COLL-67). Times in picoseconds."""

    id: str
    queue: Literal["compute", "comm"]
    device: int
    chunk: int | None
    start: int
    end: int


@dataclass(frozen=True)
class Run:
    """A run: the units of every device in order of start, and when the last had ended."""

    devices: tuple[int, ...]
    slots: tuple[Slot, ...]
    duration: int


def simulate(
    units: Sequence[Unit], topology: Topology, devices: Sequence[int] | None = None, max_inflight: int = MAX_INFLIGHT
) -> Run:
    """Run units on the devices of their ranks, all of the topology where none are named, node by node.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for work that can never be done, TESS_ERR_UNSUPPORTED for algorithms that
    the ranks of a collective cannot run and for too many messages.
    """
    together = tuple(chain.from_iterable(nodes_of(NAME, topology, devices)))
    require_within(NAME, "max_inflight", max_inflight, 1, 1 << 16)
    require_work(units, len(together))
    chunks = {unit.id: _chunks(topology, together, unit) for unit in units if isinstance(unit, Collective)}
    total = sum(len(sent) for chunk in chunks.values() for sent in chunk)
    if total > MOST_MESSAGES:
        raise unsupported(NAME, f"{total} messages", f"at most {MOST_MESSAGES}")
    return _Queues(units, chunks, topology, together, max_inflight).run()


def idle(run: Run, queue: str) -> int:
    """Picoseconds, summed over the devices, in which a queue works at nothing before the last unit has ended."""
    busy = {device: Intervals() for device in run.devices}
    for slot in run.slots:
        if slot.queue == queue:
            busy[slot.device].add(slot.start, slot.end)
    return sum(run.duration - intervals.total for intervals in busy.values())


def _chunks(topology: Topology, devices: Sequence[int], unit: Collective) -> list[list[Sent]]:
    """The messages of each chunk, between places in the unit's ranks. Raises `Failure`."""
    used = [devices[rank] for rank in unit.ranks]
    possible = algorithms(topology, used)
    if unit.algorithm not in possible:
        actual = f"unit {unit.id!r} by {unit.algorithm!r} on devices {used}"
        raise unsupported(NAME, actual, f"one of {', '.join(possible)}")
    scheme = algorithm(unit.algorithm, len(used), len(topology.by_node(used)[0]))
    sent = cache(partial(messages, unit.operation, scheme, root=unit.root))
    most = MOST_MESSAGES // max(len(sent(unit.chunk_bytes)), 1)
    if unit.bytes // unit.chunk_bytes > most:
        raise unsupported(NAME, f"unit {unit.id!r} in chunks of {unit.chunk_bytes} bytes", f"at most {most} chunks")
    return [sent(size) for size in unit.chunks]


@dataclass(eq=False)
class _Flight:
    """A chunk in flight: when it was issued, and how many of its messages have not arrived."""

    unit: Collective
    number: int
    start: int
    missing: int


@dataclass(eq=False)
class _State:
    """The progress of a unit: the ranks on which it has ended, and the chunks that were issued and that arrived."""

    ended: set[int] = field(default_factory=set)
    issued: int = 0
    arrived: int = 0


class _Queues:
    """The queues of all devices, and the clock that they share."""

    def __init__(
        self,
        units: Sequence[Unit],
        chunks: Mapping[str, list[list[Sent]]],
        topology: Topology,
        devices: Sequence[int],
        max_inflight: int,
    ) -> None:
        self._units = {unit.id: unit for unit in units}
        self._chunks = chunks
        self._devices = devices
        self._max_inflight = max_inflight
        self._engine = Engine()
        self._progress = Progress(self._engine, topology, self._receive)
        self._woken = False
        """True if `_start_ready` is to be called once all that is due now has happened."""
        self._states = {unit.id: _State() for unit in units}
        order = sorted(units, key=lambda unit: -unit.priority)
        self._computations = [(unit, rank) for unit in order if isinstance(unit, Compute) for rank in unit.ranks]
        self._collectives = [unit for unit in order if isinstance(unit, Collective)]
        self._busy: set[int] = set()
        self._inflight = [0] * len(devices)
        self._slots: list[Slot] = []

    def run(self) -> Run:
        """Run until nothing is left to do."""
        self._start_ready()
        self._engine.run()
        slots = tuple(sorted(self._slots, key=lambda slot: (slot.start, slot.end)))
        return Run(tuple(self._devices), slots, max((slot.end for slot in slots), default=0))

    def _start_ready(self) -> None:
        """Start what can start, at first and whenever computations or chunks have ended."""
        self._woken = False
        while self._issue_one() or self._compute_one():
            pass  # what takes no time may let others start at once

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._engine.call_at(self._engine.now, self._start_ready)

    def _receive(self, part: Part, transfer: Transfer) -> None:
        """A message has arrived, and with the last one its chunk."""
        assert isinstance(part, _Flight), "the part that `_issue` gave"
        part.missing -= 1
        if not part.missing:
            self._end_chunk(part)
        self._wake()

    def _end_chunk(self, flight: _Flight) -> None:
        unit, state, now = flight.unit, self._states[flight.unit.id], self._engine.now
        for rank in unit.ranks:
            self._inflight[rank] -= 1
            self._slots.append(Slot(unit.id, "comm", self._devices[rank], flight.number, flight.start, now))
        state.arrived += 1
        if state.arrived == len(self._chunks[unit.id]):
            state.ended.update(unit.ranks)

    def _issue_one(self) -> bool:
        """Issue the first chunk that can be: of a collective whose values are there, if it fits and has credits."""
        for unit in self._ready_collectives():
            state, chunks = self._states[unit.id], self._chunks[unit.id]
            if not chunks:
                self._collectives.remove(unit)
                state.ended.update(unit.ranks)
                return True
            sent = chunks[state.issued]
            devices = [self._devices[rank] for rank in unit.ranks]
            first = [message for message in sent if message.step == sent[0].step]
            fits = all(self._inflight[rank] < self._max_inflight for rank in unit.ranks)
            if fits and self._progress.has_credits(devices, first):
                self._issue(unit, sent, devices)
                return True
        return False

    def _ready_collectives(self) -> Iterator[Collective]:
        for unit in self._collectives:
            if all(self._is_there(earlier, rank) for earlier in unit.after for rank in unit.ranks):
                yield unit

    def _issue(self, unit: Collective, sent: Sequence[Sent], devices: Sequence[int]) -> None:
        """A chunk takes its place in the queues of all its ranks."""
        state = self._states[unit.id]
        flight = _Flight(unit, state.issued, self._engine.now, len(sent))
        state.issued += 1
        if state.issued == len(self._chunks[unit.id]):
            self._collectives.remove(unit)
        for rank in unit.ranks:
            self._inflight[rank] += 1
        if not sent:
            self._end_chunk(flight)
            return
        self._progress.add(flight, devices, sent, 1, unit.priority)
        self._progress.start()

    def _compute_one(self) -> bool:
        """Start the first computation whose device is free and whose values are there."""
        for place, (unit, rank) in enumerate(self._computations):
            if rank not in self._busy and all(self._is_there(earlier, rank) for earlier in unit.after):
                del self._computations[place]
                self._compute(unit, rank)
                return True
        return False

    def _compute(self, unit: Compute, rank: int) -> None:
        self._busy.add(rank)
        now, end = self._engine.now, self._engine.now + unit.picoseconds
        self._engine.call_at(end, partial(self._end, unit.id, rank))
        self._slots.append(Slot(unit.id, "compute", self._devices[rank], None, now, end))

    def _end(self, name: str, rank: int) -> None:
        """A computation has ended."""
        self._busy.discard(rank)
        self._states[name].ended.add(rank)
        self._wake()

    def _is_there(self, name: str, rank: int) -> bool:
        """True if what a unit awaits has ended: where it runs itself, or, where it does not run there, everywhere."""
        awaited, ended = self._units[name], self._states[name].ended
        return rank in ended if rank in awaited.ranks else len(ended) == len(awaited.ranks)


# The pipelines of section 7 as units for the two queues (collectives spec 7.1, 7.2, 7.3; AMB-COLL-70, -71).
#
# Every unit awaits what it uses, at its use and not before (COLL-02.1-02). What overlaps follows from that alone.


MOST_LAYERS = 256

KIB = 1 << 10
LEAST_CHUNK, MOST_CHUNK = 512 * KIB, 2048 * KIB
"""The bounds of COLL-07.1-04."""

INFLIGHT = 8
"""Chunks in flight of a backward pass; COLL-07.1-02 allows 4 to 8."""

COMPUTED, SENT = DTYPES["fp32"], DTYPES["bf16"]
"""The dtype in which experts compute, and the one that travels to them."""


def data_parallel(layers: int, size: int, picoseconds: int, ranks: Sequence[int]) -> list[Unit]:
    """A training step: weights are gathered as in `prefetch`; on the way back, which takes twice as long and the
    weights of the way forward, each layer's gradients are scattered while the layers before it compute theirs
    (COLL-07.1-01, -03)."""
    units = prefetch(layers, size, picoseconds, ranks)
    before = f"layer{layers - 1}"
    for layer in reversed(range(layers)):
        name = f"backward{layer}"
        units.append(Compute(name, 2 * picoseconds, tuple(ranks), (before,)))
        units.append(_collective("reduce_scatter", f"scatter{layer}", size, ranks, (name,)))
        before = name
    return units


def prefetch(layers: int, size: int, picoseconds: int, ranks: Sequence[int]) -> list[Unit]:
    """A forward pass: the gather of layer k + 1 awaits what layer k awaits, so that both begin together, and layer
    k + 1 awaits it (COLL-07.3-01, -02)."""
    units: list[Unit] = [_collective("all_gather", "gather0", size, ranks, ())]
    for layer in range(layers):
        awaited = (f"gather{layer}", *((f"layer{layer - 1}",) if layer else ()))
        units.append(Compute(f"layer{layer}", picoseconds, tuple(ranks), awaited))
        if layer + 1 < layers:
            units.append(_collective("all_gather", f"gather{layer + 1}", size, ranks, awaited))
    return units


def moe(buckets: int, size: int, picoseconds: int, ranks: Sequence[int]) -> list[Unit]:
    """Experts of every rank, bucket by bucket: while one bucket is computed, others travel (COLL-07.2-01, -02).

    `size` is the bytes of a bucket's tokens in fp32 on a rank. Senders pack tokens and cast them to bf16 chunk by chunk
    as they send, so that nothing of that takes the compute queue, and bf16 travels (COLL-07.2-03, -04).
    """
    units: list[Unit] = [Compute("route", picoseconds, tuple(ranks))]
    wire = size // COMPUTED.storage_bytes * SENT.storage_bytes
    for bucket in range(buckets):
        dispatched, computed = f"dispatch{bucket}", f"expert{bucket}"
        units.append(_collective("all_to_all", dispatched, wire, ranks, ("route",), ("pack", "cast")))
        units.append(Compute(computed, picoseconds, tuple(ranks), (dispatched,)))
        units.append(_collective("all_to_all", f"combine{bucket}", wire, ranks, (computed,), ("cast",)))
    return units


def _collective(
    operation: str, name: str, size: int, ranks: Sequence[int], after: tuple[str, ...], fused: tuple[str, ...] = ()
) -> Collective:
    algorithm = "direct" if operation == "all_to_all" else "ring"
    return Collective(name, operation, algorithm, size, chunk_bytes(size), tuple(ranks), after=after, fused=fused)


PIPELINES: Mapping[str, Callable[[int, int, int, Sequence[int]], list[Unit]]] = {
    pipeline.__name__: pipeline for pipeline in (data_parallel, prefetch, moe)
}
"""By kind: functions of layers, or buckets, the bytes of each, the picoseconds that each takes, and ranks."""


def chunk_bytes(size: int) -> int:
    """The chunks of a layer's gradients: as many as may be in flight, within 512 KiB to 2 MiB (COLL-07.1-04)."""
    ideal = -(-size // INFLIGHT // KIB) * KIB
    return min(max(ideal, LEAST_CHUNK), MOST_CHUNK)


def require_sizes(layers: int, size: int, picoseconds: int) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for numbers of which no pipeline is made."""
    require_within("pipeline", "layers", layers, 1, MOST_LAYERS)
    require_within("pipeline", "bytes", size, 0, 1 << 40)
    require_within("pipeline", "picoseconds", picoseconds, 0, 10**15)


def in_sequence(units: Sequence[Unit]) -> list[Unit]:
    """The same work with a barrier after every unit, to compare with; each must follow the units that it awaits."""
    before = ((), *((unit.id,) for unit in units))
    return [replace(unit, after=after) for unit, after in zip(units, before, strict=False)]


# Tokens to their experts: one bucket of experts at a time, by an all-to-all of its own (COLL-07.2-01 to -04).
#
# Expert e is on rank e // (experts / ranks). Bucket b holds the b-th expert of every rank, so that it is exchanged
# with one block for each expert of it: the tokens of that expert, in their order, and rows of zeros up to the length
# of the longest block (AMB-COLL-34, -71).


@dataclass(frozen=True)
class Bucket:
    """`experts` of a bucket, by rank; `counts[rank][source]` are the tokens that came; `outputs[rank]` is what came, in
    ranks blocks of `rows` rows (shape ranks x rows, features)."""

    experts: tuple[int, ...]
    rows: int
    counts: tuple[tuple[int, ...], ...]
    outputs: tuple[Array, ...]


def dispatch(
    inputs: Sequence[Array], experts: Sequence[Sequence[int]], count: int, wire: DType | None = None
) -> list[Bucket]:
    """The tokens of every rank (tokens, features), each with its expert, as the ranks of those experts get them.

    A token is cast to the wire's dtype as it is packed. Raises `Failure`: TESS_ERR_INVALID_VALUE for experts that are
    not there or do not divide among ranks, TESS_ERR_COLLECTIVE_MISMATCH where the ranks' features differ.
    """
    ranks = len(inputs)
    _require_buckets_fit(inputs, experts, count)
    buckets = []
    for bucket in range(count // ranks):
        members = tuple(rank * (count // ranks) + bucket for rank in range(ranks))
        chosen = [[[t for t, e in enumerate(own) if e == expert] for expert in members] for own in experts]
        rows = max((len(tokens) for own in chosen for tokens in own), default=0)
        packed = [_packed(tokens, own, rows, wire or tokens.dtype) for tokens, own in zip(inputs, chosen, strict=True)]
        outputs = tuple(run("all_to_all", packed, name="direct").outputs)
        counts = tuple(tuple(len(own[rank]) for own in chosen) for rank in range(ranks))
        buckets.append(Bucket(members, rows, counts, outputs))
    return buckets


def _packed(tokens: Array, blocks: Sequence[Sequence[int]], rows: int, wire: DType) -> Array:
    """The blocks of a rank, each padded with zeros, in the wire's dtype."""
    packed = np.zeros((len(blocks) * rows, tokens.shape[1]), tokens.dtype.carrier)
    for place, block in enumerate(blocks):
        packed[place * rows : place * rows + len(block)] = tokens.values[list(block)]
    return cast(Array(tokens.dtype, packed), wire)


def _require_buckets_fit(inputs: Sequence[Array], experts: Sequence[Sequence[int]], count: int) -> None:
    if not inputs:
        raise invalid("dispatch", "no rank takes part", "the tokens of each rank")
    ranks, first = len(inputs), inputs[0]
    if not 1 <= count <= 1 << 12 or count % ranks:
        raise invalid("dispatch", f"{shown(count)} experts for {ranks} ranks", f"a multiple of {ranks}, at most 4096")
    if len(experts) != ranks:
        raise invalid("dispatch", f"experts of {len(experts)} ranks", f"those of {ranks}")
    for rank, (tokens, own) in enumerate(zip(inputs, experts, strict=True)):
        if len(tokens.shape) != 2:
            raise invalid("dispatch", f"rank {rank} has {len(tokens.shape)} axes", "tokens and their features")
        if (tokens.dtype, tokens.shape[1]) != (first.dtype, first.shape[1]):
            actual = f"rank {rank} has {tokens.dtype}{list(tokens.shape)}"
            raise mismatch("dispatch", actual, f"{first.dtype} of {first.shape[1]} features")
        if len(own) != tokens.shape[0]:
            raise invalid("dispatch", f"{len(own)} experts of rank {rank}", f"one for each of {tokens.shape[0]} tokens")
        for token, expert in enumerate(own):
            if not 0 <= expert < count:
                actual = f"expert {shown(expert)} of token {token} of rank {rank}"
                raise invalid("dispatch", actual, f"0 to {count - 1}")


# Traces that Perfetto reads (collectives spec 6, 8): the chunks of a collective as spans on queues and links, flows
# between devices, and counters of the credits and bytes that are in use on each link, each way; and the two queues of
# every device.


COMPUTE_QUEUE, COMM_QUEUE = 0, 1


def chunk_trace(
    operation: str, transfers: Sequence[Transfer], devices: Sequence[int], element_bytes: int, chunk: int | None
) -> str:
    """The trace in the Chrome format: what leaves a device, what it gets, and a flow between.

    A message that was lost is one that left alone.
    """
    records = []
    for number, transfer in enumerate(transfers):
        sent, (start, end) = transfer.sent, (transfer.start, transfer.end)
        part = f" chunk {sent.first // chunk}" if chunk else ""
        elements = f"elements {sent.first} to {sent.first + sent.elements}"
        name = f"{operation} {sent.source} to {sent.target}, step {sent.step}{part}, {elements}"
        size, device = sent.elements * element_bytes, devices[sent.source]
        send = Record("collective", f"send {name}", 0, sent.source, device, start, start, end, size)
        send = replace(send, link=transfer.way.names[0], flow_out=number)
        if transfer.lost:
            records.append(replace(send, name=f"lost send {name}", flow_out=None))
        else:
            receive = replace(send, name=f"receive {name}", rank=sent.target, device=devices[sent.target])
            records += [send, replace(receive, link=None, flow_out=None, flow_in=number)]
    return trace_text(chrome_trace(records, counters=_counters(transfers, element_bytes)))


def _counters(transfers: Sequence[Transfer], element_bytes: int) -> Iterator[LinkCounter]:
    """The credits in use and the bytes in flight on each link each way, at every time at which they change."""
    changes: dict[str, dict[int, tuple[int, int]]] = {}
    for transfer in transfers:
        size = transfer.sent.elements * element_bytes
        for link, end in transfer.way.directions:
            at = changes.setdefault(f"{link} from {end}", {})
            for time, sign in ((transfer.start, 1), (transfer.end, -1)):
                credits, in_flight = at.get(time, (0, 0))
                at[time] = (credits + sign, in_flight + sign * size)
    for way in sorted(changes):
        credits = in_flight = 0
        for time, (more_credits, more_bytes) in sorted(changes[way].items()):
            credits, in_flight = credits + more_credits, in_flight + more_bytes
            yield LinkCounter(f"credits of {way}", time, "in_use", credits)
            yield LinkCounter(f"bytes of {way}", time, "in_flight", in_flight)


def queue_trace(run: Run, units: Sequence[Unit]) -> str:
    """The trace in the Chrome format, one row for each queue of a device and for chunks that are in flight beside."""
    units_by_id = {unit.id: unit for unit in units}
    records = []
    for slot in run.slots:
        unit, rank, times = units_by_id[slot.id], run.devices.index(slot.device), (slot.start, slot.start, slot.end)
        if isinstance(unit, Collective) and slot.chunk is not None:
            name, size = f"{slot.id} chunk {slot.chunk}", unit.chunks[slot.chunk]
            records.append(Record("collective", name, COMM_QUEUE, rank, slot.device, *times, size))
        else:
            records.append(Record("kernel", slot.id, COMPUTE_QUEUE, rank, slot.device, *times))
    return trace_text(chrome_trace(records, Names(streams={COMPUTE_QUEUE: "ComputeQ", COMM_QUEUE: "CommQ"})))
