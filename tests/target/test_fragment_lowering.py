"""Every matrix shape of every target: a kernel of Tile IR built by hand, lowered, against a fold in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.constant import Constant
from tessera_reference.graph.elementwise import Add, Divide, Less, Multiply, Subtract
from tessera_reference.ir.diagnostics import Location, Span
from tessera_reference.ir.module import Block, BlockBuilder, Function, Instruction, Module
from tessera_reference.ir.targets import TARGETS, MmaShape, target_of
from tessera_reference.ir.types import Fragment, Memref, Value
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.emission.machine_code import llvm_text
from tessera_reference.target_ir.lowering import to_target
from tessera_reference.target_ir.verifier import verify_target_kernel
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from tessera_reference.tile.interpreter import run_kernel
from tessera_reference.tile.operations import (
    Barrier,
    CopyAsync,
    CopyCommit,
    CopyWait,
    If,
    Load,
    SharedAlloc,
    ShuffleSync,
    Store,
    ThreadId,
)

PLACE = Location("kernel.mlir", Span(1, 1, 1, 2))
CASES = [(name, shape) for name, target in TARGETS.items() for shape in target.mma]


class TileBuild(BlockBuilder):
    """Builds the body of a kernel of Tile IR."""

    def index(self, number: int) -> Value:
        return self(Constant, value=number, dtype=DTYPES["int32"])

    def staged(self, source: Value, warp: int) -> Value:
        """A copy in shared memory, 16 bytes a lane."""
        memref = source.type
        assert isinstance(memref, Memref)
        rows, columns = (int(dim) for dim in memref.shape)
        shared = self(SharedAlloc, returns=Memref(memref.shape, memref.dtype, "shared"))
        each = 16 // memref.dtype.storage_bytes
        lane = self(ThreadId, axis="x")
        for begin in range(0, rows * columns // each, warp):
            number = self(Add, lane, self.index(begin))
            inside = self(Less, number, self.index(rows * columns // each))
            copy = TileBuild(PLACE, f"{source.name}{begin}.")
            place = copy(Multiply, number, copy.index(each))
            row = copy(Divide, place, copy.index(columns))
            at = (row, copy(Subtract, place, copy(Multiply, row, copy.index(columns))))
            copy.all(CopyAsync, source, shared, *at, *at, bytes=16)
            regions = (copy.block((), ()), Block((), (), (), "yield"))
            self.instructions.append(Instruction(If(inside.type, ()), (inside,), (), PLACE, regions))
        return shared


def tile_kernel(name: str, parameters: tuple[Value, ...], build: BlockBuilder, smem: int, target: str) -> Function:
    attributes = {"grid": (1, 1, 1), "block": (target_of(target).warp, 1, 1), "smem_bytes": smem, "target": target}
    return Function(name, Block(parameters, tuple(build.instructions), ()), (), PLACE, attributes, device="tile")


def product(
    target: str, shape: MmaShape, extents: tuple[int, int, int], used: tuple[int, int, int], transpose: bool
) -> Function:
    """A product of one warp by one shape, of the used part of operands that lie transposed or not."""
    held, build = shape.dtype, TileBuild(PLACE, "t")
    (m, n, k), (rows, columns, depth) = extents, used
    a = Value("a", Memref((k, m) if transpose else (m, k), held))
    b = Value("b", Memref((n, k) if transpose else (k, n), held))
    c = Value("c", Memref((m, n), held.accumulator))
    tiles = [build.staged(each, target_of(target).warp) for each in (a, b)]
    build.all(CopyCommit)
    build.all(CopyWait)
    build.all(Barrier)
    fragment = Fragment(shape.m, shape.n, shape.k, held)
    for row in range(0, rows, shape.m):
        for column in range(0, columns, shape.n):
            total = build(FragmentZero, returns=fragment)
            for step in range(0, depth, shape.k):
                corners = [(row, step), (step, column)]
                parts = [
                    build(
                        LoadMatrix,
                        tile,
                        *map(build.index, corner[::-1] if transpose else corner),
                        returns=fragment,
                        transpose=transpose,
                    )
                    for tile, corner in zip(tiles, corners, strict=True)
                ]
                total = build(MmaSync, *parts, total, m=shape.m, n=shape.n, k=shape.k)
            build.all(FragmentStore, total, c, build.index(row), build.index(column))
    smem = (m * k + k * n) * held.storage_bytes + 32
    return tile_kernel("tss_kernel_product", (a, b, c), build, smem, target)


def numbers(held: Any, shape: tuple[int, int], salt: int) -> Any:
    """Numbers that are held exactly and whose sums are rounded: far apart in size."""
    flat = np.arange(shape[0] * shape[1], dtype=np.int64) * 37 + salt
    if held.kind == "int":
        return ((flat % 251) - 125).astype(held.carrier).reshape(shape)
    if held.bits == 8:
        return (((flat % 15) - 7) * 0.25).astype(held.carrier).reshape(shape)
    if held.bits == 64:
        return ((flat * 40503 % 100003 - 50000) / 7.0).reshape(shape)
    return (((flat % 201) - 100) * np.where(flat % 3 == 0, 64.0, 0.0625)).astype(held.carrier).reshape(shape)


def folded(a: Any, b: Any, held: Any) -> Any:
    """The left fold over ascending k, each product and sum rounded in the accumulator."""
    number = held.accumulator.carrier.type
    made = np.zeros((a.shape[0], b.shape[1]), held.accumulator.carrier)
    with np.errstate(all="ignore"):
        for row in range(a.shape[0]):
            for column in range(b.shape[1]):
                total = number(0)
                for k in range(a.shape[1]):
                    total = number(total + number(number(a[row, k]) * number(b[k, column])))
                made[row, column] = total
    return made


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("target", "shape"), CASES, ids=lambda each: str(each).replace(" of ", "-"))
def test_every_shape_multiplies_as_the_fold(target: str, shape: MmaShape, transpose: bool, tools: Any) -> None:
    """Rows of shared tiles begin at multiples of 16 bytes, so that shapes of shorter rows are used once."""
    held, target_ = shape.dtype, target_of(target)
    least = 16 // held.storage_bytes
    sizes = (shape.m, shape.n, shape.k)
    used = (2 * shape.m, shape.n, 2 * shape.k) if min(sizes) >= least else sizes
    m, n, k = extents = tuple(-(-size // least) * least for size in used)
    made = product(target, shape, extents, used, transpose)
    lowered = to_target(Module("m", {made.name: made}, PLACE), target_).functions[made.name]
    verify_target_kernel(lowered, target_)
    a, b = numbers(held, (m, k), 3), numbers(held, (k, n), 11)
    given = [Array(held, np.ascontiguousarray(each.T if transpose else each)) for each in (a, b)]
    c = Array(held.accumulator, np.zeros((m, n), held.accumulator.carrier))
    found = run_kernel(lowered, (*given, c), target_)[2].values[: used[0], : used[1]]
    assert found.tolist() == folded(a[: used[0], : used[2]], b[: used[2], : used[1]], held).tolist()
    if not transpose:
        code = tools.assembly(llvm_text(lowered, target_), target_)
        assert ("mma.sync" if target.startswith("sm") else "v_mfma") in code


@pytest.mark.parametrize(("target", "instruction"), [("sm_90", "shfl.sync.down"), ("gfx90a", "ds_bpermute_b32")])
def test_a_shuffle_becomes_the_vendors(target: str, instruction: str, tools: Any) -> None:
    """LANG-08.2-09, LANG-08.2-12: lane i gets what lane i + 5 holds; the last five keep their own."""
    build = TileBuild(PLACE, "t")
    warp = target_of(target).warp
    x, y = (Value(name, Memref((warp,), DTYPES["fp64"])) for name in "xy")
    lane = build(ThreadId, axis="x")
    build.all(Store, build(ShuffleSync, build(Load, x, lane), delta=5), y, lane)
    made = tile_kernel("tss_kernel_shuffle", (x, y), build, 0, target)
    lowered = to_target(Module("m", {made.name: made}, PLACE), target_of(target)).functions[made.name]
    given = Array(DTYPES["fp64"], np.arange(warp, dtype=np.float64))
    found = run_kernel(lowered, (given, given), target_of(target))[1].values.tolist()
    assert found == [float(i + 5 if i + 5 < warp else i) for i in range(warp)]
    assert instruction in tools.assembly(llvm_text(lowered, target_of(target)), target_of(target))
