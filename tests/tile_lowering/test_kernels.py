"""Products, maps and rows lowered to kernels: the bits of Graph IR for every dtype, tile, depth and target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.graph.matmul import MatMul
from tessera_reference.ir.diagnostics import Location, Rejection, Span
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.types import Memref, Tensor, Value
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import round_operand
from tessera_reference.numerics.trees import FOLD
from tessera_reference.tile.interpreter import run_kernel
from tessera_reference.tile.lowering.contractions import Share, require_accumulator, rounded_to_tf32
from tessera_reference.tile.lowering.kernel import KernelBuilder

DTYPE_NAMES = [name for name in DTYPES if name != "bool"]
SCHEDULES: list[dict[str, Any]] = [
    {},
    {"tile": (16, 16, 16), "depth": 1},
    {"tile": (8, 8, 8), "depth": 3, "prefetch": "none"},
    {"tile": (40, 20, 7), "depth": 2},
]


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_every_dtype_under_every_schedule(programs: Any, dtype: str, target: str) -> None:
    for options in SCHEDULES:
        programs.same("op.matmul(a, b)", target, options=options, a=(dtype, 5, 9), b=(dtype, 9, 7))


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3", "fp32", "int32"])
@pytest.mark.parametrize("options", SCHEDULES)
def test_tails_of_many_tiles(programs: Any, dtype: str, options: dict[str, Any]) -> None:
    programs.same("op.matmul(a, b)", options=options, a=(dtype, 33, 40), b=(dtype, 40, 17))


@pytest.mark.parametrize("dtype", ["fp8_e5m2", "bf16", "fp16", "tf32", "fp32", "fp64"])
@pytest.mark.parametrize("options", [*SCHEDULES, {"tile": (32, 32, 32)}])
def test_products_are_added_in_ascending_order(programs: Any, dtype: str, options: dict[str, Any]) -> None:
    """No special numbers, and a result that no rounding blurs: another order would show."""
    a, b = programs.ordinary(dtype, (7, 70), 1), programs.ordinary(dtype, (70, 9), 2)
    backwards = [Array(each.dtype, each.values[index]) for each, index in ((a, np.s_[:, ::-1]), (b, np.s_[::-1]))]
    out = DTYPES[dtype].accumulator
    assert matmul(a, b, out).to_bits() != matmul(*backwards, out).to_bits()
    programs.same(f"op.matmul(a, b, out={out})", options=options, a=a, b=b)


@pytest.mark.parametrize("staged", ["a", "b"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_one_operand_is_staged_alone(programs: Any, dtype: str, staged: str) -> None:
    body = f"schedule.prefetch({staged}); return op.matmul(a, b);"
    for tile in ((8, 8, 8), (40, 20, 7)):
        options = {"prefetch": "none", "tile": tile}
        programs.same(body, options=options, a=(dtype, 33, 20), b=(dtype, 20, 17))


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("op.matmul(a, b)", {"a": (2, 3, 5, 4), "b": (2, 3, 4, 6)}),
        ("op.matmul(a, a) + a", {"a": (17, 17)}),
        ("op.relu(op.matmul(a, b) + c) * c", {"a": (20, 9), "b": (9, 18), "c": (18,)}),
        ("let z: tensor<5x6xD> = op.matmul(a, b); return z, z * z;", {"a": (5, 4), "b": (4, 6)}),
        ("op.matmul(a, op.transpose(b))", {"a": (5, 4), "b": (6, 4)}),
        ("op.matmul(a, b, out=fp64)", {"a": (5, 4), "b": (4, 6)}),
        ("op.matmul(a, b, accum=fp64)", {"a": (5, 4), "b": (4, 6)}),
        ("op.matmul(a, b)", {"a": (5, 0), "b": (0, 6)}),
        ("op.matmul(a, b)", {"a": (0, 5), "b": (5, 6)}),
        ('op.matmul(op.layout_cast(a, to="col_major"), b)', {"a": (5, 4), "b": (4, 6)}),
        ("schedule.prefetch(c); return op.matmul(a, b) * c;", {"a": (20, 9), "b": (9, 18), "c": (18,)}),
        ("schedule.prefetch(c); return c + op.matmul(a, b);", {"a": (2, 20, 9), "b": (2, 9, 18), "c": (20, 1)}),
    ],
)
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_batches_epilogues_and_results(programs: Any, body: str, inputs: dict[str, Any], dtype: str) -> None:
    given = {name: (dtype, *shape) for name, shape in inputs.items()}
    programs.same(body.replace("D", dtype), **given)
    programs.same(body.replace("D", dtype), "gfx942", options={"tile": (8, 8, 8), "depth": 3}, **given)


@pytest.mark.parametrize(
    ("columns", "expected"), [(40, {16}), (36, {8}), (34, {4}), (33, set())], ids=["16", "8", "4", "odd"]
)
def test_copies_are_as_wide_as_rows_are_aligned(programs: Any, columns: int, expected: set[int]) -> None:
    lowered = programs.same("op.matmul(a, b)", a=("bf16", 8, columns), b=("bf16", columns, 33))
    assert {operation.bytes for operation in lowered.operations("cp.async")} == expected


def test_without_staging_lanes_work_on_their_own(programs: Any) -> None:
    lowered = programs.same("op.matmul(a, b)", options={"prefetch": "none"}, a=("fp32", 20, 9), b=("fp32", 9, 30))
    for name in ("barrier", "shared.alloc", "cp.async", "mma.sync"):
        assert not lowered.operations(name), name
    assert lowered.kernel.attributes["smem_bytes"] == 0


@pytest.mark.parametrize(
    ("tile", "grid"), [((16, 16, 16), (3, 2, 6)), ((32, 8, 8), (5, 1, 6)), ((64, 64, 64), (1, 1, 6))]
)
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_the_grid_follows_the_tile(programs: Any, tile: tuple[int, ...], grid: tuple[int, ...], dtype: str) -> None:
    signature = f"a: tensor<2x3x20x9x{dtype}>, b: tensor<2x3x9x40x{dtype}>"
    assert programs.lower("op.matmul(a, b)", signature, tile=tile).kernel.attributes["grid"] == grid


def test_more_matrices_than_a_grid_has_along_z_are_counted_along_x(programs: Any) -> None:
    lowered = programs.lower("op.matmul(a, b)", "a: tensor<70000x2x3xfp32>, b: tensor<70000x3x2xfp32>")
    assert lowered.kernel.attributes["grid"] == (70000, 1, 1)


def test_counting_along_x_finds_every_tile(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessera_reference.tile.lowering.maps.MOST_BLOCKS", (100, 3, 3))
    lowered = programs.same("op.matmul(a, b)", options={"tile": (2, 2, 2)}, a=("fp32", 4, 5, 3), b=("fp32", 4, 3, 4))
    assert lowered.kernel.attributes["grid"] == (24, 1, 1)


def test_accumulators_that_find_no_room_make_tiles_shorter_along_k(programs: Any) -> None:
    """Two stages of 128x128x64 are all the 64 KiB that a block of this target has."""
    signature = "a: tensor<128x64xbf16>, b: tensor<64x128xbf16>"
    lowered = programs.lower("op.matmul(a, b)", signature, "gfx942", tile=(128, 128, 64), depth=2)
    assert lowered.operations("shared.alloc")[0].returns.shape == (2, 128, 32)


def test_the_blocks_run_in_any_order(programs: Any) -> None:
    kernel = programs.lower("op.matmul(a, b)", "a: tensor<33x40xbf16>, b: tensor<40x17xbf16>", tile=(16, 16, 16)).kernel
    a, b = programs.numbers("bf16", (33, 40), 1), programs.numbers("bf16", (40, 17), 2)
    empty = Array(DTYPES["bf16"], np.zeros((33, 17), np.float32))
    runs = [run_kernel(kernel, (a, b, empty), target_of("sm_90"), order=order) for order in ("forward", "reverse")]
    assert runs[0][2].to_bits() == runs[1][2].to_bits()


@pytest.mark.parametrize(
    ("rows", "columns", "warps"), [(8, 8, (2, 4)), (1, 5, (1, 5)), (3, 5, (1, 5)), (1, 1, (1, 1)), (9, 1, (3, 1))]
)
def test_warps_have_equal_shares(rows: int, columns: int, warps: tuple[int, int]) -> None:
    share = Share.of(rows, columns, 8)
    assert share.warps in (warps, warps[::-1] if rows == columns else warps)
    assert share.each[0] * share.warps[0] == rows
    assert share.each[1] * share.warps[1] == columns


@pytest.mark.parametrize(
    ("operands", "accum"),
    [("fp32", "fp16"), ("fp32", "bf16"), ("fp64", "fp32"), ("bf16", "fp16"), ("fp8_e5m2", "fp8_e5m2")],
)
def test_an_accumulator_that_does_not_hold_the_operands_is_refused(operands: str, accum: str) -> None:
    square = Tensor((2, 2), DTYPES[operands])
    with pytest.raises(Refusal, match="accumulates in"):
        require_accumulator(MatMul(a=square, b=square, accum=DTYPES[accum]))
    require_accumulator(MatMul(a=square, b=square))


class TestRoundingToTf32:
    """Ten fraction bits by way of fp16: held to `round_operand`, which works on the numbers themselves."""

    @staticmethod
    def rounded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kernel = KernelBuilder(Location("t", Span(1, 1, 1, 2)))
        memory, made = (Value(name, Memref(values.shape, DTYPES["fp32"])) for name in ("x", "y"))
        kernel.store(rounded_to_tf32(kernel, kernel.load(memory, (kernel.thread_id(),))), made, (kernel.thread_id(),))
        function = kernel.function("tss_kernel_k", (memory, made), (1, 1, 1), values.size, target_of("sm_90"))
        given = Array(DTYPES["fp32"], values)
        return run_kernel(function, (given, given), target_of("sm_90"))[1].values

    def agree(self, values: np.ndarray[Any, Any]) -> bool:
        codes = (part.view(np.uint32) for part in (self.rounded(values), round_operand(values)))
        a, b = (np.where(np.isnan(values), 0, code) for code in codes)
        return bool((a == b).all())

    def test_of_any_code(self, programs: Any) -> None:
        for seed in range(4):
            assert self.agree(programs.codes("fp32", (1024,), seed).values)

    def test_at_the_ends_of_ranges_and_at_ties(self) -> None:
        powers = [2.0**exponent for exponent in range(-149, 128)]
        around = [
            power * factor for power in powers for factor in (1, 1 + 2**-11, 1 + 3 * 2**-11, 2 - 2**-11, 2 - 2**-23)
        ]
        values = np.array([*around, 0.0, np.inf, np.nan, 3.4028235e38], np.float64).astype(np.float32)
        for part in np.array_split(np.concatenate([values, np.negative(values)]), 4):
            assert self.agree(part)


FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]


def whole(name: str, values: Any) -> Array:
    return Array(DTYPES[name], np.asarray(values, DTYPES[name].carrier))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_chains_of_elementwise_operations(programs: Any, dtype: str, target: str) -> None:
    x, y = (dtype, 9, 17), (dtype, 17)
    lowered = programs.same("op.gelu(op.relu(x) * y + op.exp(x)) / y - op.tanh(y)", target, x=x, y=y)
    assert all(kernel.attributes["smem_bytes"] == 0 for kernel in lowered.kernels)
    programs.same(f"op.select(x < y, -x, op.cast(1.0, dtype={dtype}))", target, x=x, y=y)
    programs.same("op.abs(op.clamp(x, y, y))", target, x=x, y=y)


def test_casts_take_their_overflow_along(programs: Any) -> None:
    x = programs.codes("fp32", (400,), 3)
    programs.same('op.cast(x, dtype=fp8_e4m3, overflow="nonfinite")', x=x)
    programs.same("op.cast(x, dtype=fp8_e4m3)", x=x)
    programs.same("op.cast(x, dtype=int16)", x=x)
    programs.same("op.cast(x, dtype=complex64) * op.cast(x, dtype=complex64)", x=x)


MOVEMENTS = [
    ("op.transpose(x)", (5, 7)),
    ("op.transpose(x, perm=[1, 2, 0])", (3, 4, 5)),
    ("op.reshape(x, shape=[7, 5])", (5, 7)),
    ("op.reshape(x, shape=[-1])", (5, 7)),
    ("op.reshape(x, shape=[5, 1, 7, 1])", (5, 7)),
    ("op.broadcast(x, shape=[3, 5, 7])", (5, 1)),
    ("op.pad(x, low=[1, 0], high=[2, 3], value=1.5)", (3, 2)),
    ("op.pad(x, low=[1, 1], high=[2, 0])", (0, 2)),
    ("op.pad(x, low=[0, 0], high=[0, 0])", (3, 2)),
    ("op.concat(x, x, axis=0)", (3, 2)),
    ("op.concat(x, op.slice(x, starts=[0, 1], stops=[4, 1]), x, axis=1)", (4, 3)),
    ("x[1, 2:5]", (3, 7)),
    ("x[:, 5:0:-2]", (3, 7)),
    ("x[1]", (3, 7)),
    ("x[2:2]", (3, 7)),
    ("op.slice(x, starts=[0, 6], stops=[3, 0], steps=[2, -3])", (3, 7)),
    ("x[1, 2:5] = x[0, 0:3]; return x;", (3, 7)),
    ("x[:, 5:0:-2] = x[:, 0:3]; return x;", (3, 7)),
    ("x[2:2] = x[0:0]; return x;", (3, 7)),
    ("x[1] = 2.0; return x;", (3, 7)),
    ('op.layout_cast(x, to="col_major")', (3, 7)),
]


@pytest.mark.parametrize(("body", "shape"), MOVEMENTS)
def test_movements(programs: Any, body: str, shape: tuple[int, ...]) -> None:
    programs.same(body, x=("fp32", *shape))
    programs.same(body, "gfx942", x=("fp32", *shape))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("axis", "indices"), [(0, [2, 0, 2, 1]), (1, [[1, 0], [3, 3]]), (2, 1), (-1, [])])
def test_gathering(programs: Any, index: str, axis: int, indices: Any) -> None:
    programs.same(f"op.gather(x, i, axis={axis})", x=("fp32", 3, 4, 2), i=whole(index, indices))


def test_positions_and_indices_of_the_program(programs: Any) -> None:
    programs.same("let p: tensor<3x40xint32> = op.iota(shape=[3, 40], axis=1); return p;")
    programs.same("let p: tensor<300xbf16> = op.iota(shape=[300], dtype=bf16); return p + op.cast(0.5, dtype=bf16);")
    programs.same("x[i, 1:3]", x=("fp32", 3, 7), i=whole("int32", 2))
    programs.same("x[i] = y; return x;", x=("fp32", 3, 7), y=("fp32", 7), i=whole("int32", 1))
    programs.same("x[1:3, i] = y; return x;", x=("fp32", 3, 7), y=("fp32", 2), i=whole("int32", 6))


@pytest.mark.parametrize(
    ("body", "index"),
    [
        ("op.gather(x, op.broadcast(i, shape=[4]), axis=0)", whole("int32", 3)),
        ("op.gather(x, op.broadcast(i, shape=[4]), axis=0)", whole("int32", -1)),
        ("op.gather(x, op.broadcast(i, shape=[4]), axis=0)", whole("int64", 1 << 32)),
        ("x[i, 1:3]", whole("int32", 3)),
        ("x[i] = y; return x;", whole("int32", 3)),
    ],
)
def test_an_index_outside_is_an_error_of_the_running_kernel(programs: Any, body: str, index: Array) -> None:
    signature = f"x: tensor<3x7xfp32>, y: tensor<7xfp32>, i: {index.dtype}"
    lowered = programs.lower(body, signature)
    inputs = {"x": programs.numbers("fp32", (3, 7)), "y": programs.numbers("fp32", (7,)), "i": index}
    for module in (lowered.graph, lowered.tile):
        with pytest.raises(Rejection) as caught:
            execute(module, "f", inputs)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.phase == "execute"
        assert "out of" in diagnostic.message


@pytest.mark.parametrize("scalar", ["fp32", "fp64", "int32", "int64"])
def test_scalars_of_32_and_64_bits_are_parameters(programs: Any, scalar: str) -> None:
    lowered = programs.same("op.broadcast(c, shape=[3, 4])", c=(scalar,))
    assert [str(parameter.type) for parameter in lowered.kernel.parameters] == [
        f"memref<3x4x{scalar}>[addrspace=global]",
        scalar,
    ]


@pytest.mark.parametrize("scalar", ["bf16", "tf32", "fp8_e5m2", "int8", "bool", "complex64"])
def test_other_scalars_travel_as_buffers_of_one_element(programs: Any, scalar: str) -> None:
    lowered = programs.same("op.broadcast(c, shape=[3, 4])", c=(scalar,))
    assert str(lowered.kernel.parameters[0].type) == f"memref<1x{scalar}>[addrspace=global]"


@pytest.mark.parametrize("tile", ["m=4, n=8", "m=1, n=1", "m=64, n=64"])
def test_the_grid_follows_the_tile_of_maps(programs: Any, tile: str) -> None:
    body = f"let y: tensor<2x9x17xfp32> = x + x; schedule.tile(y, {tile}, pad=[{{}}, {{}}]); return y;"
    m, n = (int(part.split("=")[1]) for part in tile.split(","))
    lowered = programs.same(body.format(-9 % m, -17 % n), x=("fp32", 2, 9, 17))
    assert lowered.kernel.attributes["grid"] == (-(-17 // n), -(-9 // m), 2)


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "int8"])
def test_what_is_prefetched_is_read_from_shared_memory(programs: Any, dtype: str, target: str) -> None:
    body = "schedule.prefetch(x); schedule.prefetch(b); return (x * b) + c;"
    given = {"x": (dtype, 2, 33, 16), "b": (dtype, 16), "c": (dtype, 2, 33, 1)}
    lowered = programs.same(body, target, **given)
    assert {operation.returns.shape for operation in lowered.operations("shared.alloc")} == {(1, 32, 16), (1, 1, 16)}
    assert lowered.operations("cp.async")
    loaded = [operation.memory for operation in lowered.operations("load")]
    assert [memory.space for memory in loaded].count("global") == 1


REDUCTIONS = ["sum", "prod", "mean", "max", "min", "argmax", "logsumexp", "softmax"]
SHAPES = [(5, 7), (3, 1, 70), (33,), (2, 3, 1), (1, 300)]


@pytest.mark.parametrize("operation", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float(programs: Any, every: Callable[[int], int], operation: str, dtype: str) -> None:
    """Every second shape of each, other ones for another pair."""
    first = (REDUCTIONS.index(operation) + FLOATS.index(dtype)) % every(2)
    for place, shape in list(enumerate(SHAPES))[first :: every(2)]:
        axis = place % len(shape)
        programs.same(f"op.{operation}(x, axis={axis})", x=(dtype, *shape))
        programs.same(f"op.{operation}(x, axis=-1)", "gfx942" if place % 2 else "sm_90", x=(dtype, *shape))


@pytest.mark.parametrize("length", [29, 70, 1300])
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_the_tree_is_that_of_adjacent_pairs(programs: Any, dtype: str, length: int) -> None:
    """No special numbers, so that another tree shows."""
    x = programs.ordinary(dtype, (3, length), 1)
    assert reductions.sum(x, 1).to_bits() != reductions.sum(x, 1, tree=FOLD).to_bits()
    for target in ("sm_90", "gfx942"):
        for operation in ("sum", "mean", "softmax", "logsumexp"):
            programs.same(f"op.{operation}(x, axis=1)", target, x=x)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("operation", ["sum", "prod", "mean"])
def test_complex_numbers(programs: Any, operation: str, dtype: str) -> None:
    programs.same(f"op.{operation}(x, axis=1)", x=(dtype, 5, 70))
    programs.same(f"op.{operation}(x, axis=0, keepdims=true)", x=(dtype, 3, 2))


@pytest.mark.parametrize("length", [1, 2, 3, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 2500])
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_rows_of_every_kind_of_length(programs: Any, length: int, target: str) -> None:
    """Ends within a warp, at its end, within and behind the lanes of a row. A sum of -0 stays -0 (AMB-RT-24)."""
    programs.same("op.sum(x, axis=1)", target, x=("fp32", 2, length))
    minus = Array(DTYPES["fp32"], np.full((1, length), -0.0, np.float32))
    programs.same("op.sum(x, axis=1)", target, x=minus)


@pytest.mark.parametrize("tile", ["m=1, n=1", "m=4, n=4", "m=33, n=1"])
@pytest.mark.parametrize("operation", ["sum", "softmax"])
def test_no_bit_depends_on_the_tile(programs: Any, operation: str, tile: str) -> None:
    result = {"sum": "tensor<9xfp32>", "softmax": "tensor<9x40xfp32>"}[operation]
    m, n = (int(part.split("=")[1]) for part in tile.split(","))
    height, width = (1, 9) if operation == "sum" else (9, 40)
    body = f"let y: {result} = op.{operation}(x, axis=1); schedule.tile(y, {tile}, pad=[{-height % m}, {-width % n}]);"
    programs.same(f"{body} return y;", x=("fp32", 9, 40))


@pytest.mark.parametrize("prefetch", ["shared", "none"])
@pytest.mark.parametrize(("dtype", "copies"), [("fp32", True), ("bf16", False), ("complex128", True)])
def test_rows_that_are_prefetched_are_read_once(programs: Any, dtype: str, copies: bool, prefetch: str) -> None:
    lowered = programs.same("op.sum(x, axis=0)", options={"prefetch": prefetch}, x=(dtype, 20, 3))
    staged = prefetch == "shared"
    assert bool(lowered.operations("cp.async")) == (copies and staged)
    assert len(lowered.operations("shared.alloc")) == 1 + staged


def test_rows_without_room_in_shared_memory_are_read_from_where_they_are(programs: Any) -> None:
    lowered = programs.same("op.max(x, axis=1)", "gfx942", x=("fp32", 1, 16384))
    assert [operation.returns.shape for operation in lowered.operations("shared.alloc")] == [(1, 256)]


def test_levels_within_a_warp_are_shuffles_and_those_above_wait_at_barriers(programs: Any) -> None:
    lowered = programs.lower("op.max(x, axis=1)", "x: tensor<2x100xfp32>")
    assert [operation.delta for operation in lowered.operations("shfl.sync")] == [1, 2, 4, 8, 16]
    assert [operation.returns.shape for operation in lowered.operations("shared.alloc")][-1] == (2, 4)
    labels = [operation.label for operation in lowered.operations("barrier")]
    assert labels.count("the nodes of this level are there") == 2
    wide = programs.lower("op.max(x, axis=1)", "x: tensor<2x100xfp32>", "gfx942")
    assert [operation.delta for operation in wide.operations("shfl.sync")] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_norms(programs: Any, dtype: str, axis: int) -> None:
    x, vector = (dtype, 6, 9), (dtype, (6, 9)[axis])
    programs.same(f"op.layer_norm(x, g, b, axis={axis})", x=x, g=vector, b=vector)
    programs.same(f"op.rms_norm(x, g, axis={axis})", "gfx942", x=x, g=vector)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("norm", ["ortho", "backward"])
@pytest.mark.parametrize("shape", [(5,), (2, 1, 33), (0, 4)])
def test_transforms(programs: Any, dtype: str, norm: str, shape: tuple[int, ...]) -> None:
    for operation in ("fft", "ifft"):
        programs.same(f'op.{operation}(x, norm="{norm}")', x=(dtype, *shape))


def test_turns_in_64_bits_are_those_in_32(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessera_reference.tile.lowering.rows.MOST", 10)
    programs.same("op.fft(x)", x=("complex64", 2, 9))


@pytest.mark.parametrize("causal", ["true", "false"])
def test_attention(programs: Any, causal: str) -> None:
    q, v = ("bf16", 2, 9, 8), ("bf16", 2, 9, 5)
    programs.same(f"op.flash_attention(q, k, v, causal={causal})", q=q, k=q, v=v)
