"""Types and values of attributes in text: written exactly, read back, or refused (sections 2.1, 2.2, 13.1)."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tessera_reference.ir.attributes import (
    Mismatch,
    array_of,
    array_value,
    attribute_text,
    of_kind,
    string_of,
    string_text,
)
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.text import exported, read_type
from tessera_reference.ir.text_parser import parse_text
from tessera_reference.ir.types import Fragment, Layout, Memref, Mesh, Scalar, Tensor, Type
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType, dtype

FP32, BF16 = dtype("fp32"), dtype("bf16")
TYPES: dict[str, tuple[Type, str]] = {
    "fp32": (Scalar(FP32), "!tessera.fp32"),
    "tensor<4xfp32>": (Tensor((4,), FP32), "!tessera.tensor<4xfp32>"),
    "tensor<?xDx0xcomplex64>": (Tensor(("?", "D", 0), dtype("complex64")), "!tessera.tensor<?xDx0xcomplex64>"),
    "tensor<2x3xbf16; layout=col_major>": (
        Tensor((2, 3), BF16, Layout("col_major")),
        "!tessera.tensor<2x3xbf16; layout=col_major>",
    ),
    "tensor<8x8xint8; layout=blocked(bm=2,bn=4)>": (
        Tensor((8, 8), dtype("int8"), Layout("blocked", (("bm", 2), ("bn", 4)))),
        "!tessera.tensor<8x8xint8; layout=blocked(bm=2,bn=4)>",
    ),
    "memref<128x64xbf16>[addrspace=shared]": (
        Memref((128, 64), BF16, "shared"),
        "!tessera.memref<128x64xbf16; addrspace=shared>",
    ),
    "fragment<16,8,4,bf16>": (Fragment(16, 8, 4, BF16), "!tessera.fragment<16,8,4,bf16>"),
    "fragment<16,8,4,bf16,layout=row_major>": (
        Fragment(16, 8, 4, BF16, Layout("row_major")),
        "!tessera.fragment<16,8,4,bf16,layout=row_major>",
    ),
    "mesh<axes=[dp, tp], shape=[4, 2]>": (Mesh(("dp", "tp"), (4, 2)), "!tessera.mesh<axes=[dp, tp], shape=[4, 2]>"),
}


@pytest.mark.parametrize("text", TYPES)
def test_a_type_reads_at_home_and_exported(text: str) -> None:
    type_, abroad = TYPES[text]
    assert read_type(text) == type_
    assert read_type(abroad) == type_
    assert (str(type_), exported(type_)) == (text, abroad)


@pytest.mark.parametrize("digits", ["9223372036854775807", "0" * 5000 + "7"])
def test_an_extent_is_read_however_it_is_written(digits: str) -> None:
    type_ = read_type(f"tensor<{digits}xfp32>")
    assert type_ == Tensor((int(digits.lstrip("0")),), FP32)


def test_long_parameters_of_a_layout_are_refused_at_once() -> None:
    """Each pair could be cut in many places; trying all of them would take for ever."""
    with pytest.raises(Refusal):
        read_type(f"tensor<4xfp32; layout=blocked({'a=111111111' * 60}!)>")


def read(text: str) -> Any:
    """The value that a text says, as the attribute of some operation."""
    ((operation,), _) = parse_text(f'"t"() {{a = {text}}} : () -> ()', "<t>")
    return operation.attributes["a"].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17),
        ("-3", -3),
        ("0xffffffff", 4294967295),  # AMB-LANG-31
        ("-0x10", -16),
        ("7 : i64", 7),
        ("36893488147419103232 : i67", 1 << 65),
        ("1.5", 1.5),
        ("1.000000e-01 : f64", 0.1),
        ("2e3", 2000.0),
        ("2 : f64", 2.0),
        ("9007199254740992 : f64", 9007199254740992.0),
        ("0x3FF8000000000000 : f64", 1.5),
        ("0x0 : f64", 0.0),
        ("0x3F800000 : f32", 1.0),
        ("0x7FC0 : bf16", math.nan),
        ("0x8000 : f16", -0.0),
        ("0x38 : f8E4M3FN", 1.0),
        ("1.1 : f32", 1.10000002384185791015625),
        ("1.00000005960464477539062500001 : f32", 1.00000011920928955078125),  # a double would round it to the tie
        ("-0.0 : bf16", -0.0),
        ("3 : f32", 3.0),
        ("-128 : i8", -128),
        ("200 : i8", -56),
        ("1 : i1", True),
        ("255 : ui8", 255),
        ("9223372036854775807 : index", 9223372036854775807),
        ("true", True),
        ("false", False),
        ('"a\\22b\\\\c\\"d\\n\\t\\C3\\A9"', 'a"b\\c"d\n\té'),
        ("@mm", "mm"),
        ("[]", ()),
        ('[1, [2.0, true], "x"]', (1, (2.0, True), "x")),
        ('{b = 1, "c d" = [], e}', {"b": 1, "c d": (), "e": True}),
    ],
)
def test_values_read(text: str, value: object) -> None:
    assert repr(read(text)) == repr(value)  # the sign of zero and the type too


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-07, "1.0e-07"),
        (0.125, "0.125"),
        (-0.0, "-0.0"),
        (1e300, "1.0e+300"),
        (5e-324, "5.0e-324"),
        (float("inf"), "0x7FF0000000000000 : f64"),
        (float("-inf"), "0xFFF0000000000000 : f64"),
        (True, "true"),
        (-1, "-1"),
        ((1 << 63) - 1, "9223372036854775807"),
        (1 << 63, "9223372036854775808 : i65"),
        (-(1 << 63) - 1, "-9223372036854775809 : i65"),
        ((1, 0), "[1, 0]"),
        (((), ((),)), "[[], [[]]]"),
        (dtype("bf16"), '"bf16"'),
        ('a"b', '"a\\"b"'),
        ("tab\tand\x7f\x00", '"tab\\09and\\7F\\00"'),
        ("é\u2028\ud800", '"é\\E2\\80\\A8\\ED\\A0\\80"'),
    ],
)
def test_values_are_written_as_mlir_reads_them(value: Any, text: str) -> None:
    assert attribute_text(value) == text


@given(st.floats())
@example(-0.0)
@example(float("nan"))
def test_a_float_reads_back_to_its_bits(value: float) -> None:
    actual = read(attribute_text(value))
    assert struct.pack(">d", actual) == struct.pack(">d", value)


@given(st.text(st.characters(codec=None)))
@example("\\")
@example("\\n")
@example('"')
@example("\ud83d\ude00")
def test_a_string_reads_back(text: str) -> None:
    quoted = string_text(text)
    assert quoted.isprintable()
    assert string_of(quoted) == text


VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=12,
)


@given(VALUES)
def test_any_value_reads_back(value: Any) -> None:
    actual = read(attribute_text(value))
    assert actual == value
    assert repr(actual) == repr(value)  # 1, 1.0 and True are equal, and differ


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (3, int, 3),
        (3, float, 3.0),
        (3, float | None, 3.0),
        (-(1 << 53), float, -9007199254740992.0),
        (3, int | float | bool, 3),
        (True, int | float | bool, True),
        ("fp32", DType, dtype("fp32")),
        ("fp32", str, "fp32"),
        ("fp32", DType | None, dtype("fp32")),
        ((1, 2), tuple[int, ...], (1, 2)),
        ((), tuple[int, ...], ()),
        ((1, (2, "x")), tuple[Any, ...], (1, (2, "x"))),
        ((("m", 1), ("n", (2,))), tuple[tuple[str, int | tuple[Any, ...]], ...], (("m", 1), ("n", (2,)))),
    ],
)
def test_values_become_what_is_declared(value: object, kind: Any, found: object) -> None:
    assert repr(of_kind(value, kind)) == repr(found)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, int),
        (1, bool),
        (1.0, int),
        ("x", int),
        (3, str),
        ((1,), int),
        (3, tuple[int, ...]),
        ((1, "x"), tuple[int, ...]),
        ((True,), tuple[int, ...]),
        ((1, 2, 3), tuple[int, int]),
        ({"a": 1}, Any),
        (({},), tuple[Any, ...]),
        ((1 << 53) + 1, float),  # a double would round it
    ],
)
def test_values_of_another_kind_are_told_apart(value: object, kind: Any) -> None:
    with pytest.raises(Mismatch):
        of_kind(value, kind)


def test_an_unknown_dtype_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refusal) as caught:
        of_kind("fp23", DType)
    assert caught.value.category == "types"
    assert caught.value.remedy == "did you mean fp32?"


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("fp32", [1.5, -0.0]),
        ("bf16", [0.5, float("inf")]),
        ("fp8_e4m3", [448.0, -0.001953125]),
        ("int64", [-(1 << 63), (1 << 63) - 1]),
        ("bool", [True, False]),
        ("complex64", [1 + 2j, -0.0 - 1j]),
        ("fp64", [5e-324, 1e308]),
    ],
)
def test_arrays_read_back_to_their_bits(name: str, numbers: list[Any]) -> None:
    for given_array in (
        Array.checked(dtype(name), numbers),
        Array.checked(dtype(name), [[numbers, numbers]]),
        Array.checked(dtype(name), numbers[0]),
        Array.checked(dtype(name), [numbers[:0]]),
    ):
        actual = array_of(read(attribute_text(array_value(given_array))), dtype(name))
        assert (actual.shape, actual.to_bits()) == (given_array.shape, given_array.to_bits())
