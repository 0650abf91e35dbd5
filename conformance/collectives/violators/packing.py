"""Wires on which tensors are lost, merged, or take more bytes than their dtype has.

Collectives specification, 2.4, 2.5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.collectives import compression as packing
from tessera_reference.collectives.compression import Compression, TensorType, pack, unpack
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import changed


def unpacked(clause: str, name: str, description: str, unpacking: Callable[..., list[Array]]) -> Violation:
    """Return a violation with another receiver."""
    return changed(clause, name, description, ("adapter.collectives.unpack", unpacking))


def reversed_order(wire: bytes, types: Sequence[TensorType], compression: Compression | None) -> list[Array]:
    found = unpack(wire, types, compression)
    return [
        next(other for other in reversed(found) if other.shape == tensor.shape and other.dtype == tensor.dtype)
        for tensor in found
    ]


def padded(tensors: Sequence[Array], compression: Compression | None) -> bytes:
    if compression is not None:
        return pack(tensors, compression)
    return b"".join(part + bytes(-len(part) % 16) for part in (pack([tensor], None) for tensor in tensors))


def unpadded(wire: bytes, types: Sequence[TensorType], compression: Compression | None) -> list[Array]:
    if compression is not None:
        return unpack(wire, types, compression)
    first, outputs = 0, []
    for type_ in types:
        outputs += unpack(wire[first : first + type_.bytes], [type_], None)
        first += -(-type_.bytes // 16) * 16
    return outputs


def rounded_on_arrival(wire: bytes, types: Sequence[TensorType], compression: Compression | None) -> list[Array]:
    found = unpack(wire, types, _wider(compression))
    if compression is None or compression.block is not None:
        return found
    return [cast(cast(tensor, compression.wire), tensor.dtype) for tensor in found]


def through_bf16(*arguments: Any) -> list[Array]:
    return [cast(cast(tensor, DTYPES["bf16"]), tensor.dtype) for tensor in unpack(*arguments)]


def _wider(compression: Compression | None) -> Compression | None:
    plain = compression is not None and compression.block is None
    return Compression(DTYPES["fp32"]) if plain else compression


def first_scales(wire: bytes, types: Sequence[TensorType], compression: Compression | None) -> list[Array]:
    if compression is None or compression.block is None or len(types) < 3:
        return unpack(wire, types, compression)
    kept: dict[int, Array] = {}

    def restored(tensor: TensorType, parts: list[Array], compression: Compression | None) -> Array:
        scales = kept.setdefault(parts[1].values.size, parts[1])
        return RESTORED(tensor, [parts[0], scales], compression)

    packing._restored = restored
    try:
        return unpack(wire, types, compression)
    finally:
        packing._restored = RESTORED


RESTORED = packing._restored

VIOLATIONS: list[Violation] = [
    unpacked("COLL-02.4-01", "last_of_a_shape", "gives all tensors of a shape the data of the last", reversed_order),
    changed("COLL-02.4-05", "fp32_on_the_wire", "sends fp32 and rounds on arrival",
        ("adapter.collectives.pack", lambda tensors, compression: pack(tensors, _wider(compression))),
        ("adapter.collectives.unpack", rounded_on_arrival)),
    unpacked("COLL-06-06", "unpacks_through_bf16", "rounds to bf16 as it unpacks", through_bf16),
    unpacked("COLL-02.5-02", "first_scales", "scales tensors by the scales of the first of as many", first_scales),
]  # fmt: skip
