"""The LALR automaton without values: what may come next, and how far a text could be read on.

Its stacks are linked and never changed, so that the search for a repair tries many continuations of one stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .lexer import ERROR, RESERVED, Token
from .nesting import STEPS
from .tables import END, tables

_PIECES = re.compile(r"complex(?:64|128)(?![A-Za-z0-9_])|x|[0-9]+|[A-Za-wyz_][A-Za-wyz0-9_]*")


class Stack(NamedTuple):
    """What was read so far, the last symbol on top."""

    state: int
    below: Stack | None
    first: Token | None
    """The first token of the symbol on top."""
    level: int
    """How deep the place after it lies."""


def empty_stack() -> Stack:
    """Nothing read."""
    return Stack(tables().start, None, None, 0)


def reread(row: dict[str, int], token: Token) -> Iterator[Token] | None:
    """A token that the grammar does not take here, read again as what it does take; None where there is no such way.

    A word of the grammar that is not reserved is a name (AMB-LANG-02); inside the angle brackets of tensor and memref
    a word is split at each x (AMB-LANG-06).
    """
    if token.kind == ERROR or token.kind in RESERVED or not token.text.isidentifier():
        return None
    if token.kind != "IDENT" and "IDENT" in row:
        return iter([token._replace(kind="IDENT")])
    if token.kind not in ("x", "SHAPE_NAME") and ("x" in row or "SHAPE_NAME" in row):
        return (_piece(token, match.start(), match[0]) for match in _PIECES.finditer(token.text))
    return None


def _piece(token: Token, offset: int, text: str) -> Token:
    kind = "INT" if text.isdigit() else text if text == "x" or text in RESERVED else "SHAPE_NAME"
    column = token.column + offset
    return Token(kind, text, token.line, column, token.line, column + len(text))


def advance(stack: Stack, token: Token, misplaced: list[Token] | None = None) -> Stack | None:
    """The stack after one more token, or None where it cannot follow.

    `misplaced` is given the first token of each positional argument that ends here and follows a keyword argument.
    """
    grammar = tables()
    kind = token.kind
    while True:
        row = grammar.actions[stack.state]
        action = row.get(kind)
        if action is None:
            if kind == END and stack.state == grammar.end:
                return stack
            parts = reread(row, token)
            return _advance_all(stack, parts, misplaced) if parts else None
        if action >= 0:
            return Stack(action, stack, token, stack.level + STEPS.get(kind, 0))
        production = grammar.productions[~action]
        first = stack.first
        for _ in range(production.size):
            first = stack.first
            assert stack.below is not None
            stack = stack.below
        if misplaced is not None and first is not None and production.node == "misplaced":
            misplaced.append(first)
        level = stack.level + (production.origin == "sign")
        stack = Stack(grammar.gotos[stack.state][production.origin], stack, first or token, level)
        if kind == END and stack.state == grammar.end:
            return stack


def _advance_all(stack: Stack, tokens: Iterable[Token], misplaced: list[Token] | None) -> Stack | None:
    for token in tokens:
        following = advance(stack, token, misplaced)
        if following is None:
            return None
        stack = following
    return stack


def misfit(stack: Stack, token: Token) -> tuple[Stack, list[Token]]:
    """Where a token that cannot follow is split, the stack after the pieces that can, and the other pieces."""
    parts = reread(tables().actions[stack.state], token) or iter([token])
    for part in parts:
        following = advance(stack, part)
        if following is None:
            return stack, [part, *parts]
        stack = following
    raise AssertionError("a token that cannot follow has a piece that cannot")


def acceptable(stack: Stack) -> set[str]:
    """The kinds of tokens that may come next."""
    row = tables().actions[stack.state]
    return {kind for kind in row if advance(stack, made(kind)) is not None}


def made(kind: str) -> Token:
    """A token that is not in the text."""
    return Token(kind, "", 0, 0, 0, 0)
