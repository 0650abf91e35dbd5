"""Words of diagnostics: the nearest known spelling of a name, and how many there are of something."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST = 100
"""Characters of a name for which a near spelling is looked for."""
MOST_KNOWN = 1000
"""Names among which a near spelling is looked for."""


def did_you_mean(given: str, known: Iterable[str], template: str = "{}") -> str:
    """A remedy that names the nearest spelling, or nothing."""
    names = list(islice(known, MOST_KNOWN))
    near = [name for name in names if name == given.lower()]
    if not near and len(given) <= LONGEST:
        near = get_close_matches(given, names, 1, 0.6)
    return f"did you mean {template.format(near[0])}?" if near else ""


def counted(number: int, noun: str) -> str:
    """`1 operand`, `2 operands`."""
    return f"{number} {noun}{'s' * (number != 1)}"
