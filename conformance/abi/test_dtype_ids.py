"""The ids of dtypes at the binary interface (runtime specification, Appendix B)."""

from __future__ import annotations

import pytest

from tessera_conformance.marks import clause, feature

pytestmark = feature("dtype-ids")

IDS = {
    "fp8_e4m3": 1,
    "fp8_e5m2": 2,
    "fp16": 3,
    "bf16": 4,
    "fp32": 5,
    "fp64": 6,
    "int8": 7,
    "int16": 8,
    "int32": 9,
    "int64": 10,
    "bool": 11,
    "complex64": 12,
    "complex128": 13,
}


@pytest.mark.parametrize(
    ("dtype", "number"),
    [pytest.param(dtype, number, marks=clause(f"RT-19.B-{number:02}"), id=dtype) for dtype, number in IDS.items()],
)
def test_a_dtype_has_the_id_of_the_table(impl, check, dtype, number):
    """Each dtype has the id that the table gives it, and no other dtype has it."""
    ids = check.returns(impl.abi.dtype_ids())["ids"]
    check.equal(ids.get(dtype), number, f"the id of {dtype}")
    check.equal([name for name, value in ids.items() if value == number], [dtype], f"the dtypes with id {number}")


@clause("RT-19.B-05")
def test_tf32_has_no_id_of_its_own(impl, check):
    """tf32 is a math mode on fp32 storage (AMB-RT-28)."""
    ids = check.returns(impl.abi.dtype_ids())["ids"]
    check.true("tf32" not in ids, "tf32 is not in the table", ids)
