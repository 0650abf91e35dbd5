"""Spelled parts to lines: a group that does not fit its line is broken at all its places (as by Oppen and Wadler)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum

from .comments import BlankLine, Comment, Woven
from .spelling import Mark

WIDTH = 100
"""The columns of a line, where there is a place to break it."""

INDENTATION = "  "

NO_BLANK_BEFORE = frozenset({")", "]", ",", ";", ":", ">", "."})


NEW_LINES = frozenset({Mark.LINE, Mark.GAP, Mark.APART})


class _Space(IntEnum):
    """The space before the next token: the widest that any mark asks for."""

    NONE = 0
    BLANK = 1
    NEW_LINE = 2
    BLANK_LINE = 3


def written(parts: Iterable[Woven]) -> str:
    """The text of the parts, ending with a new line unless it is empty."""
    return _Writer(list(parts)).write()


class _Writer:
    def __init__(self, parts: list[Woven]) -> None:
        self._parts = parts
        self._widths = _measure(parts)
        self._out: list[str] = []
        self._column = 0
        self._indentation = 0
        self._broken = [True]
        """For each open group whether it is broken; outside all groups lines are broken."""
        self._space = _Space.NONE
        self._after_comment = False

    def write(self) -> str:
        for index, part in enumerate(self._parts):
            if isinstance(part, str):
                self._token(part)
            elif isinstance(part, Comment):
                self._comment(part)
            elif isinstance(part, BlankLine):
                self._wish(_Space.BLANK_LINE)
            else:
                self._mark(part, index)
        return "".join([*self._out, "\n"]) if self._out else ""

    def _mark(self, mark: Mark, index: int) -> None:
        match mark:
            case Mark.OPEN:
                self._broken.append(self._broken[-1] and not self._fits(index))
            case Mark.CLOSE:
                self._broken.pop()
            case Mark.INDENT:
                self._indentation += self._broken[-1]
            case Mark.DEDENT:
                self._indentation -= self._broken[-1]
            case Mark.SPACE:
                self._wish(_Space.BLANK)
            case Mark.BREAK:
                self._wish(_Space.NEW_LINE if self._broken[-1] else _Space.BLANK)
            case Mark.SOFT:
                self._wish(_Space.NEW_LINE if self._broken[-1] else _Space.NONE)
            case Mark.LINE | Mark.GAP:
                self._wish(_Space.NEW_LINE)
            case Mark.APART:
                self._wish(_Space.BLANK_LINE)

    def _wish(self, space: _Space) -> None:
        self._space = max(self._space, space)

    def _fits(self, index: int) -> bool:
        column = self._indentation * len(INDENTATION)
        if self._space < _Space.NEW_LINE:
            column = self._column + self._space
        return column + self._widths[index] <= WIDTH

    def _token(self, text: str) -> None:
        if self._after_comment and text in NO_BLANK_BEFORE and self._space == _Space.BLANK:
            self._space = _Space.NONE
        self._after_comment = False
        self._write(text)

    def _comment(self, comment: Comment) -> None:
        if comment.own_line:
            self._wish(_Space.BLANK_LINE if comment.after_blank else _Space.NEW_LINE)
        elif not comment.tight:
            self._wish(_Space.BLANK)
        self._write(comment.text)
        self._space = _Space.NEW_LINE if comment.ends_line else _Space.BLANK
        self._after_comment = True

    def _write(self, text: str) -> None:
        if self._out and self._space >= _Space.NEW_LINE:
            self._out.append("\n\n" if self._space == _Space.BLANK_LINE else "\n")
            self._out.append(INDENTATION * self._indentation)
            self._column = self._indentation * len(INDENTATION)
        elif self._out and self._space == _Space.BLANK:
            self._out.append(" ")
            self._column += 1
        self._space = _Space.NONE
        self._out.append(text)
        self._column = len(text) - text.rindex("\n") - 1 if "\n" in text else self._column + len(text)


def _measure(parts: list[Woven]) -> dict[int, float]:
    """For each group, by its first part, the columns that it takes on one line with what sticks to its end."""
    widths: dict[int, float] = {}
    tails = _tails(parts)
    open_groups: list[tuple[int, int, int]] = []
    width = forced = 0
    for index, part in enumerate(parts):
        if part is Mark.OPEN:
            open_groups.append((index, width, forced))
        elif part is Mark.CLOSE:
            start, before, forced_before = open_groups.pop()
            widths[start] = width - before + tails[index] if forced == forced_before else math.inf
        elif part in NEW_LINES or (isinstance(part, Comment) and part.ends_line):
            forced += 1
        else:
            width += _width(part)
    return widths


def _tails(parts: list[Woven]) -> list[int]:
    """Behind each part, the columns to the next place where a line may be broken."""
    tails = [0] * len(parts)
    for index in range(len(parts) - 1, 0, -1):
        part = parts[index]
        stops = isinstance(part, Comment) or part in NEW_LINES or part in (Mark.BREAK, Mark.SOFT)
        tails[index - 1] = 0 if stops else tails[index] + _width(part)
    return tails


def _width(part: Woven) -> int:
    if isinstance(part, str):
        return len(part)
    if isinstance(part, Comment):
        return len(part.text) + 1
    return int(part in (Mark.SPACE, Mark.BREAK))
