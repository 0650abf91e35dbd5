"""Literals, rounded once from their decimal value: by hand and by numpy's own correctly rounding parser."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.language.values import exact, floating, integer
from tessera_reference.numerics.formats import dtype


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.", Fraction(1)),
        ("0.1", Fraction(1, 10)),
        ("12.50e-1", Fraction(5, 4)),
        ("00012", Fraction(12)),
        ("1E+2", Fraction(100)),
        ("0e999999999999", Fraction(0)),
    ],
)
def test_the_decimal_value_is_exact(text: str, value: Fraction) -> None:
    assert exact(text) == value


@pytest.mark.parametrize(
    "text", ["0.1", "1e-45", "7e-46", "3.4028235e38", "1e-310", "16777217", "0.3333333333333333333"]
)
@pytest.mark.parametrize(("name", "parsed"), [("fp32", np.float32), ("fp64", np.float64)])
def test_ieee_formats_agree_with_the_platforms_parser(text: str, name: str, parsed: type) -> None:
    assert np.array(floating(text, False, dtype(name)), parsed).tobytes() == parsed(text).tobytes()


# 1 + 2**-8 is the midpoint of bf16's 1 and 1 + 2**-7; fp64 cannot tell the longer spellings from it.
MIDPOINT = "1.00390625"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (MIDPOINT, 1.0),
        (MIDPOINT + "0" * 30 + "1", 1.0078125),
        (MIDPOINT + "0" * 3000 + "1", 1.0078125),
        ("1.00390624" + "9" * 3000, 1.0),
        ("1.01171875", 1.015625),
    ],
)
def test_narrow_formats_are_not_rounded_twice(text: str, value: float) -> None:
    assert floating(text, False, dtype("bf16")) == value


@pytest.mark.parametrize(
    ("name", "largest", "fits", "beyond"),
    [
        ("fp16", 65504.0, "65519.99", "65520"),
        ("fp8_e4m3", 448.0, "464", "464.001"),
        ("fp8_e5m2", 57344.0, "61439", "61440"),
        ("fp64", math.ldexp(2 - 2**-52, 1023), "1.7976931348623158e308", "1.7976931348623159e308"),
    ],
)
def test_out_of_range_begins_where_rounding_leaves_the_format(
    name: str, largest: float, fits: str, beyond: str
) -> None:
    assert floating(fits, False, dtype(name)) == largest
    assert floating(fits, True, dtype(name)) == -largest
    for text in (beyond, "1e400", "1e999999999999", "9" * 5000):
        with pytest.raises(Refusal, match="does not fit") as caught:
            floating(text, False, dtype(name))
        assert caught.value.category == "types"
        assert len(caught.value.message) < 100


def test_tiny_literals_become_zeros_of_their_sign() -> None:
    for text in ("1e-400", "0.0", "1e-999999999999"):
        assert math.copysign(1, floating(text, False, dtype("fp32"))) == 1
        assert math.copysign(1, floating(text, True, dtype("fp32"))) == -1


@pytest.mark.parametrize(("name", "bits"), [("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64)])
def test_integers_cover_their_range_and_no_more(name: str, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert integer(str(-low), True, dtype(name)) == low
    assert integer("000" + str(high), False, dtype(name)) == high
    for text, negative in ((str(high + 1), False), (str(1 - low), True), ("9" * 5000, False)):
        with pytest.raises(Refusal, match="does not fit"):
            integer(text, negative, dtype(name))
