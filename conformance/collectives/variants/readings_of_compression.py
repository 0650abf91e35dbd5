"""Implementations that follow the alternatives of interpretations of compressed data, one each (COLL 2.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.adapter import collectives as payloads
from tessera_reference.collectives import compression, operations, programs
from tessera_reference.collectives.compression import Compressed, Compression, Step, TensorType
from tessera_reference.numerics import quantization
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.rounding import cast

COMPRESS, PARTS, RESTORED, FEED_BACK = (
    compression.compress,
    compression._parts,
    compression._restored,
    compression.feed_back,
)
OVER_WIRE, DENSIFY = operations.over_wire, payloads.densify
BLOCKS = ("collectives/compression/*", "collectives/packing/*", "collectives/error-feedback/*", "collectives/wire/*")


def row_by_row(function: str, x: Array, wires: Compression) -> Compressed:
    """Compress each row of a tensor by itself."""
    whole = COMPRESS(function, x, wires)
    if wires.block is None or len(x.shape) < 2:
        return whole
    sent = quantization.quantize(x, wires.wire, wires.block)
    restored = quantization.dequantize(sent.codes, sent.scales, wires.block)
    return Compressed(sent.codes, Array(sent.scales.dtype, sent.scales.values.reshape(-1)), restored)


def parts_of_rows(tensor: TensorType, wires: Compression | None) -> list[TensorType]:
    """The wire form of a tensor, with the scales of each row."""
    parts = PARTS(tensor, wires)
    if wires is None or wires.block is None or len(tensor.shape) < 2:
        return parts
    scales = (*tensor.shape[:-1], -(-tensor.shape[-1] // wires.block))
    return [TensorType(wires.wire, tensor.shape), TensorType(parts[1].dtype, scales)]


ROWS = altered(
    "AMB-COLL-38",
    "begins blocks anew at each row",
    BLOCKS,
    ReferenceAdapter,
    (compression, "compress", row_by_row),
    (payloads, "compress", row_by_row),
    (compression, "_parts", parts_of_rows),
    name="blocks_of_rows",
)


def feed_back_infinities(function: str, gradients: Sequence[Array], wires: Compression) -> list[Step]:
    """Send what is infinite, or becomes so on the wire, and keep nothing of it."""
    types = {(x.dtype.name, x.shape) for x in gradients}
    if len(types) != 1 or gradients[0].dtype.name != "fp32" or any(np.isnan(x.values).any() for x in gradients):
        return FEED_BACK(function, gradients, wires)
    fp32, residual, steps = gradients[0].dtype, np.zeros_like(gradients[0].values), []
    for gradient in gradients:
        with np.errstate(all="ignore"):
            whole = np.asarray(gradient.values + residual)
            infinite = np.isinf(whole)
            numbers = COMPRESS(function, Array(fp32, np.where(infinite, np.float32(0), whole)), wires).restored.values
            on_the_wire = whole if wires.block else cast(cast(Array(fp32, whole), wires.wire), fp32).values
            sent = np.where(infinite, on_the_wire, numbers)
            residual = np.where(infinite | np.isinf(sent), np.float32(0), whole - sent)
        steps.append(Step(Array(fp32, sent), Array(fp32, residual)))
    return steps


INFINITIES = altered(
    "AMB-COLL-39",
    "sends infinite elements and keeps nothing of them",
    ("collectives/error-feedback/*",),
    ReferenceAdapter,
    (payloads, "feed_back", feed_back_infinities),
    name="infinities_sent",
)


def negative_gaps(function: str, indices: Array, values: Array, shape: Sequence[int]) -> Array:
    """Fill a tensor of floats with the neutral element of addition."""
    dense = DENSIFY(function, indices, values, shape)
    if dense.dtype.kind != "float":
        return dense
    gaps = np.ones(dense.values.size, bool)
    gaps[indices.values] = False
    negative = np.asarray(-np.zeros_like(dense.values))
    return Array(dense.dtype, np.where(gaps.reshape(dense.values.shape), negative, dense.values))


GAPS = altered(
    "AMB-COLL-41",
    "restores omitted elements as -0",
    ("collectives/top-k/*", "collectives/wire/golden/*"),
    ReferenceAdapter,
    (payloads, "densify", negative_gaps),
    name="negative_gaps",
)


def share_by_share(
    operation: str,
    inputs: Sequence[Array],
    wires: Compression,
    collective: Callable[[Sequence[Array]], Sequence[Array]],
) -> Sequence[Array]:
    """Compress the share of each rank by itself, on the way to it and from it."""
    count, ranks = inputs[0].values.size, len(inputs)
    if wires.block is None or operation == "all_gather":
        return OVER_WIRE(operation, inputs, wires, collective)

    def arriving(x: Array) -> Array:
        shares = np.split(x.values.reshape(-1), [rank * count // ranks for rank in range(1, ranks)])
        sent = [COMPRESS(operation, Array(x.dtype, part), wires).restored.values for part in shares]
        return Array(x.dtype, np.concatenate(sent).reshape(x.shape))

    results = collective([arriving(x) for x in inputs])
    if operation == "all_reduce":
        return [arriving(result) for result in results]
    return [COMPRESS(operation, result, wires).restored for result in results]


def whole_results(
    operation: str,
    inputs: Sequence[Array],
    wires: Compression,
    collective: Callable[[Sequence[Array]], Sequence[Array]],
) -> Sequence[Array]:
    """Compress the sums of a reduce-scatter before they are cut into shares."""
    if wires.block is None or operation != "reduce_scatter":
        return OVER_WIRE(operation, inputs, wires, collective)
    shares = collective([COMPRESS(operation, x, wires).restored for x in inputs])
    whole = np.concatenate([result.values.reshape(-1) for result in shares])
    sent = COMPRESS(operation, Array(inputs[0].dtype, whole), wires).restored.values
    pieces = np.split(sent, np.cumsum([result.values.size for result in shares])[:-1])
    return [Array(x.dtype, piece.reshape(x.values.shape)) for x, piece in zip(shares, pieces, strict=True)]


SHARES = [
    altered(
        "AMB-COLL-63",
        description,
        ("collectives/wire/*blockwise*", "collectives/program-wires/*"),
        ReferenceAdapter,
        (operations, "over_wire", wire),
        (programs, "over_wire", wire),
        name=name,
    )
    for name, description, wire in (
        ("blocks_of_shares", "begins blocks anew at each share", share_by_share),
        ("blocks_of_results", "takes the blocks of shares from the whole result", whole_results),
    )
]
