"""Wires on which tensors are lost, merged, or take more bytes than their dtype has.

Collectives specification, 2.4, 2.5 and 6.
"""

from unittest import mock

from tessera_reference.collectives import compression as packing
from tessera_reference.collectives.compression import Compression
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import around, changed
from .changes import at


def last_of_a_shape(usual, *given):
    found = usual(*given)
    last = {(tensor.shape, tensor.dtype): tensor for tensor in found}
    return [last[tensor.shape, tensor.dtype] for tensor in found]


def rounded_on_arrival(usual, wire, types, compression):
    found = usual(wire, types, wider(compression))
    if compression is None or compression.block is not None:
        return found
    return [cast(cast(tensor, compression.wire), tensor.dtype) for tensor in found]


def wider(compression):
    plain = compression is not None and compression.block is None
    return Compression(DTYPES["fp32"]) if plain else compression


def first_scales(usual, wire, types, compression):
    if compression is None or compression.block is None or len(types) < 3:
        return usual(wire, types, compression)
    kept, restored = {}, packing._restored

    def with_first_scales(tensor, parts, compression):
        return restored(tensor, [parts[0], kept.setdefault(parts[1].values.size, parts[1])], compression)

    with mock.patch.object(packing, "_restored", with_first_scales):
        return usual(wire, types, compression)


unpacked = at("adapter.collectives.unpack")

VIOLATIONS = [
    unpacked("COLL-02.4-01", "last_of_a_shape", "gives all tensors of a shape the data of the last", last_of_a_shape),
    changed("COLL-02.4-05", "fp32_on_the_wire", "sends fp32 and rounds on arrival",
        ("adapter.collectives.pack", around(lambda usual, tensors, compression: usual(tensors, wider(compression)))),
        ("adapter.collectives.unpack", around(rounded_on_arrival))),
    unpacked("COLL-06-06", "unpacks_through_bf16", "rounds to bf16 as it unpacks",
        lambda usual, *given: [cast(cast(tensor, DTYPES["bf16"]), tensor.dtype) for tensor in usual(*given)]),
    unpacked("COLL-02.5-02", "first_scales", "scales tensors by the scales of the first of as many", first_scales),
]  # fmt: skip
