"""The base of the arithmetic's errors, and how messages quote a value."""

from __future__ import annotations

_LONGEST_SHOWN = 200
"""Characters of a value that a message quotes."""


def shown(value: object) -> str:
    """Return how a message quotes a value, whatever it is: its representation, shortened where it is long."""
    try:
        quoted = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, lists a thousand deep
        return f"a value of type {type(value).__name__} too long to be shown"
    return quoted if len(quoted) <= _LONGEST_SHOWN else quoted[:_LONGEST_SHOWN] + "..."


class NumericsFailure(Exception):
    """Base of everything raised on purpose by `tessera_reference.numerics`."""
