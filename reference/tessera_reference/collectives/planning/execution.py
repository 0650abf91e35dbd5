"""The units of a plan, executed on all ranks in any order that they allow (collectives spec 2.1, 2.3, 2.4, 8, 9).

COLL-02.3-04, -05, COLL-02.4-01 to -05, COLL-08-09, -10; AMB-COLL-87 to -89. A chunk starts on each rank when what it
waits for has ended there: the rank puts its elements, with what is folded before them, into the chunk's buffer. It ends
for a group once all its ranks have started it. A wait takes what has landed, whatever that is. So a plan that reuses a
buffer, or waits, too early has other bits in some order; one that keeps its promises has those of the program in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ...graph.grad import Grad
from ...graph.interpreter import Frame, Interpreter, reachable
from ...ir.diagnostics import UnsupportedConstruct
from ...ir.module import Block, Function, Instruction, Module, Value
from ...numerics.arithmetic import multiply
from ...numerics.array import Array
from ...numerics.formats import DType, dtype
from ...numerics.rounding import cast
from .exchange import Exchange
from .groups import Groups
from .planner import Plan
from .slicing import elements
from .steps import Compute, Issue, unsupported
from .units import Fold, Part, Unit

__all__ = ["Progress", "run_plan"]

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

    `arguments` are those of each rank, `groups` the ranks that meet for each collective; under another level than
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
    if any(isinstance(each.operation, Grad) for each in reachable(module, function)):
        raise unsupported(f"@{function.name} takes derivatives", "a program that is differentiated already")
    for instruction in function.body.walk():
        if any(block.exit == "return" for block in instruction.regions):
            given = f"@{function.name} returns within {instruction.operation.name}"
            raise unsupported(given, "a return at the end")


class _Rank:
    """What a rank holds."""

    def __init__(self, module: Module, function: Function, arguments: tuple[Array, ...]) -> None:
        self.interpreter = Interpreter(module)
        self.frame: Frame = dict(zip(function.body.arguments, arguments, strict=True))
        self.buffers: dict[tuple[Issue, int], Flat] = {}
        self.landed: dict[Value, Flat] = {}
        """What chunks have brought for each future, flat, zeros elsewhere."""
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
        issue, place = self._issue_of(step)
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
        group = next(each for each in self.groups[step] if rank in each)
        started = self.started.setdefault((unit.id, group), set())
        started.add(rank)
        if len(started) == len(group):
            self.ready.append((unit, group, "end"))

    def _exchange(self, unit: Unit, step: Issue, group: Sequence[int]) -> None:
        """What lies in the buffers of a group is combined, and lands."""
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
        """Where the elements of a future land."""
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

    def _issue_of(self, future: Value) -> tuple[Issue, int]:
        steps = [step for step in self.groups if future in step.futures]
        return steps[0], steps[0].futures.index(future)


def _chunk(unit: Unit) -> tuple[int, int]:
    assert unit.chunk is not None, "a unit of the communication queue"
    return unit.chunk


def _slot(unit: Unit, step: Issue) -> tuple[Issue, int]:
    """The buffer of a chunk; its own where the plan names none."""
    return step, unit.id if unit.buffer is None else unit.buffer


def _parts(unit: Unit, step: Issue) -> Sequence[Part]:
    """Where each tensor lies; a single one is all there is."""
    return unit.parts or (Part(f"%{step.futures[0].name}", 0, elements(step.types[0])),)


def _landing_dtype(step: Issue, folds: Sequence[Fold]) -> DType:
    """What a rank is given: the dtype of the data, or that of the last cast behind it."""
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
