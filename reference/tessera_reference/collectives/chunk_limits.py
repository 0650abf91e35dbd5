"""Which chunk sizes and how many chunks in flight a topology allows (collectives spec 3.3; COLL-03.3-04, -05)."""

from __future__ import annotations

from dataclasses import dataclass

from ..mesh.topology import Topology
from .argument_checks import require_within

__all__ = ["ChunkLimits", "check_chunks"]


@dataclass(frozen=True)
class ChunkLimits:
    """The most bytes of a chunk, and the most chunks in flight; the least of each is 1."""

    chunk_bytes: int
    max_inflight: int


def check_chunks(topology: Topology, chunk_bytes: int, max_inflight: int) -> ChunkLimits:
    """What is allowed: the chunks in flight have a credit of every link, and room together on every device.

    Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the allowed range (AMB-COLL-46).
    """
    inflight = min((link.credits for link in topology.links), default=1)
    require_within("check_chunks", "max_inflight", max_inflight, 1, inflight)
    largest = min(device.memory_bytes for device in topology.devices) // max_inflight
    require_within("check_chunks", "chunk_bytes", chunk_bytes, 1, largest)
    return ChunkLimits(largest, inflight)
