"""Names and numbers that a collective, its attributes and the environment give, and what is said of others."""

from __future__ import annotations

from collections.abc import Sequence

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..numerics.errors import shown

__all__ = ["require_known", "require_within"]


def require_known(function: str, what: str, given: str, known: Sequence[str]) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for a name that is not known; it lists those known, nearest last."""
    if given not in known:
        hint = did_you_mean(given, known) if isinstance(given, str) else ""
        allowed = f"one of {', '.join(known)}" + (f": {hint}" if hint else "")
        raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"{what} {shown(given)}", allowed)


def require_within(function: str, what: str, given: int, least: int, most: int) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the range, for a number outside of it."""
    if not least <= given <= most:
        raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"{what} {shown(given)}", f"{least} to {most}")
