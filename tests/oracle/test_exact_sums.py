"""Exact sums of many numbers, against fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle.exact import FORMATS, FloatFormat, finite, float_format, is_zero, values_of
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

FLOATS = [name for name, entry in FORMATS.items() if isinstance(entry, FloatFormat)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_bits_sum_as_fractions_do(rng: np.random.Generator, dtype: str) -> None:
    """Rows of any codes: the whole exponent range, subnormals, zeros, and now and then no number at all."""
    width = ELEMENT_FORMATS[dtype].word_bytes
    words = rng.integers(0, 1 << (8 * width), (40, 30), dtype=np.uint64).astype(f"<u{width}")
    x = Tensor(dtype, words.shape, words.tobytes())
    values = values_of(x)
    for magnitudes in (False, True):
        sums = exact_sum(x, magnitudes=magnitudes)
        for row in range(40):
            terms = values[30 * row : 30 * row + 30]
            if all(isinstance(term, Fraction) or is_zero(term) for term in terms):
                assert sums[row] == sum(abs(finite(term)) if magnitudes else finite(term) for term in terms)
            else:
                assert sums[row] is None


@pytest.mark.parametrize("numpy_type", ["<f4", "<f8"])
def test_neither_order_nor_spread_matters(rng: np.random.Generator, fast: Any, numpy_type: str) -> None:
    x = (rng.normal(0, 1, 1000) * np.exp2(rng.integers(-60, 60, 1000))).astype(numpy_type)
    totals = {exact_sum(fast.tensor(x[rng.permutation(1000)].reshape(1, -1)))[0] for _ in range(5)}
    assert totals == {sum(map(Fraction, x.tolist()))}


def test_the_longest_rows_do_not_overflow() -> None:
    """The largest significands, all of one sign."""
    for numpy_type, dtype in (("<f4", "fp32"), ("<f8", "fp64")):
        largest = np.full((1, 1 << 17), np.nextafter(np.array(2, numpy_type), np.array(0, numpy_type)), numpy_type)
        (total,) = exact_sum(Tensor(dtype, largest.shape, largest.tobytes()))
        assert total == Fraction(float(largest[0, 0])) * (1 << 17)


def test_rounding_happens_once(fast: Any) -> None:
    """1 + 2**-24 + 2**-60 is above a tie of fp32, which rounding to fp64 first would lose."""
    x = np.float32([[1, 2.0**-24, 2.0**-60], [1, 2.0**-24, 0]])
    codes = [float_format("fp32").encode(total) for total in exact_sum(fast.tensor(x)) if total is not None]
    assert codes == [0x3F800001, 0x3F800000]


def test_nothing_sums_to_zero(fast: Any) -> None:
    assert exact_sum(fast.tensor(np.zeros((2, 0), np.float32))) == [0, 0]
