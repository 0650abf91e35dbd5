"""Reductions, softmax, norms and transforms become kernels with the bits of Graph IR: the tree is the canon's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.trees import FOLD

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
REDUCTIONS = ["sum", "prod", "mean", "max", "min", "argmax", "logsumexp", "softmax"]
SHAPES = [(5, 7), (3, 1, 70), (33,), (2, 3, 1), (1, 300)]


@pytest.mark.parametrize("operation", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float(programs: Any, operation: str, dtype: str) -> None:
    for place, shape in enumerate(SHAPES):
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


@pytest.mark.parametrize("operation", ["sum", "prod", "max", "min", "argmax"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_every_integer(programs: Any, operation: str, dtype: str) -> None:
    programs.same(f"op.{operation}(x, axis=1)", x=programs.codes(dtype, (5, 100), 1))
    programs.same(f"op.{operation}(x, axis=0, keepdims=true)", x=programs.codes(dtype, (40, 3), 2))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("operation", ["sum", "prod", "mean"])
def test_complex_numbers(programs: Any, operation: str, dtype: str) -> None:
    programs.same(f"op.{operation}(x, axis=1)", x=(dtype, 5, 70))
    programs.same(f"op.{operation}(x, axis=0, keepdims=true)", x=(dtype, 3, 2))


@pytest.mark.parametrize("operation", ["sum", "prod", "mean"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "complex64"])
def test_rows_of_nothing(programs: Any, operation: str, dtype: str) -> None:
    programs.same(f"op.{operation}(x, axis=1)", x=(dtype, 3, 0))
    programs.same(f"op.{operation}(x, axis=0)", x=(dtype, 3, 0))


@pytest.mark.parametrize(
    "values", [[-0.0, 0.0], [0.0, -0.0, 0.0], [-0.0, -0.0], [np.nan, 1, np.nan], [1, np.inf, np.inf]]
)
def test_the_first_of_the_largest(programs: Any, values: list[float]) -> None:
    """-0 lies below +0, the first NaN wins."""
    for name in ("fp32", "bf16", "fp64"):
        x = Array(DTYPES[name], np.asarray(values, DTYPES[name].carrier))
        for operation in ("argmax", "max", "min"):
            programs.same(f"op.{operation}(x, axis=0)", x=x)


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
    assert [each.returns.shape for each in lowered.operations("shared.alloc")] == [(1, 256)]


def test_levels_within_a_warp_are_shuffles_and_those_above_wait_at_barriers(programs: Any) -> None:
    lowered = programs.lower("op.max(x, axis=1)", "x: tensor<2x100xfp32>")
    assert [each.delta for each in lowered.operations("shfl.sync")] == [1, 2, 4, 8, 16]
    assert [each.returns.shape for each in lowered.operations("shared.alloc")][-1] == (2, 4)
    labels = [each.label for each in lowered.operations("barrier")]
    assert labels.count("the nodes of this level are there") == 2
    wide = programs.lower("op.max(x, axis=1)", "x: tensor<2x100xfp32>", "gfx942")
    assert [each.delta for each in wide.operations("shfl.sync")] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_norms(programs: Any, dtype: str, axis: int) -> None:
    x, vector = (dtype, 6, 9), (dtype, (6, 9)[axis])
    programs.same(f"op.layer_norm(x, g, b, axis={axis})", x=x, g=vector, b=vector)
    programs.same(f"op.rms_norm(x, g, axis={axis})", "gfx942", x=x, g=vector)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("norm", ["ortho", "forward", "backward"])
@pytest.mark.parametrize("shape", [(5,), (3, 8), (2, 1, 33), (2, 1), (0, 4)])
def test_transforms(programs: Any, dtype: str, norm: str, shape: tuple[int, ...]) -> None:
    for operation in ("fft", "ifft"):
        programs.same(f'op.{operation}(x, norm="{norm}")', x=(dtype, *shape))


@pytest.mark.parametrize("norm", ["ortho", "forward"])
def test_parts_are_scaled_one_by_one(programs: Any, norm: str) -> None:
    """A product with a complex scale would make NaN of an infinity's other part, and lose signs of zero."""
    given = np.array([[complex(np.inf, 1)], [complex(-0.0, -0.0)], [complex(1, -np.inf)], [complex(-0.0, 2)]])
    programs.same(f'op.fft(x, norm="{norm}")', x=Array(DTYPES["complex128"], given))
    programs.same("op.mean(x, axis=1)", x=Array(DTYPES["complex128"], given))


def test_turns_in_64_bits_are_those_in_32(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessera_reference.tile.lowering.rows.MOST", 10)
    programs.same("op.fft(x)", x=("complex64", 2, 9))


@pytest.mark.parametrize("causal", ["true", "false"])
def test_attention(programs: Any, causal: str) -> None:
    q, v = ("bf16", 2, 9, 8), ("bf16", 2, 9, 5)
    programs.same(f"op.flash_attention(q, k, v, causal={causal})", q=q, k=q, v=v)
