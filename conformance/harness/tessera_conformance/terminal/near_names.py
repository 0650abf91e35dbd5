"""Known names near one that is unknown: what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean A or B?` where a known name is near; the second where it is about as near."""
    names = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    ratios = [difflib.SequenceMatcher(None, each, name).ratio() for each in names]
    nearest = [each for each, ratio in zip(names, ratios, strict=True) if ratio > ratios[0] - 0.05]
    return f"; did you mean {' or '.join(nearest)}?" if nearest else ""
