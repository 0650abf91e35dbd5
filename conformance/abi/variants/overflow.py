"""Overflow of packed fp8 arguments that is NaN (runtime specification, Appendix B; AMB-RT-29)."""

from __future__ import annotations

from tessera_conformance.strength import altered
from tessera_reference.abi import parameters
from tessera_reference.abi.parameters import code_of_float
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics.array import nan_code
from tessera_reference.numerics.formats import DType

ENDS = {"fp8_e4m3": 464.0, "fp8_e5m2": 61440.0}
"""Up to where numbers round to the largest."""


def beyond_the_end(value: float, dtype: DType) -> int:
    """Return NaN for a value that is too large for an fp8."""
    return nan_code(dtype) if abs(value) > ENDS.get(dtype.name, abs(value)) else code_of_float(value, dtype)


OVERFLOW = altered(
    "AMB-RT-29",
    "stores what is too large for fp8 as NaN",
    ("abi/parameter-values/*", "abi/parameter-layout/*"),
    ReferenceAdapter,
    (parameters, "code_of_float", beyond_the_end),
    name="overflow_to_nan",
)
