"""The units of a plan, executed on all ranks, and their times (collectives spec 2.1 to 2.4, 4.1, 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..abi.status import Failure, Status
from ..graph.collectives import AllReduce, Reducing, RootBroadcast, RootSum, resolve_axis
from ..graph.execution import Group
from ..graph.futures import FutureCollective, GroupCollective, PointToPoint
from ..graph.grad import Grad
from ..graph.interpreter import Frame, Interpreter, reachable
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.operation import Block, Function, Instruction, Module, Refusal, diagnostic_of
from ..ir.types import Shard, Value
from ..mesh.topology import Topology
from ..numerics.arithmetic import multiply
from ..numerics.array import Array
from ..numerics.formats import DType, dtype
from ..numerics.rounding import cast
from . import queues
from .planner import NAME, Compute, Fold, Issue, Part, Plan, Unit, elements, unsupported
from .programs import as_sent, combine_at, joined_order, ordered, reduced
from .queues import simulate
from .schedules import require_within
from .selection import select
from .travel import algorithms

# Which ranks meet for each collective of a plan (COLL-02.2-03; AMB-COLL-51).


Groups = Mapping[Issue, tuple[tuple[int, ...], ...]]


def groups_of(plan: Plan, module: Module, function: Function, mesh: str) -> Groups:
    """The groups of each collective, in order of their first ranks. Raises `Rejection` for a rank that is in none."""
    issues = [step for step in plan.program.steps if isinstance(step, Issue)]
    try:
        return {step: _groups(step, module, mesh) for step in issues}
    except Refusal as refusal:
        raise Rejection([diagnostic_of(refusal, function.location, phase="execute")]) from refusal


def _groups(step: Issue, module: Module, running: str) -> tuple[tuple[int, ...], ...]:
    """Raises `Refusal`."""
    operation, ranks = step.operation, module.meshes[running].size
    if isinstance(operation, FutureCollective):
        name, met = operation.grid, operation.met
    else:
        name, _ = resolve_axis(module.meshes, operation.axis, operation.mesh or running)
        met = Shard((operation.axis,))
    mesh = module.meshes[name]
    message = f"{step.name} on mesh {name} of {mesh.size} ranks"
    if mesh.size != ranks:
        raise Refusal("distributed", message, f"a mesh of {ranks} ranks", "LANG-05.4-04", "name the mesh")
    return tuple(dict.fromkeys(Group.in_shard(name, mesh, met, rank).ranks for rank in range(ranks)))


# What a chunk of a collective brings to the ranks of a group (COLL-02.3-01, COLL-08-09; AMB-COLL-55, -88).
#
# A chunk is a range of the elements that every rank brings. All-reduce and broadcast leave elements where they are;
# of the others the definition, applied to the places of elements instead of values, says where each of them goes.


Places: TypeAlias = npt.NDArray[np.int64]

Brought: TypeAlias = tuple[Places, Array]
"""Places of the flat result, and the elements for them."""

PLACES = dtype("int64")


class Exchange:
    """A collective of a group of some ranks, chunk by chunk."""

    def __init__(self, step: Issue, ranks: int, level: str = "strict") -> None:
        """Raises `Failure` with TESS_ERR_UNSUPPORTED for a collective that the dialect does not have."""
        operation = step.operation
        self._plain = operation.plain() if isinstance(operation, GroupCollective) else operation
        if isinstance(self._plain, RootSum | PointToPoint):
            raise Failure(Status.TESS_ERR_UNSUPPORTED, NAME, operation.name, "a collective of a whole group")
        self._ranks = ranks
        self._operation = operation
        self._lossy = level == "fast"
        self._order = joined_order(operation, step.types, ranks) if ordered(operation, level) else None
        self._stays = isinstance(self._plain, AllReduce | RootBroadcast)
        self._origins: Sequence[Places] = () if self._stays else self._moved()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what each rank is given, of a collective of one tensor."""
        result = self._plain.given()
        return tuple(int(extent) for extent in result.shape)

    def bring(self, first: int, chunk: Sequence[Array]) -> list[Brought]:
        """Return every rank's part of the elements from `first` on, of which `chunk` has those of every rank, flat.

        Raises `Failure` with TESS_ERR_UNSUPPORTED for a chunk of a tensor that travels in blocks with scales, whose
        blocks are those of the whole tensor (AMB-COLL-63).
        """
        count = chunk[0].values.size
        if self._lossy and isinstance(self._operation, FutureCollective) and self._operation.qscheme:
            if count != elements(self._plain.x):
                raise unsupported("a chunk of blocks that have scales", "a collective of one chunk")
            shape = tuple(int(extent) for extent in self._plain.x.shape)
            results = combine_at("fast")(self._operation, [Array(x.dtype, x.values.reshape(shape)) for x in chunk])
            return [(np.arange(x.values.size), Array(x.dtype, x.values.reshape(-1))) for x in results]
        reduces = isinstance(self._plain, Reducing)

        def rows_of(sent: Sequence[Array]) -> Sequence[Array]:
            return [reduced(self._plain.op, sent, self._order, first)] if isinstance(self._plain, Reducing) else sent

        rows = as_sent(self._operation, chunk, rows_of) if self._lossy else rows_of(chunk)
        if self._stays:
            places = np.arange(first, first + count, dtype=np.int64)
            combined = [*rows] * self._ranks if reduces else self._plain.combine(rows)
            return [(places, value) for value in combined]
        values = np.concatenate([row.values for row in rows])
        return [self._taken(origin, first, count, chunk[0], values) for origin in self._origins]

    def _taken(self, origin: Places, first: int, count: int, like: Array, values: npt.NDArray[Any]) -> Brought:
        """The elements of a result that come from this chunk."""
        size = elements(self._plain.x)
        row, place = origin // max(size, 1), origin % max(size, 1)
        here = np.flatnonzero((place >= first) & (place < first + count))
        return here, Array(like.dtype, values[row[here] * count + place[here] - first])

    def _moved(self) -> list[Places]:
        """Return the source of each element of each result: row times the elements of one rank, plus place.

        A row is a rank, or, where ranks are combined, the only one.
        """
        size = elements(self._plain.x)
        shape = tuple(int(extent) for extent in self._plain.x.shape)
        reduces = isinstance(self._plain, Reducing)
        rows = [np.arange(size, dtype=np.int64) + (0 if reduces else rank * size) for rank in range(self._ranks)]
        inputs = [Array(PLACES, row.reshape(shape)) for row in rows]
        plain = self._plain
        moved = plain.dealt(inputs[0], self._ranks) if isinstance(plain, Reducing) else plain.combine(inputs)
        return [array.values.reshape(-1) for array in moved]


# The units of a plan, executed on all ranks in any order that they allow (collectives spec 2.1, 2.3, 2.4, 8, 9).
#
# COLL-02.3-04, -05, COLL-02.4-01 to -05, COLL-08-09, -10; AMB-COLL-87 to -89. A chunk starts on each rank when what
# it waits for has ended there: the rank puts its elements, with what is folded before them, into the chunk's buffer.
# It ends for a group once all its ranks have started it. A wait takes what has landed, whatever that is. So a plan
# that reuses a buffer, or waits, too early has other bits in some order; one that keeps its promises has those of the
# program in all.


Flat: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Progress:
    """A unit starts or ends on a rank."""

    unit: int
    rank: int
    event: Literal["start", "end"]


def run_plan(
    module: Module,
    function: Function,
    plan: Plan,
    arguments: Sequence[tuple[Array, ...]],
    groups: Groups,
    seed: int | None = None,
    level: str = "strict",
) -> tuple[list[tuple[Array, ...]], list[Progress]]:
    """The results of every rank, and the order of what happened: as it became possible, or as a seed chooses.

    `arguments` are those of each rank, `groups` the ranks that take part in each collective; under another level than
    strict what is reduced is reduced in the order of its algorithm (AMB-COLL-96).

    Raises `Failure` with TESS_ERR_UNSUPPORTED for derivatives and for returns within regions, `Rejection` for the
    error of a rank, `UnsupportedConstruct` where one goes beyond the interpreter.
    """
    _require_plain(module, function)
    run = _Run(module, function, plan, arguments, groups, level)
    run.run(None if seed is None else Random(seed))
    results = [tuple(rank.frame[value] for value in function.body.results) for rank in run.ranks]
    return results, run.progress


def _require_plain(module: Module, function: Function) -> None:
    if any(isinstance(callee.operation, Grad) for callee in reachable(module, function)):
        raise unsupported(f"@{function.name} takes derivatives", "a program that is differentiated already")
    for instruction in function.body.walk():
        if any(block.exit == "return" for block in instruction.regions):
            actual = f"@{function.name} returns within {instruction.operation.name}"
            raise unsupported(actual, "a return at the end")


class _Rank:
    """The values of a rank."""

    def __init__(self, module: Module, function: Function, arguments: tuple[Array, ...]) -> None:
        self.interpreter = Interpreter(module)
        self.frame: Frame = dict(zip(function.body.arguments, arguments, strict=True))
        self.buffers: dict[tuple[Issue, int], Flat] = {}
        self.landed: dict[Value, Flat] = {}
        """The part of each future that has arrived in chunks, flat, zeros elsewhere."""
        self.ended: set[int] = set()

    def compute(self, instruction: Instruction) -> None:
        """Execute an instruction."""
        steps = self.interpreter.block(Block((), (instruction,), instruction.results, "yield"), (), self.frame)
        try:
            next(steps)
        except StopIteration:
            return
        except RecursionError:
            raise UnsupportedConstruct("execute.deep_calls", instruction.location) from None
        raise AssertionError("a collective within an instruction")  # which the planner has ruled out


Action: TypeAlias = tuple[Unit, tuple[int, ...], Literal["start", "end"]]
"""A unit, the ranks on which something happens to it, and what."""


class _Run:
    """The ranks of one run, and what can happen next."""

    def __init__(
        self,
        module: Module,
        function: Function,
        plan: Plan,
        arguments: Sequence[tuple[Array, ...]],
        groups: Groups,
        level: str,
    ) -> None:
        self.plan = plan
        self.groups = groups
        self.ranks = [_Rank(module, function, given) for given in arguments]
        self.progress: list[Progress] = []
        self.exchanges = {step: Exchange(step, len(some[0]), level) for step, some in groups.items()}
        self.ready: list[Action] = []
        self.started: dict[tuple[int, tuple[int, ...]], set[int]] = {}
        self.waiting = [{unit.id: unit for unit in plan.units} for _ in arguments]
        """The units of each rank that cannot start yet."""
        self.next: dict[int, list[Unit]] = {unit.id: [] for unit in plan.units}
        """The units that wait for a unit."""
        self.chunks: dict[Issue, list[Unit]] = {step: [] for step in groups}
        for unit in plan.units:
            for other in unit.after:
                self.next[other].append(unit)
            step = plan.steps[unit.id]
            if isinstance(step, Issue):
                self.chunks[step].append(unit)

    def run(self, random: Random | None) -> None:
        """Let happen what can happen, until nothing can."""
        for rank in range(len(self.ranks)):
            self._release(rank, self.plan.units)
        while self.ready:
            unit, ranks, event = self.ready.pop(0 if random is None else random.randrange(len(self.ready)))
            self.progress += [Progress(unit.id, rank, event) for rank in ranks]
            step = self.plan.steps[unit.id]
            if not isinstance(step, Issue):
                (rank,) = ranks
                self._compute(step, self.ranks[rank])
                self.progress.append(Progress(unit.id, rank, "end"))
                self._end(unit, ranks)
            elif event == "start":
                self._start(unit, step, ranks[0])
            else:
                self._exchange(unit, step, ranks)
                self._end(unit, ranks)

    def _release(self, rank: int, units: Sequence[Unit]) -> None:
        """Those of some units that a rank can start now."""
        for unit in units:
            if self.ranks[rank].ended.issuperset(unit.after):
                self.ready.append((self.waiting[rank].pop(unit.id), (rank,), "start"))

    def _end(self, unit: Unit, ranks: Sequence[int]) -> None:
        for rank in ranks:
            self.ranks[rank].ended.add(unit.id)
            self._release(rank, self.next[unit.id])

    def _compute(self, step: Compute | Value, rank: _Rank) -> None:
        """An instruction, or a wait: the value of a future under all its names."""
        if isinstance(step, Compute):
            if step.instruction is not None:
                rank.compute(step.instruction)
            return
        issue = next(other for other in self.groups if step in other.futures)
        place = issue.futures.index(step)
        held = self._landing(rank, issue, place).reshape(self._shape(issue, place)).copy()
        value = Array(_landing_dtype(issue, self._folds(issue)), held)
        names = [name for name in self.plan.program.awaited if self.plan.program.known_as(name) is step]
        rank.frame.update(dict.fromkeys((step, *names), value))

    def _start(self, unit: Unit, step: Issue, rank: int) -> None:
        """A rank puts its elements into the buffer of the chunk."""
        here = self.ranks[rank]
        first, count = _chunk(unit)
        slot = _slot(unit, step)
        if slot not in here.buffers:
            here.buffers[slot] = np.zeros(self._room(step), step.operation.x.dtype.carrier)
        buffer = here.buffers[slot]
        for part, source in zip(_parts(unit, step), step.sources, strict=True):
            begin, end = max(part.first, first), min(part.first + part.count, first + count)
            if begin < end:
                values = here.frame[source].values.reshape(-1)[begin - part.first : end - part.first]
                given = _folded(unit.folds, "before", Array(here.frame[source].dtype, values), step, here.frame)
                buffer[begin - first : end - first] = given.values
        group = next(ranks for ranks in self.groups[step] if rank in ranks)
        started = self.started.setdefault((unit.id, group), set())
        started.add(rank)
        if len(started) == len(group):
            self.ready.append((unit, group, "end"))

    def _exchange(self, unit: Unit, step: Issue, group: Sequence[int]) -> None:
        """Combine the buffers of a group, and write the result to its futures."""
        first, count = _chunk(unit)
        members = [self.ranks[rank] for rank in group]
        slot = _slot(unit, step)
        sent = [Array(step.operation.x.dtype, rank.buffers[slot][:count].copy()) for rank in members]
        for rank, (places, given) in zip(members, self.exchanges[step].bring(first, sent), strict=True):
            values = _folded(unit.folds, "after", given, step, rank.frame).values
            for place, part in enumerate(_parts(unit, step)):
                here = np.ones(places.size, bool)
                if len(step.sources) > 1:
                    here = (places >= part.first) & (places < part.first + part.count)
                self._landing(rank, step, place)[places[here] - part.first] = values[here]

    def _landing(self, rank: _Rank, step: Issue, place: int) -> Flat:
        """Return the elements of a future that a chunk writes."""
        future = step.futures[place]
        if future not in rank.landed:
            count = prod(self._shape(step, place))
            rank.landed[future] = np.zeros(count, _landing_dtype(step, self._folds(step)).carrier)
        return rank.landed[future]

    def _shape(self, step: Issue, place: int) -> tuple[int, ...]:
        """The shape of a future's value; what is joined keeps its shape."""
        if len(step.types) == 1:
            return self.exchanges[step].shape
        return tuple(int(extent) for extent in step.types[place].shape)

    def _room(self, step: Issue) -> int:
        """The elements of the largest chunk, which is the first."""
        return _chunk(self.chunks[step][0])[1]

    def _folds(self, step: Issue) -> Sequence[Fold]:
        return self.chunks[step][0].folds


def _chunk(unit: Unit) -> tuple[int, int]:
    assert unit.chunk is not None, "a unit of the communication queue"
    return unit.chunk


def _slot(unit: Unit, step: Issue) -> tuple[Issue, int]:
    """The buffer of a chunk; its own where the plan names none."""
    return step, unit.id if unit.buffer is None else unit.buffer


def _parts(unit: Unit, step: Issue) -> Sequence[Part]:
    """Return the place of each tensor of a step; a single one takes all of it."""
    return unit.parts or (Part(f"%{step.futures[0].name}", 0, elements(step.types[0])),)


def _landing_dtype(step: Issue, folds: Sequence[Fold]) -> DType:
    """Return the dtype of a rank's result: that of the data, or of the last cast behind it."""
    casts = [fold.by for fold in folds if (fold.kind, fold.at) == ("cast", "after")]
    return dtype(casts[-1]) if casts else step.operation.x.dtype


def _folded(folds: Sequence[Fold], at: str, given: Array, step: Issue, frame: Frame) -> Array:
    """A chunk with what the collective does beside, on one side."""
    scalars = {by: value for _, _, by, value in step.folds if value is not None}
    for fold in folds:
        if fold.at == at:
            scale = fold.kind == "scale"
            given = multiply(given, frame[scalars[fold.by]]) if scale else cast(given, dtype(fold.by))
    return given


# The times of a plan's units, as work of the two queues of every device (collectives spec 4.1; AMB-COLL-90).
#
# A computation takes the same time on every rank, a wait and the return take none. A chunk is a collective by the
# algorithm that the program names for it, or that is selected for all of its tensor.


MOST = 1 << 16
"""Chunks in flight where a plan sets no bound itself."""


def time_plan(
    plan: Plan, groups: Groups, ranks: int, topology: Topology, picoseconds: int, max_inflight: int | None = None
) -> queues.Run:
    """The run of a plan on the first devices of a topology; a slot is named by its unit's number.

    A computation is one unit of all ranks, or, where ranks wait for different chunks, one of each.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for more ranks than devices, and as `select` and `simulate`.
    """
    require_within(NAME, "number of ranks", ranks, 1, len(topology.devices))
    everyone = tuple(range(ranks))
    whole = all(some == (everyone,) for some in groups.values())
    alone = (everyone,) if whole else tuple((rank,) for rank in everyone)
    meeting = {number: groups[step] if isinstance(step, Issue) else alone for number, step in plan.steps.items()}
    chosen = {step: _algorithm(step, groups[step][0], topology) for step in groups}
    work: list[queues.Unit] = []
    for unit in plan.units:
        for members in meeting[unit.id]:
            name, step = _name(unit.id, members), plan.steps[unit.id]
            after = tuple(
                _name(other, some) for other in unit.after for some in meeting[other] if set(some) & set(members)
            )
            if isinstance(step, Issue):
                work.append(_collective(name, unit, step, chosen[step], members, after))
            else:
                takes = picoseconds if isinstance(step, Compute) and step.instruction is not None else 0
                work.append(queues.Compute(name, takes, members, after))
    devices = [device.id for device in topology.devices[:ranks]]
    return simulate(work, topology, devices, max_inflight or MOST)


def _collective(
    name: str, unit: Unit, step: Issue, algorithm: str, ranks: tuple[int, ...], after: tuple[str, ...]
) -> queues.Collective:
    assert unit.chunk is not None, "a unit of the communication queue"
    size = unit.chunk[1] * dtype(unit.wire or step.operation.x.dtype.name).storage_bytes * _times_larger(step)
    root = int(str(step.operation.attributes.get("root", 0)))
    return queues.Collective(name, _short(step), algorithm, size, max(size, 1), ranks, root, after)


def _algorithm(step: Issue, group: Sequence[int], topology: Topology) -> str:
    """The one that is named, or selected for as many devices, or, where this group cannot run that, a ring."""
    size = sum(map(elements, step.types)) * step.operation.x.dtype.storage_bytes * _times_larger(step)
    hint = step.operation.attributes.get("algo") or "auto"
    selection = select(_short(step), size, step.operation.group, topology, str(hint))
    devices = [topology.devices[rank].id for rank in group]
    follows = selection.source == "hint" or selection.algorithm in algorithms(topology, devices)
    return selection.algorithm if follows else "ring"


def _name(unit: int, ranks: tuple[int, ...]) -> str:
    return f"{unit}/{ranks[0]}"


def _short(step: Issue) -> str:
    return step.name.rpartition(".")[2]


def _times_larger(step: Issue) -> int:
    """Return how many times the full buffer is larger than a rank's contribution."""
    return step.operation.group if _short(step) == "all_gather" else 1
