"""Task i goes to worker i mod n, in order of issue (AMB-WSP-05)."""

from __future__ import annotations

from ..statements import Expression, Leaf, Operation


def worker(workers: Expression) -> Expression:
    """Return the issue number modulo the workers."""
    return Operation("mod", (Leaf("input", "task"), workers))
