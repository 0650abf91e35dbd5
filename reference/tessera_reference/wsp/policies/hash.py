"""Tasks of equal keys go to one worker, spread by FNV-1a of 64 bits over the key's 8 bytes (AMB-WSP-28, AMB-WSP-49)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..statements import U64

ID = "hash"
PARAMETERS = {"workers": "number"}
OFFSET, PRIME = 0xCBF29CE484222325, 0x100000001B3


def place(parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
    """By the digest of the key."""
    workers: int = parameters["workers"]
    return lambda issue, key: fnv1a(key) % workers


def fnv1a(key: int) -> int:
    """FNV-1a over the 8 little-endian bytes of a key."""
    digest = OFFSET
    for byte in key.to_bytes(8, "little"):
        digest = ((digest ^ byte) * PRIME) & U64
    return digest
