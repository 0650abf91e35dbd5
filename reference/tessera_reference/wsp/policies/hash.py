"""Tasks of equal keys go to one worker, spread by FNV-1a of 64 bits over the key's 8 bytes (AMB-WSP-28, AMB-WSP-49)."""

from __future__ import annotations

from ..statements import Expression, Leaf, Operation

OFFSET, PRIME = 0xCBF29CE484222325, 0x100000001B3


def worker(workers: Expression) -> Expression:
    """Return the digest of the key modulo the workers."""
    return Operation("mod", (fnv1a(Leaf("input", "key")), workers))


def fnv1a(key: Expression) -> Expression:
    """Return FNV-1a over the 8 little-endian bytes of a key."""
    digest: Expression = Leaf("constant", OFFSET)
    for place in range(8):
        byte = Operation("and", (Operation("shr", (key, Leaf("constant", 8 * place))), Leaf("constant", 255)))
        digest = Operation("mul", (Operation("xor", (digest, byte)), Leaf("constant", PRIME)))
    return digest
