"""Casts between all dtypes against numpy where it rounds once, and special cases by hand."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, ZERO, BadArgument
from tessera_conformance.oracle.formats import FORMATS, FloatFormat, float_format, tensor_of, values_of
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import counted

FLOATS = [name for name, entry in FORMATS.items() if isinstance(entry, FloatFormat)]
NUMPY = {"fp16": "<f2", "fp32": "<f4", "fp64": "<f8", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8"}


def array(x: Tensor) -> Any:
    return np.frombuffer(x.data, dtype=NUMPY[x.dtype])


@pytest.mark.parametrize("source", NUMPY)
@pytest.mark.parametrize("target", NUMPY)
def test_casts_are_those_of_numpy(source: str, target: str) -> None:
    """Between numbers in range; int64 to fp16 goes through a double in numpy, so those stay small."""
    x = counted(source, (64,), 5)
    values = array(x)
    if target.startswith("int") and source.startswith("fp"):
        values = np.clip(values, -100, 100).astype(NUMPY[source])
    if target == "fp16" and source in ("int32", "int64"):
        values = (values % 1000).astype(NUMPY[source])
    expected = values.astype(NUMPY[target])
    found = oracle.cast(Tensor(source, (64,), values.tobytes()), dtype=target)
    assert first_difference(found, Tensor(target, (64,), expected.tobytes())) is None


@pytest.mark.parametrize("target", FLOATS)
def test_a_cast_rounds_once(target: str, draw: random.Random) -> None:
    """Next to a tie of the target, by as little as a double can say."""
    format_ = float_format(target)
    for _ in range(50):
        code = draw.randrange(1 << format_.fraction_bits, format_.largest_code)
        low, high = values_of(Tensor.from_words(target, (2,), [code, code + 1]))
        assert isinstance(low, Fraction)
        if not isinstance(high, Fraction) or target == "fp64":
            continue
        tie = (low + high) / 2
        for value, expected in ((tie * (1 + Fraction(1, 1 << 52)), code + 1), (tie * (1 - Fraction(1, 1 << 52)), code)):
            x = tensor_of("fp64", (1,), [value])
            if values_of(x) != [tie]:
                assert oracle.cast(x, dtype=target).words().tolist() == [expected]


@pytest.mark.parametrize(("dtype", "least", "greatest"), [("int8", 0x80, 0x7F), ("int32", 1 << 31, (1 << 31) - 1)])
def test_floats_truncate_and_stop_at_the_ends_of_integers(dtype: str, least: int, greatest: int) -> None:
    numbers = [
        Fraction(19, 10),
        Fraction(-19, 10),
        Fraction(10**12),
        -Fraction(10**12),
        INFINITY,
        NEGATIVE_INFINITY,
        NAN,
    ]
    numbers.append(NEGATIVE_ZERO)
    found = oracle.cast(tensor_of("fp64", (8,), numbers), dtype=dtype)
    minus_one = (1 << (8 * ELEMENT_FORMATS[dtype].word_bytes)) - 1
    assert found.words().tolist() == [1, minus_one, greatest, least, greatest, least, 0, 0]


def test_integers_wrap() -> None:
    x = Tensor.from_words("int32", (3,), [300, 0xFFFFFF7F, 0x80000000])
    assert oracle.cast(x, dtype="int8").words().tolist() == [44, 0x7F, 0]


def test_bools_are_zero_or_one() -> None:
    x = tensor_of("fp32", (5,), [ZERO, NEGATIVE_ZERO, Fraction(1, 1000), INFINITY, NAN])
    assert oracle.cast(x, dtype="bool").words().tolist() == [0, 0, 1, 1, 1]
    assert oracle.cast(oracle.cast(x, dtype="bool"), dtype="fp16").bits() == "0000" * 2 + "3c00" * 3


@pytest.mark.parametrize(("dtype", "infinite"), [("fp8_e4m3", [0x7F, 0x7F, 0x7F]), ("fp8_e5m2", [0x7C, 0xFC, 0x7C])])
def test_fp8_saturates_unless_told_not_to(dtype: str, infinite: list[int]) -> None:
    x = tensor_of("fp32", (3,), [INFINITY, NEGATIVE_INFINITY, Fraction(10**6)])
    largest = float_format(dtype).largest_code
    assert oracle.cast(x, dtype=dtype).words().tolist() == [largest, largest | 0x80, largest]
    assert oracle.cast(x, dtype=dtype, overflow="nonfinite").words().tolist() == infinite


def test_tf32_is_stored_as_fp32() -> None:
    x = tensor_of("fp64", (1,), [1 + Fraction(1, 1 << 23) + Fraction(1, 1 << 30)])
    assert oracle.cast(x, dtype="tf32").bits() == "3f800001"


def test_complex_numbers_have_an_imaginary_part() -> None:
    x = tensor_of("fp16", (2,), [Fraction(1, 2), NEGATIVE_ZERO])
    wide = oracle.cast(x, dtype="complex64")
    assert wide.bits() == "3f00000000000000" + "8000000000000000"
    assert oracle.cast(oracle.cast(wide, dtype="complex128"), dtype="complex64") == wide
    with pytest.raises(BadArgument, match="complex"):
        oracle.cast(wide, dtype="fp32")


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(BadArgument, match="dtype: 'fp4'"):
        oracle.cast(Tensor("fp32", (0,), b""), dtype="fp4")
