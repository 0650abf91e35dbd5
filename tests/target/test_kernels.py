"""Kernels of Target IR: lane layouts by the documents of the instruction sets, native code, words of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.types import Scalar
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.emission.host import NotNative, run_native
from tessera_reference.target_ir.operations import vendors
from tessera_reference.target_ir.operations.llvm import Add, FPToSISat, FPTrunc
from tessera_reference.target_ir.operations.vendors import Barrier

Place = Callable[[int, int], tuple[int, int]]


# PTX ISA: groupID = %laneid >> 2, threadID_in_group = %laneid % 4. Each entry: the place of element i of a lane.
PTX: dict[tuple[str, int, int, int, str], Place] = {
    ("bf16", 16, 8, 16, "a"): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8
    ),
    ("bf16", 16, 8, 16, "b"): lambda g, t, i: (t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, g),
    ("bf16", 16, 8, 16, "c"): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("fp16", 16, 8, 8, "a"): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("fp16", 16, 8, 8, "b"): lambda g, t, i: (t * 2 + i, g),
    ("tf32", 16, 8, 4, "a"): lambda g, t, i: (g if i == 0 else g + 8, t),
    ("tf32", 16, 8, 4, "b"): lambda g, t, i: (t, g),
    ("tf32", 16, 8, 8, "a"): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    ("tf32", 16, 8, 8, "b"): lambda g, t, i: (t if i == 0 else t + 4, g),
    ("fp64", 8, 8, 4, "a"): lambda g, t, i: (g, t),
    ("fp64", 8, 8, 4, "b"): lambda g, t, i: (t, g),
    ("fp64", 8, 8, 4, "c"): lambda g, t, i: (g, t * 2 + i),
    ("int8", 8, 8, 16, "a"): lambda g, t, i: (g, t * 4 + i),
    ("int8", 8, 8, 16, "b"): lambda g, t, i: (t * 4 + i, g),
    ("int8", 16, 8, 16, "a"): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    ("int8", 16, 8, 16, "b"): lambda g, t, i: (t * 4 + i, g),
    ("int8", 16, 8, 32, "a"): lambda g, t, i: (
        g if 0 <= i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16
    ),
    ("fp8_e4m3", 16, 8, 32, "b"): lambda g, t, i: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g),
}  # fmt: skip


# The calculator: the lane and the element within it, of row and column. Columns of A and rows of B are k.
AMD: dict[tuple[str, int, int, int, str], Place] = {
    ("fp16", 16, 16, 16, "a"): lambda i, k: (i + 16 * (k // 4), k % 4),
    ("fp16", 16, 16, 16, "b"): lambda k, j: (j + 16 * (k // 4), k % 4),
    ("bf16", 16, 16, 16, "c"): lambda i, j: (j + 16 * (i // 4), i % 4),
    ("fp16", 32, 32, 8, "a"): lambda i, k: (i + 32 * (k // 4), k % 4),
    ("fp16", 32, 32, 8, "c"): lambda i, j: (j + 32 * (i // 4 % 2), 4 * (i // 8) + i % 4),
    ("fp32", 16, 16, 4, "a"): lambda i, k: (i + 16 * k, 0),
    ("fp32", 16, 16, 4, "b"): lambda k, j: (j + 16 * k, 0),
    ("fp32", 32, 32, 2, "b"): lambda k, j: (j + 32 * k, 0),
    ("fp64", 16, 16, 4, "a"): lambda i, k: (i + 16 * k, 0),
    ("fp64", 16, 16, 4, "c"): lambda i, j: (j + 16 * (i % 4), i // 4),
    ("int8", 16, 16, 16, "a"): lambda i, k: (i + 16 * (k // 4), k % 4),
    ("int8", 16, 16, 32, "b"): lambda k, j: (j + 16 * (k // 8), k % 8),
    ("int8", 32, 32, 16, "a"): lambda i, k: (i + 32 * (k // 8), k % 8),
    ("tf32", 16, 16, 8, "a"): lambda i, k: (i + 16 * (k // 2), k % 2),
}


@pytest.mark.parametrize("shape", PTX, ids=lambda shape: "-".join(map(str, shape)))
def test_nvidia_lanes_hold_what_the_ptx_isa_says(shape: tuple[str, int, int, int, str]) -> None:
    name, m, n, k, role = shape
    spread = vendors.nvidia(role, m, n, k, DTYPES[name])  # type: ignore[arg-type]  # a role
    count = {"a": m * k, "b": k * n, "c": m * n}[role] // 32
    assert spread.held == count
    for lane in range(32):
        expected = [PTX[shape](lane >> 2, lane % 4, i) for i in range(count)]  # type: ignore[call-arg]  # of three numbers
        assert list(zip(spread.rows[lane], spread.columns[lane], strict=True)) == expected


@pytest.mark.parametrize("shape", AMD, ids=lambda shape: "-".join(map(str, shape)))
def test_amd_lanes_hold_what_the_calculator_says(shape: tuple[str, int, int, int, str]) -> None:
    name, m, n, k, role = shape
    spread = vendors.amd(role, m, n, k, DTYPES[name])  # type: ignore[arg-type]  # a role
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[role]
    assert spread.held * 64 == rows * columns
    for row in range(rows):
        for column in range(columns):
            lane, element = AMD[shape](row, column)
            assert (spread.rows[lane, element], spread.columns[lane, element]) == (row, column)


def test_ldmatrix_gives_each_lane_two_neighbours() -> None:
    """Lane 6 receives elements 4 and 5 of row 1 of each matrix; transposed, element 1 of rows 4 and 5."""
    lanes, places = vendors.ldmatrix(2, transpose=False)
    assert (lanes[6].tolist(), places[6].tolist()) == ([1, 1, 9, 9], [4, 5, 4, 5])
    lanes, places = vendors.ldmatrix(2, transpose=True)
    assert (lanes[6].tolist(), places[6].tolist()) == ([4, 5, 12, 13], [1, 1, 1, 1])


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 5e-324, 2.0**-149, 2.0**-133 * 1.5, 2.0**-134, 65520.0, 65519.99]
TIES = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-50, 1 + 2.0**-8 - 2.0**-50, 1 + 2.0**-11, 1 + 3 * 2.0**-11]
LARGE = [3.4e38, 3.3961775292304957e38, 3.39617752923046e38, 1e300, -1e300, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63)]
NUMBERS = np.array([*SPECIAL, *TIES, *LARGE, *(-np.array(TIES))], np.float64)


def unary(kernels: Any, source: str, operation: Any, to: str) -> Any:
    def body(build: Any, x: Any, y: Any) -> None:
        lane = build.thread()
        build.store(build(operation, build.load(x, lane, Scalar(DTYPES[source])), to=DTYPES[to]), y, lane)

    return kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, block=(len(NUMBERS), 1, 1))


@pytest.mark.parametrize("source", ["fp64", "fp32"])
@pytest.mark.parametrize(
    ("operation", "to"), [(FPTrunc, "bf16"), (FPTrunc, "fp16"), (FPToSISat, "int32"), (FPToSISat, "int8")]
)
def test_conversions_have_the_interpreters_bits(kernels: Any, tools: Any, source: str, operation: Any, to: str) -> None:
    """Ties, subnormals, what overflows, and NaN."""
    tools.needs_llvm()
    made = unary(kernels, source, operation, to)
    with np.errstate(all="ignore"):
        x = Array(DTYPES[source], NUMBERS.astype(DTYPES[source].carrier))
    y = Array(DTYPES[to], np.zeros(len(NUMBERS), DTYPES[to].carrier))
    assert run_native(made, (x, y))[1].to_bits() == kernels.run(made, x, y)[1].to_bits()


def test_a_double_is_rounded_to_bf16_once(kernels: Any, tools: Any) -> None:
    """1 + 2**-8 + 2**-50 lies above the tie, which rounding to float first would reach and break downwards."""
    tools.needs_llvm()
    made = unary(kernels, "fp64", FPTrunc, "bf16")
    x = Array(DTYPES["fp64"], np.full(len(NUMBERS), 1 + 2.0**-8 + 2.0**-50))
    y = Array(DTYPES["bf16"], np.zeros(len(NUMBERS), np.float32))
    assert set(run_native(made, (x, y))[1].values.tolist()) == {1 + 2.0**-7}


def test_threads_that_meet_do_not_run_natively(kernels: Any) -> None:
    made = kernels.kernel({"x": kernels.buffer}, lambda build, x: build.all(Barrier))
    with pytest.raises(NotNative, match="several threads"):
        run_native(made, (kernels.array("fp32", [0.0]),))


def failure(kernels: Any, made: Any, *arguments: Any) -> str:
    with pytest.raises(Rejection) as caught:
        kernels.run(made, *arguments)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.phase == "execute"
    return diagnostic.message


def test_an_access_outside_a_buffer_names_the_lane(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        build.store(build.load(x, build(Add, build.thread(), build.constant(1)), kernels.fp32), x, build.thread())

    made = kernels.kernel({"x": kernels.buffer}, body, block=(4, 1, 1))
    message = failure(kernels, made, kernels.array("fp32", [1.0] * 4))
    assert "out of bounds" in message and "(3, 0, 0)" in message
