"""Compressed tensors of another dtype, rounding, block or scale (collectives spec 2.5 and 6)."""

from dataclasses import replace

import numpy as np

from tessera_reference.collectives import compression
from tessera_reference.collectives.compression import Compressed
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.quantization import Quantized
from tessera_reference.numerics.rounding import cast, round_to

from ...ir.violators.changes import changed
from .changes import at, updated

# Wires


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


def flushed(usual, x, target):
    found = usual(x, target)
    if not target.is_narrow:
        return found
    subnormal = np.abs(found.values) < target.min_normal
    return Array(target, np.where(subnormal, np.copysign(np.float32(0), found.values), found.values))


E5M2, E4M3 = DTYPES["fp8_e5m2"], DTYPES["fp8_e4m3"]
NAMED = {"bf16": "COLL-02.5-06", "fp16": "COLL-02.5-07", "fp8": "COLL-02.5-08"}
cast_by, read = at("collectives.compression.cast"), at("adapter.collectives.read_compression")
scaled, compressed = at("numerics.quantization._scales"), at("adapter.collectives.compress")

WIRES = [
    *(
        updated("collectives.compression.WIRES", clause, name, description, **others)
        for clause, name, description, others in (
            ("COLL-02.5-08", "fp8_is_e5m2", "sends e5m2 where fp8 is asked for", {"fp8": E5M2}),
            ("COLL-02.5-08", "one_fp8", "sends e4m3 where e5m2 is asked for", {"fp8_e5m2": E4M3}),
            ("COLL-02.5-01", "other_names", "accepts a wire by another library's name",
             {"fp8_e4m3fn": E4M3, "e4m3": E4M3}),
        )
    ),
    *(
        cast_by(clause, f"{wire}_towards_zero", "rounds toward zero", lambda usual, *given: towards_zero(*given))
        for wire, clause in NAMED.items()
    ),
    cast_by("COLL-02.5-06", "rounded_twice", "rounds fp64 to fp32 first", lambda usual, x, target: usual(
        usual(x, DTYPES["fp32"]) if x.dtype.name == "fp64" and target.bits < 32 else x, target)),
    cast_by("COLL-02.5-07", "subnormals_flushed", "sends subnormal numbers as zeros", flushed),
    cast_by("COLL-02.5-08", "fp8_overflow", "does not saturate fp8",
        lambda usual, x, target: usual(x, target, *["nonfinite"] * (target.bits == 8))),
    cast_by("COLL-08-05", "dtype_ignored", "sends the data as they are", lambda usual, x, target: x),
]  # fmt: skip


# Attributes


# Blocks


def of_the_tensor(usual, x, wire, block):
    found = usual(x, wire, max(x.values.size, 1))
    return Quantized(
        found.codes, replace(found.scales, values=np.repeat(found.scales.values, -(-x.values.size // block)))
    )


def by_columns(usual, function, x, given):
    if given.block is None or x.rank != 2:
        return usual(function, x, given)
    flipped = usual(function, flip(x), given)
    return replace(flipped, payload=flip(flipped.payload), restored=flip(flipped.restored))


def flip(x):
    return Array(x.dtype, x.values.T.copy())


def whole_blocks(usual, function, x, given):
    found = usual(function, x, given)
    if given.block is None:
        return found
    restored = found.restored.values.copy().reshape(-1)
    restored[restored.size // given.block * given.block :] = 0
    return replace(found, restored=Array(x.dtype, restored.reshape(x.shape)))


def unscaled_integers(usual, function, x, given):
    if x.dtype.kind not in ("int", "bool"):
        return usual(function, x, given)
    payload = cast(x, given.wire)
    return Compressed(payload, None, cast(payload, x.dtype))


VIOLATIONS = [
    read("COLL-02.5-01", "any_wire", "takes an unknown wire for bf16",
        lambda usual, function, dtype, *others: usual(
            function, dtype if dtype in compression.WIRES else "bf16", *others)),
    read("COLL-02.5-02", "any_scheme", "takes an unknown scheme for none",
        lambda usual, function, dtype, qscheme=None, block=None: usual(
            function, dtype, *((qscheme, block) if qscheme == "blockwise" else ()))),
    read("COLL-02.5-02", "any_block", "takes an impossible block for one element",
        lambda usual, function, dtype, qscheme=None, block=None: usual(
            function, dtype, qscheme, max(block, 1) if type(block) is int else block)),
    at("numerics.quantization.quantize")("COLL-06-06", "one_scale",
        "takes the maximum of the tensor for that of the block", of_the_tensor),
    scaled("COLL-06-06", "scale_of_zero", "sends a scale of 0 for a block of small numbers", lambda usual, *given: (
        np.where((scales := usual(*given)) < np.float32(2.0**-126), np.float32(0), scales))),
    changed("COLL-06-06", "codes_towards_zero", "rounds codes toward zero", ("numerics.quantization.round_to",
        lambda values, wire: towards_zero(Array(DTYPES["fp32"], values), wire).values)),
    compressed("COLL-06-06", "tail_lost", "restores the elements behind the last whole block as zeros", whole_blocks),
    compressed("COLL-02.5-02", "blocks_by_column", "runs blocks along the first axis", by_columns),
    compressed("COLL-02.5-02", "nan_quantized", "quantizes NaN as 0", lambda usual, function, x, given: usual(
        function, x if given.block is None else Array(x.dtype, np.nan_to_num(x.values)), given)),
    compressed("COLL-02.5-02", "any_data_scaled", "scales data of other dtypes",
        lambda usual, function, x, given: usual(function,
        x if given.block is None or x.dtype.kind == "complex" else cast(x, DTYPES["fp32"]), given)),
    compressed("COLL-02.5-01", "integers_sent", "sends integers as floats", unscaled_integers),
]  # fmt: skip
