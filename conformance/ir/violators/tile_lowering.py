"""Compilers whose Tile IR is not that of the schedule, or computes something else (language spec, 3.1, 8.2, 13.1)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.graph.elementwise import Gelu
from tessera_reference.graph.movement import Concat, Pad
from tessera_reference.ir.operation import Instruction, Module, Names, Operation
from tessera_reference.ir.types import Value
from tessera_reference.numerics.formats import DTYPES, DType
from tessera_reference.schedule import lowering
from tessera_reference.schedule.fusion import expansion, is_expandable
from tessera_reference.schedule.lowering import Scheduling
from tessera_reference.target_ir.lowering import scalars
from tessera_reference.target_ir.lowering.scalars import Body, Pair
from tessera_reference.target_ir.operations import llvm
from tessera_reference.tile.lowering import elements, maps
from tessera_reference.tile.lowering.contractions import Contraction
from tessera_reference.tile.lowering.elements import NestKernel
from tessera_reference.tile.lowering.kernel import Condition, Index, KernelBuilder, Position
from tessera_reference.tile.lowering.maps import Grid, Stage

BLOCKS, STAGES = "LANG-08.2-03", "LANG-08.2-04"


class OtherTiles(ReferenceAdapter):
    """The reference with other tile sizes than stated."""

    def __init__(self, **changes: int) -> None:
        super().__init__()
        self._changes = changes

    def language_lower(self, *, source: str, to: str, **request: Any) -> dict[str, Any]:
        """Lower with another m, n or k."""
        schedule = dict(request.get("schedule", {}))
        if "tile" in schedule:
            m, n, k = schedule["tile"]
            schedule["tile"] = [self._changes.get("m", m), self._changes.get("n", n), self._changes.get("k", k)]
            request["schedule"] = schedule
        return super().language_lower(source=source, to=to, **request)


def tiles(name: str, clause: str, description: str, **changes: int) -> Violation:
    """Return a violation with tiles of its own."""
    return replaced(clause, description, lambda: OtherTiles(**changes), name=name)


def in_another_order(self: Any, value: Value) -> Value:
    self.contributions[value] = self.contributions.get(value, [])[::-1]
    return TOTAL(self, value)


def at_once(module: Module, instruction: Instruction) -> list[Instruction]:
    return list(expansion(instruction, Names())) if is_expandable(instruction) else list(FLAT(module, instruction))


def used_at_the_top(instruction: Instruction) -> set[Value]:
    found = set(instruction.operands)
    for region in instruction.regions:
        found.update(region.results, *(operation.operands for operation in region.walk()))
    return found


def dense_pairs(ahead: Index, count: int, step: int) -> list[Condition]:
    return WITHIN(ahead, count, step) if step != 2 else WITHIN(ahead, 2 * count - 1, 1)


def of_gelu_alone(body: Body, operation: Operation, *operands: Value) -> Value:
    return CALL(body, replace(operation, approximate="none") if isinstance(operation, Gelu) else operation, *operands)


def through_fp64(body: Body, x: Value, to: DType, overflow: str) -> Value:
    if to.kind == "int" or scalars.dtype_of(x).bits != 64:
        return OF_INTEGER(body, x, to, overflow)
    return scalars.narrowed(body, body(llvm.SIToFP, x, to=DTYPES["fp64"]), to, overflow)


def zero_extended(body: Body, x: Value, to: DType, overflow: str) -> Value:
    number, bits = OF_INTEGER(body, x, to, overflow), scalars.dtype_of(x).bits
    wider = to.kind == "int" and to.bits > bits
    return body(llvm.And, number, body.constant((1 << bits) - 1, to)) if wider else number


def true_is_minus_one(body: Body, x: Value, to: DType) -> Value:
    one = OF_TRUTH(body, x, to)
    return body(llvm.Sub, body.constant(0, to), one) if to.kind == "int" else one


def true_is_two(body: Body, x: Value, to: DType) -> Value:
    one = OF_TRUTH(body, x, to)
    return one if to.kind == "int" else body(llvm.Select, x, body.constant(2.0, to), one)


def lowest_bit(body: Body, x: Value) -> Value:
    dtype = scalars.dtype_of(x)
    return TRUTH(body, body(llvm.And, x, body.constant(1, dtype)) if dtype.kind == "int" else x)


def nan_is_false(body: Body, x: Value) -> Value:
    if scalars.dtype_of(x).kind == "int":
        return TRUTH(body, x)
    wide = scalars.widened(body, x)
    return body(llvm.And, TRUTH(body, x), body(llvm.FCmp, wide, wide, predicate="oeq"))


def unpadded_k(self: Scheduling, subject: Value, settings: dict[str, Any]) -> dict[str, Any]:
    found = COMPLETED(self, subject, settings)
    return found if "pad" in settings else {name: size for name, size in found.items() if name != "pad"}


def read_from_the_corner(
    kernel: NestKernel, batch: Position, corner: tuple[Index, Index], tile: tuple[int, int], lanes: int
) -> None:
    STAGE_ELEMENTS(kernel, batch, corner, tile, lanes)
    for value, read in kernel.through.items():
        if isinstance(read, partial) and 1 in maps.matrix_of(value):
            kernel.through[value] = partial(read.func, read.args[0], corner)


def framed_in_front(operation: Pad, instruction: Instruction, at: Position, kernel: NestKernel) -> Any:
    both = any(low and high for low, high in zip(operation.low, operation.high, strict=True))
    return PAD(replace(operation, high=(0,) * len(at)) if both else operation, instruction, at, kernel)


def three_parts(operation: Concat, instruction: Instruction, at: Position, kernel: NestKernel) -> Any:
    few = (*instruction.operands[:3], *[instruction.operands[2]] * len(instruction.operands[3:]))
    return CONCAT(operation, replace(instruction, operands=few), at, kernel)


def moving(kind: type[Operation], wrong: Any) -> Any:
    """Return the reading of elements, replaced for one operation."""
    right = elements.reading

    def reading(operation: Operation, *others: Any) -> Any:
        return wrong(operation, *others) if isinstance(operation, kind) else right(operation, *others)

    return reading


PAD, CONCAT = elements.reading.dispatch(Pad), elements.reading.dispatch(Concat)
WITHIN, CAST, STAGE_ELEMENTS = elements._within, scalars.ON_COMPLEX["cast"], maps.stage_elements
COMPLETED = Scheduling._completed
CALL, ABS = scalars._call, scalars._absolute
OF_INTEGER, OF_TRUTH, TRUTH = scalars._of_integer, scalars._of_truth, scalars.truth
ELEMENTS = [
    replaced("LANG-08.2-01", "frames in front alone, in kernels, what has a frame on both sides", make,
             ("tile.lowering.elements.reading", moving(Pad, framed_in_front)), name="framed_in_front"),
    replaced("LANG-08.2-01", "joins three parts in kernels", make,
             ("tile.lowering.elements.reading", moving(Concat, three_parts)), name="three_parts"),
    replaced("LANG-08.2-01", "pads no k that a directive leaves open", make,
             ("schedule.lowering.Scheduling._completed", unpadded_k), name="unpadded_k"),
    replaced("LANG-08.2-01", "assigns to elements between those of a step of 2", make,
             ("tile.lowering.elements._within", dense_pairs), name="dense_pairs"),
    replaced("LANG-08.2-01", "casts the real parts of complex numbers when lowered", make,
             ("target_ir.lowering.scalars.ON_COMPLEX", scalars.ON_COMPLEX | {"cast": lambda body, operation, x: CAST(
                 body, operation, x.real if isinstance(x, Pair) else x)}), name="cast_real_parts"),
    replaced("LANG-08.2-01", "computes gelu by erf where tanh is asked for when lowered", make,
             ("target_ir.lowering.scalars._call", of_gelu_alone), name="gelu_by_erf"),
    replaced("LANG-08.2-01", "leaves integers negative that are lowered from abs", make,
             ("target_ir.lowering.scalars.ON_SCALARS", scalars.ON_SCALARS | {"abs": lambda body, operation, x: (
                 ABS(body, operation, x) if scalars.dtype_of(x).kind == "float" else x)}), name="abs_of_floats"),
    replaced("LANG-08.2-01", "rounds int64 twice on its way to fp32 when lowered", make,
             ("target_ir.lowering.scalars._of_integer", through_fp64), name="int64_through_fp64"),
    replaced("LANG-08.2-01", "widens integers without their sign when lowered", make,
             ("target_ir.lowering.scalars._of_integer", zero_extended), name="zero_extended"),
    replaced("LANG-08.2-01", "casts true to -1 when lowered", make,
             ("target_ir.lowering.scalars._of_truth", true_is_minus_one), name="true_is_minus_one"),
    replaced("LANG-08.2-01", "casts true to 2.0 when lowered", make,
             ("target_ir.lowering.scalars._of_truth", true_is_two), name="true_is_two"),
    replaced("LANG-08.2-01", "casts the last bit of integers to bool when lowered", make,
             ("target_ir.lowering.scalars.truth", lowest_bit), name="lowest_bit"),
    replaced("LANG-08.2-01", "casts NaN to false when lowered", make,
             ("target_ir.lowering.scalars.truth", nan_is_false), name="nan_is_false"),
    replaced("LANG-08.2-01", "reads staged operands that broadcast from the corner of the result's tile", make,
             ("tile.lowering.maps.stage_elements", read_from_the_corner), name="stretched_from_the_corner"),
]  # fmt: skip

TOTAL, FLAT = lowering._Backward.total, lowering._flat
GRADIENTS = [
    replaced(BLOCKS, "leaves gradients to the host", make,
        ("schedule.lowering.without_gradients", lambda module: module), name="gradients_on_the_host"),
    replaced("LANG-08.2-01", "adds the uses within a composite one by one", make,
             ("schedule.lowering._flat", at_once), name="gradients_at_once"),
    replaced("LANG-08.2-01", "loses gradients through a branch within a branch when lowered", make,
             ("schedule.lowering.used_by", used_at_the_top), name="gradients_of_outer_branches"),
]  # fmt: skip

SAMPLE = [
    tiles("low_a", "LANG-13.1-06", "stages A in tiles of m = 64", m=64),
    tiles("narrow_b", "LANG-13.1-09", "stages B in tiles of n = 64", n=64),
    replaced("LANG-13.1-10", "multiplies fragments of 16x8x16", make,
        ("tile.lowering.contractions.CHOSEN", (16, 8, 16)), name="other_fragments"),
]  # fmt: skip


@violates("LANG-03.1-04", "lowers a program whose later dimension is unknown")
class LowersLaterUnknowns(ReferenceAdapter):
    def language_lower(self, *, source: str, to: str, **request: Any) -> dict[str, Any]:
        known = source.replace("N", "8") if to == "tile" and "8xN" in source else source
        return super().language_lower(source=known, to=to, **request)


# Blocks


def first_blocks(kernel: Any, shape: Any, tile: Any, matrices: int) -> Grid:
    found = GRID(kernel, shape, tile, matrices)
    _, _, z = found.extents
    return replace(found, extents=(max(shape[1] // tile[1], 1), max(shape[0] // tile[0], 1), z))


def first_rows_of_maps(kernel: Any, shape: Any, tile: Any, matrices: int) -> Grid:
    found = GRID(kernel, shape, tile, matrices)
    x, _, z = found.extents
    return replace(found, extents=(x, max(shape[0] // tile[0], 1), z)) if kernel.nest.kind == "map" else found


def one_more(kernel: Any, shape: Any, tile: Any, matrices: int) -> Grid:
    found = GRID(kernel, shape, tile, matrices)
    x, y, z = found.extents
    return replace(found, extents=(x + 1, y, z))


def no_tail(self: Contraction, row: Any, column: Any, room: Any) -> Any:
    return True


def tail_of_rows(self: Contraction, row: Any, column: Any, room: Any) -> Any:
    m, n, k = self.extents
    wide = replace(self, extents=(m, -(-n // self.tile[1]) * self.tile[1], k))
    return INSIDE(wide, row, column, room)


GRID, INSIDE, CLEAR, FILL = Grid.of, Contraction.inside, Stage._clear, Stage.fill

NESTS = [
    replaced(BLOCKS, "leaves out the tiles at the ends", make, ("tile.lowering.maps.Grid.of", first_blocks),
        name="no_last_blocks"),
    replaced("LANG-08.2-01", "leaves out the rows of elements at the end", make,
        ("tile.lowering.maps.Grid.of", first_rows_of_maps), name="no_last_rows_of_maps"),
    replaced(BLOCKS, "has a block too many", make, ("tile.lowering.maps.Grid.of", one_more), name="one_more"),
    replaced(BLOCKS, "bounds rows of a tail only", make,
        ("tile.lowering.contractions.Contraction.inside", tail_of_rows), name="tail_of_rows"),
]  # fmt: skip


# Stages


def stale(self: Stage, slot: Any, batch: Any, row: Any, column: Any) -> None:
    FILL(self, self.kernel.index(0), batch, row, column)


def silent(self: KernelBuilder, label: str = "") -> None:
    """Emit no barrier."""


def last_tile_left_out(
    kernel: Any, steps: int, depth: int, fill: maps.Fill, compute: maps.Compute, carried: Any
) -> Any:
    def but_the_last(step: Index, slot: Index) -> None:
        last = steps - 1 if depth <= 3 else max(steps - 2, 0)
        fill(step.at_most(last), slot)

    return PIPELINED(kernel, steps, depth, but_the_last, compute, carried)


PIPELINED = maps.pipelined

STAGING = [
    replaced("LANG-08.2-01", "copies the tile before the last for it where a pipeline has more than three stages",
        make, ("tile.lowering.contractions.pipelined", last_tile_left_out), name="last_tile_left_out"),
    replaced(STAGES, "fills one buffer of a ring", make, ("tile.lowering.maps.Stage.fill", stale), name="stale_buffer"),
]  # fmt: skip
