"""The executor of loop nests: tile by tile, through buffers, into memory (sections 6.1, 6.2; LANG-06.2-01).

A contraction adds the tiles of k to its accumulator in ascending order, which gives the bits of the fold over all of k:
products of padding are +0, and adding +0 changes no sum that starts at +0. Epilogues and maps compute only the elements
that a tile covers, so that padding cannot cause a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ..graph.interpreter import failed
from ..graph.matmul import MatMul
from ..graph.reductions import Reduction
from ..graph.softmax import Softmax
from ..ir.diagnostics import Rejection
from ..ir.module import Instruction, Value
from ..ir.operation import Environment, Operation
from ..ir.types import Tensor
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from ..numerics.matmul import matmul
from ..numerics.rounding import cast
from .kinds import is_elementwise, row_axis
from .movement import Moved, moved
from .nests import Nest
from .resources import tile_of
from .staging import Grid, Place, Ring, Tracer, Values, pipelined, poisoned, shape_of

Memory = Mapping[Value, Array]


def execute_nest(nest: Nest, inputs: Sequence[Array], env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """The outputs of a nest. Raises `Rejection` where an operation fails."""
    memory = dict(zip(nest.inputs, inputs, strict=True))
    if nest.kind == "contract":
        return Contraction(nest, memory, env, tracer).run()
    if nest.kind == "rows":
        return rows(nest, memory, env, tracer)
    if is_elementwise(nest.lead.operation):
        return elementwise(nest, memory, env, tracer)
    return movement(nest, memory, env, tracer)


def executed(instruction: Instruction, operation: Operation, operands: Sequence[Array], env: Environment) -> Array:
    """The result of an operation on part of its operands. Raises `Rejection` with its place."""
    try:
        found: Array = operation.execute(*operands, env=env)
    except NumericsFailure as failure:
        raise Rejection([failed(instruction, failure)]) from failure
    return found


class Outputs:
    """The memory that a nest writes; an element holds poison until it is written."""

    def __init__(self, nest: Nest, grid: Grid) -> None:
        self.nest = nest
        self.arrays = {value: poisoned(grid.shape, _type(value).dtype) for value in nest.outputs}

    def store(self, covered: tuple[slice, ...], known: Memory) -> None:
        """Write a tile of each output."""
        for value, array in self.arrays.items():
            array[covered] = known[value].values.reshape(shape_of(covered))

    def results(self) -> tuple[Array, ...]:
        """The outputs in their own shapes."""
        return tuple(Array(_type(value).dtype, array.reshape(_extents(value))) for value, array in self.arrays.items())


@dataclass
class Staged:
    """Operands of elementwise operations: read through a buffer where they are staged, else from memory."""

    nest: Nest
    memory: Memory
    grid: Grid
    depth: int
    tracer: Tracer

    def __post_init__(self) -> None:
        inside = {value for each in self.nest.instructions for value in each.results}
        epilogue = [each for each in self.nest.instructions if not isinstance(each.operation, MatMul)]
        self.read = tuple(dict.fromkeys(v for each in epilogue for v in each.operands if v not in inside))
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
        """The operands of the operations of a tile."""
        found = {}
        for value in self.read:
            part = self.grid.part(self.memory[value].values, covered)
            taken = self.rings[value].read(step, part.shape) if value in self.rings else part
            found[value] = Array(self.memory[value].dtype, taken)
        return found


def apply_all(nest: Nest, known: dict[Value, Array], env: Environment) -> None:
    """Compute constants and elementwise operations on the tiles in `known`, and add their results."""
    for each in nest.instructions:
        if each.results[0] not in known:
            operands = [known[value] for value in each.operands]
            known[each.results[0]] = executed(each, each.operation, operands, env)


def elementwise(nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """Elementwise operations over one shape: tile by tile, staged ahead over all of them."""
    m, n, _ = nest.tile
    grid = Grid.over(_extents(nest.lead.results[0]), m, n)
    outputs, staged = Outputs(nest, grid), Staged(nest, memory, grid, nest.depth, tracer)
    tiles = list(grid.tiles())

    def stage(step: int) -> None:
        staged.stage(step, *tiles[step])

    def compute(step: int) -> None:
        place, covered = tiles[step]
        known = staged.operands(step, covered)
        apply_all(nest, known, env)
        tracer("compute", place, step % nest.depth)
        outputs.store(covered, known)
        tracer("store", place)

    pipelined(len(tiles), nest.depth, stage, compute)
    return outputs.results()


def movement(nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """An operation that moves elements: each tile of the result is gathered from the positions that `moved` returns."""
    m, n, _ = nest.tile
    result = nest.lead.results[0]
    grid = Grid.over(_extents(result), m, n)
    outputs = Outputs(nest, grid)
    try:
        source: Moved = moved(nest.lead, [memory[value] for value in nest.lead.operands], env)
    except NumericsFailure as failure:
        raise Rejection([failed(nest.lead, failure)]) from failure
    places = source.places.reshape(grid.shape)
    tiles = list(grid.tiles())
    sizes = (*(1,) * (len(grid.shape) - 2), m, n)
    ring = Ring(nest.depth, sizes, _type(result).dtype)

    def stage(step: int) -> None:
        place, covered = tiles[step]
        ring.fill(step, source.elements(places[covered]))
        if nest.staged:
            tracer("stage", place, step % nest.depth)

    def compute(step: int) -> None:
        place, covered = tiles[step]
        values = ring.read(step, shape_of(covered))
        tracer("compute", place, step % nest.depth)
        outputs.store(covered, {result: Array(_type(result).dtype, values)})
        tracer("store", place)

    pipelined(len(tiles), nest.depth, stage, compute)
    return outputs.results()


def rows(nest: Nest, memory: Memory, env: Environment, tracer: Tracer) -> tuple[Array, ...]:
    """An operation on rows: a block of rows at a time, staged chunk by chunk, then computed as a whole."""
    lead = nest.lead
    x, axis = memory[lead.operands[0]], row_axis(lead.operation)
    lined = np.moveaxis(x.values, axis, -1)
    *around, length = lined.shape
    lined = lined.reshape(prod(around), length)
    taken, chunk, _ = nest.tile
    operation = _on_last_axis(lead.operation)
    reduces = isinstance(operation, Reduction)
    (result,) = nest.outputs
    out = poisoned(lined.shape[:1] if reduces else lined.shape, _type(result).dtype)
    is_staged = lead.operands[0] in nest.staged
    for number, start in enumerate(range(0, len(lined), taken)):
        block = lined[start : start + taken]
        ring = Ring(nest.depth, (taken, chunk), x.dtype)
        held = poisoned(block.shape, x.dtype)

        def stage(step: int, number: int = number, block: Values = block, ring: Ring = ring) -> None:
            if is_staged:
                ring.fill(step, block[:, step * chunk : (step + 1) * chunk])
                tracer("stage", (number, step), step % nest.depth)

        def compute(
            step: int, number: int = number, block: Values = block, ring: Ring = ring, held: Values = held
        ) -> None:
            part = block[:, step * chunk : (step + 1) * chunk]
            held[:, step * chunk : (step + 1) * chunk] = ring.read(step, part.shape) if is_staged else part
            tracer("compute", (number, step), step % nest.depth)

        pipelined(-(-length // chunk), nest.depth, stage, compute)
        out[start : start + taken] = executed(lead, operation, [Array(x.dtype, held)], env).values
        tracer("store", (number,))
    shaped = out.reshape(_extents(result)) if reduces else np.moveaxis(out.reshape(*around, length), -1, axis)
    return (Array(_type(result).dtype, np.array(shaped, order="C")),)


def _on_last_axis(operation: Operation) -> Operation:
    """The same operation along the last axis of rows."""
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
        self.grid = Grid.over(_extents(nest.lead.results[0]), self.m, self.n)
        self.steps = -(-self.operands[0].shape[-1] // self.k)
        self.outputs = Outputs(nest, self.grid)
        self.epilogue = Staged(nest, memory, self.grid, 1, tracer)

    def run(self) -> tuple[Array, ...]:
        """The outputs."""
        for place, covered in self.grid.tiles():
            known = self.epilogue_operands(place, covered)
            known[self.nest.lead.results[0]] = self.tile(place, covered)
            apply_all(self.nest, known, self.env)
            self.outputs.store(covered, known)
            self.tracer("store", place)
        return self.outputs.results()

    def epilogue_operands(self, place: Place, covered: tuple[slice, ...]) -> dict[Value, Array]:
        """The operands of a tile's epilogue other than the product."""
        self.epilogue.stage(0, place, covered)
        return self.epilogue.operands(0, covered)

    def tile(self, place: Place, covered: tuple[slice, ...]) -> Array:
        """One tile of the product, in the result's dtype, without its padding."""
        *batch, rows, columns = covered
        at = tuple(part.start for part in batch)
        left, right = (operand.values[at] for operand in self.operands)
        shapes = ((self.m, self.k), (self.k, self.n))
        parts = ((left, (rows, None)), (right, (None, columns)))
        rings = [Ring(self.nest.depth, shape, self.operands[0].dtype) for shape in shapes]
        accumulator = Array(self.product.accum, np.zeros((self.m, self.n), self.product.accum.carrier))
        held = [accumulator]
        is_staged = [value in self.nest.staged for value in self.nest.lead.operands]

        def of_step(side: int, step: int) -> Values:
            values, (first, second) = parts[side]
            along = slice(step * self.k, (step + 1) * self.k)
            part: Values = values[along if first is None else first, along if second is None else second]
            return part

        def stage(step: int) -> None:
            for side in (0, 1):
                if is_staged[side]:
                    rings[side].fill(step, of_step(side, step), 0)
            if any(is_staged):
                self.tracer("stage", (*place, step), step % self.nest.depth)

        def compute(step: int) -> None:
            dtype = self.operands[0].dtype
            taken = [
                rings[side].read(step, shapes[side]) if is_staged[side] else padded(of_step(side, step), shapes[side])
                for side in (0, 1)
            ]
            a, b = (Array(dtype, values) for values in taken)
            accum = self.product.accum
            held[0] = matmul(a, b, accum, addend=held[0], accumulator=accum)
            self.tracer("compute", (*place, step), step % self.nest.depth)

        pipelined(self.steps, self.nest.depth, stage, compute)
        out = self.product.out or self.product.a.dtype
        total = Array(self.product.accum, held[0].values[: rows.stop - rows.start, : columns.stop - columns.start])
        result = cast(total, out)
        return Array(out, result.values.reshape(shape_of(covered)))


def padded(values: Values, shape: tuple[int, ...]) -> Values:
    """Values with zeros appended along each dimension."""
    found: Values = np.zeros(shape, values.dtype)
    found[tuple(slice(extent) for extent in values.shape)] = values
    return found


def _type(value: Value) -> Any:
    return value.type


def _extents(value: Value) -> tuple[int, ...]:
    shape = value.type.shape if isinstance(value.type, Tensor) else ()
    return tuple(extent for extent in shape if isinstance(extent, int))
