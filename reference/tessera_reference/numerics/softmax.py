"""softmax, subtracting the maximum (language spec sections 5, 10 and 15; canon of arithmetic, "softmax")."""

from __future__ import annotations

import numpy as np

from .array import Array
from .elementary import exp
from .errors import UnsupportedDType
from .ordering import largest
from .reductions import add_up, checked_axis
from .rounding import round_to
from .trees import Tree

__all__ = ["softmax"]


def softmax(x: Array, axis: int = -1, *, tree: Tree | None = None) -> Array:
    """Return exp(x - max) / sum(exp(x - max)) along `axis`; same shape and dtype. Floats only.

    Computed in the accumulator type, exp correctly rounded, the sum over the canonical tree or another; one final
    rounding (LANG-10-03, LANG-15-07, AMB-LANG-75). A row that holds NaN or +inf, or -inf only, is NaN.
    Raises `AxisOutOfRange` and `EmptyAxis`, both `ShapeMismatch`, and `LeafCount`.
    """
    if x.dtype.kind != "float":
        raise UnsupportedDType("softmax", x.dtype)
    axis = checked_axis("softmax", x, axis, empty=False)
    with np.errstate(all="ignore"):
        maximum = np.expand_dims(largest(x.values, axis), axis)
        exponentials = exp(x.values - maximum, x.dtype.accumulator)
        total = np.expand_dims(add_up(exponentials, axis, tree, x.dtype.accumulator), axis)
        return Array(x.dtype, round_to(exponentials / total, x.dtype))
