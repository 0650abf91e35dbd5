"""How compilation refuses: a program by a diagnostic at its place, an argument of a call by a `Failure`."""

from __future__ import annotations

from dataclasses import replace

from ..abi.status import Failure, Status
from ..ir.diagnostics import Category, Diagnostic, Location
from ..ir.operation import Refusal
from ..ir.refusals import diagnostic_of

__all__ = ["invalid", "refusal_at"]


def refusal_at(
    location: Location, category: Category, message: str, requirement: str, clause: str, remedy: str = ""
) -> Diagnostic:
    """What to say of a program that is legal in the language and no module of the runtime."""
    refusal = Refusal(category, message, requirement, clause, remedy)
    return replace(diagnostic_of(refusal, location), phase="lower")


def invalid(function: str, given: str, allowed: str) -> Failure:
    """A failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, given, allowed)
