"""Parsing: text to `Program` (spec sections 2.1, 2.3, 14).

One pass over the tokens drives the automaton of the grammar and makes the syntax tree from its leaves up, without
recursion. It stops at the first thing that is wrong; `diagnose` then reads the text once more and says what there is.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.diagnostics import Location, Rejection, Span, UnsupportedConstruct
from . import messages
from .automaton import reread
from .lexer import RESERVED, Lexer, Token
from .nesting import CHAIN_LIMIT, NESTING_LIMIT, STEPS
from .recovery import diagnose
from .syntax import Program
from .tables import END, Production, tables
from .tree import MAKERS, MisplacedArgument

__all__ = ["RESERVED", "decode", "parse", "parse_bytes", "too_deep"]

CHAINS = frozenset({"binary", "index"})
"""The nodes that may lie inside one another without a bracket between them."""


class _Stuck(Exception):
    """The text is no program; `diagnose` says why."""


def parse(source: str, filename: str = "<source>") -> Program:
    """The syntax tree of `source`. Raises `Rejection` with what is wrong, each of phase lex or parse."""
    tree = _tree(source, filename)
    if tree is None:
        raise Rejection(diagnose(source, filename))
    return tree


def _tree(source: str, filename: str) -> Program | None:
    """The syntax tree, or None where something is wrong."""
    lexer = Lexer(source)
    builder = _Builder(filename)
    try:
        with _no_collection():
            for token in lexer:
                if lexer.problems:
                    return None
                builder.feed(token)
    except (_Stuck, MisplacedArgument):
        return None
    span, modules = builder.values[0]
    return Program(span, modules, filename)


def parse_bytes(data: bytes, filename: str = "<source>") -> Program:
    """The syntax tree of a file's bytes. Raises `Rejection` as `parse` does, and where they are not UTF-8."""
    return parse(decode(data, filename), filename)


def decode(data: bytes, filename: str = "<source>") -> str:
    """The text of a file's bytes. Raises `Rejection` at the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise Rejection([messages.undecodable(data[error.start], before, filename)]) from None


def too_deep(filename: str) -> UnsupportedConstruct:
    """The answer to a program nested deeper than a later pass can follow."""
    return UnsupportedConstruct("language.deep_nesting", Location(filename, Span(1, 1, 1, 2)))


@contextmanager
def _no_collection() -> Iterator[None]:
    """A growing tree has no garbage in circles; looking for some again and again takes longer than parsing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Builder:
    """The automaton; for each symbol on its stack the value, the first token and the longest chain in it."""

    def __init__(self, filename: str) -> None:
        grammar = tables()
        self.values: list[Any] = []
        self._filename = filename
        self._actions, self._gotos, self._productions = grammar.actions, grammar.gotos, grammar.productions
        self._states = [grammar.start]
        self._firsts: list[Token] = []
        self._chains: list[int] = []
        self._level = 0
        self._last: Token | None = None

    def feed(self, token: Token) -> None:
        """Reduce as far as the token asks for it, then shift it."""
        kind = token[0]
        states, actions = self._states, self._actions
        while (action := actions[states[-1]].get(kind)) is not None and action < 0:
            self._reduce(self._productions[~action], token)
        if action is None:
            self._reread(token)
            return
        states.append(action)
        self.values.append(token[1])
        self._firsts.append(token)
        self._chains.append(0)
        self._last = token
        if kind in STEPS:
            self._level += STEPS[kind]
        if self._level > NESTING_LIMIT:
            raise Rejection([messages.nested_too_deep(token.span, self._filename)])

    def _reread(self, token: Token) -> None:
        """What to do with a token that the grammar does not take as it is."""
        if token.kind == END and self._states[-1] == tables().end:
            return
        parts = reread(self._actions[self._states[-1]], token)
        if parts is None:
            raise _Stuck
        for part in parts:
            self.feed(part)

    def _reduce(self, production: Production, token: Token) -> None:
        """Replace the symbols of a rule by the one that it defines."""
        size, origin, node, gather, only, levels = production
        states = self._states
        if size == 1 and only == 0:
            states.pop()
        else:
            values, firsts, chains = self.values, self._firsts, self._chains
            start = len(values) - size
            first, chain = (firsts[start], max(chains[start:])) if size else (token, 0)
            arguments = gather(values[start:])
            if only >= 0:
                (value,) = arguments
            elif node:
                span = self._span(first)
                value = MAKERS[node](span, *arguments)
                if node in CHAINS:
                    chain += 1
                    if chain > CHAIN_LIMIT:
                        raise Rejection([messages.chained_too_far(span, self._filename)])
            else:
                value = arguments
            del states[len(states) - size :], values[start:], firsts[start:], chains[start:]
            values.append(value)
            firsts.append(first)
            chains.append(chain)
        self._level -= levels
        states.append(self._gotos[states[-1]][origin])

    def _span(self, first: Token) -> Span:
        """From a token to the last one read; nothing at all stands at the beginning."""
        last = self._last
        return Span(first[2], first[3], last[4], last[5]) if last else Span(1, 1, 1, 1)
