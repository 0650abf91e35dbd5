"""Mutants that no case can tell, each with the reason: they stand in a file that a person wrote."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_equivalents"]


def read_equivalents(path: Path) -> Mapping[str, str]:
    """The reasons: by the name of a mutant and, behind a space, what its place becomes; or by the name of a function.

    An entry with `function` speaks of every mutant of a function whose result no case may judge: a diagnostic's words.

    Raises:
        ValueError: the file is no TOML, or an entry lacks its name, its substitute or its reason.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    found: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        required = ("function", "reason") if "function" in entry else ("name", "becomes", "reason")
        missing = [name for name in required if not entry.get(name)]
        if missing:
            raise ValueError(f"{path.name}: entry {number} lacks {', '.join(missing)}")
        found[entry.get("function") or f"{entry['name']} {entry['becomes']}"] = entry["reason"]
    return found
