"""Tasks of equal keys go to one worker, neighbouring keys to neighbouring workers: key mod n (AMB-WSP-49)."""

from __future__ import annotations

from ..statements import Expression, Leaf, Operation


def worker(workers: Expression) -> Expression:
    """Return the key modulo the workers."""
    return Operation("mod", (Leaf("input", "key"), workers))
