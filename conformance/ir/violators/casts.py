"""Casts that round twice or wrongly, saturate wrongly or lose a part (language specification, 3.1; AMB-LANG-105)."""

import numpy as np

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast, round_to

from .changes import changed
from .misrounding import as_tf32, through, without_subnormals


def miscast(name, description, compute, applies=lambda source, target: True):
    """Return a violation with another cast between some pairs of dtypes."""

    def execute(x, target, overflow="saturate"):
        with np.errstate(all="ignore"):
            return compute(x, target, overflow) if applies(x.dtype, target) else cast(x, target, overflow)

    return changed("LANG-03.1-05", name, description, ("graph.elementwise.cast", execute))


def floats(source, target):
    """True for casts between real floats."""
    return source.kind == target.kind == "float"


def from_integers(source, target):
    """True for casts from integers to floats."""
    return source.kind == "int" and target.kind == "float"


def to_integers(source, target):
    """True for casts from floats to integers."""
    return source.kind == "float" and target.kind == "int"


# Between floats


def rounding_by(rule):
    """Return a cast with another rounding to a float dtype."""

    def compute(x, target, overflow):
        return Array(target, rule(x.values, target, overflow).astype(target.carrier))

    return compute


def fp8_through(middle):
    """Return casts to fp8 that pass through another type."""
    return rounding_by(through(middle)), lambda source, target: floats(source, target) and target.bits == 8


def tiny_operands(x, target, overflow):
    return cast(Array(x.dtype, without_subnormals(x.values, x.dtype)), target, overflow)


def infinity_kept(x, target, overflow):
    values = round_to(x.values, target, overflow)
    return Array(target, np.where(np.isinf(x.values), round_to(x.values, target, "nonfinite"), values))


def below_480(x, target, overflow):
    values = round_to(x.values, target, overflow)
    kept = (np.abs(x.values) < 480) & np.isnan(values) & ~np.isnan(x.values)
    return Array(target, np.where(kept, np.copysign(np.float32(448), x.values.astype(np.float32)), values))


FLOATS = [
    miscast("fp32_between", "rounds fp64 to fp32 before bf16 and fp16", rounding_by(through("fp32")),
        lambda source, target: floats(source, target) and source.bits == 64 and target.bits == 16),
    miscast("fp8_by_fp32", "rounds fp64 to fp32 before fp8", *fp8_through("fp32")),
    miscast("flushed_operands", "takes subnormal operands for zero", tiny_operands, floats),
    miscast("tf32_for_fp32", "keeps ten fraction bits of fp32", rounding_by(as_tf32), floats),
    miscast("tf32_stored", "rounds to ten fraction bits for tf32", rounding_by(
        lambda values, kind, overflow: as_tf32(values, DTYPES["fp32"], overflow)
    ), lambda source, target: floats(source, target) and target.name == "tf32"),
    miscast("infinity_kept", "does not saturate infinite operands", infinity_kept, floats),
    miscast("below_480", "keeps 465 to 479 at 448 where it is not to saturate", below_480,
            lambda source, target: floats(source, target) and target.name == "fp8_e4m3"),
]  # fmt: skip


# Integers, bool, complex numbers


def saturated(x, target, overflow):
    return Array(target, np.clip(x.values, target.int_min, target.int_max).astype(target.carrier))


def whole_by(rule):
    """Return a cast that rounds fractions to whole numbers in another mode than toward zero."""

    def compute(x, target, overflow):
        return cast(Array(x.dtype, rule(x.values)), target, overflow)

    return compute


def unsigned(x, target, overflow):
    return Array(target, x.values.view(f"u{x.values.dtype.itemsize}").astype(target.carrier))


def bool_by(true):
    """Return a cast with another rule for true numbers."""

    def compute(x, target, overflow):
        return Array(target, np.asarray(true(x.values, x.dtype)))

    return compute, lambda source, target: target.kind == "bool" and source.kind == "float"


def bool_to(value):
    def compute(x, target, overflow):
        return Array(target, x.values.astype(target.carrier) * target.carrier.type(value))

    return compute, lambda source, target: source.kind == "bool" and target.kind in ("int", "float")


def complex_by(change, source_kind):
    """Return a cast to a complex dtype with a changed result."""

    def compute(x, target, overflow):
        values = cast(x, target, overflow).values.copy()
        change(x, values)
        return Array(target, values)

    return (
        compute,
        lambda source, target: target.kind == "complex" and (source.kind == "complex") == (source_kind == "complex"),
    )


def conjugate(x, values):
    """Negate the imaginary parts."""
    values.imag = np.negative(values.imag)


OTHERS = [
    miscast("int64_by_fp64", "rounds int64 to fp64 first",
        lambda x, target, overflow: Array(target, round_to(x.values.astype(np.float64), target, overflow)),
        from_integers),
    miscast("integers_by_fp32", "rounds integers to fp32 first",
        lambda x, target, overflow: Array(target, round_to(x.values.astype(np.float32), target, overflow)),
        from_integers),
    miscast("unsigned_integers", "takes integers for unsigned when it widens them", unsigned,
            lambda source, target: source.kind == target.kind == "int" and source.bits < target.bits),
    miscast("saturated_integers", "saturates integers instead of wrapping them", saturated,
            lambda source, target: source.kind == target.kind == "int"),
    miscast("floor", "rounds fractions down", whole_by(np.floor), to_integers),
    miscast("bool_of_fraction", "takes fractions for false", *bool_by(lambda x, kind: np.trunc(x) != 0)),
    miscast("true_is_minus_1", "takes true for -1", *bool_to(-1)),
    miscast("conjugate", "conjugates", *complex_by(conjugate, "complex")),
    miscast("negative_imaginary_zero", "gives real numbers an imaginary part of -0", *complex_by(conjugate, "real")),
]  # fmt: skip
