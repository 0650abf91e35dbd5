"""Storage bytes <-> values: `Array` and `encoding`."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, decode, encode
from tessera_reference.numerics.errors import MalformedStorage, NotRepresentable, WrongCarrier
from tessera_reference.numerics.formats import DTYPES, dtype

INSTALL_ML_DTYPES = "pip install ml_dtypes"
NARROW = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "fp16": "float16", "bf16": "bfloat16"}


def all_codes(name: str) -> np.ndarray:
    bits = dtype(name).bits
    return np.arange(1 << bits, dtype=f"<u{bits // 8}")


@pytest.mark.parametrize("name", NARROW)
def test_every_code_survives_the_round_trip_and_nans_become_one(name):
    codes = all_codes(name)
    again = encode(decode(codes, dtype(name)), dtype(name))
    numbers = ~np.isnan(decode(codes, dtype(name)))
    assert np.array_equal(again[numbers], codes[numbers])
    quiet = {"fp8_e4m3": 0x7F, "fp8_e5m2": 0x7E, "fp16": 0x7E00, "bf16": 0x7FC0}[name]
    assert set(again[~numbers].tolist()) == {quiet}


@pytest.mark.parametrize(
    ("name", "values", "stored"),
    [
        ("fp8_e4m3", [448.0, -0.0, 2.0**-9], "7e 80 01"),
        ("fp8_e5m2", [np.inf, 57344.0, -(2.0**-16)], "7c 7b 81"),
        ("fp16", [1.0, -np.inf, 2.0**-24], "003c 00fc 0100"),
        ("bf16", [1.0, -2.0, 2.0**-133], "803f 00c0 0100"),
        ("fp32", [1.0, -0.0, np.nan, 2.0**-149], "0000803f 00000080 0000c07f 01000000"),
        ("tf32", [1.0 + 2.0**-23], "0100803f"),
        ("fp64", [1.0, np.nan], "000000000000f03f 000000000000f87f"),
        ("int8", [-1, 127], "ff 7f"),
        ("int16", [-2], "feff"),
        ("int32", [1], "01000000"),
        ("int64", [-(2**63)], "0000000000000080"),
        ("bool", [True, False], "01 00"),
        ("complex64", [1 - 2j], "0000803f 000000c0"),
        ("complex128", [complex(np.nan, -0.0)], "000000000000f87f 0000000000000080"),
    ],
)
def test_stored_bytes_are_little_endian_codes(name, values, stored):
    array = Array.checked(dtype(name), values)
    assert array.to_bits() == bytes.fromhex(stored)
    again = Array.from_bits(dtype(name), (len(values),), bytes.fromhex(stored))
    assert again.to_bits() == bytes.fromhex(stored)


def test_a_negative_nan_is_stored_as_the_positive_one():
    negative = np.copysign(np.array([np.nan], np.float32), np.float32(-1))
    assert Array(dtype("fp32"), negative).to_bits() == bytes.fromhex("0000c07f")
    assert Array(dtype("bf16"), negative).to_bits() == bytes.fromhex("c07f")


def test_any_nonzero_byte_reads_as_true():
    assert Array.from_bits(dtype("bool"), (4,), b"\x00\x01\x02\xff").to_bits() == b"\x00\x01\x01\x01"


def test_storage_is_row_major_whatever_the_memory_order():
    fortran = np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3))
    assert Array(dtype("int8"), fortran).to_bits() == bytes(range(6))
    assert Array.from_bits(dtype("int8"), (2, 3), bytes(range(6))).values[1, 0] == 3


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_shapes_round_trip(name, shape):
    array = Array(dtype(name), np.ones(shape, dtype(name).carrier))
    again = Array.from_bits(dtype(name), shape, array.to_bits())
    assert (again.shape, again.rank, again.to_bits()) == (shape, len(shape), array.to_bits())
    assert len(array.to_bits()) == array.values.size * dtype(name).storage_bytes


def test_bytes_that_do_not_fill_the_shape_are_refused():
    with pytest.raises(MalformedStorage, match="expected 12 bytes, found 11"):
        Array.from_bits(dtype("fp32"), (3,), bytes(11))


def test_a_foreign_carrier_is_refused():
    with pytest.raises(WrongCarrier, match="bf16 is held in float32, not in float64"):
        Array(dtype("bf16"), np.zeros(2))


def test_values_cannot_be_changed_through_an_array_and_the_maker_keeps_the_right_to():
    mine = np.zeros(2, np.float32)
    array = Array(dtype("fp32"), mine)
    with pytest.raises(ValueError, match="read-only"):
        array.values[0] = 1
    mine[0] = 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fp8_e4m3", 449.0), ("fp8_e4m3", np.inf), ("fp8_e4m3", 1e30), ("fp8_e5m2", 2.0**-17), ("fp16", 65505.0),
        ("bf16", 1 + 2.0**-8), ("fp32", 2**24 + 1), ("fp64", 2**53 + 1), ("int8", 128), ("int8", 0.5), ("bool", 2),
        ("complex64", 0.1j), ("int32", np.nan),
    ],
)  # fmt: skip
def test_checked_refuses_what_the_dtype_cannot_hold(name, value):
    with pytest.raises(NotRepresentable) as caught:
        Array.checked(dtype(name), [0, value])
    assert caught.value.index == (1,)
