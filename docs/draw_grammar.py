"""Renews the words in the TextMate grammar of editors from the reference: `python docs/draw_grammar.py`.

The rules are written by hand, in `tessera.tmLanguage.json`. The names of operations, directives and dtypes and the
reserved words come from their declarations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tessera_reference.language  # noqa: F401  # declares every operation
from tessera_reference.ir.operation import SPELLINGS
from tessera_reference.language.parser import RESERVED
from tessera_reference.language.statements import SETTINGS
from tessera_reference.numerics.formats import DTYPES

FILE = Path(__file__).parents[1] / "examples" / "editors" / "vscode" / "syntaxes" / "tessera.tmLanguage.json"

KEYWORDS = {
    "keyword.declaration.tessera": "module func kernel let type mesh",
    "keyword.control.tessera": "return if else for while in barrier",
    "keyword.other.namespace.tessera": "op dist schedule numerics",
}
"""The reserved words that have a class of their own."""
OTHERS = "keyword.other.reserved.tessera"
DTYPE = "support.type.dtype.tessera"


def grammar() -> str:
    """Return the text of the grammar, with the words that the reference knows today."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    rules = document["repository"]
    rules["operations"]["patterns"][:-1] = [_members(space, names) for space, names in members().items()]
    words = {name: text.split() for name, text in KEYWORDS.items()}
    words[OTHERS] = sorted(RESERVED.difference(*words.values()))
    for rule in rules["words"]["patterns"]:
        if rule["name"] in words:
            rule["match"] = rf"\b{_any(words[rule['name']])}\b"
        elif rule["name"] == DTYPE:
            rule["match"] = rf"\b{_any(DTYPES)}\b"
    for rule in rules["shaped-types"]["patterns"]:
        if rule.get("name") == DTYPE:
            rule["match"] = rf"(?<![A-Za-wyz0-9_]){_any(DTYPES)}(?![A-Za-z0-9_])"
    return json.dumps(document, indent=2) + "\n"


def members() -> dict[str, list[str]]:
    """Return what may stand behind the point of each namespace."""
    known: dict[str, list[str]] = {"op": [], "dist": [], "schedule": list(SETTINGS), "numerics": ["profile"]}
    for spelling in SPELLINGS:
        space, _, name = spelling.partition(".")
        if name:
            known[space].append(name)
    return known


def _members(space: str, names: Iterable[str]) -> dict[str, Any]:
    captures = {"1": {"name": "keyword.other.namespace.tessera"}, "3": {"name": "support.function.tessera"}}
    return {"match": rf"\b({space})\s*(\.)\s*({'|'.join(sorted(names))})\b", "captures": captures}


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


if __name__ == "__main__":
    FILE.write_text(grammar(), encoding="utf-8")
