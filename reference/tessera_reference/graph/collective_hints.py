"""The attributes that all collectives of the dialect take, and their values (collectives spec 2, 3, 8).

`scope`, `algo`, `path` and `chunk` say how a collective travels, `dtype` as what; `priority`, `overlap` and `qos` are
kept as they are written (AMB-COLL-19). None of them changes what is computed; `algo` says in which order under another
level than strict (AMB-COLL-96).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.byte_count import ByteCount
from ..ir.operation import require
from ..ir.spelling import did_you_mean
from ..ir.types import Numeric
from ..numerics.formats import DTYPES, DType

SCOPES = ("intra_sm", "intra_gpu", "node", "rack")
ALGORITHMS = ("auto", "ring", "tree", "halving_doubling", "hierarchical", "direct")
ALL_TO_ALL_ALGORITHMS = ("ring", "direct")
"""Those that bring each block straight to its rank (AMB-COLL-34)."""
PATHS = ("auto", "nvlink", "pcie", "rdma", "network")
WIRES = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}
"""What may travel, and the dtype that each name stands for (AMB-COLL-07)."""
LARGEST_CHUNK = 2**63 - 1


def require_known(name: str, given: str | None, known: Sequence[str], clause: str) -> None:
    """Refuse a value that an attribute does not have, with the nearest one that it has."""
    require(
        given is None or given in known,
        "distributed",
        f"there is no {name} {str(given)[:40]!r}",
        f"{name} = one of {', '.join(known)}",
        clause,
        did_you_mean(given or "", known),
    )


def require_chunk(chunk: ByteCount | None, chunk_bytes: ByteCount | None) -> None:
    """Refuse a chunk of no bytes, and two names of one attribute that say different things (AMB-COLL-01)."""
    for name, given in (("chunk", chunk), ("chunk_bytes", chunk_bytes)):
        require(
            given is None or 1 <= given <= LARGEST_CHUNK,
            "distributed",
            f"{name} is {given}",
            f"1 <= {name} <= {LARGEST_CHUNK} bytes",
            "COLL-02.3-01",
        )
    require(
        chunk is None or chunk_bytes is None or chunk == chunk_bytes,
        "distributed",
        f"chunk is {chunk} and chunk_bytes is {chunk_bytes}",
        "one of them, or the same number of bytes",
        "AMB-COLL-01",
        "leave one out",
    )


def require_wire(wire: str | None, x: Numeric) -> None:
    """Refuse what does not travel, and a wire for data that are no floats."""
    require_known("dtype", wire, tuple(WIRES), "COLL-02.5-01")
    require(
        wire is None or x.dtype.kind == "float",
        "distributed",
        f"dtype is {wire!r}, the data are {x.dtype}",
        "no dtype, or data of a float dtype",
        "COLL-02.5-01",
    )


def loses(wire: str | None, data: DType) -> bool:
    """Whether some value of a dtype is none of what travels under a name (AMB-COLL-53)."""
    return wire is not None and not holds(DTYPES[WIRES[wire]], data)


def holds(wire: DType, data: DType) -> bool:
    """Whether a dtype has every value of another of its kind; those of different kinds hold none of each other."""
    held = data.storage
    if wire in (data, held) or wire.kind != held.kind:
        return wire in (data, held)
    if held.kind == "int":
        return wire.bits >= held.bits
    return (
        wire.fraction_bits >= held.fraction_bits
        and wire.max_finite >= held.max_finite
        and wire.min_subnormal <= held.min_subnormal
        and wire.has_infinity >= held.has_infinity
    )
