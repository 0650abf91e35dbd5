"""Decoding against ml_dtypes and numpy for every narrow code; rounding against casts that are known to round once."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, Value
from tessera_conformance.oracle.formats import FORMATS, IntegerFormat, float_format
from tessera_conformance.tensors import ELEMENT_FORMATS


def value_of(number: float) -> Value:
    if np.isnan(number):
        return NAN
    if np.isinf(number):
        return INFINITY if number > 0 else NEGATIVE_INFINITY
    return NEGATIVE_ZERO if number == 0 and np.signbit(number) else Fraction(number)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2", "bf16"])
def test_every_code_decodes_as_in_ml_dtypes(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing: pip install ml_dtypes")
    theirs = {"fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16}[dtype]
    width = ELEMENT_FORMATS[dtype].word_bytes
    codes = np.arange(1 << (8 * width), dtype=f"u{width}")
    format_ = float_format(dtype)
    with np.errstate(invalid="ignore"):
        values = codes.view(theirs).astype(float).tolist()
    assert [format_.decode(code) for code in codes.tolist()] == [value_of(x) for x in values]


@pytest.mark.slow
def test_every_fp16_code_decodes_as_in_numpy() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    format_ = float_format("fp16")
    assert [format_.decode(code) for code in codes.tolist()] == [
        value_of(x) for x in codes.view(np.float16).astype(float).tolist()
    ]


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def test_every_value_encodes_to_the_code_it_came_from(dtype: str) -> None:
    format_ = float_format(dtype)
    for code in range(2 * format_.sign_bit):
        value = format_.decode(code)
        if value is not NAN:
            assert format_.encode(value, nonfinite=True) == code


def test_finite_values_agree_with_the_decoder_of_python(draw: random.Random) -> None:
    for dtype, letter, bits in (("fp32", "f", 32), ("fp64", "d", 64)):
        for _ in range(500):
            code = draw.getrandbits(bits)
            value = float_format(dtype).decode(code)
            (expected,) = struct.unpack(f"<{letter}", code.to_bytes(bits // 8, "little"))
            if math.isfinite(expected):
                assert (Fraction(0) if value is NEGATIVE_ZERO else value) == Fraction(expected)
            else:
                assert not isinstance(value, Fraction)


def interesting_double(draw: random.Random, low: int, high: int) -> float:
    """A double near a midpoint of a narrow type about half of the time."""
    fraction = draw.getrandbits(52) if draw.random() < 0.5 else (draw.getrandbits(13) << 39) + draw.choice([-1, 0, 1])
    bits = draw.getrandbits(1) << 63 | draw.randint(1023 + low, 1023 + high) << 52 | fraction % (1 << 52)
    number: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return number


@pytest.mark.parametrize(("dtype", "numpy_type", "low", "high"), [("fp16", "f2", -27, 17), ("fp32", "f4", -152, 129)])
def test_rounding_from_double_is_that_of_numpy(
    draw: random.Random, dtype: str, numpy_type: str, low: int, high: int
) -> None:
    numbers = [interesting_double(draw, low, high) for _ in range(4000)]
    with np.errstate(all="ignore"):
        expected = np.array(numbers).astype(numpy_type).view(f"u{numpy_type[1]}").tolist()
    assert [float_format(dtype).encode(Fraction(number)) for number in numbers] == expected


def test_rounding_to_double_is_that_of_python(draw: random.Random) -> None:
    """Python's int / int is correctly rounded, subnormals included."""
    format_ = float_format("fp64")
    for _ in range(2000):
        numerator, denominator = draw.getrandbits(draw.randint(1, 200)), draw.getrandbits(draw.randint(1, 1200)) + 1
        expected = struct.unpack("<Q", struct.pack("<d", numerator / denominator))[0]
        assert format_.encode(Fraction(numerator, denominator)) == expected


def nearest_by_search(table: list[tuple[Fraction, int]], number: Fraction) -> int:
    """The closest value by looking at all of them; of two, the one with the even code."""
    return min(table, key=lambda entry: (abs(entry[0] - number), entry[1] & 1))[1]


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
def test_rounding_finds_the_nearest_of_all_values(draw: random.Random, dtype: str) -> None:
    format_ = float_format(dtype)
    table: list[tuple[Fraction, int]] = []
    for code in range(format_.largest_code + 1):
        value = format_.decode(code)
        assert isinstance(value, Fraction)
        table.append((value, code))
    midpoints = [(a + b) / 2 for (a, _), (b, _) in pairwise(table)]
    nudge = Fraction(1, 1 << 60)
    for number in [nudged for middle in midpoints for nudged in (middle - nudge, middle, middle + nudge)]:
        assert format_.encode(number) == nearest_by_search(table, number)
        if number:
            assert format_.encode(-number) == nearest_by_search(table, number) | format_.sign_bit


@pytest.mark.parametrize("dtype", ["bf16"])
def test_a_value_just_beside_a_midpoint_is_rounded_once(dtype: str) -> None:
    """Through fp32 it would become a tie and go to even."""
    tie, nudge = Fraction(257, 256), Fraction(1, 1 << 70)
    assert [float_format(dtype).encode(tie + step * nudge) for step in (-1, 0, 1)] == [0x3F80, 0x3F80, 0x3F81]


@pytest.mark.parametrize(
    ("dtype", "value", "saturated", "nonfinite"),
    [
        ("fp8_e4m3", Fraction(464), 0x7E, 0x7E),
        ("fp8_e4m3", Fraction(464) + Fraction(1, 1 << 40), 0x7E, 0x7F),
        ("fp8_e4m3", Fraction(-480), 0xFE, 0x7F),
        ("fp8_e4m3", INFINITY, 0x7E, 0x7F),
        ("fp8_e5m2", Fraction(61440), 0x7B, 0x7C),
        ("fp8_e5m2", Fraction(61439), 0x7B, 0x7B),
        ("fp8_e5m2", NEGATIVE_INFINITY, 0xFB, 0xFC),
        ("fp16", Fraction(65520), 0x7C00, 0x7C00),
        ("fp16", Fraction(65519), 0x7BFF, 0x7BFF),
        ("fp8_e4m3", NAN, 0x7F, 0x7F),
        ("fp8_e5m2", NAN, 0x7E, 0x7E),
        ("bf16", NAN, 0x7FC0, 0x7FC0),
        ("fp16", Fraction(-1, 1 << 30), 0x8000, 0x8000),
    ],
)
def test_the_ends_of_the_range(dtype: str, value: Value, saturated: int, nonfinite: int) -> None:
    format_ = float_format(dtype)
    assert format_.encode(value) == saturated
    assert format_.encode(value, nonfinite=True) == nonfinite


@pytest.mark.parametrize(
    ("bits", "number", "code"), [(8, 128, 0x80), (8, -129, 0x7F), (32, 1 << 40, 0), (64, -1, 2**64 - 1)]
)
def test_integers_wrap(bits: int, number: int, code: int) -> None:
    assert IntegerFormat(bits).encode(Fraction(number)) == code


def test_every_real_dtype_has_a_format() -> None:
    formats: dict[str, Any] = {name: entry for name, entry in ELEMENT_FORMATS.items() if entry.words == 1}
    assert FORMATS.keys() == formats.keys()
