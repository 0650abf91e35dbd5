"""What a case judges of its clauses, and whether that carries a clause.

An **effect** is judged by values: what was computed, stored, printed or left as it was. An **acceptance** is judged
where something legal is to be taken, a **refusal** where something is to be refused. It follows from the checks that
ran; a test says it itself, `@judges("refusal")`, where that would be wrong. A clause is carried by what its row in the
registry names (`judged_by`), an effect unless it says otherwise: a function that refuses wrong arguments and does
nothing else has not shown its effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

Judged = Literal["effect", "acceptance", "refusal"]

JUDGED: tuple[Judged, ...] = get_args(Judged)

_BY_VALUE = frozenset({"equal", "bits", "within"})
_REFUSING = frozenset({"rejects", "status"})


def judged_by_checks(kinds: Iterable[str]) -> tuple[Judged, ...]:
    """What checks of these kinds judge together.

    A property (`true`) beside a refusal speaks of the refusal, of its message for instance; a call that merely returns
    is on the way to what a case judges, unless nothing else is.
    """
    found = frozenset(kinds) - {"given", "reading"}
    refusing = bool(found & _REFUSING)
    parts: dict[Judged, bool] = {
        "effect": bool(found & _BY_VALUE) or ("true" in found and not refusing),
        "acceptance": "accepts" in found or found == {"returns"},
        "refusal": refusing,
    }
    return tuple(part for part in JUDGED if parts[part])


def carries(judged: Collection[str], main: str) -> bool:
    """Whether a case that judges this carries a clause of that main effect: what had an effect was accepted."""
    return main in judged or (main == "acceptance" and "effect" in judged)
