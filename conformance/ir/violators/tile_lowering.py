"""Compilers whose Tile IR is not that of the schedule, or computes something else (language spec, 3.1, 8.2, 13.1)."""

from dataclasses import replace
from functools import partial

from tessera_reference.graph.elementwise import Gelu
from tessera_reference.graph.movement import Concat, Pad
from tessera_reference.ir.operation import Names
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.schedule.fusion import expansion, is_expandable
from tessera_reference.target_ir.lowering import scalars
from tessera_reference.target_ir.lowering.scalars import Pair
from tessera_reference.target_ir.operations import llvm
from tessera_reference.tile.lowering import maps

from .changes import around, breaks, instead, wrapped

BLOCKS, STAGES = "LANG-08.2-03", "LANG-08.2-04"


def tiles(clause, name, description, **changes):
    """Return a violation with tiles of its own."""

    def lower(usual, self, **request):
        schedule = request.get("schedule", {})
        if "tile" in schedule:
            sizes = [changes.get(letter, size) for letter, size in zip("mnk", schedule["tile"], strict=True)]
            request["schedule"] = schedule | {"tile": sizes}
        return usual(self, **request)

    return wrapped(clause, name, description, "adapter.ReferenceAdapter.language_lower", lower)


def scalar(name, description, function, change):
    """Return a violation that lowers scalars differently, by a function that takes the right one first."""
    return wrapped("LANG-08.2-01", name, description, f"target_ir.lowering.scalars.{function}", change)


@breaks("LANG-08.2-01", "loses gradients through a branch within a branch when lowered", "schedule.lowering.used_by")
def gradients_of_outer_branches(usual, instruction):
    found = set(instruction.operands)
    for region in instruction.regions:
        found.update(region.results, *(operation.operands for operation in region.walk()))
    return found


def through_fp64(usual, body, x, to, overflow):
    if to.kind == "int" or scalars.dtype_of(x).bits != 64:
        return usual(body, x, to, overflow)
    return scalars.narrowed(body, body(llvm.SIToFP, x, to=DTYPES["fp64"]), to, overflow)


def zero_extended(usual, body, x, to, overflow):
    number, bits = usual(body, x, to, overflow), scalars.dtype_of(x).bits
    wider = to.kind == "int" and to.bits > bits
    return body(llvm.And, number, body.constant((1 << bits) - 1, to)) if wider else number


def true_is_minus_one(usual, body, x, to):
    one = usual(body, x, to)
    return body(llvm.Sub, body.constant(0, to), one) if to.kind == "int" else one


def true_is_two(usual, body, x, to):
    one = usual(body, x, to)
    return one if to.kind == "int" else body(llvm.Select, x, body.constant(2.0, to), one)


def lowest_bit(usual, body, x):
    dtype = scalars.dtype_of(x)
    return usual(body, body(llvm.And, x, body.constant(1, dtype)) if dtype.kind == "int" else x)


def nan_is_false(usual, body, x):
    if scalars.dtype_of(x).kind == "int":
        return usual(body, x)
    wide = scalars.widened(body, x)
    return body(llvm.And, usual(body, x), body(llvm.FCmp, wide, wide, predicate="oeq"))


@breaks("LANG-08.2-01", "pads no k that a directive leaves open", "schedule.lowering.Scheduling._completed")
def unpadded_k(usual, self, subject, settings):
    found = usual(self, subject, settings)
    return found if "pad" in settings else {name: size for name, size in found.items() if name != "pad"}


def read_from_the_corner(usual, kernel, batch, corner, tile, lanes):
    usual(kernel, batch, corner, tile, lanes)
    for value, read in kernel.through.items():
        if isinstance(read, partial) and 1 in maps.matrix_of(value):
            kernel.through[value] = partial(read.func, read.args[0], corner)


def moving(kind, wrong):
    """Return the reading of elements, replaced for one operation."""

    def reading(usual, operation, *others):
        return wrong(usual, operation, *others) if isinstance(operation, kind) else usual(operation, *others)

    return around(reading)


CAST, ABS = scalars.ON_COMPLEX["cast"], scalars._absolute


def with_later_unknowns(usual, self, *, source, to, **request):
    known = source.replace("N", "8") if to == "tile" and "8xN" in source else source
    return usual(self, source=known, to=to, **request)


def covering(clause, name, description, change):
    """Return a violation with other blocks; `change` takes the extents of the grid, the kernel, shape and tile."""

    def of(usual, kernel, shape, tile, matrices):
        found = usual(kernel, shape, tile, matrices)
        return replace(found, extents=change(found.extents, kernel, shape, tile))

    return wrapped(clause, name, description, "tile.lowering.maps.Grid.of", of)


@breaks(BLOCKS, "bounds rows of a tail only", "tile.lowering.contractions.Contraction.inside")
def tail_of_rows(usual, self, row, column, room):
    m, n, k = self.extents
    wide = replace(self, extents=(m, -(-n // self.tile[1]) * self.tile[1], k))
    return usual(wide, row, column, room)


def last_tile_left_out(usual, kernel, steps, depth, fill, compute, carried):
    def but_the_last(step, slot):
        last = steps - 1 if depth <= 3 else max(steps - 2, 0)
        fill(step.at_most(last), slot)

    return usual(kernel, steps, depth, but_the_last, compute, carried)


VIOLATIONS = [
    instead("LANG-08.2-01", "framed_in_front", "frames in front alone, in kernels, what has a frame on both sides",
        "tile.lowering.elements.reading", moving(Pad, lambda usual, operation, instruction, at, kernel:
            usual(replace(operation, high=(0,) * len(at)) if any(low and high for low, high in zip(operation.low,
            operation.high, strict=True)) else operation, instruction, at, kernel))),
    instead("LANG-08.2-01", "three_parts", "joins three parts in kernels", "tile.lowering.elements.reading",
        moving(Concat, lambda usual, operation, instruction, at, kernel:
            usual(operation, replace(instruction, operands=(*instruction.operands[:3],
            *[instruction.operands[2]] * len(instruction.operands[3:]))), at, kernel))),
    wrapped("LANG-08.2-01", "dense_pairs", "assigns to elements between those of a step of 2",
        "tile.lowering.elements._within",
        lambda usual, ahead, count, step: usual(ahead, count, step) if step != 2 else usual(ahead, 2 * count - 1, 1)),
    instead("LANG-08.2-01", "cast_real_parts", "casts the real parts of complex numbers when lowered",
        "target_ir.lowering.scalars.ON_COMPLEX", scalars.ON_COMPLEX | {"cast": lambda body, operation, x:
            CAST(body, operation, x.real if isinstance(x, Pair) else x)}),
    scalar("gelu_by_erf", "computes gelu by erf where tanh is asked for when lowered", "_call",
        lambda usual, body, operation, *operands:
        usual(body, replace(operation, approximate="none") if isinstance(operation, Gelu) else operation, *operands)),
    instead("LANG-08.2-01", "abs_of_floats", "leaves integers negative that are lowered from abs",
        "target_ir.lowering.scalars.ON_SCALARS", scalars.ON_SCALARS | {"abs": lambda body, operation, x:
            (ABS(body, operation, x) if scalars.dtype_of(x).kind == "float" else x)}),
    scalar("int64_through_fp64", "rounds int64 twice on its way to fp32 when lowered", "_of_integer", through_fp64),
    scalar("zero_extended", "widens integers without their sign when lowered", "_of_integer", zero_extended),
    scalar("true_is_minus_one", "casts true to -1 when lowered", "_of_truth", true_is_minus_one),
    scalar("true_is_two", "casts true to 2.0 when lowered", "_of_truth", true_is_two),
    scalar("lowest_bit", "casts the last bit of integers to bool when lowered", "truth", lowest_bit),
    scalar("nan_is_false", "casts NaN to false when lowered", "truth", nan_is_false),
    wrapped("LANG-08.2-01", "stretched_from_the_corner",
        "reads staged operands that broadcast from the corner of the result's tile",
        "tile.lowering.maps.stage_elements", read_from_the_corner),
    instead(BLOCKS, "gradients_on_the_host", "leaves gradients to the host", "schedule.lowering.without_gradients",
        lambda module: module),
    wrapped("LANG-08.2-01", "gradients_at_once", "adds the uses within a composite one by one",
        "schedule.lowering._flat", lambda usual, module, instruction:
        list(expansion(instruction, Names())) if is_expandable(instruction) else list(usual(module, instruction))),
    wrapped("LANG-03.1-04", "LowersLaterUnknowns", "lowers a program whose later dimension is unknown",
        "adapter.ReferenceAdapter.language_lower", with_later_unknowns),
    tiles("LANG-13.1-06", "low_a", "stages A in tiles of m = 64", m=64),
    tiles("LANG-13.1-09", "narrow_b", "stages B in tiles of n = 64", n=64),
    instead("LANG-13.1-10", "other_fragments", "multiplies fragments of 16x8x16", "tile.lowering.contractions.CHOSEN",
        (16, 8, 16)),
    covering(BLOCKS, "no_last_blocks", "leaves out the tiles at the ends",
        lambda grid, kernel, shape, tile: (max(shape[1] // tile[1], 1), max(shape[0] // tile[0], 1), grid[2])),
    covering("LANG-08.2-01", "no_last_rows_of_maps", "leaves out the rows of elements at the end",
        lambda grid, kernel, shape, tile:
        (grid[0], max(shape[0] // tile[0], 1), grid[2]) if kernel.nest.kind == "map" else grid),
    covering(BLOCKS, "one_more", "has a block too many", lambda grid, *others: (grid[0] + 1, *grid[1:])),
    wrapped("LANG-08.2-01", "last_tile_left_out",
        "copies the tile before the last for it where a pipeline has more than three stages",
        "tile.lowering.contractions.pipelined", last_tile_left_out),
    wrapped(STAGES, "stale_buffer", "fills one buffer of a ring", "tile.lowering.maps.Stage.fill",
        lambda usual, self, slot, batch, row, column: usual(self, self.kernel.index(0), batch, row, column)),
]  # fmt: skip
