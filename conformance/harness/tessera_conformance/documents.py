"""JSON and TOML from files of others: whatever is wrong with one, deep nesting and endless digits too, is one error."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

DEEPEST = 100
"""Levels of nesting; no document of the project has twenty."""


class NoDocument(ValueError):
    """A text that is none, or more deeply nested than any document of the project."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises `NoDocument`."""
    return _read("JSON", json.loads, text.decode() if isinstance(text, bytes) else text)


def read_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text. Raises `NoDocument`."""
    found: dict[str, Any] = _read("TOML", tomllib.loads, text)
    return found


def _read(kind: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text)
    except RecursionError:
        raise NoDocument(f"not {kind}: nested too deeply") from None
    except ValueError as error:
        raise NoDocument(f"not {kind}: {error}") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [item for each in level for item in _items(each)]
        if not level:
            return value
    raise NoDocument(f"not {kind}: nested more than {DEEPEST} levels deep")


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, dict | list)]
    return [item for item in value if isinstance(item, dict | list)] if isinstance(value, list) else []
