"""Collectives that read the id of a dtype as another one, though the table of ids is right (runtime spec, 19.B)."""

from itertools import pairwise

from tessera_conformance.strength import replaced
from tessera_reference.numerics.formats import DTYPES

from ...runtime.violators.changes import BuildsOnce

IDS = {dtype.abi_id: dtype for dtype in DTYPES.values() if dtype.abi_id is not None}


def taken_for(clause, dtype, other):
    table = IDS | {DTYPES[dtype].abi_id: DTYPES[other]}
    description = f"combines elements of {dtype} as {other}"
    substitution = ("runtime.collectives.BY_ID", table)
    return replaced(clause, description, BuildsOnce, substitution, name=f"{dtype}_as_{other}")


TAKEN = [
    taken_for(f"RT-19.B-{DTYPES[dtype].abi_id:02}", dtype, other)
    for dtype, other in (
        *pairwise(("fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32", "fp64", "int64", "fp64")),
        *(("int8", "int16"), ("int16", "fp16"), ("int32", "int64")),
        *(("complex64", "complex128"), ("complex128", "complex64")),
    )
]
