"""Signatures of any text, and floats against C and ml_dtypes (runtime spec 10.1)."""

from __future__ import annotations

import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tessera_reference.abi.parameters import Parameter, ParameterValue, layout_of, pack, parse_signature, unpack
from tessera_reference.abi.status import Failure, Status


def test_the_refusal_of_a_signature_says_what_stands_there_and_what_may() -> None:
    with pytest.raises(
        Failure, match=r"the parameter 'Pair p'; expected name\(parameter, \.\.\.\), each parameter being"
    ):
        parse_signature("f(int a, Pair p)")


@given(st.text() | st.text("f(int a, X*)\n;", max_size=30))
def test_any_text_is_a_signature_or_refused(text: str) -> None:
    status = Status.TESS_OK
    try:
        parse_signature(text)
    except Failure as failure:
        status = failure.status
    assert status in (Status.TESS_OK, Status.TESS_ERR_INVALID_VALUE)


DOUBLES = st.floats() | st.floats(-500, 500) | st.floats(-1e-4, 1e-4)
NARROW = {"bf16": ml_dtypes.bfloat16, "fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2}


def packed(name: str, value: ParameterValue) -> bytes:
    layout = layout_of([Parameter("x", name)])
    return pack(layout, [value])[: layout.end_of_last_argument]


def unpacked(name: str, data: bytes) -> ParameterValue:
    return unpack(layout_of([Parameter("x", name)]), data)[0]


@given(DOUBLES)
@example(3.4028235677973366e38)  # halfway between the largest fp32 and what would follow: too large
@example(3.4028235677973362e38)
@example(65519.99)
@example(65520.0)
@example(-0.0)
@example(2.0**-150)
@example(math.nextafter(2.0**-150, 1))
def test_floats_are_rounded_as_c_rounds_them(value: float) -> None:
    for name, letter in (("fp16", "<e"), ("fp32", "<f"), ("fp64", "<d")):
        try:
            expected = struct.pack(letter, math.nan if math.isnan(value) else value)
        except OverflowError:
            expected = struct.pack(letter, math.copysign(math.inf, value))
        assert packed(name, value) == expected
        assert struct.pack("<d", unpacked(name, expected)) == struct.pack("<d", struct.unpack(letter, expected)[0])


def widened(codes: npt.NDArray[Any], name: str) -> npt.NDArray[np.float64]:
    """The values of codes as another package reads them."""
    with np.errstate(invalid="ignore"):  # signaling NaNs
        return np.asarray(codes.view(NARROW[name]).astype(np.float64))


@pytest.mark.parametrize("name", sorted(NARROW))
def test_every_code_reads_as_another_package_reads_it(name: str) -> None:
    size = np.dtype(NARROW[name]).itemsize
    codes = np.arange(1 << 8 * size).astype(f"<u{size}")
    expected = widened(codes, name)
    for code, wanted in zip(codes.tolist(), expected.tolist(), strict=True):
        actual = unpacked(name, code.to_bytes(size, "little"))
        assert (actual == wanted and math.copysign(1, actual) == math.copysign(1, wanted)) or (
            math.isnan(actual) and math.isnan(wanted)
        )


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("fp8_e4m3", math.inf, "7e"),
        ("fp8_e4m3", -1e300, "fe"),
        ("fp8_e4m3", math.nan, "7f"),
        ("fp8_e5m2", math.inf, "7b"),
        ("fp8_e5m2", math.nan, "7e"),
        ("bf16", -math.inf, "80ff"),
        ("bf16", math.nan, "c07f"),
        ("fp16", -math.nan, "007e"),
        ("fp32", 16777217, "0000804b"),
        ("fp32", 2**60 + 2**36 + 1, "0100805d"),  # rounding to fp64 first would make it a tie
        ("fp64", 2**53 + 1, "0000000000004043"),
        ("fp64", 10**400, "000000000000f07f"),
        ("fp32", -(10**400), "000080ff"),
        ("complex64", complex(1.5, -0.0), "0000c03f00000080"),
        ("complex128", complex(-2.0, math.inf), "00000000000000c0000000000000f07f"),
    ],
)
def test_values_worked_out_by_hand(name: str, value: ParameterValue, stored: str) -> None:
    assert packed(name, value).hex() == stored
