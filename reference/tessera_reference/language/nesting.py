"""How deep a program may be nested, and room for passes that follow it down (AMB-LANG-144).

The grammar sets no limit, but a machine has one. The parser does not recurse and refuses a program beyond the limits
here; later passes recurse, within what `deep_recursion` allows them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

NESTING_LIMIT = 500
"""How many brackets, braces, signs and arrows may be open in one place."""

CHAIN_LIMIT = 10_000
"""How many operators and subscripts may lie inside one another in an expression, as they do in a + a + a."""

FRAMES_PER_LEVEL = 8  # how many calls a pass may need for one level of the tree

OPENING = frozenset("([{")
CLOSING = frozenset(")]}")
SEPARATORS = frozenset(",;:=")
PREFIXES = frozenset({"+", "-", "->"})
OPERATORS = frozenset({"+", "-", "*", "/", "@", "==", "!=", "<", ">", "<=", ">="})
COUNTED = OPENING | CLOSING | SEPARATORS | PREFIXES | OPERATORS  # what changes how deep a place lies


class Nesting:
    """How deep a place in a text lies, counted from the tokens before it."""

    def __init__(self) -> None:
        # In the innermost bracket: its level; the level with the signs and arrows whose operand or type goes on; the
        # operators and subscripts since the last separator; the most of them in one of the brackets since then.
        self._here = (0, 0, 0, 0)
        self._outside: list[tuple[int, int, int, int]] = []  # the same for each bracket around it

    def count(self, text: str, behind_operand: bool) -> str:
        """Count one of the `COUNTED` tokens. Returns the limit that it exceeds, in words."""
        bracket, level, links, inner = self._here
        if text in SEPARATORS:
            self._here = bracket, bracket, 0, 0
            return ""
        if text in OPENING:
            if text == "{":
                level, links, inner = bracket, 0, 0
            self._outside.append((bracket, level, links + behind_operand, inner))
            bracket, level, links, inner = level + 1, level + 1, 0, 0
        elif text in CLOSING and self._outside:
            inside = links + inner
            bracket, level, links, inner = self._outside.pop()
            inner = max(inner, inside)
        elif text in PREFIXES and not behind_operand:
            level += 1
        elif text in OPERATORS:
            level, links = bracket, links + behind_operand
        self._here = bracket, level, links, inner
        if level > NESTING_LIMIT:
            return f"nested more than {NESTING_LIMIT} levels deep"
        return f"a chain of more than {CHAIN_LIMIT} operators" if links + inner > CHAIN_LIMIT else ""


@contextmanager
def deep_recursion() -> Iterator[None]:
    """While it lasts, functions may call themselves once for each level of a tree, with a few more calls at each.

    Python keeps the frames of its own functions on the heap, so that only calls through C (`map`, `sorted`, `tuple`
    of a generator) need the machine's stack: they may lie inside one another as deep as `NESTING_LIMIT` lets a program
    be nested, but not once for each operator of a chain.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + FRAMES_PER_LEVEL * (CHAIN_LIMIT + 10 * NESTING_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
