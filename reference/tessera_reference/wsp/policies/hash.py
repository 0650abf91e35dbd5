"""Tasks of equal keys go to one worker, spread by FNV-1a of 64 bits over the key's 8 bytes (AMB-WSP-28, AMB-WSP-49)."""

from __future__ import annotations

from collections.abc import Mapping

from ..statements import Constant, Expression, Input, Operation

ID = "hash"
PARAMETERS = {"workers": "number"}
OFFSET, PRIME = 0xCBF29CE484222325, 0x100000001B3


def worker(parameters: Mapping[str, Expression]) -> Expression:
    """Return the digest of the key modulo the workers."""
    return Operation("mod", (fnv1a(Input("key")), parameters["workers"]))


def fnv1a(key: Expression) -> Expression:
    """Return FNV-1a over the 8 little-endian bytes of a key."""
    digest: Expression = Constant(OFFSET)
    for place in range(8):
        byte = Operation("and", (Operation("shr", (key, Constant(8 * place))), Constant(255)))
        digest = Operation("mul", (Operation("xor", (digest, byte)), Constant(PRIME)))
    return digest
