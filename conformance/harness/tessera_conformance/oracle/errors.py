"""The error for arguments that the oracle has no result for."""

from __future__ import annotations


class BadArgument(ValueError):
    """An argument to which the canon gives no meaning: which one, what was given, what is allowed, and the clause."""

    def __init__(self, argument: str, given: object, allowed: str, clause: str | None = None) -> None:
        self.argument, self.given, self.allowed, self.clause = argument, given, allowed, clause
        place = f" ({clause})" if clause else ""
        super().__init__(f"{argument}: {given!r} is not allowed; expected {allowed}{place}")
