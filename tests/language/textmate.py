"""A walk through a text by a TextMate grammar, as editors colour it: line by line, the first and then earliest rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

Rule = Mapping[str, Any]


class Piece(NamedTuple):
    """Characters of a line, from a column counted from 0, and the innermost scope that names them."""

    line: int
    column: int
    text: str
    scope: str


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


class Walk:
    """The pieces of texts by one grammar: rules with `match`, `begin` and `end`, captures and included rules."""

    def __init__(self, grammar: Rule) -> None:
        self.grammar = grammar
        self.stack: list[tuple[Rule, str]] = []
        """The rules that are open, each with the innermost scope in it."""

    def pieces(self, text: str) -> Iterator[Piece]:
        """Yield all characters of the text in their order."""
        self.stack = [(self.grammar, self.grammar["scopeName"])]
        for number, line in enumerate(text.split("\n")):
            for column, end, scope in self._line(line + "\n"):
                if column < min(end, len(line)):
                    yield Piece(number, column, line[column:end], scope)

    def _line(self, line: str) -> Iterator[tuple[int, int, str]]:
        position = 0
        while position < len(line):
            top, around = self.stack[-1]
            match, rule = self._next(line, position)
            if match is None:
                yield position, len(line), around
                return
            yield position, match.start(), around
            position = match.end()
            if rule is top:
                self.stack.pop()
                yield from _captured(match, rule.get("endCaptures", {}), around)
            elif "begin" in rule:
                self.stack.append((rule, rule.get("name", around)))
                yield from _captured(match, rule.get("beginCaptures", {}), self.stack[-1][1])
            else:
                yield from _captured(match, rule.get("captures", {}), rule.get("name", around))

    def _next(self, line: str, position: int) -> tuple[re.Match[str] | None, Rule]:
        """The earliest match; of those at one place the end of the open rule, then the first rule in order."""
        top, _ = self.stack[-1]
        best, chosen = (_compiled(top["end"]).search(line, position) if "end" in top else None), top
        for rule in self._rules(top.get("patterns", [])):
            match = _compiled(rule.get("match") or rule["begin"]).search(line, position)
            if match and (best is None or match.start() < best.start()):
                best, chosen = match, rule
        return best, chosen

    def _rules(self, patterns: list[Rule]) -> Iterator[Rule]:
        for pattern in patterns:
            rule = self.grammar["repository"][pattern["include"][1:]] if "include" in pattern else pattern
            if "match" in rule or "begin" in rule:
                yield rule
            else:
                yield from self._rules(rule["patterns"])


def _captured(match: re.Match[str], captures: Rule, scope: str) -> Iterator[tuple[int, int, str]]:
    """The characters of a match, those of its groups under their own names."""
    position = match.start()
    for number, named in sorted((int(number), rule["name"]) for number, rule in captures.items()):
        start, end = match.span(number)
        if start >= position:
            yield position, start, scope
            yield start, end, named
            position = end
    yield position, match.end(), scope
