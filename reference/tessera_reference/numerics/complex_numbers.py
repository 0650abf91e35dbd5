"""Complex arithmetic written out by component, since compilers and libraries differ about it.

The product is (ac - bd, ad + bc) with every step rounded.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Parts", "join", "parts", "product"]

Values: TypeAlias = npt.NDArray[Any]
Parts: TypeAlias = tuple[Values, Values]


def parts(x: Values) -> Parts:
    """Return the real and the imaginary parts."""
    return x.real, x.imag


def join(real: Values, imaginary: Values) -> Values:
    """Join two parts. Written by component: real + 1j * imaginary would compute, and lose signs of zero."""
    result = np.empty(np.shape(real), np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def product(x: Parts, y: Parts) -> Parts:
    """Return the product of complex numbers; operands and result are (real, imaginary) pairs."""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c
