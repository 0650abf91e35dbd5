"""Tasks of equal keys go to one worker, neighbouring keys to neighbouring workers: key mod n (AMB-WSP-49)."""

from __future__ import annotations

from collections.abc import Mapping

from ..statements import Expression, Input, Operation

ID = "affinity"
PARAMETERS = {"workers": "number"}


def worker(parameters: Mapping[str, Expression]) -> Expression:
    """Return the key modulo the workers."""
    return Operation("mod", (Input("key"), parameters["workers"]))
