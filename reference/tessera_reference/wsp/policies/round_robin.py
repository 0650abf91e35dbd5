"""Task i goes to worker i mod n, in order of issue (AMB-WSP-05)."""

from __future__ import annotations

from collections.abc import Mapping

from ..statements import Expression, Input, Operation

ID = "round_robin"
PARAMETERS = {"workers": "number"}


def worker(parameters: Mapping[str, Expression]) -> Expression:
    """Return the issue number modulo the workers."""
    return Operation("mod", (Input("task"), parameters["workers"]))
