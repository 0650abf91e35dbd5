"""Packing the arguments of the specification's sample kernel, against the struct module with the same values."""

from __future__ import annotations

import struct

from measurement import Measurement, in_turns

from tessera_reference.abi.parameters import layout_of, pack, parse_signature

SAMPLE = "flash_attention(Q*, K*, V*, O*, int B, int H, int L, int D, float scale)"
VALUES = (1 << 40, 2 << 40, 3 << 40, 4 << 40, 8, 16, 4096, 128, 0.125)
CALLS = 2000


def measure() -> Measurement:
    """Thousands of arguments a second."""
    layout = layout_of(parse_signature(SAMPLE).parameters)
    peer = struct.Struct("<QQQQiiiif4x")
    assert pack(layout, VALUES) == peer.pack(*VALUES)

    def ours() -> None:
        for _ in range(CALLS):
            pack(layout, VALUES)

    def theirs() -> None:
        for _ in range(CALLS):
            peer.pack(*VALUES)

    mine, other = in_turns(ours, theirs, 9)
    rate = CALLS * len(VALUES) / 1000 / mine
    return Measurement("pack arguments", mine, "struct", other, rate, "Karg/s", 200, at_least=True)
