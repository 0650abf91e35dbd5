"""Roots of unity, long transforms in chunks, and the refusals of quantisation and top-k."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import InvalidArgument, NonFinite, ShapeMismatch
from tessera_reference.numerics.formats import UnsupportedDType, dtype
from tessera_reference.numerics.fourier import fft, twiddles
from tessera_reference.numerics.quantization import dequantize, error_feedback, quantize, top_k

Pair = tuple[float, float]


def array(name: str, values: object) -> Array:
    return Array(dtype(name), np.array(values, dtype(name).carrier))


def rounded(value: mpmath.mpf, name: str, oracle) -> float:
    mantissa, exponent = value.man_exp
    magnitude = oracle.nearest(Fraction(int(mantissa)) * Fraction(2) ** int(exponent), name)
    return -magnitude if value < 0 else magnitude


def root_of_unity(m: int, n: int, name: str, oracle) -> Pair:
    """exp(-2 pi i m / n) to 400 bits, its zeros known beforehand, each part rounded."""
    m %= n
    with mpmath.workprec(400):
        real = 0.0 if 4 * m in (n, 3 * n) else rounded(mpmath.cospi(mpmath.mpf(2 * m) / n), name, oracle)
        imaginary = 0.0 if 2 * m in (0, n) else rounded(-mpmath.sinpi(mpmath.mpf(2 * m) / n), name, oracle)
    return real, imaginary


@pytest.mark.slow
@pytest.mark.parametrize("n", [*range(1, 26), 97, 360, 1000, 1024])
@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_roots_of_unity_are_correctly_rounded(name, n, oracle):
    real, imaginary = (part.tolist() for part in twiddles(n, dtype(name)))
    expected = [root_of_unity(m, n, name, oracle) for m in range(n)]
    oracle.same(real, [c for c, _ in expected])
    oracle.same(imaginary, [d for _, d in expected])


def test_long_transforms_in_chunks_are_as_short_ones(rng):
    """Rows and outputs are computed in blocks; a transform of small integers by a root of order 4 is exact."""
    n, period = 1024, rng.integers(-3, 4, 4)
    x = array("complex64", [np.tile(period, n // 4), np.tile(period[::-1], n // 4)])
    actual = fft(x, "backward").values
    assert np.array_equal(actual[0, :: n // 4], n // 4 * fft(array("complex64", period), "backward").values)
    assert np.abs(np.delete(actual[0], np.arange(0, n, n // 4))).max() < 1e-2
    many = array("complex64", np.tile(x.values[:1, :64], (300, 1)))
    assert (fft(many, "backward").values == fft(array("complex64", x.values[0, :64]), "backward").values).all()


def fp32(values: object) -> Array:
    return Array(dtype("fp32"), np.array(values, np.float32))


def test_bad_arguments_are_refused_by_name():
    x, e4m3 = fp32([1.0, 2.0]), dtype("fp8_e4m3")
    for bad in (0, -1, 1.5, True):
        with pytest.raises(InvalidArgument, match=r"quantize: block is .* an integer of at least 1"):
            quantize(x, e4m3, bad)
    with pytest.raises(InvalidArgument, match="wire is 'fp64', allowed is one of fp8_e4m3, fp8_e5m2, fp16, bf16"):
        quantize(x, dtype("fp64"), 2)
    with pytest.raises(UnsupportedDType):
        quantize(Array(dtype("fp64"), np.zeros(2)), e4m3, 2)
    with pytest.raises(ShapeMismatch, match="rank 0"):
        quantize(fp32(1.0), e4m3, 2)
    with pytest.raises(ShapeMismatch, match=r"need scales of \[1\], not \[2\]"):
        dequantize(quantize(x, e4m3, 2).codes, fp32([1.0, 1.0]), 2)
    with pytest.raises(ShapeMismatch, match="differ in shape"):
        error_feedback(x, fp32([1.0]), e4m3, 2)
    for bad in (-1, 3, 1.0, True):
        with pytest.raises(InvalidArgument, match=r"top_k: k is .* an integer from 0 to 2"):
            top_k(x, bad)
    with pytest.raises(ShapeMismatch, match="flat"):
        top_k(fp32([[1.0]]), 1)
    with pytest.raises(UnsupportedDType):
        top_k(Array(dtype("complex64"), np.zeros(2, np.complex64)), 1)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_are_refused_with_their_place(bad):
    e5m2 = dtype("fp8_e5m2")
    with pytest.raises(NonFinite, match=r"quantize: .* at \[1, 0\] is not finite") as caught:
        quantize(fp32([[1.0, 2.0], [bad, bad]]), e5m2, 2)
    assert caught.value.index == (1, 0)
    with pytest.raises(NonFinite, match="dequantize: scales"):
        dequantize(Array(e5m2, np.zeros(2, np.float32)), fp32([bad]), 2)
    with pytest.raises(NonFinite, match="dequantize: codes"):
        dequantize(Array(e5m2, np.array([1.0, bad], np.float32)), fp32([1.0]), 2)
    top = float.fromhex("0x1.fffffep127")
    with pytest.raises(NonFinite):
        error_feedback(fp32([top]), fp32([top]), e5m2, 1)
