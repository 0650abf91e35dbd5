from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.formats import (
    DTYPES,
    UnknownDType,
    UnknownDTypeId,
    UnsupportedDType,
    dtype,
    dtype_of_abi_id,
)

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
    found = dtype(name)
    assert str(found.abi_id) == abi
    assert found.storage_bytes == int(size)
    assert found.carrier == np.dtype(carrier)
    assert found.accumulator is dtype(accumulator)


@pytest.mark.parametrize(
    ("name", "largest", "normal", "subnormal"),
    [
        ("fp8_e4m3", 448.0, 2.0**-6, 2.0**-9),
        ("fp8_e5m2", 57344.0, 2.0**-14, 2.0**-16),
        ("fp16", 65504.0, 2.0**-14, 2.0**-24),
        ("bf16", float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-133),
        ("fp32", float.fromhex("0x1.fffffep127"), 2.0**-126, 2.0**-149),
        ("fp64", float.fromhex("0x1.fffffffffffffp1023"), 2.0**-1022, 2.0**-1074),
    ],
)
def test_limits_of_the_floats(name, largest, normal, subnormal):
    found = dtype(name)
    assert (found.max_finite, found.min_normal, found.min_subnormal) == (largest, normal, subnormal)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_limits_of_the_integers(bits):
    info = np.iinfo(f"int{bits}")
    assert (dtype(f"int{bits}").int_min, dtype(f"int{bits}").int_max) == (info.min, info.max)


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


@pytest.mark.parametrize(("name", "abi"), [row[:2] for row in ROWS if row[1] != "None"])
def test_every_abi_id_names_its_dtype(name, abi):
    assert dtype_of_abi_id(int(abi)) is dtype(name)


@pytest.mark.parametrize("identifier", [0, 14, -1, 255, True, 5.0, "5", None])
def test_other_ids_are_refused(identifier):
    with pytest.raises(UnknownDTypeId, match="the ids are 1 to 13") as caught:
        dtype_of_abi_id(identifier)
    assert caught.value.identifier is identifier


def test_tf32_goes_under_the_id_of_its_storage():
    assert dtype("tf32").abi_id is None
    assert dtype_of_abi_id(dtype("tf32").storage.abi_id) is dtype("fp32")
