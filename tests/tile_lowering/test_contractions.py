"""Products become kernels: the bits of Graph IR for every dtype, tile, depth and target, and what stands in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.matmul import MatMul
from tessera_reference.ir.diagnostics import Location, Span
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.types import Memref, Tensor, Value
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import round_operand
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


@pytest.mark.parametrize("dtype", ["fp32", "tf32", "fp16"])
@pytest.mark.parametrize("target", ["sm_80", "gfx90a"])
def test_numbers_of_every_exponent(programs: Any, dtype: str, target: str) -> None:
    a, b = programs.codes(dtype, (20, 4), 1), programs.codes(dtype, (4, 30), 2)
    programs.same("op.matmul(a, b)", target, a=a, b=b)


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


def test_a_program_of_the_specification_stages_copies_and_multiplies_fragments(programs: Any) -> None:
    """Spec section 13.1: shared tiles of both operands, cp.async, ldmatrix and mma.sync of 16x16x16 into fp32."""
    signature = "a: tensor<256x128xbf16>, b: tensor<128x256xbf16>"
    lowered = programs.lower("op.matmul(a, b)", signature, tile=(128, 128, 64), depth=3)
    kernel = lowered.kernel
    assert kernel.attributes["grid"] == (2, 2, 1)
    allocated = [each.returns for each in lowered.operations("shared.alloc")]
    assert Memref((3, 128, 64), DTYPES["bf16"], "shared") in allocated
    assert Memref((3, 64, 128), DTYPES["bf16"], "shared") in allocated
    assert {each.bytes for each in lowered.operations("cp.async")} == {16}
    assert {(each.m, each.n, each.k, each.accum.name) for each in lowered.operations("mma.sync")} == {
        (16, 16, 16, "fp32")
    }
    for name in ("ldmatrix", "fragment.store", "cp.async.commit", "cp.async.wait", "barrier"):
        assert lowered.operations(name), name
    assert [each.pending for each in lowered.operations("cp.async.wait")] == [1]


@pytest.mark.parametrize(
    ("columns", "expected"), [(40, {16}), (36, {8}), (34, {4}), (33, set())], ids=["16", "8", "4", "odd"]
)
def test_copies_are_as_wide_as_rows_are_aligned(programs: Any, columns: int, expected: set[int]) -> None:
    lowered = programs.same("op.matmul(a, b)", a=("bf16", 8, columns), b=("bf16", columns, 33))
    assert {each.bytes for each in lowered.operations("cp.async")} == expected


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
        a, b = (np.where(np.isnan(values), 0, each) for each in codes)
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
