"""The parameter buffer against independent arithmetic; what is refused as signature or value (runtime spec 10.1)."""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Parameter, ParameterValue, Status, layout_of, pack, parse_signature, unpack


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", []),
        ("f(void)", []),
        (" f ( X* , Y * ) ; ", ["X ptr", "Y ptr"]),
        ("f(int a, float b, double c)", ["a int32", "b fp32", "c fp64"]),
        ("f(int8_t a, int16_t b, int32_t c, int64_t d)", ["a int8", "b int16", "c int32", "d int64"]),
        ("f(bool a, bf16 b, fp8_e4m3 c, complex128 d)", ["a bool", "b bf16", "c fp8_e4m3", "d complex128"]),
        ("f(float* x, const void *y, float const * z, MyStruct* s)", ["x ptr", "y ptr", "z ptr", "s ptr"]),
        ("f(const int n,\n  const float f)", ["n int32", "f fp32"]),
    ],
)
def test_a_signature_is_read(text: str, expected: list[str]) -> None:
    found = parse_signature(text)
    assert found.name == "f"
    assert [f"{parameter.name} {parameter.type}" for parameter in found.parameters] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "f(",
        "f(int a",
        "f(int a))",
        "(int a)",
        "int f(int a)",
        "for(int a)",
        "1f(int a)",
        "f(,)",
        "f(int a,)",
        "f(int)",
        "f(float*)",
        "f(bf16*)",
        "f(int bool)",
        "f(a)",
        "f(int int)",
        "f(unsigned int a)",
        "f(long a)",
        "f(ptr a)",
        "f(tf32 a)",
        "f(struct Pair p)",
        "f(Pair p)",
        "f(int a[4])",
        "f(int a[])",
        "f(X**)",
        "f(float** x)",
        "f(struct { int a; } p)",
        "f(int (*callback)(int))",
        "f(int a = 3)",
        "f(...)",
        "f(int größe)",
        b"f(int a)",
        None,
    ],
)
def test_a_text_that_is_no_signature_is_refused(text: object) -> None:
    with pytest.raises(Failure) as caught:
        parse_signature(text)  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


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


SAMPLE = "flash_attention(Q*, K*, V*, O*, int B, int H, int L, int D, float scale)"
SIZES = {
    "ptr": 8,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp16": 2,
    "bf16": 2,
    "fp32": 4,
    "fp64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}


def parameters(*types: str) -> list[Parameter]:
    return [Parameter(f"p{position}", name) for position, name in enumerate(types)]


@given(st.lists(st.sampled_from(sorted(SIZES)), max_size=40))
def test_every_layout_keeps_the_rules(types: list[str]) -> None:
    """In order, aligned, no gap larger than alignment asks for, and the buffer ends on the next multiple of eight."""
    layout = layout_of(parameters(*types))
    end = 0
    for offset, size, name in zip(layout.offsets, layout.sizes, types, strict=True):
        assert size == SIZES[name]
        assert offset % min(size, 8) == 0
        assert 0 <= offset - end < min(size, 8)
        end = offset + size
    assert layout.end_of_last_argument == end
    assert layout.size % 8 == 0
    assert 0 <= layout.size - end < 8


def test_a_buffer_must_reach_the_end_of_the_last_argument() -> None:
    """0x34 bytes hold the sample's arguments; one less does not; more than the layout is no matter."""
    layout = layout_of(parse_signature(SAMPLE).parameters)
    values = (1, 2, 3, 4, 5, 6, 7, 8, 0.5)
    buffer = pack(layout, values)
    assert unpack(layout, buffer[:0x34]) == values
    assert unpack(layout, buffer + b"\xff") == values
    with pytest.raises(Failure, match="tessLaunch: argSize is 51; expected 56, or at least 52") as caught:
        unpack(layout, buffer[:0x33])
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_as_many_values_as_parameters(values: tuple[int, ...]) -> None:
    with pytest.raises(Failure, match=f"{len(values)} values; expected 2") as caught:
        pack(layout_of(parameters("int32", "int32")), values)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize("name", ["", "1x", "a b", "größe", "int", "x\n", None, 3])
def test_a_parameter_has_a_name_that_c_can_say(name: object) -> None:
    with pytest.raises(Failure, match="expected a C identifier") as caught:
        Parameter(name, "int32")  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize("name", ["tf32", "int", "uint32", "ptr ", "", None, ["int32"]])
def test_a_parameter_has_a_type_of_the_abi(name: object) -> None:
    with pytest.raises(Failure, match="expected ptr, fp8_e4m3, ") as caught:
        Parameter("x", name)  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_parameters_of_one_name_are_refused() -> None:
    with pytest.raises(Failure, match="two parameters called x"):
        layout_of([Parameter("x", "int32"), Parameter("y", "int32"), Parameter("x", "ptr")])


DOUBLES = st.floats() | st.floats(-500, 500) | st.floats(-1e-4, 1e-4)
NARROW = {"bf16": ml_dtypes.bfloat16, "fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2}


def packed(name: str, value: ParameterValue) -> bytes:
    layout = layout_of([Parameter("x", name)])
    return pack(layout, [value])[: layout.end_of_last_argument]


def unpacked(name: str, data: bytes) -> ParameterValue:
    return unpack(layout_of([Parameter("x", name)]), data)[0]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_within_their_range(bits: int) -> None:
    name, low, high = f"int{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    for value in (low, -1, 0, 1, high):
        assert packed(name, value) == value.to_bytes(bits // 8, "little", signed=True)
        assert unpacked(name, packed(name, value)) == value
    for value in (low - 1, high + 1, 10**5000):
        with pytest.raises(
            Failure, match=f"for parameter x of type {name}; expected a whole number from {low} to {high}"
        ):
            packed(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int32", 1.0),
        ("int32", True),
        ("int32", None),
        ("ptr", "0"),
        ("fp32", 1j),
        ("fp32", True),
        ("fp64", "1"),
        ("bool", 1),
        ("bool", None),
        ("complex64", 1.0),
        ("complex64", (0.0, 1.0)),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: ParameterValue) -> None:
    with pytest.raises(Failure, match=f"type {name}; expected ") as caught:
        packed(name, value)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


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


def magnitudes(name: str) -> list[tuple[Fraction, int]]:
    """Every finite magnitude of a narrow dtype with its code, ascending, as another package decodes them."""
    bits = np.dtype(NARROW[name]).itemsize * 8
    codes = np.arange(1 << bits - 1).astype(f"u{bits // 8}")
    values = widened(codes, name)
    found = [(Fraction(float(v)), int(code)) for v, code in zip(values, codes, strict=True) if np.isfinite(v)]
    return sorted(found)


TABLES = {name: magnitudes(name) for name in NARROW}


def nearest(value: float, name: str) -> int:
    """The code of the nearest value, ties to the even code."""
    table, exact = TABLES[name], Fraction(abs(value))
    above = bisect_left(table, (exact, 0))
    candidates = table[max(0, above - 1) : above + 1]
    return min((abs(each - exact), code % 2, code) for each, code in candidates)[2]


@given(st.sampled_from(sorted(NARROW)), DOUBLES.filter(math.isfinite))
@example("fp8_e4m3", 464.0)
@example("fp8_e4m3", 1.0625)
@example("fp8_e5m2", 2.0**-17)
@example("bf16", 1.00390625)
@example("bf16", 1.0039062500000002)  # through fp32 it would be a tie, and round down
def test_narrow_floats_are_rounded_once_to_nearest_even(name: str, value: float) -> None:
    largest, code = TABLES[name][-1]
    step = largest - TABLES[name][-2][0]
    if Fraction(abs(value)) < largest + step / 2:
        code = nearest(value, name)
    elif name == "bf16":
        code += 1  # infinity; fp8 saturates
    sign = math.copysign(1, value) < 0
    size = np.dtype(NARROW[name]).itemsize
    assert packed(name, value) == (code | sign << 8 * size - 1).to_bytes(size, "little")


@pytest.mark.parametrize("name", sorted(NARROW))
def test_every_code_reads_as_another_package_reads_it(name: str) -> None:
    size = np.dtype(NARROW[name]).itemsize
    codes = np.arange(1 << 8 * size).astype(f"<u{size}")
    expected = widened(codes, name)
    for code, wanted in zip(codes.tolist(), expected.tolist(), strict=True):
        found = unpacked(name, code.to_bytes(size, "little"))
        assert (found == wanted and math.copysign(1, found) == math.copysign(1, wanted)) or (
            math.isnan(found) and math.isnan(wanted)
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
