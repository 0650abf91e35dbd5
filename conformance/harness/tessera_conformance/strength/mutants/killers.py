"""The journal of an earlier run of mutants, a line each: by it, what caught a mutant comes first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_killers"]


def read_killers(path: Path) -> Mapping[str, str]:
    """The case that caught a mutant, by the mutant's name.

    Raises:
        ValueError: the file cannot be read, or a line is no object with `name` and `killer`.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            found[entry["name"]] = entry["killer"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path.name}, line {number}: no object with name and killer") from None
    return found
