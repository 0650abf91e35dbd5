"""A sentence for the specification, proposed from the decision of an interpretation.

`wording` of the row is the proposal. A row without it has its decision, where that speaks of the specification alone:
what it says of this suite, its extensions and the reference is no text for the authors.
"""

from __future__ import annotations

import re

from tessera_conformance.registry.model import INTERPRETATION_ID, Interpretation

_CROSS_REFERENCE = re.compile(rf" \({INTERPRETATION_ID.pattern}\)")
_OURS = re.compile(
    r"\b(assert(s|ed)|suites?|harness|reference|extension|adapters?|feature|judged|tessx\w+|"
    r"fault plan|claim(s|ed)|fixture|untestable|editorial)\b",
    re.IGNORECASE,
)


def proposed_wording(row: Interpretation) -> str | None:
    """The sentences that could stand in the section; None where the decision has none for it."""
    decision = _CROSS_REFERENCE.sub("", row.decision)
    ours = _OURS.search(decision) or INTERPRETATION_ID.search(decision)
    return row.wording or (None if ours else decision)
