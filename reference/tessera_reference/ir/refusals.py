"""From what is refused to what is said about it: diagnostics, and which category a difference of types has."""

from __future__ import annotations

from collections.abc import Sequence

from .diagnostics import Category, Diagnostic, Location, Phase
from .operation import Refusal
from .types import Tensor, Type

MOST_NAMED = 8
"""Functions of a circle of calls that a message names."""


def diagnostic_of(
    refusal: Refusal, location: Location, operands: tuple[str, ...] = (), phase: Phase = "verify"
) -> Diagnostic:
    """A refusal at a place."""
    return Diagnostic(
        refusal.category,
        phase,
        refusal.message,
        location.span,
        location.filename,
        operands,
        refusal.requirement,
        refusal.clause,
        refusal.remedy,
    )


def other_type(subject: str, given: Type, wanted: Type) -> Refusal:
    """What to say where a value has another type than it must: shapes and layouts have categories of their own."""
    category: Category = "types"
    clause = "LANG-11-01"
    if isinstance(given, Tensor) and isinstance(wanted, Tensor) and given.dtype == wanted.dtype:
        same_layout = given.layout == wanted.layout
        category, clause = ("shapes", "LANG-11-03") if same_layout else ("layouts", "LANG-11-05")
    return Refusal(category, f"{subject} is {given}, not {wanted}", str(wanted), clause, "")


def recursion(circle: Sequence[str]) -> Refusal:
    """What to say about functions of which each calls the one before it, and the first the last (AMB-LANG-97)."""
    names = [f"@{name}" for name in reversed(circle)]
    if len(names) > MOST_NAMED:
        names[MOST_NAMED - 1 : -1] = ["..."]
    message = f"recursion: {' calls '.join(names)}"
    return Refusal("types", message, "functions that never come back to themselves", "AMB-LANG-97", "")
