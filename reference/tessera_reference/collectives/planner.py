"""The planner (collectives spec 2.1 to 2.4, 8).

A function as steps, sliced, fused and folded, becomes units of two queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import TypeAlias

from ..abi.status import invalid, unsupported
from ..graph.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter, Reducing, RootBroadcast
from ..graph.elementwise import Cast, Multiply
from ..graph.futures import WIRES, Await, FutureCollective, IssueAllReduce, IssueBroadcast, PointToPoint
from ..graph.interpreter import reachable
from ..ir.operation import Function, Instruction, Module
from ..ir.types import Future, Numeric, Scalar, Tensor, Value
from .compression import aligned, bands

# What a function does, as steps of computing and issuing: every await is gone, since its place follows from the uses.
#
# Collectives of Graph IR, which yield their values, become those of the dialect (AMB-COLL-14). A value that is
# awaited is known by its future, so that a use of the one is a use of the other.


NAME = "collectives.plan"

DIALECT: Mapping[type[Collective], str] = {
    AllReduce: "tessera.collective.all_reduce",
    ReduceScatter: "tessera.collective.reduce_scatter",
    AllGather: "tessera.collective.all_gather",
    AllToAll: "tessera.collective.all_to_all",
    RootBroadcast: "tessera.collective.broadcast",
}


@dataclass(frozen=True, eq=False)
class Compute:
    """An instruction of the compute queue, or the end of the function."""

    name: str
    uses: tuple[Value, ...]
    results: tuple[Value, ...]
    instruction: Instruction | None = None
    draws: bool = False
    """True if it may draw random numbers, the streams of which are numbered as they are drawn."""


@dataclass(frozen=True)
class Fold:
    """A scaling or cast that a collective does before or after it, by a dtype or by a value, which then is `value`."""

    kind: str
    at: str
    by: str
    value: Value | None = None


@dataclass(frozen=True)
class Part:
    """The place of a tensor in a collective: its elements, row-major."""

    value: str
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class Issue:
    """A collective of some tensors, each of which has a future; several where they were fused."""

    operation: Collective
    sources: tuple[Value, ...]
    futures: tuple[Value, ...]
    types: tuple[Numeric, ...]
    """The type of each operand as the collective takes it."""
    folds: tuple[Fold, ...] = ()

    @property
    def name(self) -> str:
        """The collective of the dialect; one that has none stays what it is."""
        return DIALECT.get(type(self.operation), self.operation.name)

    @property
    def uses(self) -> tuple[Value, ...]:
        """The values that have to be there before it is issued."""
        return (*self.sources, *(fold.value for fold in self.folds if fold.value is not None))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The places of its tensors, one after the other."""
        counts = list(map(elements, self.types))
        firsts = accumulate(counts, initial=0)
        places = zip(self.futures, firsts, counts, strict=False)
        return tuple(Part(f"%{future.name}", first, count) for future, first, count in places)

    @property
    def wire(self) -> str:
        """The dtype on the wire: the one asked for, or that of the data."""
        asked = self.operation.dtype if isinstance(self.operation, FutureCollective) else None
        return WIRES[asked] if asked else self.operation.x.dtype.name

    @property
    def reduces_in(self) -> str | None:
        """The dtype in which a reduction adds: fp32 or wider (AMB-COLL-06)."""
        reduces = isinstance(self.operation, Reducing) or "op" in self.operation.attributes
        return self.operation.x.dtype.accumulator.name if reduces else None


Step: TypeAlias = Compute | Issue


@dataclass
class Program:
    """The steps of a function in order."""

    steps: list[Step] = field(default_factory=list)
    awaited: dict[Value, Value] = field(default_factory=dict)
    """The future of each value that is awaited, and of what was folded behind it."""
    names: dict[Value, str] = field(default_factory=dict)
    """The names of futures' values, where they have one of their own."""

    def known_as(self, value: Value) -> Value:
        """The future of a value, or itself."""
        while value in self.awaited:
            value = self.awaited[value]
        return value


def steps_of(module: Module, function: Function) -> Program:
    """The steps of a function whose collectives are in its outermost block.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for a collective, or a future, within a region or a function it calls.
    """
    program = Program()
    for instruction in function.body.instructions:
        operation = instruction.operation
        if isinstance(operation, Await):
            (future,), (value,) = instruction.operands, instruction.results
            program.awaited[value] = future
            program.names.setdefault(future, value.name)
        elif isinstance(operation, Collective):
            (result,) = instruction.results
            source = program.known_as(instruction.operands[0])
            program.steps.append(Issue(operation, (source,), (result,), (operation.x,)))
        else:
            hidden = _require_plain(module, function, instruction)
            draws = any("random" in member.operation.effects for member in (instruction, *hidden))
            uses = tuple(dict.fromkeys(map(program.known_as, _used(instruction))))
            program.steps.append(Compute(operation.name, uses, instruction.results, instruction, draws))
    last = tuple(dict.fromkeys(map(program.known_as, function.body.results)))
    if any(isinstance(type_, Future) for type_ in function.results):
        raise unsupported(NAME, f"@{function.name} returns a future", "functions that return tensors and scalars")
    program.steps.append(Compute("tessera.graph.return", last, ()))
    return program


def _used(instruction: Instruction) -> list[Value]:
    """The operands of an instruction, and what its regions use from outside."""
    blocks = [block for region in instruction.regions for block in region.blocks()]
    members = [member for block in blocks for member in block.instructions]
    inside = {value for block in blocks for value in block.arguments}
    inside |= {value for member in members for value in member.results}
    used = [value for block in blocks for value in block.results]
    used += [value for member in members for value in member.operands]
    return [*instruction.operands, *(value for value in used if value not in inside)]


def _require_plain(module: Module, function: Function, instruction: Instruction) -> list[Instruction]:
    """Return the other instructions that an instruction may execute, in regions and functions. Raises `Failure`."""
    operation = instruction.operation
    hidden = [inner for block in instruction.regions for inner in block.walk()]
    if operation.calls:
        callee = module.functions.get(str(operation.attributes[operation.calls]))
        hidden += reachable(module, callee) if callee is not None else []
    if any(isinstance(value.type, Future) for value in instruction.operands):
        actual = f"{operation.name} takes a future at {instruction.location}"
        raise unsupported(NAME, actual, "futures that are awaited")
    if any(isinstance(inner.operation, Collective | Await) for inner in hidden):
        actual = f"{operation.name} at {instruction.location} holds collectives"
        raise unsupported(NAME, actual, f"collectives in the outermost block of @{function.name}")
    return hidden


# The units of a plan: what stands in a queue, and which units must have ended before it starts (COLL-08-09, -10).


@dataclass(frozen=True)
class Options:
    """The settings of a plan."""

    tile: int | None = None
    """Bytes of the tiles in which tensors are produced; an element where left out."""
    max_inflight: int | None = None
    """Chunks under way at a time, of all collectives; any number where left out."""
    depth: int | None = None
    """Buffers of a collective; one for each chunk where left out."""


@dataclass(frozen=True)
class Unit:
    """A tile's worth of compute, a wait, or one chunk of a collective; `step` is what it does, or waits for."""

    id: int
    step: Step | Value
    operands: tuple[str, ...]
    results: tuple[str, ...]
    after: tuple[int, ...]
    chunk: tuple[int, int] = (0, 0)
    """The first element of a chunk, and the number of its elements."""
    buffer: int | None = None

    @property
    def queue(self) -> str:
        """The queue of a device in which it stands."""
        return "comm" if isinstance(self.step, Issue) else "compute"

    @property
    def op(self) -> str:
        """The name of the operation."""
        return AWAIT if isinstance(self.step, Value) else self.step.name

    def __str__(self) -> str:
        left = f"{', '.join(self.results)} = " if self.results else ""
        text = f"{self.id} {self.queue}: {left}{self.op}({', '.join(self.operands)})"
        if isinstance(self.step, Issue):
            text += f" [{self.chunk[0]}:{sum(self.chunk)}]"
            text += "" if self.buffer is None else f" buffer {self.buffer}"
            text += f" over {self.step.wire}"
            text += "" if self.step.reduces_in is None else f" in {self.step.reduces_in}"
            parts = self.step.parts if len(self.step.parts) > 1 else ()
            text += "".join(f" {part.value}[{part.first}:{part.first + part.count}]" for part in parts)
            text += "".join(f" {fold.kind} {fold.at} by {fold.by}" for fold in self.step.folds)
        return text + (f" after {', '.join(map(str, self.after))}" if self.after else "")


# Slicing in plans: a collective's chunks are those of bytes of `collectives.chunks` (COLL-02.3-01, COLL-08-09).
#
# They are ranges of the elements that a rank brings, row-major (AMB-COLL-21, AMB-COLL-55); an empty tensor has one
# chunk here, since its ranks meet all the same.


def elements(type_: Numeric) -> int:
    """Return the number of a tensor's elements. Raises `Failure` with TESS_ERR_UNSUPPORTED where that is not known."""
    known = [extent for extent in type_.shape if isinstance(extent, int)]
    if len(known) != len(type_.shape):
        raise unsupported(NAME, f"a collective of {type_}", "extents that are numbers, for which a plan is made")
    return prod(known)


def chunk_elements(operation: Collective, tile: int | None) -> int | None:
    """The elements of a full chunk; nothing for a collective that is not to be sliced.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a tile that ends within an element.
    """
    size = operation.x.dtype.storage_bytes
    if tile is not None and tile % size:
        actual = f"a tile of {tile} bytes, elements of {size}"
        raise invalid(NAME, actual, f"a multiple of {size} bytes")
    chunk = operation.chunk_size if isinstance(operation, FutureCollective) else None
    if chunk is None:
        return None
    return aligned(chunk // size, 1 if tile is None else tile // size)


def ranges(count: int, chunk: int | None) -> Iterator[tuple[int, int]]:
    """First element and count of each chunk; one empty chunk for no elements, since the ranks still synchronize.

    Raises `TooLarge` for too many.
    """
    return bands(NAME, count, chunk or count) if count else iter([(0, 0)])


# Fusion: small tensors travel as one collective where their consumers can split it again (COLL-02.4-01; AMB-COLL-56).
#
# Element-wise collectives alone, all_reduce and broadcast, of one dtype and the same attributes, which together are
# no larger than a chunk. One is issued with the last of them, so none of their values may be used before that.


ELEMENTWISE = (IssueAllReduce, IssueBroadcast)


def fuse(program: Program, tile: int | None) -> None:
    """Join issues, in place; `tile` is in bytes."""
    kept: list[Step] = []
    open_: dict[Hashable, Issue] = {}
    futures: dict[Value, Hashable] = {}
    for step in program.steps:
        for value in step.uses:
            open_.pop(futures.pop(value, None), None)
        if isinstance(step, Issue) and (key := _key(step, tile)) is not None:
            before = open_.get(key)
            if before is not None and _fits(before, step, tile):
                kept.remove(before)
                step = replace(
                    step,
                    sources=(*before.sources, *step.sources),
                    futures=(*before.futures, *step.futures),
                    types=(*before.types, *step.types),
                )
            open_[key] = step
            futures |= dict.fromkeys(step.futures, key)
        kept.append(step)
    program.steps = kept


def _key(step: Issue, tile: int | None) -> Hashable:
    """Return the key that issues must share to be fused; None for one that is large, not elementwise, or has folds.

    What travels in blocks stays alone, since a block is one of a single tensor (AMB-COLL-63).
    """
    operation = step.operation
    if not isinstance(operation, ELEMENTWISE) or step.folds or operation.qscheme:
        return None
    limit = chunk_elements(operation, tile)
    if limit is None or elements(operation.x) >= limit:
        return None
    ranks = (operation.grid, str(operation.met))  # whichever of axis, subgroup and mesh names them
    others = operation.attributes.keys() - {"axis", "subgroup", "mesh", "chunk", "chunk_bytes"}
    terms = [(name, str(operation.attributes[name])) for name in sorted(others)]
    return (operation.name, operation.x.dtype.name, *ranks, str(operation.chunk_size), *terms)


def _fits(before: Issue, step: Issue, tile: int | None) -> bool:
    """True if a chunk holds both."""
    limit = chunk_elements(step.operation, tile)
    return limit is not None and sum(map(elements, (*before.types, *step.types))) <= limit


# Folding: a scaling or a cast next to a collective becomes part of it (COLL-02.4-02, COLL-02.4-04; AMB-COLL-57).
#
# Before the collective, of what nothing else uses; behind it, where nothing else uses its value. A cast before it is
# folded where it narrows, so that the narrow type travels. What is folded rounds where it rounded before, and the
# reduction is in the accumulator type all the same: no bit changes. Nothing is folded into a send or a recv, whose
# other end is on another rank (AMB-COLL-59).


def fold(program: Program) -> None:
    """Fold what can be folded, in place."""
    _before(program)
    _behind(program)


def _before(program: Program) -> None:
    uses = _uses(program)
    makers = {value: step for step in program.steps if isinstance(step, Compute) for value in step.results}
    gone: set[Step] = set()
    for index, step in enumerate(program.steps):
        while isinstance(step, Issue) and not isinstance(step.operation, PointToPoint):
            maker = makers.get(step.sources[0])
            folded = _foldable(maker, program, narrowing=True) if maker and uses[step.sources[0]] == 1 else None
            if maker is None or folded is None:
                break
            source, fold = folded
            step = replace(step, sources=(source,), folds=(fold, *step.folds))
            gone.add(maker)
        program.steps[index] = step
    program.steps = [step for step in program.steps if step not in gone]


def _behind(program: Program) -> None:
    uses = _uses(program)
    place: dict[Value, int] = {}
    for index, step in enumerate(program.steps):
        place |= dict.fromkeys(step.results if isinstance(step, Compute) else step.futures, index)
    gone: set[int] = set()
    for index, step in enumerate(program.steps):
        folded = _foldable(step, program, narrowing=False) if isinstance(step, Compute) else None
        if not isinstance(step, Compute) or folded is None:
            continue
        future, fold = folded
        at = place.get(future, index)
        issue = program.steps[at]
        if not isinstance(issue, Issue) or isinstance(issue.operation, PointToPoint):
            continue
        if uses[future] > 1 or (fold.value is not None and place.get(fold.value, -1) >= at):  # is made too late
            continue
        gone.add(index)
        program.steps[at] = replace(issue, folds=(*issue.folds, fold))
        (result,) = step.results
        program.awaited[result] = future
        program.names[future] = result.name
        uses[future] = uses[result]
    program.steps = [_renamed(step, program) for index, step in enumerate(program.steps) if index not in gone]


def _renamed(step: Step, program: Program) -> Step:
    if isinstance(step, Compute):
        return replace(step, uses=tuple(dict.fromkeys(map(program.known_as, step.uses))))
    return replace(step, sources=tuple(map(program.known_as, step.sources)))


def _foldable(step: Compute, program: Program, narrowing: bool) -> tuple[Value, Fold] | None:
    """Return what a scaling by a scalar or a cast takes, and its fold; None for other steps.

    Before a collective casts are folded that are `narrowing`, behind it all casts.
    """
    if step.instruction is None:
        return None
    at, operation = "before" if narrowing else "after", step.instruction.operation
    operands = [program.known_as(value) for value in step.instruction.operands]
    types = [value.type for value in step.instruction.operands]
    if isinstance(operation, Cast) and operation.overflow == "saturate" and isinstance(types[0], Tensor):
        cast_from, cast_to = types[0].dtype, operation.dtype
        if {cast_from.kind, cast_to.kind} == {"float"} and not (narrowing and cast_to.bits >= cast_from.bits):
            return operands[0], Fold("cast", at, cast_to.name)
    if isinstance(operation, Multiply):
        for tensor, scalar in ((0, 1), (1, 0)):
            if isinstance(types[tensor], Tensor) and isinstance(types[scalar], Scalar):
                value = operands[scalar]
                return operands[tensor], Fold("scale", at, f"%{value.name}", value)
    return None


def _uses(program: Program) -> Counter[Value]:
    return Counter(value for step in program.steps for value in step.uses)


# Steps become units: an await right before the first use, chunks with their buffers, and what each waits for.
#
# COLL-02.1-02, COLL-02.3-04, COLL-02.3-05, COLL-08-09, COLL-08-10; AMB-COLL-14, AMB-COLL-58.


AWAIT = "tessera.await"


@dataclass(frozen=True)
class Plan:
    """The units of a function, in the order in which they are put into their queues."""

    program: Program
    units: Sequence[Unit]


def plan_function(module: Module, function: Function, options: Options) -> Plan:
    """The plan of a function.

    Raises `Failure`: TESS_ERR_UNSUPPORTED for collectives within regions and for tensors of unknown extents,
    TESS_ERR_INVALID_VALUE for a tile that ends within an element.
    """
    program = steps_of(module, function)
    fold(program)
    fuse(program, options.tile)
    return Plan(program, _Emitter(program, options).units())


class _Emitter:
    """Emits units; `made` has the unit after which a value is there."""

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.emitted: list[Unit] = []
        self.made: dict[Value, int] = {}
        self.pending: dict[Value, tuple[int, ...]] = {}
        """Futures that were issued and not awaited yet, with their chunks."""
        self.sent: list[int] = []
        """The chunks of all collectives, in order."""

    def units(self) -> list[Unit]:
        """All of them. Units that draw random numbers, which are numbered in program order, follow one another."""
        drawn: tuple[int, ...] = ()
        for step in self.program.steps:
            for value in step.uses:
                self._await(value)
            if isinstance(step, Issue):
                self._issue(step)
                continue
            after = (*self._after(step.uses), *(drawn if step.draws else ()))
            unit = self._compute(step, self._names(step.uses), step.results, after)
            drawn = (unit,) if step.draws else drawn
        return self.emitted

    def _await(self, value: Value) -> None:
        """The wait for a future, before its first use."""
        chunks = self.pending.pop(value, None)
        if chunks is not None:
            self._compute(value, (f"%{value.name}",), (value,), chunks)

    def _issue(self, step: Issue) -> None:
        """The chunks of a collective."""
        ready, operands, depth = self._after(step.uses), self._names(step.sources), self.options.depth
        futures = tuple(f"%{future.name}" for future in step.futures)
        total, most = sum(map(elements, step.types)), chunk_elements(step.operation, self.options.tile)
        own: list[int] = []
        for place, chunk in enumerate(ranges(total, most)):
            after, buffer = (*ready, *self._before(own)), None if depth is None else place % depth
            unit = Unit(len(self.emitted), step, operands, futures, _ordered(after), chunk, buffer)
            self.emitted.append(unit)
            own.append(unit.id)
            self.sent.append(unit.id)
        self.pending |= dict.fromkeys(step.futures, tuple(own))

    def _before(self, own: list[int]) -> list[int]:
        """Return the chunks that must have ended: the last in the same buffer, and one that bounds those in flight."""
        depth, most = self.options.depth, self.options.max_inflight
        same = [own[-depth]] if depth is not None and len(own) >= depth else []
        return same + ([self.sent[-most]] if most is not None and len(self.sent) >= most else [])

    def _compute(
        self, step: Compute | Value, operands: tuple[str, ...], made: Sequence[Value], after: Iterable[int]
    ) -> int:
        """Emit a unit of the compute queue, which makes some values."""
        unit = Unit(len(self.emitted), step, operands, self._names(made), _ordered(after))
        self.emitted.append(unit)
        self.made |= dict.fromkeys(made, unit.id)
        return unit.id

    def _after(self, values: Iterable[Value]) -> tuple[int, ...]:
        return tuple(self.made[value] for value in values if value in self.made)

    def _names(self, values: Iterable[Value]) -> tuple[str, ...]:
        """Values by name; of a future that of its value."""
        return tuple(f"%{self.program.names.get(value, value.name)}" for value in values)


def _ordered(units: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(units)))
