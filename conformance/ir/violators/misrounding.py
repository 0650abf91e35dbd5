"""Wrong roundings, each with the signature of `round_to`: exact values, the dtype, the overflow mode of fp8."""

import numpy as np

from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import round_operand, round_to


def _quantum_exponent(values, kind):
    """Return the exponent of the last place of each value in a dtype."""
    _, exponent = np.frexp(np.asarray(values, np.float64))
    return np.where(exponent - 1 > kind.min_exponent, exponent - 1, kind.min_exponent) - kind.fraction_bits


@np.errstate(all="ignore")
def half_away(values, kind, overflow="saturate"):
    """Round ties away from zero."""
    kind, wide = kind.storage, np.asarray(values, np.float64)
    quantum = _quantum_exponent(wide, kind)
    scaled = np.ldexp(np.abs(wide), -quantum)
    tie = scaled - np.floor(scaled) == 0.5
    return round_to(np.where(tie, np.copysign(np.ldexp(np.floor(scaled) + 1, quantum), wide), wide), kind, overflow)


@np.errstate(all="ignore")
def toward_zero(values, kind, overflow="saturate"):
    """Truncate."""
    kind = kind.storage
    nearest = round_to(np.asarray(values), kind, overflow)
    wide = nearest.astype(np.float64)
    step = np.copysign(np.ldexp(1.0, _quantum_exponent(values, kind)), wide)
    return np.where(np.abs(wide) > np.abs(values), wide - step, wide).astype(nearest.dtype)


@np.errstate(all="ignore")
def flushed(values, kind, overflow="saturate"):
    """Flush subnormal results to zero."""
    return without_subnormals(round_to(np.asarray(values), kind, overflow), kind)


def without_subnormals(values, kind):
    """Return values of a dtype, with zeros of their sign in place of subnormals."""
    tiny = np.abs(values) < kind.storage.min_normal
    return np.where(tiny, np.copysign(values.dtype.type(0), values), values)


def unsaturated(values, kind, overflow="saturate"):
    """Return infinity or NaN for an overflow to fp8."""
    return round_to(np.asarray(values), kind, "nonfinite")


def through(middle):
    """Return a rounding first to a type in between, then to the requested type."""
    return np.errstate(all="ignore")(
        lambda values, kind, overflow="saturate": round_to(unsaturated(values, dtype(middle)), kind, overflow)
    )


def as_tf32(values, kind, overflow="saturate"):
    """Keep ten fraction bits of fp32's twenty-three."""
    rounded = round_to(np.asarray(values), kind, overflow)
    return round_operand(rounded) if kind.name == "fp32" else rounded


@np.errstate(all="ignore")
def one_off_now_and_then(exact):
    """Return results of which about one in a hundred misses the last place, as in fast libraries."""
    code = exact.view(f"u{exact.dtype.itemsize}")
    unlucky = (code % 101 == 5) & np.isfinite(exact)
    return np.where(unlucky, np.nextafter(exact, exact.dtype.type(0)), exact)
