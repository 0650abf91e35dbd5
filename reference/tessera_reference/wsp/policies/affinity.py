"""Tasks of equal keys go to one worker, neighbouring keys to neighbouring workers: key mod n (AMB-WSP-49)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ID = "affinity"
PARAMETERS = {"workers": "number"}


def place(parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
    """By key."""
    workers: int = parameters["workers"]
    return lambda issue, key: key % workers
