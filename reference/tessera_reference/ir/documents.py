"""JSON texts of others, such as packages, topologies and the metadata of images: bounded before they are read."""

from __future__ import annotations

import json
from typing import Any

MOST_BYTES = 32 << 20
MOST_VALUES = 2_000_000
DEEPEST = 400
"""Levels of nesting; the statements of a package need two or three for each level of theirs."""


def read_json(text: str | bytes, **hooks: Any) -> Any:
    """Return the value of a JSON text, by the hooks of `json.loads`. Raise `ValueError` for all that is wrong with it.

    Each value follows a comma, a bracket or a brace, so that counting these bounds the memory before it is taken.
    """
    signs: tuple[Any, ...] = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    if len(text) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    if len(text) > MOST_VALUES and sum(map(text.count, signs)) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values")
    try:
        value = json.loads(text.decode() if isinstance(text, bytes) else text, **hooks)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [part for holder in level for part in _parts(holder)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _parts(value: Any) -> list[Any]:
    """Return the lists and objects directly in a value."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in values if isinstance(part, dict | list)]
