"""Kernels as native code: corner cases of arithmetic against the interpreter and known answers; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.ir.types import Scalar
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import DivisionByZero
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.emission.host import NotNative, run_native
from tessera_reference.target_ir.operations.llvm import Add, FMul, FPExt, FPToSISat, FPTrunc, Maximum, Mul, SDiv
from tessera_reference.target_ir.operations.vendors import Barrier

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


def test_products_and_maxima_of_special_numbers(kernels: Any, tools: Any) -> None:
    tools.needs_llvm()

    def body(build: Any, x: Any, y: Any) -> None:
        lane = build.thread()
        a, b = build.load(x, lane, kernels.fp32), build.load(y, lane, kernels.fp32)
        build.store(build(Maximum, build(FMul, a, b), a), y, lane)

    made = kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, block=(len(NUMBERS), 1, 1))
    with np.errstate(all="ignore"):
        x, y = (Array(DTYPES["fp32"], each.astype(np.float32)) for each in (NUMBERS, NUMBERS[::-1]))
    assert run_native(made, (x, y))[1].to_bits() == kernels.run(made, x, y)[1].to_bits()


def test_every_bf16_widens_to_itself(kernels: Any, tools: Any) -> None:
    tools.needs_llvm()

    def body(build: Any, x: Any, y: Any) -> None:
        place = build(Add, build(Mul, build.block_id(), build.constant(256)), build.thread())
        value = build.load(x, place, Scalar(DTYPES["bf16"]))
        build.store(build(FPExt, value, to=DTYPES["fp64"]), y, place)

    made = kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, (256, 1, 1), (256, 1, 1))
    x = Array.from_bits(DTYPES["bf16"], (65536,), np.arange(65536, dtype="<u2").tobytes())
    y = Array(DTYPES["fp64"], np.zeros(65536))
    found = run_native(made, (x, y))[1].values
    assert np.array_equal(found, x.values.astype(np.float64), equal_nan=True)


def test_a_division_by_zero_is_the_interpreters(kernels: Any, tools: Any) -> None:
    tools.needs_llvm()

    def body(build: Any, x: Any) -> None:
        lane = build.thread()
        build.store(build(SDiv, build.constant(7), build.load(x, lane, kernels.int32)), x, lane)

    made = kernels.kernel({"x": kernels.buffer}, body, block=(3, 1, 1))
    assert run_native(made, (kernels.array("int32", [2, -2, 8]),))[0].values.tolist() == [3, -3, 0]
    with pytest.raises(DivisionByZero):
        run_native(made, (kernels.array("int32", [2, 0, 8]),))


def test_scalars_and_the_grid_arrive(kernels: Any, tools: Any) -> None:
    """Place 6 z + 3 y + x of the blocks gets 10 n; the grid is 3 by 2 by 2."""
    tools.needs_llvm()

    def body(build: Any, y: Any, n: Any) -> None:
        row = build(Mul, build.block_id(1), build.constant(3))
        plane = build(Mul, build.block_id(2), build.constant(6))
        place = build(Add, build(Add, build.block_id(0), row), plane)
        build.store(build(Add, build(Mul, n, build.constant(10)), place), y, place)

    made = kernels.kernel({"y": kernels.buffer, "n": kernels.int32}, body, (1, 1, 1), (3, 2, 2))
    found = run_native(made, (kernels.array("int32", [0] * 12), kernels.array("int32", 4)))
    assert found[0].values.tolist() == [40 + place for place in range(12)]


def test_threads_that_meet_do_not_run_natively(kernels: Any) -> None:
    made = kernels.kernel({"x": kernels.buffer}, lambda build, x: build.all(Barrier))
    with pytest.raises(NotNative, match="several threads"):
        run_native(made, (kernels.array("fp32", [0.0]),))
