"""Which numbers are zero, subnormal, normal, infinite or NaN, and of which sign.

IEEE 754-2019 clause 5.7.2 ("class"), for the formats of runtime spec Appendix B. fp8_e4m3 has no infinite numbers. The
storage of tf32 is fp32 (AMB-RT-28) and is classified as that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from .array import Array
from .errors import UnsupportedDType

__all__ = ["Category", "Classification", "classify"]


class Category(IntEnum):
    """What kind of number a floating-point number is."""

    ZERO = 0
    SUBNORMAL = 1
    NORMAL = 2
    INFINITE = 3
    NAN = 4


@dataclass(frozen=True, slots=True, eq=False)
class Classification:
    """For each element its `Category`, as uint8, and whether its sign bit is set (of zeros and NaN too)."""

    categories: npt.NDArray[np.uint8]
    negative: npt.NDArray[np.bool_]


def classify(array: Array) -> Classification:
    """Classify every element of a float array; same shape.

    A complex array gets one axis more, at the end: the class of the real part, then of the imaginary part.
    Raises `UnsupportedDType` for integers and bool, which have no such classes.
    """
    if array.dtype.kind == "complex":
        component, values = array.dtype.component, np.stack([array.values.real, array.values.imag], axis=-1)
    elif array.dtype.kind == "float":
        component, values = array.dtype.storage, array.values
    else:
        raise UnsupportedDType("classify", array.dtype)
    return Classification(_categories(values, component.min_normal), np.asarray(np.signbit(values)))


def _categories(values: npt.NDArray[Any], min_normal: float) -> npt.NDArray[np.uint8]:
    magnitude = np.abs(values)
    category = np.full(np.shape(values), Category.NORMAL, np.uint8)
    category[magnitude < np.array(min_normal, magnitude.dtype)] = Category.SUBNORMAL
    category[magnitude == 0.0] = Category.ZERO
    category[np.isinf(magnitude)] = Category.INFINITE
    category[np.isnan(magnitude)] = Category.NAN
    return category
