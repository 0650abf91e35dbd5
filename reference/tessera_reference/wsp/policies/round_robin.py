"""Task i goes to worker i mod n, in order of issue (AMB-WSP-05)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ID = "round_robin"
PARAMETERS = {"workers": "number"}


def place(parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
    """By issue number."""
    workers: int = parameters["workers"]
    return lambda issue, key: issue % workers
