"""exp against MPFR and mpmath, both with guard bits, rounded by the oracle."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tessera_reference.numerics.elementary import exp
from tessera_reference.numerics.encoding import decode
from tessera_reference.numerics.errors import UnsupportedDType
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.ziv import enclosure, round_estimate

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
BITS = 300  # no float64 has an exponential within 2**-200 of a midpoint, zero apart


def expected_by_mpmath(values: list[float], name: str, oracle) -> list[float]:
    """Round exp of finite values."""
    with mpmath.workprec(BITS):
        return [oracle.nearest(fraction(*mpmath.exp(v).man_exp), name) for v in values]


def expected_by_mpfr(values: list[float], name: str, oracle) -> list[float]:
    gmpy2 = pytest.importorskip("gmpy2", reason="pip install gmpy2")
    with gmpy2.context(precision=BITS):
        return [oracle.nearest(Fraction(*map(int, gmpy2.exp(gmpy2.mpfr(v)).as_integer_ratio())), name) for v in values]


def fraction(mantissa: int, exponent: int) -> Fraction:
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@pytest.mark.parametrize("name", ["fp32", "fp64", "tf32"])
@pytest.mark.parametrize("expected", [expected_by_mpmath, expected_by_mpfr])
def test_random_inputs_over_the_whole_range(name, expected, oracle, rng):
    reach = 104 if name != "fp64" else 746
    tiny = rng.choice([-1.0, 1.0], 1500) * 2.0 ** rng.uniform(-60, 0, 1500)
    values = np.concatenate([rng.uniform(-reach, reach * 0.95, 2500), tiny]).astype(dtype(name).carrier)
    oracle.same(exp(values, dtype(name)).tolist(), expected(values.tolist(), name, oracle))


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_results_around_the_smallest_numbers(name, oracle, rng):
    """Among the subnormals, the rounding moves up from the last bit of the significand, one bit a binade."""
    low, high = (-104.5, -86.0) if name == "fp32" else (-745.5, -707.0)
    values = rng.uniform(low, high, 1500).astype(dtype(name).carrier)
    found = exp(values, dtype(name))
    oracle.same(found.tolist(), expected_by_mpmath(values.tolist(), name, oracle))
    assert ((found > 0) & (found < dtype(name).min_normal)).mean() > 0.5


@pytest.mark.parametrize("name", NARROW)
def test_every_finite_input_of_the_narrow_types(name, oracle):
    bits = dtype(name).bits
    values = decode(np.arange(1 << bits, dtype=f"<u{bits // 8}"), dtype(name))
    values = values[np.isfinite(values)]
    if bits == 16:  # beyond these every result has overflowed or underflowed, and below them it is one
        values = values[(np.abs(values) < 110) & (np.abs(values) > 2.0**-14)][::5]
    found = exp(values, dtype(name))
    assert found.dtype == np.float32
    oracle.same(found.tolist(), expected_by_mpmath(values.tolist(), name, oracle))


@pytest.mark.parametrize("name", FLOATS)
def test_special_values(name, oracle):
    beyond = oracle.formats[name].beyond
    special = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e30, -1e30]
    expected = [1.0, 1.0, math.nan, beyond, 0.0, beyond, 0.0]
    values = np.array(special, dtype(name).carrier)
    oracle.same(exp(values, dtype(name)).tolist(), expected)
    if name == "fp8_e4m3":
        oracle.same(exp(values, dtype(name), "nonfinite").tolist()[3:], [math.nan, 0.0, math.nan, 0.0])


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_both_sides_of_the_thresholds(name, oracle):
    """The last input before overflow and the first after; the last before underflow to zero and the first after."""
    carrier = dtype(name).carrier.type
    with mpmath.workprec(BITS):
        largest = mpmath.mpf(dtype(name).max_finite) * (1 + mpmath.mpf(2) ** -(dtype(name).fraction_bits + 2))
        edges = [float(mpmath.log(largest)), float(mpmath.log(mpmath.mpf(dtype(name).min_subnormal) / 2))]
    values = np.array(edges, carrier)
    values = np.concatenate([np.nextafter(values, carrier(-1e4)), values, np.nextafter(values, carrier(1e4))])
    found = exp(values, dtype(name))
    oracle.same(found.tolist(), expected_by_mpmath(values.tolist(), name, oracle))
    assert np.isinf(found).any()
    assert (found == 0).any()
    assert (found == dtype(name).min_subnormal).any()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("fp32", 2.0**-24, 1 + 2.0**-23),
        ("fp32", -(2.0**-25), 1.0),
        ("fp32", -(2.0**-25) - 2.0**-48, 1 - 2.0**-24),
        ("fp64", 2.0**-53, 1 + 2.0**-52),
        ("fp64", -(2.0**-54), 1.0),
        ("fp64", math.nextafter(2.0**-53, 0), 1.0),
        ("bf16", 2.0**-8, 1 + 2.0**-7),
        ("fp16", 2.0**-11, 1 + 2.0**-10),
    ],
)
def test_results_next_to_a_midpoint(name, x, expected):
    """exp(x) = 1 + x + x**2/2 + ...: x reaches a midpoint and x**2/2 decides, far below any estimate's margin."""
    assert exp(np.array([x], dtype(name).carrier), dtype(name))[0] == expected


def test_a_sloppy_estimate_costs_time_and_not_bits(oracle, rng):
    """Ziv's test refuses what the margin does not settle; the answer then comes from enclosures alone."""
    values = rng.uniform(-20, 20, 200)

    def sloppy(x: np.ndarray) -> np.ndarray:
        return np.exp(x) * (1 + 2.0**-22)

    found = round_estimate(values, dtype("fp32"), sloppy, 2.0**-20, enclosure(mpmath.libmp.mpf_exp))
    oracle.same(found.tolist(), expected_by_mpmath(values.tolist(), "fp32", oracle))
    assert (sloppy(values).astype(np.float32) != found).any()


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_a_result_depends_on_its_input_only(name):
    """Neither position, nor length, nor memory order: the trap of vectorised libraries."""
    values = np.linspace(-90, 80, 20011).astype(dtype(name).carrier)
    whole = exp(values, dtype(name))
    assert np.array_equal(exp(values[::-1], dtype(name))[::-1], whole)
    assert np.array_equal(exp(values[7:].reshape(-1, 4), dtype(name)).ravel(), whole[7:])
    assert exp(values[100], dtype(name)) == whole[100]


def test_shapes_and_kinds():
    assert exp(np.zeros((2, 0), np.float32), dtype("fp32")).shape == (2, 0)
    assert exp(np.zeros((), np.float64), dtype("fp64")).shape == ()
    with pytest.raises(UnsupportedDType):
        exp(np.zeros(1), dtype("int32"))
