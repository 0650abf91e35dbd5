"""Compressed tensors of another dtype, rounding, block or scale (collectives spec 2.5 and 6)."""

from dataclasses import replace

import numpy as np

from tessera_reference.collectives import compression
from tessera_reference.collectives.compression import Compressed, compress, read_compression
from tessera_reference.numerics import quantization
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.quantization import Quantized, quantize
from tessera_reference.numerics.rounding import cast, round_to

from ...ir.violators.changes import changed

# Wires


def wires(clause, name, description, **others):
    """Return a violation with other wire dtypes."""
    return changed(clause, name, description, ("collectives.compression.WIRES", compression.WIRES | others))


def cast_by(clause, name, description, rounded):
    """Return a violation with another cast to the wire."""
    return changed(clause, name, description, ("collectives.compression.cast", rounded))


def towards_zero(x, target):
    """Round toward zero."""
    found = cast(x, target)
    if not target.is_narrow or x.dtype.bits <= target.bits:
        return found
    with np.errstate(all="ignore"):
        away = np.abs(found.values.astype(np.float64)) > np.abs(x.values.astype(np.float64))
        step = np.abs(found.values) * np.float32(2.0 ** -(target.fraction_bits + 1))
        nearer = np.where(np.isfinite(found.values), found.values - np.copysign(step, found.values), target.max_finite)
    return Array(target, np.where(away, round_to(nearer.astype(np.float32), target), found.values))


def through_fp32(x, target):
    return cast(cast(x, DTYPES["fp32"]), target) if x.dtype.name == "fp64" and target.bits < 32 else cast(x, target)


def flushed(x, target):
    found = cast(x, target)
    if not target.is_narrow:
        return found
    subnormal = np.abs(found.values) < target.min_normal
    return Array(target, np.where(subnormal, np.copysign(np.float32(0), found.values), found.values))


E5M2, E4M3 = DTYPES["fp8_e5m2"], DTYPES["fp8_e4m3"]
NAMED = {"bf16": "COLL-02.5-06", "fp16": "COLL-02.5-07", "fp8": "COLL-02.5-08"}

WIRES = [
    wires("COLL-02.5-08", "fp8_is_e5m2", "sends e5m2 where fp8 is asked for", fp8=E5M2),
    wires("COLL-02.5-08", "one_fp8", "sends e4m3 where e5m2 is asked for", fp8_e5m2=E4M3),
    wires("COLL-02.5-01", "other_names", "accepts a wire by another library's name", fp8_e4m3fn=E4M3, e4m3=E4M3),
    *(
        cast_by(clause, f"{wire}_towards_zero", "rounds toward zero", towards_zero)
        for wire, clause in NAMED.items()
    ),
    cast_by("COLL-02.5-06", "rounded_twice", "rounds fp64 to fp32 first", through_fp32),
    cast_by("COLL-02.5-07", "subnormals_flushed", "sends subnormal numbers as zeros", flushed),
    cast_by("COLL-02.5-08", "fp8_overflow", "does not saturate fp8",
        lambda x, target: cast(x, target, "nonfinite") if target.bits == 8 else cast(x, target)),
    cast_by("COLL-08-05", "dtype_ignored", "sends the data as they are", lambda x, target: x),
]  # fmt: skip


# Attributes


def read(clause, name, description, reading):
    """Return a violation that parses the attributes differently."""
    return changed(clause, name, description, ("adapter.collectives.read_compression", reading))


def any_wire(function, dtype, *others):
    return read_compression(function, dtype if dtype in compression.WIRES else "bf16", *others)


def any_scheme(function, dtype, qscheme=None, block=None):
    return read_compression(function, dtype, *((qscheme, block) if qscheme == "blockwise" else ()))


def any_block(function, dtype, qscheme=None, block=None):
    return read_compression(function, dtype, qscheme, max(block, 1) if type(block) is int else block)


READINGS = [
    read("COLL-02.5-01", "any_wire", "takes an unknown wire for bf16", any_wire),
    read("COLL-02.5-02", "any_scheme", "takes an unknown scheme for none", any_scheme),
    read("COLL-02.5-02", "any_block", "takes an impossible block for one element", any_block),
]  # fmt: skip


# Blocks


def quantized(clause, name, description, blockwise):
    """Return a violation with other codes and scales."""
    return changed(clause, name, description, ("numerics.quantization.quantize", blockwise))


def scaled(clause, name, description, change):
    """Return a violation with codes under other scales, which are sent."""
    usual = quantization._scales

    def scales(values, wire, block):
        with np.errstate(all="ignore"):
            return change(usual(values, wire, block), wire).astype(np.float32)

    return changed(clause, name, description, ("numerics.quantization._scales", scales))


def of_the_tensor(x, wire, block):
    usual = quantize(x, wire, max(x.values.size, 1))
    scales = np.repeat(usual.scales.values, -(-x.values.size // block))
    return Quantized(usual.codes, Array(usual.scales.dtype, scales))


def by_columns(function, x, given):
    if given.block is None or x.rank != 2:
        return compress(function, x, given)
    flipped = compress(function, Array(x.dtype, x.values.T.copy()), given)
    return replace(
        flipped,
        payload=Array(flipped.payload.dtype, flipped.payload.values.T.copy()),
        restored=Array(x.dtype, flipped.restored.values.T.copy()),
    )


def whole_blocks(function, x, given):
    found = compress(function, x, given)
    if given.block is None:
        return found
    restored = found.restored.values.copy().reshape(-1)
    restored[restored.size // given.block * given.block :] = 0
    return replace(found, restored=Array(x.dtype, restored.reshape(x.shape)))


def without_nan(function, x, given):
    if given.block is None:
        return compress(function, x, given)
    return compress(function, Array(x.dtype, np.nan_to_num(x.values)), given)


def of_any_data(function, x, given):
    if given.block is None or x.dtype.kind == "complex":
        return compress(function, x, given)
    return compress(function, cast(x, DTYPES["fp32"]), given)


def unscaled_integers(function, x, given):
    if x.dtype.kind not in ("int", "bool"):
        return compress(function, x, given)
    payload = cast(x, given.wire)
    return Compressed(payload, None, cast(payload, x.dtype))


def compressed(clause, name, description, compressing):
    """Return a violation with another compression of a tensor."""
    return changed(clause, name, description, ("adapter.collectives.compress", compressing))


BLOCKS = [
    quantized("COLL-06-06", "one_scale", "takes the maximum of the tensor for that of the block", of_the_tensor),
    scaled("COLL-06-06", "scale_of_zero", "sends a scale of 0 for a block of small numbers",
        lambda scales, wire: (np.where(scales < np.float32(2.0**-126), 0, scales))),
    changed("COLL-06-06", "codes_towards_zero", "rounds codes toward zero", ("numerics.quantization.round_to",
        lambda values, wire: towards_zero(Array(DTYPES["fp32"], values), wire).values)),
    compressed("COLL-06-06", "tail_lost", "restores the elements behind the last whole block as zeros", whole_blocks),
    compressed("COLL-02.5-02", "blocks_by_column", "runs blocks along the first axis", by_columns),
    compressed("COLL-02.5-02", "nan_quantized", "quantizes NaN as 0", without_nan),
    compressed("COLL-02.5-02", "any_data_scaled", "scales data of other dtypes", of_any_data),
    compressed("COLL-02.5-01", "integers_sent", "sends integers as floats", unscaled_integers),
]  # fmt: skip
