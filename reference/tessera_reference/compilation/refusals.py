"""Diagnostics of programs that are legal in the language and no modules of the runtime."""

from __future__ import annotations

from dataclasses import replace

from ..ir.diagnostics import Category, Diagnostic, Location
from ..ir.operation import Refusal
from ..ir.refusals import diagnostic_of

__all__ = ["refusal_at"]


def refusal_at(
    location: Location, category: Category, message: str, requirement: str, clause: str, remedy: str = ""
) -> Diagnostic:
    """What to say of a program that is legal in the language and no module of the runtime."""
    refusal = Refusal(category, message, requirement, clause, remedy)
    return replace(diagnostic_of(refusal, location), phase="lower")
