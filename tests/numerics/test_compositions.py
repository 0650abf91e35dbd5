"""Fourier transforms, quantisation and selection by magnitude, step by step in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import InvalidArgument, NonFinite, ShapeMismatch
from tessera_reference.numerics.formats import UnsupportedDType, dtype
from tessera_reference.numerics.fourier import fft, ifft, twiddles
from tessera_reference.numerics.quantization import dequantize, error_feedback, quantize, top_k

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


def test_long_transforms_in_chunks_are_as_short_ones(rng):
    """Rows and outputs are computed in blocks; a transform of small integers by a root of order 4 is exact."""
    n, period = 1024, rng.integers(-3, 4, 4)
    x = array("complex64", [np.tile(period, n // 4), np.tile(period[::-1], n // 4)])
    found = fft(x, "backward").values
    assert np.array_equal(found[0, :: n // 4], n // 4 * fft(array("complex64", period), "backward").values)
    assert np.abs(np.delete(found[0], np.arange(0, n, n // 4))).max() < 1e-2
    many = array("complex64", np.tile(x.values[:1, :64], (300, 1)))
    assert (fft(many, "backward").values == fft(array("complex64", x.values[0, :64]), "backward").values).all()


WIRES = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
LARGEST = {"fp8_e4m3": 448, "fp8_e5m2": 57344, "fp16": 65504}
U = Fraction(1, 2**24)


def fp32(values: object) -> Array:
    return Array(dtype("fp32"), np.array(values, np.float32))


def wide(rng: np.random.Generator, shape: tuple[int, ...], low: float = -149, high: float = 127.9) -> Array:
    """Numbers of both signs, their exponents spread evenly."""
    return fp32(rng.choice([-1.0, 1.0], shape) * 2.0 ** rng.uniform(low, high, shape))


def expected_block(block: list[float], wire: str, oracle) -> tuple[float, list[float], list[float]]:
    """One block by the definition: scale, codes and what they stand for, every rounding exact."""
    m = max(abs(v) for v in block)
    scale = 1.0
    if wire != "bf16" and m != 0:
        scale = oracle.nearest(Fraction(m) / LARGEST[wire], "fp32") or 1.0
        if Fraction(scale) * LARGEST[wire] >= (2 - Fraction(1, 1 << 24)) * 2**127:  # what rounds to infinity
            scale = float(np.nextafter(np.float32(scale), np.float32(0)))
    codes = [oracle.nearest_or_special(oracle.divide(v, scale, "fp32"), wire) for v in block]
    largest = float(oracle.formats[wire].largest)
    codes = [max(-largest, min(largest, c)) for c in codes]
    return scale, codes, [oracle.multiply(c, scale, "fp32") for c in codes]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("n", "block"), [(1, 1), (5, 2), (12, 4), (7, 7), (7, 100), (9, 1)])
def test_every_block_as_defined(wire, n, block, oracle, rng):
    for low, high in [(-149, 127.9), (-3, 3), (-149, -126)]:
        x = wide(rng, (4, n), low, high)
        quantized = quantize(x, dtype(wire), block)
        back = dequantize(quantized.codes, quantized.scales, block)
        assert (quantized.codes.dtype, quantized.scales.dtype) == (dtype(wire), dtype("fp32"))
        assert quantized.scales.shape == (4, math.ceil(n / block))
        for row, start in itertools.product(range(4), range(0, n, block)):
            part = slice(start, start + block)
            scale, codes, values = expected_block(x.values[row, part].tolist(), wire, oracle)
            oracle.same([quantized.scales.values[row, start // block]], [scale])
            oracle.same(quantized.codes.values[row, part].tolist(), codes)
            oracle.same(back.values[row, part].tolist(), values)


@pytest.mark.parametrize("wire", WIRES)
def test_edge_values(wire, oracle):
    """Zeros keep their sign; the largest fp32 numbers, the smallest, and ties of the wire format at scale 1."""
    top, tiny = float.fromhex("0x1.fffffep127"), 2.0**-149
    rows = [
        [0.0, -0.0, 0.0],
        [top, -top, 1.0],
        [math.nextafter(top, 0) // 2, -top / 3, top / 7],
        [tiny, -tiny, 0.0],
        [448 * tiny, -tiny, 225 * tiny],
        [627 * tiny, -400 * tiny, 300 * tiny],
        [448.0, 272.0, -304.0],
        [57344.0, 45056.0, -53248.0],
        [448.0, 2.0**-9 * 1.5, -(2.0**-10)],
        [1 + 2.0**-8, 1 + 3 * 2.0**-8, -(2.0**-134)],
    ]
    x = fp32(rows)
    quantized = quantize(x, dtype(wire), 3)
    back = dequantize(quantized.codes, quantized.scales, 3)
    for i, row in enumerate(x.values.tolist()):
        scale, codes, values = expected_block(row, wire, oracle)
        oracle.same([quantized.scales.values[i, 0]], [scale])
        oracle.same(quantized.codes.values[i].tolist(), codes)
        oracle.same(back.values[i].tolist(), values)
    assert np.isfinite(back.values).all()


@pytest.mark.parametrize("wire", WIRES)
def test_error_feedback_sends_the_sum_of_the_gradients(wire, oracle, rng):
    """sum(sent) + last residual = sum(gradients) within u times the magnitudes added and subtracted (AMB-COLL-25)."""
    residual = fp32(np.zeros(24))
    total = [Fraction(0)] * 24
    slack = [Fraction(0)] * 24
    for _ in range(30):
        gradient = wide(rng, (24,), -20, 5)
        step = error_feedback(gradient, residual, dtype(wire), 8)
        for i in range(24):
            g, r = float(gradient.values[i]), float(residual.values[i])
            sent, kept = float(step.sent.values[i]), float(step.residual.values[i])
            corrected = oracle.add(g, r, "fp32")
            oracle.same([kept], [oracle.subtract(corrected, sent, "fp32")])
            total[i] += Fraction(g) - Fraction(sent)
            slack[i] += U * (abs(Fraction(g) + Fraction(r)) + abs(Fraction(corrected) - Fraction(sent)))
        assert step.sent.to_bits() == dequantize(step.quantized.codes, step.quantized.scales, 8).to_bits()
        residual = step.residual
    for i in range(24):
        assert abs(total[i] - Fraction(float(residual.values[i]))) <= slack[i]


@pytest.mark.parametrize("name", ["fp8_e5m2", "fp16", "bf16", "fp32", "fp64", "int8", "int64"])
def test_top_k_agrees_with_a_stable_sort_of_exact_magnitudes(name, rng):
    values = rng.integers(-9, 10, 200).astype(dtype(name).carrier)
    if name.startswith("int"):
        values[50], values[60] = np.iinfo(name).min, np.iinfo(name).max
    elif name.startswith("fp") and name != "fp64":
        values[50], values[60] = -math.inf, math.inf
    exact = [abs(v) if math.isinf(v) else abs(Fraction(v)) for v in values.tolist()]
    order = sorted(range(200), key=lambda i: (-exact[i], i))
    for k in (1, 2, 3, 50, 199, 200):
        assert top_k(Array(dtype(name), values), k).indices.values.tolist() == sorted(order[:k])


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


def test_top_k_refuses_nan_but_not_infinity():
    with pytest.raises(NonFinite, match=r"top_k: nan at \[1\] is not a number"):
        top_k(fp32([1.0, math.nan]), 1)
    assert top_k(fp32([1.0, -math.inf]), 1).values.values.tolist() == [-math.inf]
