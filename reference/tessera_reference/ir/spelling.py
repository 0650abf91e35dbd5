"""The nearest known spelling of a name, for remedies."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 100
"""Characters of a name for which one is looked for; nobody misspells longer ones."""


def did_you_mean(given: str, known: Iterable[str], template: str = "{}") -> str:
    """A remedy that names the nearest spelling, or nothing."""
    near = get_close_matches(given, list(known), 1, 0.6) if len(given) <= LONGEST else []
    return f"did you mean {template.format(near[0])}?" if near else ""
