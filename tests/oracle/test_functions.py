"""The exponential against MPFR, and the enclosure against itself."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import pytest

from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, ZERO
from tessera_conformance.oracle.formats import float_format
from tessera_conformance.oracle.functions import exp, exp_enclosure


@pytest.mark.parametrize(
    ("dtype", "precision", "largest", "smallest"),
    [("fp64", 53, 1024, -1073), ("fp32", 24, 128, -148), ("fp16", 11, 16, -23)],
)
def test_exp_is_that_of_mpfr(draw: random.Random, dtype: str, precision: int, largest: int, smallest: int) -> None:
    gmpy2 = pytest.importorskip("gmpy2", reason="gmpy2 is missing: pip install gmpy2")
    ieee = gmpy2.context(precision=precision, emax=largest, emin=smallest, subnormalize=True)
    exact = gmpy2.context(precision=60)
    format_ = float_format(dtype)
    span = float(largest)
    for _ in range(1500):
        number = draw.choice([draw.uniform(-1.1 * span, 0.72 * span), draw.gauss(0, 1), draw.gauss(0, 2.0**-20)])
        number = struct.unpack("<f", struct.pack("<f", number))[0]
        expected = ieee.exp(exact.mul(gmpy2.mpfr(number), 1))
        code = format_.encode(
            INFINITY if gmpy2.is_infinite(expected) else Fraction(*map(int, expected.as_integer_ratio()))
        )
        assert format_.encode(exp(Fraction(number), format_)) == code, number


@pytest.mark.parametrize(
    "power", [Fraction(1, 3), Fraction(-745), Fraction(709), Fraction(1, 1 << 1074), -Fraction(5, 2)]
)
def test_the_enclosure_narrows_and_stays_inside(power: Fraction) -> None:
    wide, narrow = exp_enclosure(power, 64), exp_enclosure(power, 256)
    assert wide[0] <= narrow[0] < narrow[1] <= wide[1]
    assert narrow[1] - narrow[0] < narrow[0] / (1 << 200)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_special_powers(dtype: str) -> None:
    format_ = float_format(dtype)
    assert exp(ZERO, format_) == exp(NEGATIVE_ZERO, format_) == 1
    assert exp(NEGATIVE_INFINITY, format_) == exp(-format_.largest, format_) == 0
    assert exp(INFINITY, format_) is exp(format_.largest, format_) is INFINITY
    assert exp(NAN, format_) is NAN
    assert exp(format_.smallest, format_) == exp(-format_.smallest, format_) == 1


def test_the_thresholds_of_fp32() -> None:
    """The largest power with a finite result, the smallest with one that is not zero, and their neighbours."""
    format_ = float_format("fp32")
    codes = [0x42B17217, 0x42B17218, 0xC2CFF1B4, 0xC2CFF1B5]
    results = [format_.encode(exp(format_.decode(code), format_)) for code in codes]
    assert results == [0x7F7FFF84, 0x7F800000, 0x00000001, 0x00000000]
