"""Implementations that know only the usual NaN: positive, with one bit set in its fraction (AMB-LANG-105)."""

import numpy as np

from tessera_reference.graph import elementwise
from tessera_reference.graph import reductions as graph
from tessera_reference.numerics import reductions
from tessera_reference.numerics.arithmetic import larger
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES

from .casts import miscast
from .changes import changed
from .min_max import minmax, place


def quiet(values):
    """Select NaNs whose fraction has its first bit set."""
    first = 1 << (22 if values.dtype.itemsize == 4 else 51)
    return np.isnan(values) & (values.view(f"u{values.dtype.itemsize}") & first != 0)


def with_bias(x, target, overflow):
    codes = x.values.view(np.uint32)
    rounded = (codes + np.uint32(0x7FFF) + ((codes >> 16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return Array(target, np.where(np.isinf(x.values), x.values, rounded.view(np.float32)))


def below_all(values):
    return np.where(np.isnan(values) & np.signbit(values), values.dtype.type(-np.inf), values)


def compared(clause, name, operation):
    """Return a violation that compares by codes, and recognises a positive NaN but no negative one."""
    compute = operation.compute

    def by_codes(a, b):
        return compute(*(Array(x.dtype, below_all(x.values)) if x.dtype.kind == "float" else x for x in (a, b)))

    description = "takes a negative NaN for the least of all numbers"
    return changed(clause, name, description, (operation, "compute", staticmethod(by_codes)))


VIOLATIONS = [
    miscast("with_bias", "rounds fp32 to bf16 by an addition to the code, NaN too", with_bias,
        lambda source, target: source.name == "fp32" and target.name == "bf16"),
    miscast("true_if_quiet", "takes signalling NaN for false",
        lambda x, target, overflow: Array(target, (x.values != 0) & ~(np.isnan(x.values) & ~quiet(x.values))),
        lambda source, target: target.kind == "bool" and source.kind == "float" and not source.is_narrow),
    compared("LANG-02.3-68", "negative_nan_less", elementwise.Less),
    compared("LANG-02.3-69", "negative_nan_not_greater", elementwise.Greater),
    compared("LANG-02.3-66", "negative_nan_equal", elementwise.Equal),
    minmax("max_by_codes", "takes a negative NaN for the least of all numbers", graph.Max,
        lambda a, b: larger(below_all(a), below_all(b)) if a.dtype.kind == "f" else np.maximum(a, b)),
    place("argmax_by_codes", "takes a negative NaN for the least of all numbers",
        lambda x: reductions.argmax(Array(next(dtype for dtype in DTYPES.values()
            if dtype.carrier == x.dtype), below_all(x) if x.dtype.kind == "f" else x), -1).values),
]  # fmt: skip
