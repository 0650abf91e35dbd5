"""The pipelines of section 7 as units for the two queues (collectives spec 7.1, 7.2, 7.3; AMB-COLL-70, -71).

Every unit awaits what it uses, at its use and not before (COLL-02.1-02). What overlaps follows from that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..numerics.formats import DTYPES
from .argument_checks import require_within
from .work import Collective, Compute, Unit

__all__ = [
    "INFLIGHT",
    "MOST_LAYERS",
    "PIPELINES",
    "chunk_bytes",
    "data_parallel",
    "in_sequence",
    "moe",
    "prefetch",
    "require_sizes",
]

MOST_LAYERS = 256

KIB = 1 << 10
LEAST_CHUNK, MOST_CHUNK = 512 * KIB, 2048 * KIB
"""What COLL-07.1-04 allows."""

INFLIGHT = 8
"""Chunks in flight of a backward pass; COLL-07.1-02 allows 4 to 8."""

COMPUTED, SENT = DTYPES["fp32"], DTYPES["bf16"]
"""What experts compute in, and what travels to them."""


def data_parallel(layers: int, bytes: int, picoseconds: int, ranks: Sequence[int]) -> list[Unit]:
    """A training step: each layer's weights are gathered while the layer before runs; on the way back its gradients
    are scattered while the layers before it compute theirs (COLL-07.1-01, -03).

    `bytes` are those of a layer's weights, `picoseconds` a layer takes forward, and twice that backward. The backward
    pass takes the weights of the forward pass.
    """
    units = prefetch(layers, bytes, picoseconds, ranks)
    before = f"layer{layers - 1}"
    for layer in reversed(range(layers)):
        name = f"backward{layer}"
        units.append(Compute(name, 2 * picoseconds, tuple(ranks), (before,)))
        units.append(_ring("reduce_scatter", f"scatter{layer}", bytes, ranks, (name,)))
        before = name
    return units


def prefetch(layers: int, bytes: int, picoseconds: int, ranks: Sequence[int]) -> list[Unit]:
    """A forward pass: the gather of layer k + 1 awaits what layer k awaits, so that both begin together, and layer
    k + 1 awaits it (COLL-07.3-01, -02)."""
    units: list[Unit] = [_ring("all_gather", "gather0", bytes, ranks, ())]
    for layer in range(layers):
        awaited = (f"gather{layer}", *((f"layer{layer - 1}",) if layer else ()))
        units.append(Compute(f"layer{layer}", picoseconds, tuple(ranks), awaited))
        if layer + 1 < layers:
            units.append(_ring("all_gather", f"gather{layer + 1}", bytes, ranks, awaited))
    return units


def moe(buckets: int, bytes: int, picoseconds: int, ranks: Sequence[int]) -> list[Unit]:
    """Experts of every rank, bucket by bucket: while one bucket is computed, others travel (COLL-07.2-01, -02).

    `bytes` are those of a bucket's tokens in fp32 on a rank, `picoseconds` an expert takes. Senders pack tokens and
    cast them to bf16 chunk by chunk as they send, so that nothing of that takes the compute queue, and bf16 travels
    (COLL-07.2-03, -04).
    """
    units: list[Unit] = [Compute("route", picoseconds, tuple(ranks))]
    wire = bytes // COMPUTED.storage_bytes * SENT.storage_bytes
    for bucket in range(buckets):
        names = (f"dispatch{bucket}", f"expert{bucket}", f"combine{bucket}")
        units.append(_exchange(names[0], wire, ranks, ("route",), ("pack", "cast")))
        units.append(Compute(names[1], picoseconds, tuple(ranks), (names[0],)))
        units.append(_exchange(names[2], wire, ranks, (names[1],), ("cast",)))
    return units


PIPELINES: Mapping[str, Callable[[int, int, int, Sequence[int]], list[Unit]]] = {
    "data_parallel": data_parallel,
    "prefetch": prefetch,
    "moe": moe,
}
"""By kind; the functions take layers, or buckets, bytes, picoseconds and ranks."""


def chunk_bytes(bytes: int) -> int:
    """The chunks of a layer's gradients: as many as may be in flight, within 512 KiB to 2 MiB (COLL-07.1-04)."""
    wanted = -(-bytes // INFLIGHT // KIB) * KIB
    return min(max(wanted, LEAST_CHUNK), MOST_CHUNK)


def require_sizes(layers: int, bytes: int, picoseconds: int) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for numbers of which no pipeline is made."""
    require_within("pipeline", "layers", layers, 1, MOST_LAYERS)
    require_within("pipeline", "bytes", bytes, 0, 1 << 40)
    require_within("pipeline", "picoseconds", picoseconds, 0, 10**15)


def in_sequence(units: Sequence[Unit]) -> list[Unit]:
    """The same work with a barrier after every unit, to compare with; each has to stand after what it awaits."""
    before = ((), *((each.id,) for each in units))
    return [replace(unit, after=after) for unit, after in zip(units, before, strict=False)]


def _ring(operation: str, name: str, bytes: int, ranks: Sequence[int], after: tuple[str, ...]) -> Collective:
    return Collective(name, operation, "ring", bytes, chunk_bytes(bytes), tuple(ranks), after=after)


def _exchange(
    name: str, bytes: int, ranks: Sequence[int], after: tuple[str, ...], fused: tuple[str, ...]
) -> Collective:
    chunk = chunk_bytes(bytes)
    return Collective(name, "all_to_all", "direct", bytes, chunk, tuple(ranks), after=after, fused=fused)
