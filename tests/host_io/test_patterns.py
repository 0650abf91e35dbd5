"""The bytes of fills against struct, numpy and exact fractions."""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.host_io.messages import Pattern
from tessera_reference.host_io.patterns import bytes_of, element_bytes, overflows, rounded

FORMATS = {"fp16": ("<e", np.float16), "fp32": ("<f", np.float32)}


@given(st.integers(0, 2**32 - 1))
def test_whole_numbers_are_little_endian(value: int) -> None:
    for kind, code, width in (("fill_u8", "<B", 8), ("fill_u16", "<H", 16), ("fill_u32", "<I", 32)):
        number = value % 2**width
        assert element_bytes(Pattern(kind, number)) == struct.pack(code, number)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 0, 7, Decimal("-1.5")])
def test_zero_is_zero_whatever_the_value(value: int | Decimal | None) -> None:
    assert element_bytes(Pattern("zero", value)) == b"\0"


@pytest.mark.parametrize("dtype", FORMATS)
@given(st.decimals(-70000, 70000, allow_nan=False, places=12) | st.floats(-60000, 60000).map(Decimal))
def test_a_number_is_rounded_once_to_the_nearest_even(dtype: str, value: Decimal) -> None:
    """No neighbour is nearer, by exact fractions; of two that are as near, the mantissa is even."""
    if overflows(value, dtype):
        assert dtype == "fp16"
        assert abs(value) >= 65520
        return
    code, kind = FORMATS[dtype]
    (found,) = struct.unpack(code, bytes_of(value, dtype))
    error = abs(Fraction(found) - Fraction(value))
    for side in (-np.inf, np.inf):
        other = float(np.nextafter(kind(found), kind(side)))
        if np.isfinite(other):
            distance = abs(Fraction(other) - Fraction(value))
            assert error < distance or (error == distance and bytes_of(value, dtype)[0] % 2 == 0)


@pytest.mark.parametrize(
    ("dtype", "text", "bits"),
    [
        ("fp32", "1.00000005960464477539062500", 0x3F800000),
        ("fp32", "1.00000005960464477539062501", 0x3F800001),
        ("fp32", "1.000000059604644775390625" + "0" * 900 + "1", 0x3F800001),
        ("fp32", "1.17549428e-38", 0x007FFFFF),
        ("fp32", "7.006492321624085e-46", 0x00000000),
        ("fp32", "-1e-999999", 0x80000000),
        ("fp32", "-0.0", 0x80000000),
        ("fp16", "65519.99", 0x7BFF),
        ("fp16", "2.98023223876953125e-8", 0x0000),
        ("fp16", "2.98023223876953126e-8", 0x0001),
        ("fp16", "-0.1", 0xAE66),
    ],
)
def test_borders(dtype: str, text: str, bits: int) -> None:
    """Halfway cases, subnormals and zeros; a decimal far behind decides, where fp64 in between would not."""
    size = {"fp16": 2, "fp32": 4}[dtype]
    assert bytes_of(Decimal(text), dtype) == bits.to_bytes(size, "little")


@pytest.mark.parametrize(
    ("dtype", "text", "beyond"),
    [
        ("fp16", "65520", True),
        ("fp16", "65519.999999999", False),
        ("fp32", "340282356779733661637539395458142568447", False),
        ("fp32", "340282356779733661637539395458142568448", True),
        ("fp32", "-1e999999", True),
    ],
)
def test_past_the_largest_there_is_none(dtype: str, text: str, beyond: bool) -> None:
    assert overflows(Decimal(text), dtype) == beyond


def test_a_million_digits_take_no_time() -> None:
    assert rounded(Decimal("0." + "3" * 1_000_000), "fp32") == float(np.float32(1 / 3))
