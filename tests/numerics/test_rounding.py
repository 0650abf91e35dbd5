from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, decode
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
from tessera_reference.numerics.rounding import cast, round_exact, round_operand, round_to

NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
INTS = ["int8", "int16", "int32", "int64"]


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
    found = round_to(np.array([0.0, -0.0, 5e-324, -5e-324, np.nan]), dtype(name))
    assert found.dtype == dtype(name).carrier
    assert np.signbit(found[:4]).tolist() == [False, True, False, True]
    assert np.isnan(found[4])
    assert name == "fp64" or not found[:4].any()


@pytest.mark.parametrize(
    ("name", "overflow", "value", "expected"),
    [
        ("fp8_e4m3", "saturate", 448.0, 448.0),
        ("fp8_e4m3", "saturate", 464.0, 448.0),
        ("fp8_e4m3", "saturate", 465.0, 448.0),
        ("fp8_e4m3", "saturate", math.inf, 448.0),
        ("fp8_e4m3", "nonfinite", 464.0, 448.0),
        ("fp8_e4m3", "nonfinite", 464.0 + 2.0**-44, math.nan),
        ("fp8_e4m3", "nonfinite", 465.0, math.nan),
        ("fp8_e4m3", "nonfinite", math.inf, math.nan),
        ("fp8_e5m2", "saturate", 61440.0, 57344.0),
        ("fp8_e5m2", "saturate", math.inf, 57344.0),
        ("fp8_e5m2", "nonfinite", 61439.0, 57344.0),
        ("fp8_e5m2", "nonfinite", 61440.0, math.inf),
        ("fp8_e5m2", "nonfinite", math.inf, math.inf),
        ("fp16", "saturate", 65519.0, 65504.0),
        ("fp16", "saturate", 65520.0, math.inf),
        ("bf16", "saturate", float.fromhex("0x1.fefffp127"), float.fromhex("0x1.fep127")),
        ("bf16", "saturate", float.fromhex("0x1.ffp127"), math.inf),
        ("fp32", "saturate", float.fromhex("0x1.ffffffp127"), math.inf),
        ("fp32", "saturate", float.fromhex("0x1.fffffefffp127"), float.fromhex("0x1.fffffep127")),
    ],
)
def test_overflow(name, overflow, value, expected, oracle):
    oracle.same(round_to(np.array([value, -value]), dtype(name), overflow).tolist(), [expected, -expected])
    if math.isfinite(value):
        assert repr(round_exact(Fraction(value), dtype(name), overflow)) == repr(expected)


def test_fp64_to_bf16_does_not_pass_through_fp32():
    """1 + 2**-8 is a tie of bf16; 2**-40 more decides it, but fp32 would drop that first."""
    assert round_to(np.array([1 + 2.0**-8 + 2.0**-40]), dtype("bf16"))[0] == 1 + 2.0**-7
    assert round_to(np.array([1 + 2.0**-8 + 2.0**-40]).astype(np.float32), dtype("bf16"))[0] == 1


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


def test_only_floats_are_rounded_to_and_from():
    with pytest.raises(UnsupportedDType):
        round_to(np.zeros(1), dtype("int8"))
    with pytest.raises(TypeError):
        round_to(np.zeros(1, np.int64), dtype("bf16"))


SAMPLES = {
    "float": [0.0, -0.0, 1.0, -1.5, 0.9375, -0.875, 2.0, 240.0, -448.0],
    "int": [0, 1, -1, 7, -128, 127],
    "bool": [False, True],
    "complex": [0, 1.5 - 2j, complex(-0.0, 0.25)],
}


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_every_pair_of_dtypes_agrees_with_python_on_small_numbers(source, target, oracle):
    given = array(source, SAMPLES[dtype(source).kind])
    if dtype(source).kind == "complex" and dtype(target).kind not in ("complex", "bool"):
        with pytest.raises(UnsupportedDType, match=f"cast to {target} is not defined on {source}"):
            cast(given, dtype(target))
        return
    found = cast(given, dtype(target))
    assert (found.dtype, found.shape) == (dtype(target), given.shape)
    numbers = given.values.tolist()
    match dtype(target).kind:
        case "bool":
            assert found.values.tolist() == [bool(x) for x in numbers]
        case "int":
            limits = np.iinfo(dtype(target).carrier)
            clamp = dtype(source).kind == "float"
            expected = [max(limits.min, min(limits.max, int(x))) if clamp else int(x) for x in numbers]
            assert found.values.tolist() == expected
        case "float":
            expected = [oracle.nearest(Fraction(x), target) if x else float(x) for x in numbers]
            oracle.same(found.values.tolist(), expected)
        case "complex":
            numbers = [complex(x) for x in numbers]
            oracle.same(found.values.real.tolist(), [x.real for x in numbers])
            oracle.same(found.values.imag.tolist(), [x.imag for x in numbers])


@pytest.mark.parametrize("target", INTS)
@pytest.mark.parametrize("source", ["fp32", "fp64", "bf16"])
def test_floats_truncate_toward_zero_and_saturate(source, target):
    limits = np.iinfo(target)
    edge = 2.0 ** (limits.bits - 1)
    values = [math.nan, math.inf, -math.inf, -0.5, 0.99609375, -1.9921875, edge, -edge, 2 * edge, -2 * edge, edge / 2]
    expected = [0, limits.max, limits.min, 0, 0, -1, limits.max, limits.min, limits.max, limits.min, int(edge / 2)]
    assert cast(array(source, values), dtype(target)).values.tolist() == expected


def test_the_largest_floats_below_two_to_the_63_are_in_range():
    below = math.nextafter(2.0**63, 0)
    assert cast(array("fp64", [below, -(2.0**63)]), dtype("int64")).values.tolist() == [int(below), -(2**63)]
    assert cast(array("fp64", [127.99, 128.0, -128.99]), dtype("int8")).values.tolist() == [127, 127, -128]


def test_integers_wrap_into_integers():
    assert cast(array("int32", [128, -129, 2**31 - 1]), dtype("int8")).values.tolist() == [-128, 127, -1]
    assert cast(array("int64", [2**32 + 5, -(2**31) - 1]), dtype("int32")).values.tolist() == [5, 2**31 - 1]


@pytest.mark.parametrize("target", ["fp32", "fp64", *NARROW, "complex64"])
def test_integers_round_once_from_the_exact_integer(target, oracle, rng):
    name = "fp32" if target == "complex64" else target
    ties = [s * ((2**p + 1) * 2**q + d) for s in (1, -1) for p in (7, 10, 24) for q in (30, 35) for d in (-1, 0, 1)]
    values = [2**63 - 1, -(2**63), 2**53 + 1, 2**62 + 2**38 + 1, *ties, *rng.integers(-(2**63), 2**63, 500).tolist()]
    found = cast(array("int64", values), dtype(target)).values.real
    oracle.same(found.tolist(), [oracle.nearest(Fraction(v), name) for v in values])


def test_float64_in_between_would_round_int64_twice():
    """2**62 + 2**38 is a tie of fp32, and the one above it is below float64's last bit."""
    tie = 2**62 + 2**38
    assert cast(array("int64", [tie + 1]), dtype("fp32")).values[0] == 2.0**62 + 2.0**39
    assert np.array([tie + 1]).astype(np.float64).astype(np.float32)[0] == 2.0**62


def test_nan_infinities_and_tiny_numbers_are_true_and_minus_zero_is_false():
    found = cast(array("fp32", [math.nan, -math.inf, 2.0**-149, -0.0]), dtype("bool"))
    assert found.values.tolist() == [True, True, True, False]
    assert cast(array("complex64", [complex(0, math.nan), 0j]), dtype("bool")).values.tolist() == [True, False]


def test_overflow_is_chosen_by_the_cast_and_concerns_fp8_only():
    large = array("fp32", [1e30, -1e30])
    assert cast(large, dtype("fp8_e5m2")).values.tolist() == [57344.0, -57344.0]
    assert cast(large, dtype("fp8_e5m2"), "nonfinite").values.tolist() == [math.inf, -math.inf]
    assert np.isnan(cast(large, dtype("fp8_e4m3"), "nonfinite").values).all()
    assert cast(large, dtype("fp16")).values.tolist() == [math.inf, -math.inf]
    assert cast(array("int32", [2**20]), dtype("fp8_e4m3")).values.tolist() == [448.0]


def test_complex_numbers_are_narrowed_by_component(oracle):
    found = cast(array("complex128", [complex(1 + 2.0**-24 + 2.0**-50, -0.0)]), dtype("complex64")).values
    oracle.same([found.real[0], found.imag[0]], [1 + 2.0**-23, -0.0])
