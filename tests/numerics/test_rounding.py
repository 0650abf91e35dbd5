"""Rounding to every format and in every mode, against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.chapters.ir.variants.declared_arithmetic import (
    ROUNDINGS,
    round_in_mode,
    round_multiple,
    sum_to_odd,
)
from tessera_reference.numerics.array import Array, decode
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.rounding import cast, round_exact, round_operand, round_to

NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
FLOATS = [name for name, dtype in DTYPES.items() if dtype.kind == "float"]


def finite_values(name: str) -> np.ndarray:
    """Every finite value of a narrow type, ascending, as float64."""
    bits = dtype(name).bits
    values = decode(np.arange(1 << bits, dtype=f"<u{bits // 8}"), dtype(name)).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def array(name: str, values: object) -> Array:
    return Array(dtype(name), np.array(values, dtype(name).carrier))


@pytest.mark.parametrize("name", NARROW)
def test_every_midpoint_goes_to_even_and_its_neighbours_to_theirs(name):
    """Between two adjacent values the midpoint is exact in float64; the nearest float64 on each side tells where to."""
    values = finite_values(name)
    low, high = values[:-1], values[1:]
    midpoint = (low + high) / 2
    assert np.array_equal(round_to(np.nextafter(midpoint, -np.inf), dtype(name)), low)
    assert np.array_equal(round_to(np.nextafter(midpoint, np.inf), dtype(name)), high)
    step = np.where(low >= 0, low / (high - low), high / (high - low))  # a multiple of the spacing, even or odd
    expected = np.where((step % 2 == 0) == (low >= 0), low, high)
    assert np.array_equal(round_to(midpoint, dtype(name)), expected)


@pytest.mark.parametrize("name", [*NARROW, "fp32"])
def test_random_float64_round_as_the_oracle_says(name, oracle, rng):
    low, high = math.log2(dtype(name).min_subnormal) - 3, math.log2(dtype(name).max_finite) + 2
    values = rng.choice([-1.0, 1.0], 4000) * 2.0 ** rng.uniform(low, high, 4000)
    oracle.same(round_to(values, dtype(name)).tolist(), [oracle.nearest(Fraction(v), name) for v in values.tolist()])


@pytest.mark.parametrize("name", FLOATS)
def test_signed_zeros_and_nan_pass_and_underflow_keeps_its_sign(name):
    actual = round_to(np.array([0.0, -0.0, 5e-324, -5e-324, np.nan]), dtype(name))
    assert actual.dtype == dtype(name).carrier
    assert np.signbit(actual[:4]).tolist() == [False, True, False, True]
    assert np.isnan(actual[4])
    assert name == "fp64" or not actual[:4].any()


def test_tf32_is_stored_as_fp32_and_rounded_to_ten_bits_as_an_operand(oracle, rng):
    values = (rng.choice([-1.0, 1.0], 2000) * 2.0 ** rng.uniform(-149, 128, 2000)).astype(np.float32)
    assert np.array_equal(round_to(values, dtype("tf32")), values)
    expected = [oracle.nearest(Fraction(v), "tf32 operand") for v in values.tolist()]
    oracle.same(round_operand(values).tolist(), expected)
    edges = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-137, 3 * 2.0**-137, -0.0, np.inf, np.nan], np.float32)
    oracle.same(round_operand(edges).tolist(), [1.0, 1 + 2.0**-9, 0.0, 2.0**-135, -0.0, math.inf, math.nan])


@pytest.mark.parametrize("name", FLOATS)
def test_rationals_round_once(name, oracle, rng):
    low, high = math.log2(dtype(name).min_subnormal) - 3, math.log2(dtype(name).max_finite)
    for exponent, numerator, denominator in zip(
        rng.uniform(low, high, 300), rng.integers(1, 2**62, 300), rng.integers(1, 2**62, 300), strict=True
    ):
        value = Fraction(int(numerator), int(denominator)) * Fraction(2) ** int(exponent)
        oracle.same([round_exact(value, dtype(name))], [oracle.nearest(value, name)])
        oracle.same([round_exact(-value, dtype(name))], [oracle.nearest(-value, name)])
    assert repr(round_exact(Fraction(0), dtype(name))) == "0.0"


def test_the_largest_floats_below_two_to_the_63_are_in_range():
    below = math.nextafter(2.0**63, 0)
    assert cast(array("fp64", [below, -(2.0**63)]), dtype("int64")).values.tolist() == [int(below), -(2**63)]
    assert cast(array("fp64", [127.99, 128.0, -128.99]), dtype("int8")).values.tolist() == [127, 127, -128]


NARROW_FORMATS = [name for name in FLOATS if name != "fp64"]


def samples(name: str, rng: np.random.Generator) -> list[float]:
    """Numbers of float64 around the grid of a format: on it, between, at midpoints, in every binade, past its ends."""
    form = dtype(name)
    low, high = form.min_exponent - form.fraction_bits - 4, form.max_exponent + 2
    found = []
    for exponent in rng.integers(low, min(high, 1023), 200).tolist():
        quantum = max(exponent, form.min_exponent) - form.fraction_bits
        grid = math.ldexp(int(rng.integers(0, 1 << (form.fraction_bits + 1))), quantum)
        for part in (0.0, 0.25, 0.5, 0.75, 0.5 + 2.0**-20, 0.5 - 2.0**-20):
            found.append(grid + math.ldexp(part, quantum))
    largest, step = form.max_finite, math.ldexp(1.0, form.max_exponent - form.fraction_bits)
    found += [largest, math.nextafter(largest, 0), *(largest + part * step for part in (0.25, 0.5, 0.75, 1.0))]
    found += [form.min_subnormal * part for part in (0.25, 0.5, 0.75)]
    return [x for x in found if math.isfinite(x)]


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", FLOATS)
def test_every_mode_rounds_to_the_number_that_it_names(name, rounding, directed, oracle, rng):
    values = [sign * x for x in samples(name, rng) for sign in (1, -1) if x]
    expected = [directed(Fraction(x), name, rounding) for x in values]
    ratios = [x.as_integer_ratio() for x in values]
    oracle.same([round_multiple(p, 1 - q.bit_length(), dtype(name), rounding) for p, q in ratios], expected)
    if name in NARROW_FORMATS:
        actual = round_in_mode(np.array(values), dtype(name), rounding)
        assert actual.dtype == np.float32
        oracle.same(actual.tolist(), expected)


def test_a_sum_to_odd_is_exact_or_has_an_odd_last_bit(rng):
    """Between its neighbours, and never further from the exact sum than one of them."""
    significands = rng.integers(-(1 << 53), 1 << 53, (2, 2000))
    a, b = np.ldexp(significands.astype(np.float64), rng.integers(-60, 60, (2, 2000)))
    for x, y, actual in zip(a.tolist(), b.tolist(), sum_to_odd(a, b).tolist(), strict=True):
        exact = Fraction(x) + Fraction(y)
        if Fraction(actual) != exact:
            assert np.float64(actual).view(np.int64) % 2 == 1
            below, above = math.nextafter(actual, -math.inf), math.nextafter(actual, math.inf)
            assert Fraction(below) < exact < Fraction(above)
        else:
            assert Fraction(actual) == exact


def test_a_sum_to_odd_of_special_values(oracle):
    a = np.array([-0.0, 0.0, math.inf, math.inf, math.nan, 1.0])
    b = np.array([-0.0, -0.0, 1.0, -math.inf, 0.0, -1.0])
    oracle.same(sum_to_odd(a, b).tolist(), [-0.0, 0.0, math.inf, math.nan, math.nan, 0.0])


TWO = Fraction(2)
INT_DTYPES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
PARTS = {"complex64": "fp32", "complex128": "fp64"}


def landmarks(oracle: Any) -> list[Fraction]:
    found = []
    for form in oracle.formats.values():
        smallest = TWO ** (form.min_exponent - form.precision + 1)
        last_step = TWO ** (form.largest.numerator.bit_length() - form.precision)
        ulp = TWO ** (1 - form.precision)
        found += [form.largest, form.largest + last_step / 2, form.largest + last_step, form.largest - last_step / 2]
        found += [smallest * factor for factor in (1, Fraction(1, 2), Fraction(3, 2), Fraction(5, 2))]
        found += [TWO**form.min_exponent - smallest / 2, TWO**form.min_exponent, 1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp]
    for bits in INT_DTYPES.values():
        found += [TWO ** (bits - 1) + offset for offset in (-2, -1, Fraction(-1, 2), 0, Fraction(1, 2), 1)]
    found += [TWO ** (p + q) + TWO**q for p in (3, 4, 8, 11, 24, 53) for q in (0, 5, 61 - p)]  # ties of integers
    near = [v * (1 + sign * TWO**-e) for v in found for sign in (1, -1) for e in (20, 40)]
    return found + near


def float_values(name: str, oracle: Any) -> list[float]:
    """The values of a float dtype at and beside the landmarks, and what is special."""
    step = TWO ** (1 - oracle.formats[name].precision)
    beside = [v * factor for v in landmarks(oracle) for factor in (1, 1 - step, 1 + step)]
    finite = sorted({oracle.nearest(v, name) for v in beside if v <= oracle.formats[name].largest})
    special = [0.0, -0.0, math.nan] + ([] if name == "fp8_e4m3" else [math.inf, -math.inf])
    return [*finite, *(-v for v in finite), *special]


def values_of(name: str, oracle: Any) -> list[Any]:
    if name in INT_DTYPES:
        limit = 2 ** (INT_DTYPES[name] - 1)
        whole = [int(v) for v in landmarks(oracle)]
        return sorted({v for w in whole for v in (w - 1, w, w + 1, -w - 1, -w, 1 - w) if -limit <= v < limit})
    if name == "bool":
        return [False, True]
    if name in PARTS:
        parts = float_values(PARTS[name], oracle)
        return [complex(a, b) for a, b in zip(parts, reversed(parts), strict=True)]
    return float_values(name, oracle)


@pytest.fixture(scope="module")
def values(oracle: Any) -> dict[str, list[Any]]:
    """The values tried of every dtype."""
    return {name: values_of(name, oracle) for name in DTYPES}
