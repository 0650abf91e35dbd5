"""The log of a runtime: the lines up to the level of TESS_LOG_LEVEL (runtime spec, Appendix C)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["LEVELS", "Line", "Log"]

LEVELS = ("info", "debug", "trace")
"""From the fewest lines to the most."""

MOST_LINES = 10_000
"""Lines that are kept: the last ones."""


@dataclass(frozen=True)
class Line:
    """One line, with its level."""

    level: str
    text: str


class Log:
    """Lines, the last of them; nothing is kept unless a level was set."""

    def __init__(self) -> None:
        self.level: str | None = None
        self.lines: deque[Line] = deque(maxlen=MOST_LINES)

    def note(self, level: str, text: str) -> None:
        """Keep a line, if the level asks for it."""
        if self.level is not None and LEVELS.index(level) <= LEVELS.index(self.level):
            self.lines.append(Line(level, text))
