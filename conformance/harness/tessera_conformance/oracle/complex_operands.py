"""Floats where complex numbers are computed with: the imaginary part is +0 (AMB-LANG-116)."""

from __future__ import annotations

from tessera_conformance.oracle.elementwise import cast
from tessera_conformance.oracle.exact import COMPONENTS, FORMATS, BadArgument, FloatFormat
from tessera_conformance.tensors import Tensor


def complex_operand(x: Tensor) -> Tensor:
    """The operand as complex numbers.

    Raises:
        BadArgument: its elements are neither floats nor complex.
    """
    dtype = complex_dtype(x.dtype)
    return x if x.dtype == dtype else cast(x, dtype=dtype)


def complex_dtype(dtype: str) -> str:
    """The dtype that an operand of this one is computed in. Raises `BadArgument` as `complex_operand` does."""
    if dtype in COMPONENTS:
        return dtype
    if not isinstance(FORMATS.get(dtype), FloatFormat):
        raise BadArgument("dtype", dtype, "a float or complex dtype")
    return "complex128" if dtype == "fp64" else "complex64"
