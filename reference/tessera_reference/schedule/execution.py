"""Executing Schedule IR: nest by nest, tile by tile, through stages and buffers (spec sections 4, 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from math import prod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..graph import execution as graph_execution
from ..graph.elementwise import Elementwise
from ..graph.interpreter import failed
from ..graph.movement import Concat, Gather, Iota, Pad, Slice, Update, held_in
from ..graph.reductions import MatMul, Reduction, Softmax
from ..ir.diagnostics import Rejection
from ..ir.operation import Environment, Instruction, Module, Operation
from ..ir.targets import Target
from ..ir.types import Type, Value
from ..numerics.array import Array
from ..numerics.formats import DType, NumericsFailure, dtype
from ..numerics.matmul import matmul
from ..numerics.rounding import cast
from .choices import extents, row_axis
from .nests import Nest, tile_of, with_nests_replaced

# Buffers between memory and computation: a ring of stages, and a pipeline that fills them ahead (section 6.1).
#
# A buffer holds poison, NaN where the dtype has one, until a tile is copied into it, so that a missing or stale copy
# shows in the result.


Values: TypeAlias = npt.NDArray[Any]
Place = tuple[int, ...]


@dataclass(frozen=True)
class Event:
    """One step of a nest: a tile copied into a slot, a tile computed, or its results written.

    `tile` counts tiles: along the batch, then m and n, then, if a tile has inner steps, k. A store has no slot: -1.
    """

    kind: Literal["stage", "compute", "store"]
    nest: int
    tile: Place
    slot: int


Observer = Callable[[Event], None]


@dataclass(frozen=True)
class Tracer:
    """A reporter of one nest's steps to an observer, under the number of the nest."""

    nest: int
    observer: Observer | None

    def __call__(self, kind: Literal["stage", "compute", "store"], tile: Place, slot: int = -1) -> None:
        """Report a step."""
        if self.observer is not None:
            self.observer(Event(kind, self.nest, tile, slot))


class Ring:
    """The buffers of one staged operand, one for each stage of the pipeline."""

    def __init__(self, depth: int, shape: tuple[int, ...], dtype: DType) -> None:
        self.slots = [poisoned(shape, dtype) for _ in range(depth)]

    def fill(self, step: int, tile: Values, padding: Any = None) -> None:
        """Copy a tile into the buffer of a step; the rest of the buffer stays unchanged, or is padded."""
        buffer = self.slots[step % len(self.slots)]
        if padding is not None:
            buffer[...] = padding
        buffer[tuple(slice(extent) for extent in tile.shape)] = tile

    def read(self, step: int, shape: tuple[int, ...]) -> Values:
        """Return the first elements of a step's buffer along each dimension."""
        return self.slots[step % len(self.slots)][tuple(slice(extent) for extent in shape)].copy()


def pipelined(steps: int, depth: int, stage: Callable[[int], None], compute: Callable[[int], None]) -> None:
    """Compute every step in order, each staged `depth` - 1 steps ahead."""
    for step in range(min(depth - 1, steps)):
        stage(step)
    for step in range(steps):
        if step + depth - 1 < steps:
            stage(step + depth - 1)
        compute(step)


def poisoned(shape: tuple[int, ...], dtype: DType) -> Values:
    """Return memory in its state before any write."""
    filler: Any = {"bool": True, "int": dtype.int_min if dtype.kind == "int" else 0}.get(dtype.kind, np.nan)
    return np.full(shape, filler, dtype.carrier)


@dataclass(frozen=True)
class Grid:
    """Tiles over the last two dimensions of a shape, of which there are at least two, and single steps over the others.

    The last dimension varies fastest.
    """

    shape: tuple[int, ...]
    m: int
    n: int

    @classmethod
    def over(cls, shape: tuple[int, ...], m: int, n: int) -> Grid:
        """Return a grid over any shape; missing dimensions have extent 1."""
        return cls((*(1,) * (2 - len(shape)), *shape), m, n)

    def tiles(self) -> Iterator[tuple[Place, tuple[slice, ...]]]:
        """Yield each tile's indices, and the elements that it covers, without padding."""
        *batch, rows, columns = self.shape
        counts = (*batch, -(-rows // self.m), -(-columns // self.n))
        sizes = (*(1,) * len(batch), self.m, self.n)
        for place in product(*map(range, counts)):
            yield (
                place,
                tuple(
                    slice(number * size, min((number + 1) * size, extent))
                    for number, size, extent in zip(place, sizes, self.shape, strict=True)
                ),
            )

    def part(self, values: Values, covered: tuple[slice, ...]) -> Values:
        """Return the part of an operand that a tile reads; an operand broadcasts to the shape, a scalar is whole."""
        if values.ndim == 0:
            return values
        spread = values.reshape((1,) * (len(self.shape) - values.ndim) + values.shape)
        pairs = zip(spread.shape, covered, strict=True)
        return spread[tuple(slice(0, 1) if extent == 1 else part for extent, part in pairs)]


def shape_of(covered: tuple[slice, ...]) -> tuple[int, ...]:
    """Return the extents of the part that a tile covers."""
    return tuple(part.stop - part.start for part in covered)


# The source of each element of the result, for operations that only move elements.
#
# The operation itself is executed once on positions instead of elements: its result holds, for each element, the
# position of its source.


FILLER = -1
"""The position of a pad's filler, which is not an element of an operand."""


@dataclass(frozen=True)
class Moved:
    """The elements of all operands in one line, and for each element of the result its position in it."""

    line: Values
    places: Values
    filler: Any

    def elements(self, places: Values) -> Values:
        """Return the elements at these positions."""
        if self.line.size == 0:
            return np.full(places.shape, self.filler, self.line.dtype)
        framed = places == FILLER
        return np.where(framed, np.asarray(self.filler, self.line.dtype), self.line[np.where(framed, 0, places)])


def moved(instruction: Instruction, operands: Sequence[Array], env: Environment) -> Moved:
    """Return the source positions of an instruction's result. Raises as its operation does."""
    operation = instruction.operation
    if isinstance(operation, Iota):
        counted: Array = operation.execute(env=env)
        line = counted.values.reshape(-1)
        return Moved(line, np.arange(line.size).reshape(counted.shape), 0)
    sources = operands[: data_operands(operation, len(operands))]
    numbered, start = [], 0
    for source in sources:
        count = source.values.size
        numbered.append(Array(dtype("int64"), np.arange(start, start + count).reshape(source.shape)))
        start += count
    filler: Any = 0
    if isinstance(operation, Pad):
        filler = held_in(operation.x.dtype, operation.value)
        operation = replace(operation, value=FILLER)
    result: Array = operation.execute(*numbered, *operands[len(sources) :], env=env)
    line = np.concatenate([source.values.reshape(-1) for source in sources])
    return Moved(line, result.values, filler)


def data_operands(operation: Operation, count: int) -> int:
    """Return the number of first operands that hold moved elements; the others are indices."""
    if isinstance(operation, Concat):
        return count
    if isinstance(operation, Update):
        return 2
    return 1 if isinstance(operation, Gather | Slice) else count


# The executor of loop nests: tile by tile, through buffers, into memory (sections 6.1, 6.2; LANG-06.2-01).
#
# A contraction adds the tiles of k to its accumulator in ascending order, which yields the bits of the fold over all of
# k: products of padding are +0, and adding +0 changes no sum that starts at +0. Epilogues and maps compute only the
# elements that a tile covers, so that padding cannot cause a failure.


Memory = Mapping[Value, Array]


def execute_nest(nest: Nest, inputs: Sequence[Array], env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """Return the outputs of a nest. Raises `Rejection` where an operation fails."""
    memory = dict(zip(nest.inputs, inputs, strict=True))
    if nest.kind == "contract":
        return Contraction(nest, memory, env, tracer).run()
    if nest.kind == "rows":
        return rows(nest, memory, env, tracer)
    if isinstance(nest.lead.operation, Elementwise):
        return elementwise(nest, memory, env, tracer)
    return movement(nest, memory, env, tracer)


def executed(instruction: Instruction, operation: Operation, operands: Sequence[Array], env: Environment) -> Array:
    """Return the result of an operation on part of its operands. Raises `Rejection` with its place."""
    try:
        result: Array = operation.execute(*operands, env=env)
    except NumericsFailure as failure:
        raise Rejection([failed(instruction, failure)]) from failure
    return result


class Outputs:
    """The memory that a nest writes; an element holds poison until it is written."""

    def __init__(self, nest: Nest, grid: Grid) -> None:
        self.arrays = {value: poisoned(grid.shape, _type(value).dtype) for value in nest.outputs}

    def store(self, covered: tuple[slice, ...], memory: Memory) -> None:
        """Write a tile of each output."""
        for value, array in self.arrays.items():
            array[covered] = memory[value].values.reshape(shape_of(covered))

    def results(self) -> tuple[Array, ...]:
        """Return the outputs in their own shapes."""
        arrays = self.arrays.items()
        return tuple(Array(_type(value).dtype, array.reshape(extents(value.type))) for value, array in arrays)


@dataclass
class Staged:
    """Operands of elementwise operations: read through a buffer where they are staged, else from memory."""

    nest: Nest
    memory: Memory
    grid: Grid
    depth: int
    tracer: Tracer

    def __post_init__(self) -> None:
        inside = {value for instruction in self.nest.instructions for value in instruction.results}
        epilogue = [step for step in self.nest.instructions if not isinstance(step.operation, MatMul)]
        self.read = tuple(dict.fromkeys(value for step in epilogue for value in step.operands if value not in inside))
        batch = (1,) * (len(self.grid.shape) - 2)
        self.rings = {
            value: Ring(self.depth, (*batch, *tile_of(self.nest, "epilogue", value)), self.memory[value].dtype)
            for value in self.read
            if value in self.nest.staged
        }

    def stage(self, step: int, place: Place, covered: tuple[slice, ...]) -> None:
        """Copy the tile of every staged operand."""
        for value, ring in self.rings.items():
            ring.fill(step, self.grid.part(self.memory[value].values, covered))
        if self.rings:
            self.tracer("stage", place, step % self.depth)

    def operands(self, step: int, covered: tuple[slice, ...]) -> dict[Value, Array]:
        """Return the operands of the operations of a tile."""
        operands = {}
        for value in self.read:
            part = self.grid.part(self.memory[value].values, covered)
            operand = self.rings[value].read(step, part.shape) if value in self.rings else part
            operands[value] = Array(self.memory[value].dtype, operand)
        return operands


def apply_all(nest: Nest, values: dict[Value, Array], env: Environment) -> None:
    """Compute constants and elementwise operations on the tiles in `known`, and add their results."""
    for instruction in nest.instructions:
        if instruction.results[0] not in values:
            operands = [values[value] for value in instruction.operands]
            values[instruction.results[0]] = executed(instruction, instruction.operation, operands, env)


def by_tile(
    nest: Nest,
    grid: Grid,
    tracer: Tracer,
    stage: Callable[[int, Place, tuple[slice, ...]], None],
    compute: Callable[[int, tuple[slice, ...]], Memory],
) -> tuple[Array, ...]:
    """Return the outputs of a nest that computes every tile separately, staged ahead over all of them."""
    outputs, tiles = Outputs(nest, grid), list(grid.tiles())

    def computed(step: int) -> None:
        place, covered = tiles[step]
        values = compute(step, covered)
        tracer("compute", place, step % nest.depth)
        outputs.store(covered, values)
        tracer("store", place)

    pipelined(len(tiles), nest.depth, lambda step: stage(step, *tiles[step]), computed)
    return outputs.results()


def elementwise(nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """Return the outputs of elementwise operations over one shape."""
    m, n, _ = nest.tile
    grid = Grid.over(extents(nest.lead.results[0].type), m, n)
    staged = Staged(nest, memory, grid, nest.depth, tracer)

    def compute(step: int, covered: tuple[slice, ...]) -> Memory:
        values = staged.operands(step, covered)
        apply_all(nest, values, env)
        return values

    return by_tile(nest, grid, tracer, staged.stage, compute)


def movement(nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """Return the result of an operation that moves elements, tile by tile from the positions of `moved`."""
    m, n, _ = nest.tile
    result = nest.lead.results[0]
    grid = Grid.over(extents(result.type), m, n)
    try:
        source: Moved = moved(nest.lead, [memory[value] for value in nest.lead.operands], env)
    except NumericsFailure as failure:
        raise Rejection([failed(nest.lead, failure)]) from failure
    places, element = source.places.reshape(grid.shape), _type(result).dtype
    ring = Ring(nest.depth, (*(1,) * (len(grid.shape) - 2), m, n), element)

    def stage(step: int, place: Place, covered: tuple[slice, ...]) -> None:
        ring.fill(step, source.elements(places[covered]))
        if nest.staged:
            tracer("stage", place, step % nest.depth)

    def compute(step: int, covered: tuple[slice, ...]) -> Memory:
        return {result: Array(element, ring.read(step, shape_of(covered)))}

    return by_tile(nest, grid, tracer, stage, compute)


def rows(nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """Return the result of an operation on rows: each block of rows is staged by chunks, then computed at once."""
    lead = nest.lead
    x, axis = memory[lead.operands[0]], row_axis(lead.operation)
    lined = np.moveaxis(x.values, axis, -1)
    *around, length = lined.shape
    lined = lined.reshape(prod(around), length)
    tile, chunk, _ = nest.tile
    operation = _on_last_axis(lead.operation)
    reduces = isinstance(operation, Reduction)
    (result,) = nest.outputs
    out = poisoned(lined.shape[:1] if reduces else lined.shape, _type(result).dtype)
    is_staged = lead.operands[0] in nest.staged
    for number, start in enumerate(range(0, len(lined), tile)):
        block = lined[start : start + tile]
        ring = Ring(nest.depth, (tile, chunk), x.dtype)
        content = poisoned(block.shape, x.dtype)

        def stage(step: int, number: int = number, block: Values = block, ring: Ring = ring) -> None:
            if is_staged:
                ring.fill(step, block[:, step * chunk : (step + 1) * chunk])
                tracer("stage", (number, step), step % nest.depth)

        def compute(
            step: int, number: int = number, block: Values = block, ring: Ring = ring, content: Values = content
        ) -> None:
            part = block[:, step * chunk : (step + 1) * chunk]
            content[:, step * chunk : (step + 1) * chunk] = ring.read(step, part.shape) if is_staged else part
            tracer("compute", (number, step), step % nest.depth)

        pipelined(-(-length // chunk), nest.depth, stage, compute)
        out[start : start + tile] = executed(lead, operation, [Array(x.dtype, content)], env).values
        tracer("store", (number,))
    shaped = out.reshape(extents(result.type)) if reduces else np.moveaxis(out.reshape(*around, length), -1, axis)
    return (Array(_type(result).dtype, np.array(shaped, order="C")),)


def _on_last_axis(operation: Operation) -> Operation:
    """Return the same operation along the last axis of rows."""
    if isinstance(operation, Reduction):
        return replace(operation, axis=-1, keepdims=False)
    return replace(operation, axis=-1) if isinstance(operation, Softmax) else operation


class Contraction:
    """A product and its epilogue: for every tile of the result a loop over k, then the epilogue."""

    def __init__(self, nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> None:
        assert isinstance(nest.lead.operation, MatMul)
        self.nest = nest
        self.product: MatMul = nest.lead.operation
        self.env = env
        self.tracer = tracer
        self.m, self.n, self.k = nest.tile
        self.operands = [memory[value] for value in nest.lead.operands]
        self.grid = Grid.over(extents(nest.lead.results[0].type), self.m, self.n)
        self.steps = -(-self.operands[0].shape[-1] // self.k)
        self.outputs = Outputs(nest, self.grid)
        self.epilogue = Staged(nest, memory, self.grid, 1, tracer)

    def run(self) -> tuple[Array, ...]:
        """Return the outputs."""
        for place, covered in self.grid.tiles():
            self.epilogue.stage(0, place, covered)
            operands = self.epilogue.operands(0, covered)
            operands[self.nest.lead.results[0]] = self.tile(place, covered)
            apply_all(self.nest, operands, self.env)
            self.outputs.store(covered, operands)
            self.tracer("store", place)
        return self.outputs.results()

    def tile(self, place: Place, covered: tuple[slice, ...]) -> Array:
        """Return one tile of the product, in the result's dtype, without its padding."""
        *batch, rows, columns = covered
        at = tuple(part.start for part in batch)
        left, right = (operand.values[at] for operand in self.operands)
        shapes = ((self.m, self.k), (self.k, self.n))
        rings = [Ring(self.nest.depth, shape, self.operands[0].dtype) for shape in shapes]
        accum = self.product.accum
        cells = [Array(accum, np.zeros((self.m, self.n), accum.carrier))]
        is_staged = [value in self.nest.staged for value in self.nest.lead.operands]

        def of_step(side: int, step: int) -> Values:
            along = slice(step * self.k, (step + 1) * self.k)
            part: Values = right[along, columns] if side else left[rows, along]
            return part

        def stage(step: int) -> None:
            for side in (0, 1):
                if is_staged[side]:
                    rings[side].fill(step, of_step(side, step), 0)
            if any(is_staged):
                self.tracer("stage", (*place, step), step % self.nest.depth)

        def compute(step: int) -> None:
            dtype = self.operands[0].dtype
            parts = [
                rings[side].read(step, shapes[side]) if is_staged[side] else padded(of_step(side, step), shapes[side])
                for side in (0, 1)
            ]
            a, b = (Array(dtype, values) for values in parts)
            cells[0] = matmul(a, b, accum, addend=cells[0], accumulator=accum)
            self.tracer("compute", (*place, step), step % self.nest.depth)

        pipelined(self.steps, self.nest.depth, stage, compute)
        out = self.product.out or self.product.a.dtype
        total = Array(accum, cells[0].values[: rows.stop - rows.start, : columns.stop - columns.start])
        return Array(out, cast(total, out).values.reshape(shape_of(covered)))


def padded(values: Values, shape: tuple[int, ...]) -> Values:
    """Return values with zeros appended along each dimension."""
    result: Values = np.zeros(shape, values.dtype)
    result[tuple(slice(extent) for extent in values.shape)] = values
    return result


def _type(value: Value) -> Any:
    return value.type


# Executing Schedule IR: nest by nest, tile by tile, through stages and buffers (spec sections 4, 6).
#
# Each nest becomes one instruction of the function, which the interpreter of Graph IR then runs. So control flow,
# collectives, ranks and all other operations outside nests work as at the Graph level.


@dataclass(frozen=True)
class RunNest(Operation):
    """An operation that executes one nest. Created only here; it has no text form."""

    body: Nest
    tracer: Tracer

    name: ClassVar[str] = "tessera.schedule.nest"
    clauses: ClassVar[tuple[str, ...]] = ()
    roles = {}  # noqa: RUF012  # as declared operations have them
    kinds = {}  # noqa: RUF012

    def infer(self) -> tuple[Type, ...]:
        return tuple(value.type for value in self.body.outputs)

    def execute(self, *inputs: Array, env: Environment) -> tuple[Array, ...]:
        return execute_nest(self.body, inputs, env, self.tracer)


def runnable(module: Module, target: Target, observer: Observer | None = None) -> Module:
    """Return the module with an instruction for each nest, numbered in the order of the module's text."""
    numbers = count()

    def replacement(nest: Nest) -> tuple[Instruction, ...]:
        operation = RunNest(nest, Tracer(next(numbers), observer))
        return (Instruction(operation, nest.inputs, nest.outputs, nest.location),)

    return with_nests_replaced(module, target, replacement)


def execute(
    module: Module, function: str, inputs: Mapping[str, Array], target: Target, observer: Observer | None = None
) -> tuple[Array, ...]:
    """Run a function of Schedule IR on named inputs, with results and errors as in `graph.execution.execute`.

    Operations with unknown extents run as Graph IR; `specialize` makes extents known.
    """
    return graph_execution.execute(runnable(module, target, observer), function, inputs)
