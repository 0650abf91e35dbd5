"""The errors of reading a header."""

from __future__ import annotations

__all__ = ["UnreadableHeader"]


class UnreadableHeader(Exception):
    """The text is not C that this package can read; the message has the reason and the place."""
