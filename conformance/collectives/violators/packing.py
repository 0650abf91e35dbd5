"""Wires on which tensors are lost, merged, or take more bytes than their dtype has.

Collectives specification, 2.4, 2.5 and 6.
"""

from tessera_reference.collectives import compression as packing
from tessera_reference.collectives.compression import Compression, pack, unpack
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import changed


def unpacked(clause, name, description, unpacking):
    """Return a violation with another receiver."""
    return changed(clause, name, description, ("adapter.collectives.unpack", unpacking))


def reversed_order(wire, types, compression):
    found = unpack(wire, types, compression)
    return [
        next(other for other in reversed(found) if other.shape == tensor.shape and other.dtype == tensor.dtype)
        for tensor in found
    ]


def rounded_on_arrival(wire, types, compression):
    found = unpack(wire, types, _wider(compression))
    if compression is None or compression.block is not None:
        return found
    return [cast(cast(tensor, compression.wire), tensor.dtype) for tensor in found]


def through_bf16(*arguments):
    return [cast(cast(tensor, DTYPES["bf16"]), tensor.dtype) for tensor in unpack(*arguments)]


def _wider(compression):
    plain = compression is not None and compression.block is None
    return Compression(DTYPES["fp32"]) if plain else compression


def first_scales(wire, types, compression):
    if compression is None or compression.block is None or len(types) < 3:
        return unpack(wire, types, compression)
    kept = {}

    def restored(tensor, parts, compression):
        scales = kept.setdefault(parts[1].values.size, parts[1])
        return RESTORED(tensor, [parts[0], scales], compression)

    packing._restored = restored
    try:
        return unpack(wire, types, compression)
    finally:
        packing._restored = RESTORED


RESTORED = packing._restored

VIOLATIONS = [
    unpacked("COLL-02.4-01", "last_of_a_shape", "gives all tensors of a shape the data of the last", reversed_order),
    changed("COLL-02.4-05", "fp32_on_the_wire", "sends fp32 and rounds on arrival",
        ("adapter.collectives.pack", lambda tensors, compression: pack(tensors, _wider(compression))),
        ("adapter.collectives.unpack", rounded_on_arrival)),
    unpacked("COLL-06-06", "unpacks_through_bf16", "rounds to bf16 as it unpacks", through_bf16),
    unpacked("COLL-02.5-02", "first_scales", "scales tensors by the scales of the first of as many", first_scales),
]  # fmt: skip
