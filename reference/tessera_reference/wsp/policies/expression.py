"""A user's policy: a ScalarExpr over constants, symbols, `task` (the issue number) and `key` (AMB-WSP-49)."""

from __future__ import annotations

from ..statements import Expression


def worker(workers: Expression, worker: Expression) -> Expression:
    """Return the expression of the user."""
    return worker
