"""How deep a program may be nested, and room for passes that follow it down (AMB-LANG-144).

The grammar has no bounds, machines have. The parser does not recurse; it refuses what goes beyond the limits here, so
that later passes, which do recurse, stay within what `deep_recursion` allows them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeAlias

from .lexer import terminals

NESTING_LIMIT = 500
"""How many brackets, braces, signs and arrows may be open in one place."""

CHAIN_LIMIT = 10_000
"""How many operators and subscripts may lie inside one another in an expression, as they do in a + a + a."""

FRAMES_PER_LEVEL = 8
"""How many calls a pass may need for one level of the tree."""

OPERATORS = ("*", "/", "@", "==", "!=", "<", ">", "<=", ">=")


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

    def open(self, behind_operand: bool) -> str:
        """Behind an opening bracket."""
        self._outer.append((self._prefixes, self._links + behind_operand, self._inner))
        self._prefixes = self._links = self._inner = 0
        return self._deeper()

    def open_block(self, behind_operand: bool) -> str:
        """Behind a brace, which ends what came before it."""
        self.separator(behind_operand)
        return self.open(behind_operand)

    def close(self, behind_operand: bool) -> str:
        """Behind a closing bracket."""
        inside = self._links + self._inner
        self._level -= self._prefixes
        if self._outer:
            self._level -= 1
            self._prefixes, self._links, self._inner = self._outer.pop()
            self._inner = max(self._inner, inside)
        return self._longer()

    def sign(self, behind_operand: bool) -> str:
        """Behind a sign, an operator that looks like one, or an arrow."""
        if behind_operand:
            return self.operator(behind_operand)
        self._prefixes += 1
        return self._deeper()

    def operator(self, behind_operand: bool) -> str:
        """Behind an operator."""
        self._level -= self._prefixes
        self._prefixes = 0
        self._links += behind_operand
        return self._longer()

    def separator(self, behind_operand: bool) -> str:
        """Behind what ends an expression or a type."""
        self._level -= self._prefixes
        self._prefixes = self._links = self._inner = 0
        return ""

    def _deeper(self) -> str:
        self._level += 1
        return f"nested more than {NESTING_LIMIT} levels deep" if self._level > NESTING_LIMIT else ""

    def _longer(self) -> str:
        too_long = self._links + self._inner > CHAIN_LIMIT
        return f"a chain of more than {CHAIN_LIMIT} operators" if too_long else ""


Step: TypeAlias = Callable[[Nesting, bool], str]


@cache
def steps() -> dict[str, Step]:
    """What to do behind each type of token that makes a difference.

    A step takes whether an operand ends before the token, and returns what there is too much of.
    """
    by_text: dict[str, Step] = {
        "{": Nesting.open_block,
        **dict.fromkeys("([", Nesting.open),
        **dict.fromkeys(")]}", Nesting.close),
        **dict.fromkeys(OPERATORS, Nesting.operator),
        **dict.fromkeys(("+", "-", "->"), Nesting.sign),
        **dict.fromkeys(",;:=", Nesting.separator),
    }
    return {terminals()[text]: step for text, step in by_text.items()}


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
