"""A user's policy: a ScalarExpr over constants, symbols, `task` (the issue number) and `key` (AMB-WSP-49)."""

from __future__ import annotations

from collections.abc import Mapping

from ..statements import Expression

ID = "expression"
PARAMETERS = {"workers": "number", "worker": "expression"}


def worker(parameters: Mapping[str, Expression]) -> Expression:
    """Return the expression of the user."""
    return parameters["worker"]
