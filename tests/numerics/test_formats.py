"""The formats of numbers: their table, their arrays, and the classes of codes."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import MalformedStorage, NotRepresentable, WrongCarrier
from tessera_reference.numerics.formats import DTYPES, UnknownDType, UnsupportedDType, dtype

TABLE = """
name        abi  bytes  carrier     accumulator
fp8_e4m3    1    1      float32     fp32
fp8_e5m2    2    1      float32     fp32
fp16        3    2      float32     fp32
bf16        4    2      float32     fp32
fp32        5    4      float32     fp32
fp64        6    8      float64     fp64
int8        7    1      int8        int32
int16       8    2      int16       int32
int32       9    4      int32       int32
int64       10   8      int64       int64
bool        11   1      bool        bool
complex64   12   8      complex64   complex64
complex128  13   16     complex128  complex128
tf32        None 4      float32     fp32
"""
ROWS = [row.split() for row in TABLE.strip().splitlines()[1:]]


def test_the_table_lists_every_dtype_in_the_order_of_ids():
    assert list(DTYPES) == [row[0] for row in ROWS]


@pytest.mark.parametrize(("name", "abi", "size", "carrier", "accumulator"), ROWS)
def test_ids_sizes_carriers_and_accumulators(name, abi, size, carrier, accumulator):
    actual = dtype(name)
    assert str(actual.abi_id) == abi
    assert actual.storage_bytes == int(size)
    assert actual.carrier == np.dtype(carrier)
    assert actual.accumulator is dtype(accumulator)


@pytest.mark.parametrize("name", ["float32", "fp8", "FP32", "", "uint8"])
def test_other_names_are_refused(name):
    with pytest.raises(UnknownDType, match=repr(name)) as caught:
        dtype(name)
    assert caught.value.name == name


def test_components_of_complex_dtypes_only():
    assert dtype("complex64").component is dtype("fp32")
    assert dtype("complex128").component is dtype("fp64")
    with pytest.raises(UnsupportedDType):
        _ = dtype("fp32").component


def test_tf32_is_stored_as_fp32_and_no_other_dtype_as_another():
    assert {name: found.storage.name for name, found in DTYPES.items() if found.storage is not found} == {
        "tf32": "fp32"
    }


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
