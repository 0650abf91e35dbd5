"""The errors of reading a header."""

from __future__ import annotations

__all__ = ["UnreadableHeader"]


class UnreadableHeader(Exception):
    """The text is not C that can be read here; the message says where and why."""
