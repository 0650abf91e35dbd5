"""Rounding in every mode, against the definitions of IEEE 754-2019, 4.3, on exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.node_arithmetic import ROUNDINGS, round_in_mode, round_multiple, sum_to_odd

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
NARROW = [name for name in FLOATS if name != "fp64"]


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
    if name in NARROW:
        found = round_in_mode(np.array(values), dtype(name), rounding)
        assert found.dtype == np.float32
        oracle.same(found.tolist(), expected)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", NARROW)
def test_zeros_infinities_and_nan_are_the_same_in_every_mode(name, rounding, oracle):
    infinity = dtype(name).max_finite if dtype(name).bits == 8 else math.inf
    found = round_in_mode(np.array([0.0, -0.0, math.inf, -math.inf, math.nan]), dtype(name), rounding)
    oracle.same(found.tolist(), [0.0, -0.0, infinity, -infinity, math.nan])


def test_a_sum_to_odd_is_exact_or_has_an_odd_last_bit(rng):
    """Between its neighbours, and never further from the exact sum than one of them."""
    significands = rng.integers(-(1 << 53), 1 << 53, (2, 2000))
    a, b = np.ldexp(significands.astype(np.float64), rng.integers(-60, 60, (2, 2000)))
    for x, y, found in zip(a.tolist(), b.tolist(), sum_to_odd(a, b).tolist(), strict=True):
        exact = Fraction(x) + Fraction(y)
        if Fraction(found) != exact:
            assert np.float64(found).view(np.int64) % 2 == 1
            below, above = math.nextafter(found, -math.inf), math.nextafter(found, math.inf)
            assert Fraction(below) < exact < Fraction(above)
        else:
            assert Fraction(found) == exact


def test_a_sum_to_odd_of_special_values(oracle):
    a = np.array([-0.0, 0.0, math.inf, math.inf, math.nan, 1.0])
    b = np.array([-0.0, -0.0, 1.0, -math.inf, 0.0, -1.0])
    oracle.same(sum_to_odd(a, b).tolist(), [-0.0, 0.0, math.inf, math.nan, math.nan, 0.0])
