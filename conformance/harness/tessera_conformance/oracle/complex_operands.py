"""Floats where complex numbers are computed with: the imaginary part is +0 (AMB-LANG-116)."""

from __future__ import annotations

from tessera_conformance.oracle.casts import cast
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.formats import COMPONENTS, FORMATS, FloatFormat
from tessera_conformance.tensors import Tensor


def complex_operand(x: Tensor) -> Tensor:
    """The operand as complex numbers.

    Raises:
        BadArgument: its elements are neither floats nor complex.
    """
    if x.dtype in COMPONENTS:
        return x
    if not isinstance(FORMATS.get(x.dtype), FloatFormat):
        raise BadArgument("dtype", x.dtype, "a float or complex dtype")
    return cast(x, dtype="complex128" if x.dtype == "fp64" else "complex64")
