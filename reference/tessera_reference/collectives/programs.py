"""Programs of the dialect of collectives, and their plans (collectives spec 2, 4.1, 8).

The order of their combinations, their run, the units of a plan on all ranks, and the times of these units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..abi.status import mismatch, unsupported, violation
from ..graph.collectives import AllReduce, Collective, ReduceScatter, Reducing, RootSum
from ..graph.execution import Combine, Disagreement, Group, canonically, execute_on_mesh
from ..graph.futures import WIRES, FutureCollective, GroupCollective, PointToPoint, loses
from ..graph.grad import Grad
from ..graph.interpreter import Frame, InputMismatch, Interpreter, reachable
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.operation import Block, Function, Instruction, Module, Refusal, diagnostic_of
from ..ir.types import Future, Numeric, Value
from ..mesh.topology import Topology
from ..numerics.arithmetic import multiply
from ..numerics.array import Array
from ..numerics.collectives import parts
from ..numerics.formats import DType, dtype
from ..numerics.rounding import cast
from . import queues
from .compression import read_compression
from .delivery import in_turn
from .operations import ONE, combined, over_wire
from .planner import NAME, Compute, Fold, Issue, Plan, Unit, elements
from .queues import simulate
from .schedules import algorithm, require_within
from .selection import select
from .travel import algorithms

# In which order the collectives of a program combine what ranks bring (LANG-09-05, -06; AMB-COLL-29, -96).
#
# Under strict over the canonical tree, whatever travels how. Under other levels a collective of the dialect has the
# order of its algorithm: the one that it names, or the one that is selected for its bytes where it leaves that to
# auto. Collectives of Graph IR, `dist.*`, name none and have the canonical tree at every level.


def combine_at(level: str) -> Combine:
    """Return the function by which the collectives of a program combine at a level."""
    if level == "fast":
        return as_sent
    return canonically if level == "strict" else _by_algorithm


def as_sent(operation: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """Return every rank's result of data that travel as the operation's `dtype` (AMB-COLL-53, AMB-COLL-61)."""
    if not isinstance(operation, FutureCollective) or not loses(operation.dtype, operation.x.dtype):
        return _by_algorithm(operation, contributions)
    compression = read_compression(operation.name, operation.dtype, operation.qscheme)
    return over_wire(operation.short_name, contributions, compression, partial(_by_algorithm, operation))


def _by_algorithm(operation: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """Return every rank's result: reductions of the dialect in the order of their algorithm, the others as they are.

    The share of a rank is what an all-reduce shares out, of a reduce-scatter the part that the rank is given.
    """
    plain = operation.plain() if isinstance(operation, GroupCollective) else operation
    if not isinstance(operation, GroupCollective) or not isinstance(plain, AllReduce | ReduceScatter):
        return operation.combine(contributions)
    ranks, x = len(contributions), contributions[0]
    used = algorithm(_algorithm(operation, x.values.size, ranks), ranks)
    total = partial(combined, used, plain.op, "deterministic", ONE)
    if isinstance(plain, AllReduce):
        return [total(contributions)] * ranks
    shares = [[part.values for part in parts(contribution, plain.dim, ranks)] for contribution in contributions]
    return [Array(x.dtype, part) for part in total([Array(x.dtype, np.stack(values)) for values in shares]).values]


def _algorithm(operation: GroupCollective, size: int, ranks: int) -> str:
    """The algorithm that a collective names, or that the table by size has for its full buffer."""
    if operation.algo not in (None, "auto"):
        return str(operation.algo)
    return select(operation.short_name, size * operation.x.dtype.storage_bytes, ranks).algorithm


# Running a program on every rank of a mesh. What a wire may lose is decided before, for the whole program.
#
# Collectives spec 2; AMB-COLL-05, AMB-COLL-53.


_EXECUTE = "collectives.execute"


def run_program(
    module: Module,
    function: Function,
    inputs: Sequence[Mapping[str, Array]],
    mesh: str | None = None,
    level: str = "strict",
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, inputs and results by rank, with the bits of a level (AMB-COLL-96).

    Under level fast data are rounded to the wire's dtype that the program names (AMB-COLL-61).

    Raises as `execute_on_mesh`, and `Failure`: TESS_ERR_DETERMINISM_VIOLATION for a wire that would lose bits,
    TESS_ERR_COLLECTIVE_MISMATCH for ranks that do not come together.
    """
    require_runnable(module, function, lossy=level == "fast")
    try:
        return execute_on_mesh(module, function.name, inputs, mesh, combine=combine_at(level))
    except Disagreement as disagreement:
        (diagnostic,) = disagreement.diagnostics
        actual = "; ".join((diagnostic.message, *diagnostic.operands))
        raise mismatch(_EXECUTE, actual, diagnostic.requirement) from disagreement


def require_runnable(module: Module, function: Function, lossy: bool = False) -> None:
    """Refuse futures that leave a function, and, unless `lossy`, wires that lose bits.

    Raises `InputMismatch`, and `Failure` with TESS_ERR_DETERMINISM_VIOLATION.
    """
    parameters = [(parameter.name, parameter.type) for parameter in function.parameters]
    for name, type_ in (*parameters, *((f"a result of @{function.name}", result) for result in function.results)):
        if isinstance(type_, Future):
            raise InputMismatch(name, f"{type_.value}, which leaves the program", str(type_), "await it")
    if not lossy:
        _require_lossless(module, function)


def _require_lossless(module: Module, function: Function) -> None:
    for instruction in reachable(module, function):
        operation = instruction.operation
        if isinstance(operation, FutureCollective) and loses(operation.dtype, operation.x.dtype):
            scheme = f" and qscheme {operation.qscheme}" if operation.qscheme else ""
            wire = f"dtype {operation.dtype}{scheme}"
            actual = f"{operation.name} of {operation.x.dtype} over {wire} at {instruction.location}"
            wires = [name for name in WIRES if not loses(name, operation.x.dtype)]
            expected = f"one of {', '.join(wires)}, no dtype, or level fast" if wires else "no dtype, or level fast"
            raise violation(_EXECUTE, actual, expected)


# Which ranks meet for each collective of a plan (COLL-02.2-03; AMB-COLL-51).


Groups = Mapping[Issue, tuple[tuple[int, ...], ...]]


def groups_of(plan: Plan, module: Module, function: Function, mesh: str) -> Groups:
    """The groups of each collective, in order of their first ranks. Raises `Rejection` for a rank that is in none."""
    issues = [step for step in plan.program.steps if isinstance(step, Issue)]
    try:
        return {step: _groups(step, module, module.meshes[mesh].size) for step in issues}
    except Refusal as refusal:
        raise Rejection([diagnostic_of(refusal, function.location, phase="execute")]) from refusal


def _groups(step: Issue, module: Module, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Raises `Refusal`."""
    name, met = step.operation.grid, step.operation.met
    mesh = module.meshes[name]
    if mesh.size != ranks:
        message = f"{step.name} on mesh {name} of {mesh.size} ranks"
        raise Refusal("distributed", message, f"a mesh of {ranks} ranks", "LANG-05.4-04", "name the mesh")
    return tuple(dict.fromkeys(Group.in_shard(name, mesh, met, rank).ranks for rank in range(ranks)))


# What a chunk of a collective brings to the ranks of a group (COLL-02.3-01, COLL-08-09; AMB-COLL-55, -88).
#
# A chunk is a range of the elements that every rank brings. The collective of the program, applied to tensors that
# hold the chunk alone, gives its elements of the results; applied to marks, it says where they are.


Flat: TypeAlias = npt.NDArray[Any]

Placed: TypeAlias = tuple[npt.NDArray[np.bool_], Array]
"""Marks of places of a result, and the elements for them."""


class Exchange:
    """A collective of a group of ranks, chunk by chunk."""

    def __init__(self, step: Issue, level: str) -> None:
        """Raises `Failure` with TESS_ERR_UNSUPPORTED for a collective that the dialect does not have."""
        self.operation = step.operation
        self.plain = self.operation.plain() if isinstance(self.operation, GroupCollective) else self.operation
        if isinstance(self.plain, RootSum | PointToPoint):
            raise unsupported(NAME, self.operation.name, "a collective of a whole group")
        scheme = self.operation.qscheme if isinstance(self.operation, FutureCollective) else None
        self._whole = level == "fast" and scheme is not None
        self.combine = combine_at(level)

    def results(self, type_: Numeric, first: int, chunk: Sequence[Array]) -> list[Placed]:
        """Return every rank's part of what comes from `chunk`, whose elements have the places from `first` on.

        There is none where the tensor has none of these places. Raises `Failure` with TESS_ERR_UNSUPPORTED for a chunk
        of a tensor that travels in blocks with scales, whose blocks are those of the whole tensor (AMB-COLL-63).
        """
        size = elements(type_)
        begin, end = max(first, 0), min(first + chunk[0].values.size, size)
        if self._whole and end - begin != size:
            raise unsupported(NAME, "a chunk of blocks that have scales", "a collective of one chunk")
        if begin >= end:
            return []

        def alone(values: Flat) -> Flat:
            tensor = np.zeros(size, values.dtype)
            tensor[begin:end] = values
            return tensor.reshape(_shape(type_))

        tensors = [Array(x.dtype, alone(x.values[begin - first : end - first])) for x in chunk]
        mark = Array(dtype("bool"), alone(np.ones(end - begin, np.bool_)))
        plain = replace(self.plain, op="max") if isinstance(self.plain, Reducing) else self.plain
        marks = plain.combine([mark] * len(chunk))
        results = self.combine(self.operation, tensors)
        return [(m.values, Array(x.dtype, x.values[m.values])) for m, x in zip(marks, results, strict=True)]


def _shape(type_: Numeric) -> tuple[int, ...]:
    """The extents of a type that is known."""
    return tuple(int(extent) for extent in type_.shape)


# The units of a plan, executed on all ranks in any order that they allow (collectives spec 2.1, 2.3, 2.4, 8, 9).
#
# COLL-02.3-04, -05, COLL-02.4-01 to -05, COLL-08-09, -10; AMB-COLL-87 to -89. A chunk starts on each rank when what
# it waits for has ended there: the rank puts its elements, with what is folded before them, into the chunk's buffer.
# It ends for a group once all its ranks have started it. A wait takes what has landed, whatever that is. So a plan
# that reuses a buffer, or waits, too early has other bits in some order; one that keeps its promises has those of the
# program in all.


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
    ranks = [_Rank(module, function, own) for own in arguments]
    progress = _Run(plan, ranks, groups, level).run(None if seed is None else Random(seed))
    return [tuple(rank.frame[value] for value in function.body.results) for rank in ranks], progress


def _require_plain(module: Module, function: Function) -> None:
    if any(isinstance(callee.operation, Grad) for callee in reachable(module, function)):
        raise unsupported(NAME, f"@{function.name} takes derivatives", "a program that is differentiated already")
    for instruction in function.body.walk():
        if any(block.exit == "return" for block in instruction.regions):
            actual = f"@{function.name} returns within {instruction.operation.name}"
            raise unsupported(NAME, actual, "a return at the end")


class _Rank:
    """The values of a rank."""

    def __init__(self, module: Module, function: Function, arguments: tuple[Array, ...]) -> None:
        self.interpreter = Interpreter(module)
        self.frame: Frame = dict(zip(function.body.arguments, arguments, strict=True))
        self.buffers: dict[tuple[Issue, int], Flat] = {}
        self.landed: dict[Value, Flat] = {}
        """The part of each future that has arrived in chunks, zeros elsewhere."""

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


def _order(plan: Plan, groups: Groups, ranks: int) -> Mapping[Progress, Sequence[Progress]]:
    """Return the events for which each event waits; the end of a group's chunk is that on its first rank."""
    ends: dict[tuple[int, int], Progress] = {}
    """By unit and rank; a computation is done as it starts."""
    for unit in plan.units:
        if isinstance(unit.step, Issue):
            for group in groups[unit.step]:
                ends |= dict.fromkeys(((unit.id, rank) for rank in group), Progress(unit.id, group[0], "end"))
        else:
            ends |= {(unit.id, rank): Progress(unit.id, rank, "start") for rank in range(ranks)}
    order = {
        Progress(unit.id, rank, "start"): [ends[earlier, rank] for earlier in unit.after]
        for rank in range(ranks)
        for unit in plan.units
    }
    for (number, rank), end in ends.items():
        if end.event == "end":
            order.setdefault(end, []).append(Progress(number, rank, "start"))
    return order


class _Run:
    """The ranks of one run."""

    def __init__(self, plan: Plan, ranks: Sequence[_Rank], groups: Groups, level: str) -> None:
        self.plan = plan
        self.ranks = ranks
        self.groups = groups
        self.exchanges = {step: Exchange(step, level) for step in groups}
        self.largest = {step: max(unit.chunk[1] for unit in plan.units if unit.step is step) for step in groups}
        """The elements of the largest chunk of each collective."""

    def run(self, random: Random | None) -> list[Progress]:
        """Let happen what can happen, until nothing can; returns what happened."""
        progress: list[Progress] = []
        for event in in_turn(_order(self.plan, self.groups, len(self.ranks)), random):
            unit = self.plan.units[event.unit]
            if not isinstance(unit.step, Issue):
                progress += [event, replace(event, event="end")]
                self._compute(unit.step, self.ranks[event.rank])
            elif event.event == "start":
                progress.append(event)
                self._start(unit, unit.step, event.rank)
            else:
                group = next(ranks for ranks in self.groups[unit.step] if ranks[0] == event.rank)
                progress += [replace(event, rank=rank) for rank in group]
                self._exchange(unit, unit.step, group)
        return progress

    def _compute(self, step: Compute | Value, rank: _Rank) -> None:
        """An instruction, or a wait: the value of a future under all its names."""
        if isinstance(step, Compute):
            if step.instruction is not None:
                rank.compute(step.instruction)
            return
        issue = next(other for other in self.groups if step in other.futures)
        value = Array(_type_landed(issue), self._landing(rank, issue, issue.futures.index(step)).copy())
        names = [name for name in self.plan.program.awaited if self.plan.program.known_as(name) is step]
        rank.frame.update(dict.fromkeys((step, *names), value))

    def _start(self, unit: Unit, step: Issue, rank: int) -> None:
        """A rank puts its elements into the buffer of the chunk."""
        here = self.ranks[rank]
        first, count = unit.chunk
        slot = _slot(unit, step)
        if slot not in here.buffers:
            here.buffers[slot] = np.zeros(self.largest[step], step.operation.x.dtype.carrier)
        for part, source in zip(step.parts, step.sources, strict=True):
            begin, end = max(part.first, first), min(part.first + part.count, first + count)
            if begin < end:
                values = here.frame[source].values.reshape(-1)[begin - part.first : end - part.first]
                sent = _folded(step.folds, "before", Array(here.frame[source].dtype, values), here.frame)
                here.buffers[slot][begin - first : end - first] = sent.values

    def _exchange(self, unit: Unit, step: Issue, group: Sequence[int]) -> None:
        """Combine the buffers of a group, and write the result to its futures."""
        first, count = unit.chunk
        members = [self.ranks[rank] for rank in group]
        slot = _slot(unit, step)
        sent = [Array(step.operation.x.dtype, rank.buffers[slot][:count].copy()) for rank in members]
        for place, (part, type_) in enumerate(zip(step.parts, step.types, strict=True)):
            results = self.exchanges[step].results(type_, first - part.first, sent)
            for rank, (marks, result) in zip(members, results, strict=False):
                values = _folded(step.folds, "after", result, rank.frame).values
                self._landing(rank, step, place)[marks] = values

    def _landing(self, rank: _Rank, step: Issue, place: int) -> Flat:
        """Return the elements of a future, in which chunks write."""
        future = step.futures[place]
        if future not in rank.landed:
            joined = len(step.types) > 1  # what is joined keeps its shape
            type_ = step.types[place] if joined else self.exchanges[step].plain.result_type()
            rank.landed[future] = np.zeros(_shape(type_), _type_landed(step).carrier)
        return rank.landed[future]


def _type_landed(step: Issue) -> DType:
    """Return the dtype of a rank's result: that of the data, or of the last cast behind it."""
    casts = [fold.by for fold in step.folds if (fold.kind, fold.at) == ("cast", "after")]
    return dtype(casts[-1]) if casts else step.operation.x.dtype


def _slot(unit: Unit, step: Issue) -> tuple[Issue, int]:
    """The buffer of a chunk; its own where the plan names none."""
    return step, unit.id if unit.buffer is None else unit.buffer


def _folded(folds: Sequence[Fold], at: str, x: Array, frame: Frame) -> Array:
    """A chunk with what the collective does beside, on one side."""
    for fold in folds:
        if fold.at == at:
            x = multiply(x, frame[fold.value]) if fold.value is not None else cast(x, dtype(fold.by))
    return x


# The times of a plan's units, as work of the two queues of every device (collectives spec 4.1; AMB-COLL-90).
#
# A computation takes the same time on every rank, a wait and the return take none. A chunk is a collective by the
# algorithm that the program names for it, or that is selected for all of its tensor.


MOST = 1 << 16
"""Chunks in flight where a plan sets no bound itself, or a larger one: more there are not in any run."""


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
    meeting = [groups[unit.step] if isinstance(unit.step, Issue) else alone for unit in plan.units]
    chosen = {step: _timed_algorithm(step, groups[step][0], topology) for step in groups}
    work: list[queues.Unit] = []
    for unit in plan.units:
        step = unit.step
        for members in meeting[unit.id]:
            awaited = [(other, some) for other in unit.after for some in meeting[other] if set(some) & set(members)]
            name, after = _name(unit.id, members), tuple(_name(*other) for other in awaited)
            if isinstance(step, Issue):
                size = unit.chunk[1] * dtype(step.wire).storage_bytes * _times_larger(step)
                root = int(str(step.operation.attributes.get("root", 0)))
                algorithm = chosen[step]
                work.append(queues.Collective(name, _short(step), algorithm, size, max(size, 1), members, root, after))
            else:
                takes = picoseconds if isinstance(step, Compute) and step.instruction is not None else 0
                work.append(queues.Compute(name, takes, members, after))
    devices = [device.id for device in topology.devices[:ranks]]
    return simulate(work, topology, devices, min(max_inflight or MOST, MOST))


def _timed_algorithm(step: Issue, group: Sequence[int], topology: Topology) -> str:
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
