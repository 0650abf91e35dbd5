"""The texts of `texts.toml`: wrong statements and declarations, and fragments that mutations put in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_TABLES = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


class WrongText(NamedTuple):
    """What is wrong, the tokens separated by blanks, and the categories by which it may be refused."""

    what: str
    text: str
    categories: tuple[str, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens."""
        return tuple(self.text.split(" "))


def wrong_texts(table: str) -> tuple[WrongText, ...]:
    """The entries of `statements` or `declarations`."""
    return tuple(WrongText(what, each["text"], tuple(each["categories"])) for what, each in _TABLES[table].items())


_FRAGMENTS = ("numbers", "types", "statements")
FRAGMENTS: Mapping[str, Sequence[str]] = {each: _TABLES["fragments"][each] for each in _FRAGMENTS}
"""What a mutation puts between tokens."""

BRACKETS: Sequence[tuple[str, str]] = [(before, after) for before, after in _TABLES["fragments"]["brackets"]]
"""What a mutation puts before and after a token."""
