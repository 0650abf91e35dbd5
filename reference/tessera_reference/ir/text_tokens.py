"""The tokens of IR text, one at a time, and where they stand (spec section 13.1; AMB-LANG-31 for hexadecimal).

A comment goes from `//` or, as in the examples of the collectives, from `;` to the end of its line (AMB-COLL-12).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NoReturn

from .diagnostics import Category, Diagnostic, Location, Phase, Rejection, Span

_TOKEN = re.compile(
    r"""(?:[ \t\r\n]+|(?://|;)[^\n]*)*(?:
      (?P<mark>->|[(){}\[\]<>,:=])
    | (?P<value>%(?:[0-9]+|[A-Za-z_$.-][\w$.-]*)(?:\#[0-9]+)?)
    | (?P<string>"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")
    | (?P<type>(?:(?:!tessera\.)?(?:tensor|memref|fragment|mesh|vector|shard)|!llvm\.ptr)<[^<>]*>(?:\[addrspace=\w*\])?
      |(?:!tessera\.)?future<(?:[^<>]|<[^<>]*>)*>)
    | (?P<float>-?[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
    | (?P<int>-?(?:0x[0-9A-Fa-f]+|[0-9]+))
    | (?P<word>!?[A-Za-z_][\w$.]*)
    | (?P<symbol>@[A-Za-z_][\w$.-]*)
    | (?P<block>\^[\w$.-]+)
    | (?P<end>\Z)
    | (?P<strange>.)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)

LONGEST_SHOWN = 40


class Tokens:
    """The current token of a text: `kind`, `text`, `start` and `end`; `previous_end` is where the one before ended."""

    def __init__(self, source: str, filename: str) -> None:
        self.source = source
        self.filename = filename
        self._matches: Iterator[re.Match[str]] = _TOKEN.finditer(source)
        self._lines: list[int] = []
        self.text = ""
        self.end = 0
        self.advance()

    def advance(self) -> str:
        """Go on to the next token; the text of the one left behind. Raises `Rejection` for what is no token."""
        left, self.previous_end = self.text, self.end
        found = next(self._matches)
        self.kind = kind = found.lastgroup or ""
        self.text = found[kind]
        self.start, self.end = found.span(kind)
        if kind == "strange":
            self._refuse_character()
        return left

    def accept(self, mark: str) -> bool:
        """Whether this is the token `mark`; goes on if so."""
        if self.text != mark:
            return False
        self.advance()
        return True

    def expect(self, mark: str, where: str) -> None:
        """Go on behind the token `mark`. Raises `Rejection` when it is another."""
        if not self.accept(mark):
            self.refuse(f"expected {mark!r} {where}, found {self.shown()}", f"{mark!r} {where}")

    def on_same_line(self) -> bool:
        """Whether the current token stands on the line on which the one before ended."""
        return "\n" not in self.source[self.previous_end : self.start]

    def shown(self) -> str:
        """The current token as a diagnostic shows it."""
        if self.kind == "end":
            return "the end of the text"
        short = self.text if len(self.text) <= LONGEST_SHOWN else f"{self.text[:LONGEST_SHOWN]}..."
        return short if self.kind == "string" else f"{short!r}"

    def refuse(self, message: str, requirement: str, clause: str = "AMB-LANG-66", remedy: str = "") -> NoReturn:
        """End with a syntax error at the current token."""
        self.reject("syntax", "parse", message, self.span(self.start, self.end), requirement, clause, remedy)

    def reject(
        self, category: Category, phase: Phase, message: str, span: Span, requirement: str, clause: str, remedy: str
    ) -> NoReturn:
        """End with an error anywhere in the text."""
        raise Rejection(
            [
                Diagnostic(
                    category,
                    phase,
                    message,
                    span,
                    self.filename,
                    requirement=requirement,
                    clause=clause,
                    remedy=remedy,
                )
            ]
        )

    def span(self, start: int, end: int) -> Span:
        """The place of a stretch of the text."""
        line, column = self._place(start)
        end_line, end_column = self._place(max(end, start + 1))
        return Span(line, column, end_line, end_column)

    def location(self, start: int, end: int) -> Location:
        """The place of a stretch of the text, in its file."""
        return Location(self.filename, self.span(start, end))

    def _place(self, offset: int) -> tuple[int, int]:
        if not self._lines:
            self._lines = [0, *(found.end() for found in re.finditer("\n", self.source))]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _refuse_character(self) -> NoReturn:
        span = self.span(self.start, self.end)
        if self.text == '"':
            message, requirement = "a string does not end on its line", 'a closing "'
        else:
            message, requirement = f"unexpected character {self.text!r}", "a token of IR text"
        self.reject("syntax", "lex", message, span, requirement, "AMB-LANG-66", "")
