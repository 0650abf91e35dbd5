"""Matrix products and trees against loops of the machine's own arithmetic, and by hand."""

from __future__ import annotations

import random
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle.exact import NAN, NEGATIVE_ZERO, ZERO, Value
from tessera_conformance.oracle.formats import float_format
from tessera_conformance.oracle.reductions import greatest, pairwise_sum
from tessera_conformance.tensors import Tensor


def random_matrix(draw: random.Random, rows: int, columns: int, numpy_type: str) -> np.ndarray[Any, Any]:
    numbers = [[draw.gauss(0, 1) * 2.0 ** draw.randint(-9, 9) for _ in range(columns)] for _ in range(rows)]
    return np.array(numbers).astype(numpy_type)


@pytest.mark.parametrize(("dtype", "numpy_type"), [("fp64", "<f8"), ("fp32", "<f4")])
def test_matmul_is_a_loop_over_ascending_k(draw: random.Random, dtype: str, numpy_type: str) -> None:
    a, b = random_matrix(draw, 5, 33, numpy_type), random_matrix(draw, 33, 4, numpy_type)
    expected = np.zeros((5, 4), dtype=numpy_type)
    for k in range(33):
        expected = expected + a[:, k : k + 1] * b[k : k + 1, :]
    actual = oracle.matmul(Tensor(dtype, a.shape, a.tobytes()), Tensor(dtype, b.shape, b.tobytes()))
    assert actual == Tensor(dtype, (5, 4), expected.tobytes())


def test_a_narrow_matmul_accumulates_in_fp32_and_rounds_once(draw: random.Random) -> None:
    a, b = random_matrix(draw, 3, 20, "<f2"), random_matrix(draw, 20, 3, "<f2")
    total = np.zeros((3, 3), dtype=np.float32)
    for k in range(20):
        total = total + a[:, k : k + 1].astype(np.float32) * b[k : k + 1, :].astype(np.float32)
    left, right = Tensor("fp16", a.shape, a.tobytes()), Tensor("fp16", b.shape, b.tobytes())
    assert oracle.matmul(left, right, out="fp32") == Tensor("fp32", (3, 3), total.tobytes())
    assert oracle.matmul(left, right) == Tensor("fp16", (3, 3), total.astype("<f2").tobytes())


@pytest.mark.parametrize(
    ("dtype", "accumulator"), [("int8", "int32"), ("int16", "int32"), ("int32", "int32"), ("int64", "int64")]
)
def test_integers_wrap_in_the_accumulator_and_in_the_result(draw: random.Random, dtype: str, accumulator: str) -> None:
    info = np.iinfo(dtype)
    a, b = (
        np.array([[draw.randint(info.min, info.max) for _ in range(6)] for _ in range(6)], dtype=dtype)
        for _ in range(2)
    )
    expected = (a.astype(accumulator) @ b.astype(accumulator)).astype(dtype)
    actual = oracle.matmul(Tensor(dtype, a.shape, a.tobytes()), Tensor(dtype, b.shape, b.tobytes()))
    assert actual == Tensor(dtype, (6, 6), expected.tobytes())


def test_batches_are_independent(draw: random.Random) -> None:
    a, b = (random_matrix(draw, 6, 4, "<f4").reshape(shape) for shape in ((2, 3, 4), (2, 4, 3)))
    whole = oracle.matmul(Tensor("fp32", a.shape, a.tobytes()), Tensor("fp32", b.shape, b.tobytes()))
    parts = [
        oracle.matmul(Tensor("fp32", (3, 4), a[i].tobytes()), Tensor("fp32", (4, 3), b[i].tobytes())) for i in range(2)
    ]
    assert whole.data == b"".join(part.data for part in parts)


def test_nothing_to_sum_gives_plus_zero() -> None:
    assert oracle.matmul(Tensor("fp32", (2, 0), b""), Tensor("fp32", (0, 1), b"")).bits() == "0" * 16


def test_a_negative_zero_product_is_added_to_plus_zero() -> None:
    assert (
        oracle.matmul(Tensor.from_bits("fp32", (1, 1), "80000000"), Tensor.from_bits("fp32", (1, 1), "3f800000")).bits()
        == "00000000"
    )


def test_tf32_rounds_its_operands_and_nothing_else() -> None:
    """1 + 2**-11 is a tie and goes to 1; the square of 1 + 2**-10 keeps 2**-20."""
    a = Tensor.from_bits("tf32", (2, 1), "3f8010003f802000")
    one_up = Tensor.from_bits("tf32", (1, 1), "3f802000")
    assert oracle.matmul(a, one_up).bits() == "3f802000" + "3f804008"


@pytest.mark.parametrize(
    ("count", "tree"),
    [
        (1, lambda x: x[0]),
        (2, lambda x: x[0] + x[1]),
        (3, lambda x: (x[0] + x[1]) + x[2]),
        (5, lambda x: ((x[0] + x[1]) + (x[2] + x[3])) + x[4]),
        (6, lambda x: ((x[0] + x[1]) + (x[2] + x[3])) + (x[4] + x[5])),
        (7, lambda x: ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6])),
    ],
)
def test_the_canonical_tree_spelled_out(draw: random.Random, count: int, tree: Any) -> None:
    for _ in range(50):
        numbers = [draw.gauss(0, 1) for _ in range(count)]
        total = pairwise_sum([Fraction(number) for number in numbers], float_format("fp64"))
        assert total == Fraction(tree(numbers))


def test_the_empty_sum_is_plus_zero_and_a_lone_negative_zero_stays() -> None:
    format_ = float_format("fp32")
    assert pairwise_sum([], format_) == 0
    assert pairwise_sum([NEGATIVE_ZERO], format_) is NEGATIVE_ZERO


@pytest.mark.parametrize(
    ("values", "expected"),
    [([NEGATIVE_ZERO, ZERO], ZERO), ([ZERO, NEGATIVE_ZERO], ZERO), ([Fraction(1), NAN, Fraction(2)], NAN)],
)
def test_the_greatest_orders_zeros_and_keeps_nan(values: list[Value], expected: Value) -> None:
    found = greatest(values)
    assert (found, type(found)) == (expected, type(expected))


def test_fused_products_differ_where_they_must() -> None:
    """-1 + (1 + 2**-27)**2: the rounded product loses 2**-54."""
    row = struct.pack("<2d", -1.0, 1 + 2.0**-27)
    column = struct.pack("<2d", 1.0, 1 + 2.0**-27)
    a, b = Tensor("fp64", (1, 2), row), Tensor("fp64", (2, 1), column)
    rounded, fused = (struct.unpack("<d", oracle.matmul(a, b, fused=fused).data)[0] for fused in (False, True))
    assert (rounded, fused) == (2.0**-26, 2.0**-26 + 2.0**-54)
