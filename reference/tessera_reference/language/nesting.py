"""How deep a program may be nested, and room for passes that follow it down (AMB-LANG-144).

The grammar has no bounds, machines have. The parser does not recurse; it refuses what goes beyond the limits here, so
that later passes, which do recurse, stay within what `deep_recursion` allows them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

NESTING_LIMIT = 500
"""How many brackets, braces, signs and arrows may be open in one place."""

CHAIN_LIMIT = 10_000
"""How many operators and subscripts may lie inside one another in an expression, as they do in a + a + a."""

FRAMES_PER_LEVEL = 8
"""How many calls a pass may need for one level of the tree."""

OPENING = frozenset("([{")
CLOSING = frozenset(")]}")
PREFIXES = frozenset({"+", "-", "->"})
OPERATORS = frozenset({"+", "-", "*", "/", "@", "==", "!=", "<", ">", "<=", ">="})
SEPARATORS = frozenset(",;:=")
OPERATORS_OR_OPENING = OPENING | PREFIXES | OPERATORS
COUNTED = OPERATORS_OR_OPENING | CLOSING | SEPARATORS
"""The tokens that change how deep a place lies."""


class Nesting:
    """How deep a place in a text lies, counted from the tokens before it."""

    def __init__(self) -> None:
        self._level = 0
        self._outer: list[tuple[int, int, int]] = []
        """The counts around each open bracket."""
        self._prefixes = 0
        """Signs and arrows in this bracket whose operand or type goes on."""
        self._links = 0
        """Operators and subscripts in this bracket since the last separator."""
        self._inner = 0
        """The most of them in one of the brackets since then."""

    def count(self, text: str, behind_operand: bool) -> str:
        """Count one of the `COUNTED` tokens. Returns the limit that it exceeds, in words."""
        if text in SEPARATORS:
            self._level -= self._prefixes
            self._prefixes = self._links = self._inner = 0
            return ""
        if text in OPENING:
            if text == "{":
                self.count(";", behind_operand=False)
            self._outer.append((self._prefixes, self._links + behind_operand, self._inner))
            self._prefixes = self._links = self._inner = 0
            self._level += 1
        elif text in CLOSING:
            inside = self._links + self._inner
            self._level -= self._prefixes + bool(self._outer)
            self._prefixes, self._links, inner = self._outer.pop() if self._outer else (0, 0, 0)
            self._inner = max(inner, inside)
        elif text in PREFIXES and not behind_operand:
            self._level += 1
            self._prefixes += 1
        else:
            self._level -= self._prefixes
            self._prefixes = 0
            self._links += behind_operand
        if self._level > NESTING_LIMIT:
            return f"nested more than {NESTING_LIMIT} levels deep"
        return f"a chain of more than {CHAIN_LIMIT} operators" if self._links + self._inner > CHAIN_LIMIT else ""


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
