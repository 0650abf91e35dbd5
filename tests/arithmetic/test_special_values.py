"""Replays of products beyond the range, of single leaves and of integers, against the exact definition."""

from __future__ import annotations

import numpy as np

from tessera_conformance.arithmetic import FOLD, NodeArithmetic, canonical, replay
from tessera_conformance.oracle.products import matmul
from tessera_conformance.oracle.reductions import sum_
from tessera_conformance.tensors import Tensor


def of(dtype: str, numbers: object, kind: type) -> Tensor:
    array = np.asarray(numbers, kind)
    return Tensor(dtype, array.shape, array.tobytes())


def test_a_fused_product_beyond_the_range_is_still_finite() -> None:
    """fma(x, y, -inf) is -inf for finite x and y, though x * y alone would overflow to +inf."""
    a, b = of("fp64", [[-1e200, 1e200]], np.float64), of("fp64", [[1e200], [1e200]], np.float64)
    found = replay.matmul(a, b, FOLD, canonical("fp64").but(product="fused"))
    assert np.frombuffer(found.data)[0] == -np.inf


def test_a_single_leaf_is_rounded_to_the_accumulator() -> None:
    x = Tensor.from_words("fp16", (1,), [0x3C01])
    assert replay.sum(x, 0, FOLD, NodeArithmetic("bf16")).words().tolist() == [0x3C00]


def test_integers_wrap_whatever_is_aligned() -> None:
    x = of("int32", [1 << 30, 3, 5], np.int32)
    from_text = type(FOLD).from_text
    found = replay.sum(x, 0, from_text("(0 1 2)"), NodeArithmetic("int32", alignment_bits=4))
    assert np.frombuffer(found.data, np.int32)[0] == (1 << 30) + 8


def test_the_oracle_rounds_the_c_operand_to_the_accumulator() -> None:
    one = of("fp32", [[1.0]], np.float32)
    c = of("fp64", [[2.0**24 + 1 + 2.0**-10]], np.float64)
    assert np.frombuffer(matmul(one, one, c, out="fp64").data)[0] == 2.0**24 + 4  # 2**24 + 2, plus 1, is a tie


def test_the_oracle_compensates_parts_of_complex_numbers_for_themselves() -> None:
    """An infinity in the imaginary part leaves the compensation of the real part alone."""
    tiny = 2.0**-24
    x = of("complex64", [1, complex(tiny, np.inf), tiny, tiny], np.complex64)
    found = np.frombuffer(sum_(x, 0, order="kahan").data, np.float32)
    assert found[0] == np.float32(1 + 2.0**-22)
