"""Fourier transforms against their definition, step by step in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import AxisOutOfRange, EmptyAxis, InvalidArgument
from tessera_reference.numerics.formats import UnsupportedDType, dtype
from tessera_reference.numerics.fourier import fft, ifft, twiddles

COMPLEX = ["complex64", "complex128"]
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


def transform(row: list[Pair], inverse: bool, factor: float | None, name: str, oracle) -> list[float]:
    """The definition: terms, the tree of adjacent pairs, the scale; components of all results in turn."""
    n, results = len(row), []
    for k in range(n):
        terms = []
        for j, (a, b) in enumerate(row):
            c, d = root_of_unity(j * k, n, name, oracle)
            d = -d if inverse and d != 0 else d
            ac, bd, ad, bc = (oracle.multiply(p, q, name) for p, q in ((a, c), (b, d), (a, d), (b, c)))
            terms.append((oracle.subtract(ac, bd, name), oracle.add(ad, bc, name)))
        while len(terms) > 1:
            tail = terms[len(terms) // 2 * 2 :]
            pairs = zip(terms[0::2], terms[1::2], strict=False)
            terms = [(oracle.add(p[0], q[0], name), oracle.add(p[1], q[1], name)) for p, q in pairs] + tail
        results += [x if factor is None else oracle.multiply(x, factor, name) for x in terms[0]]
    return results


def factor(norm: str, inverse: bool, n: int, name: str, oracle) -> float | None:
    if norm == ("forward" if inverse else "backward"):
        return None
    with mpmath.workprec(400):
        return rounded(1 / mpmath.sqrt(n), name, oracle) if norm == "ortho" else oracle.nearest(Fraction(1, n), name)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["ortho", "backward", "forward"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17])
@pytest.mark.parametrize("name", COMPLEX)
def test_every_step_is_rounded_in_order(name, n, inverse, norm, oracle, rng):
    part = dtype(name).component
    values = rng.standard_normal((2, n, 2)).astype(part.carrier)
    found = (ifft if inverse else fft)(Array(dtype(name), values.view(dtype(name).carrier)[..., 0]), norm)
    assert (found.dtype, found.shape) == (dtype(name), (2, n))
    scale = factor(norm, inverse, n, part.name, oracle)
    for row, result in zip(values.tolist(), found.values, strict=True):
        expected = transform([tuple(pair) for pair in row], inverse, scale, part.name, oracle)
        oracle.same(result.view(part.carrier).tolist(), expected)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("name", COMPLEX)
def test_infinities_nan_and_signs_of_zero_go_the_same_way(name, n, inverse, oracle, rng):
    part = dtype(name).component
    code = code_dtype(part)
    wild = decode(rng.integers(0, np.iinfo(code).max, (20, n, 2), code, endpoint=True), part)
    special = rng.choice(np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0], part.carrier), (20, n, 2))
    values = np.concatenate([wild, special])
    found = (ifft if inverse else fft)(Array(dtype(name), values.view(dtype(name).carrier)[..., 0]), "ortho")
    scale = factor("ortho", inverse, n, part.name, oracle)
    for row, result in zip(values.tolist(), found.values, strict=True):
        expected = transform([tuple(pair) for pair in row], inverse, scale, part.name, oracle)
        oracle.same(result.view(part.carrier).tolist(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", [*range(1, 26), 97, 360, 1000, 1024])
@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_roots_of_unity_are_correctly_rounded(name, n, oracle):
    real, imaginary = (part.tolist() for part in twiddles(n, dtype(name)))
    expected = [root_of_unity(m, n, name, oracle) for m in range(n)]
    oracle.same(real, [c for c, _ in expected])
    oracle.same(imaginary, [d for _, d in expected])


def test_exact_roots_of_unity(oracle):
    real, imaginary = twiddles(12, dtype("fp64"))
    oracle.same(real[[0, 2, 3, 4, 6, 8, 9, 10]].tolist(), [1.0, 0.5, 0.0, -0.5, -1.0, -0.5, 0.0, 0.5])
    oracle.same(imaginary[[0, 1, 3, 5, 6, 7, 9, 11]].tolist(), [0.0, -0.5, -1.0, -0.5, 0.0, 0.5, 1.0, 0.5])


def test_known_answers():
    x = array("complex128", [1, 2, 3, 4])
    assert fft(x, "backward").values.tolist() == [10, -2 + 2j, -2, -2 - 2j]
    assert fft(x, "ortho").values.tolist() == [5, -1 + 1j, -1, -1 - 1j]
    assert fft(x, "forward").values.tolist() == [2.5, -0.5 + 0.5j, -0.5, -0.5 - 0.5j]
    assert ifft(array("complex64", [10, -2 + 2j, -2, -2 - 2j]), "backward").values.tolist() == [1, 2, 3, 4]
    assert fft(x).values.tolist() == fft(x, "ortho").values.tolist()


@pytest.mark.parametrize("n", [1, 2, 5, 64, 100])
def test_an_impulse_becomes_a_row_of_ones(n):
    impulse = array("complex64", [1, *[0] * (n - 1)])
    assert fft(impulse, "backward").values.tolist() == [1] * n
    assert ifft(impulse, "forward").values.tolist() == [1] * n


@given(st.lists(st.complex_numbers(max_magnitude=1e3, allow_nan=False), min_size=1, max_size=40))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_the_inverse_undoes_the_transform_but_for_rounding(values):
    """Each result is a tree sum of n terms: its error is within (log2 n + 5) units of the sum of magnitudes."""
    x = array("complex128", values)
    for norm in ("ortho", "backward", "forward"):
        error = np.abs(ifft(fft(x, norm), norm).values - x.values).max()
        size = len(values) * np.abs(x.values).max()
        assert error <= 2 * (math.log2(len(values)) + 5) * 2.0**-52 * size + 1e-300


def test_long_transforms_in_chunks_are_as_short_ones(rng):
    """Rows and outputs are computed in blocks; a transform of small integers by a root of order 4 is exact."""
    n, period = 1024, rng.integers(-3, 4, 4)
    x = array("complex64", [np.tile(period, n // 4), np.tile(period[::-1], n // 4)])
    found = fft(x, "backward").values
    assert np.array_equal(found[0, :: n // 4], n // 4 * fft(array("complex64", period), "backward").values)
    assert np.abs(np.delete(found[0], np.arange(0, n, n // 4))).max() < 1e-2
    many = array("complex64", np.tile(x.values[:1, :64], (300, 1)))
    assert (fft(many, "backward").values == fft(array("complex64", x.values[0, :64]), "backward").values).all()


@pytest.mark.parametrize("transform", [fft, ifft])
def test_leading_dimensions_are_batches(transform, rng):
    values = rng.standard_normal((2, 3, 5)) + 1j * rng.standard_normal((2, 3, 5))
    found = transform(array("complex64", values)).values
    for i in range(2):
        for j in range(3):
            assert transform(array("complex64", values[i, j])).values.tolist() == found[i, j].tolist()
    assert transform(array("complex64", np.zeros((0, 4)))).shape == (0, 4)


@pytest.mark.parametrize("transform", [fft, ifft])
@pytest.mark.parametrize(
    ("name", "result"),
    [("fp64", "complex128"), ("fp32", "complex64"), ("bf16", "complex64"), ("fp8_e4m3", "complex64")],
)
def test_a_float_is_a_complex_number(transform, name, result):
    """Whose imaginary part is +0: AMB-LANG-116."""
    values = [[0.5, -1.25, 3, 0], [-0.0, 0, 2, -8]]
    found, expected = transform(array(name, values)), transform(array(result, np.asarray(values) + 0j))
    assert (found.dtype.name, found.to_bits()) == (result, expected.to_bits())


@pytest.mark.parametrize("transform", [fft, ifft])
def test_what_has_no_transform_is_refused(transform):
    name = transform.__name__
    for other in ("int32", "bool"):
        with pytest.raises(UnsupportedDType, match=name):
            transform(array(other, [1, 0]))
    with pytest.raises(EmptyAxis, match=f"{name}: axis -1 has extent 0"):
        transform(array("complex64", np.zeros((2, 0))))
    with pytest.raises(AxisOutOfRange, match="rank 0"):
        transform(array("complex64", 1))
    with pytest.raises(InvalidArgument, match="ortho, backward, forward"):
        transform(array("complex64", [1]), "unitary")
