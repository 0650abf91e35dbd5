"""Casts that round twice or wrongly, saturate wrongly or lose a part (language specification, 3.1; AMB-LANG-105)."""

import numpy as np

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast, round_to

from .changes import changed
from .misrounding import as_tf32, through, without_subnormals


def miscast(name, description, compute, applies=lambda source, target: True):
    """Return a violation with another cast between some pairs of dtypes."""

    @np.errstate(all="ignore")
    def execute(x, target, overflow="saturate"):
        return (compute if applies(x.dtype, target) else cast)(x, target, overflow)

    return changed("LANG-03.1-05", name, description, ("graph.elementwise.cast", execute))


def between(source_kind, target_kind):
    """Return the condition that a cast is from one kind of dtypes to another."""
    return lambda source, target: source.kind == source_kind and target.kind == target_kind


def to_dtype(name):
    """Return the condition that a cast is from a real float to a dtype."""
    return lambda source, target: source.kind == "float" and target.name == name


def rounding_by(rule):
    """Return a cast with another rounding to a float dtype."""
    return lambda x, target, overflow: Array(target, rule(x.values, target, overflow).astype(target.carrier))


def infinity_kept(x, target, overflow):
    values = round_to(x.values, target, overflow)
    return Array(target, np.where(np.isinf(x.values), round_to(x.values, target, "nonfinite"), values))


def below_480(x, target, overflow):
    values = round_to(x.values, target, overflow)
    kept = (np.abs(x.values) < 480) & np.isnan(values) & ~np.isnan(x.values)
    return Array(target, np.where(kept, np.copysign(np.float32(448), x.values.astype(np.float32)), values))


def rounding_first(carrier):
    """Return a cast to a float dtype by way of another."""
    return lambda x, target, overflow: Array(target, round_to(x.values.astype(carrier), target, overflow))


def conjugated(x, target, overflow):
    values = cast(x, target, overflow).values.copy()
    values.imag = np.negative(values.imag)
    return Array(target, values)


CASTS = [
    miscast("fp32_between", "rounds fp64 to fp32 before bf16 and fp16", rounding_by(through("fp32")),
        lambda source, target: source.kind == target.kind == "float" and source.bits == 64 and target.bits == 16),
    miscast("fp8_by_fp32", "rounds fp64 to fp32 before fp8", rounding_by(through("fp32")),
        lambda source, target: source.kind == target.kind == "float" and target.bits == 8),
    miscast("flushed_operands", "takes subnormal operands for zero", lambda x, target, overflow:
        cast(Array(x.dtype, without_subnormals(x.values, x.dtype)), target, overflow), between("float", "float")),
    miscast("tf32_for_fp32", "keeps ten fraction bits of fp32", rounding_by(as_tf32), between("float", "float")),
    miscast("tf32_stored", "rounds to ten fraction bits for tf32",
        rounding_by(lambda values, kind, overflow: as_tf32(values, DTYPES["fp32"], overflow)), to_dtype("tf32")),
    miscast("infinity_kept", "does not saturate infinite operands", infinity_kept, between("float", "float")),
    miscast("below_480", "keeps 465 to 479 at 448 where it is not to saturate", below_480, to_dtype("fp8_e4m3")),
    miscast("int64_by_fp64", "rounds int64 to fp64 first", rounding_first(np.float64), between("int", "float")),
    miscast("integers_by_fp32", "rounds integers to fp32 first", rounding_first(np.float32), between("int", "float")),
    miscast("unsigned_integers", "takes integers for unsigned when it widens them", lambda x, target, overflow:
        Array(target, x.values.view(f"u{x.values.dtype.itemsize}").astype(target.carrier)),
        lambda source, target: source.kind == target.kind == "int" and source.bits < target.bits),
    miscast("saturated_integers", "saturates integers instead of wrapping them", lambda x, target, overflow:
        Array(target, np.clip(x.values, target.int_min, target.int_max).astype(target.carrier)),
        between("int", "int")),
    miscast("floor", "rounds fractions down", lambda x, target, overflow:
        cast(Array(x.dtype, np.floor(x.values)), target, overflow), between("float", "int")),
    miscast("bool_of_fraction", "takes fractions for false", lambda x, target, overflow:
        Array(target, np.asarray(np.trunc(x.values) != 0)), between("float", "bool")),
    miscast("true_is_minus_1", "takes true for -1", lambda x, target, overflow:
        Array(target, x.values.astype(target.carrier) * target.carrier.type(-1)),
        lambda source, target: source.kind == "bool" and target.kind in ("int", "float")),
    miscast("conjugate", "conjugates", conjugated, between("complex", "complex")),
    miscast("negative_imaginary_zero", "gives real numbers an imaginary part of -0", conjugated,
        lambda source, target: target.kind == "complex" and source.kind != "complex"),
]  # fmt: skip
