"""Where reading can go on when a syntax error has no simple repair: at a statement, a declaration or a block.

What is missing around it is made up: statements outside a function get the heading of one, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .automaton import Stack, advance, made
from .lexer import RESERVED
from .tables import tables

STATEMENTS = frozenset({"let", "return", "if", "for", "while", "barrier", "assert"})
DECLARATIONS = frozenset({"func", "kernel", "type", "mesh", "let"})

HEADINGS = {"stmt": "while ( IDENT )", "decl": "func IDENT ( )", "module_decl": "module IDENT"}
"""What a block may follow, by what the list around it holds."""


class OpenList(NamedTuple):
    """A block, a module or the program, not closed yet."""

    holds: str
    """The rule of its items."""
    stack: Stack
    """What was read up to the end of its last whole item."""


class Resumption(NamedTuple):
    """A way to read on, at the token at hand or behind it."""

    stack: Stack
    skipped: int = 0
    balance: int = 0
    """How many more braces are open then than in the text."""


def open_lists(stack: Stack) -> list[OpenList]:
    """What is open, the innermost first."""
    found: list[OpenList] = []
    above: Stack | None = None
    entry: Stack | None = stack
    while entry is not None:
        gotos = tables().gotos[entry.state]
        holds = next((rule for rule in HEADINGS if rule in gotos), "")
        if holds and not (found and found[-1].stack is above):  # the brace below the items opens the same list
            found.append(OpenList(holds, entry))
        above, entry = entry, entry.below
    return found


def resumptions(lists: Sequence[OpenList], kind: str, previous: str, at_error: bool) -> Iterator[Resumption]:
    """What may be read from a token on that no brace encloses, the likeliest first.

    `previous` is the kind of the token before it, "{}" for a whole block, and nothing at the error itself.
    """
    inner = lists[0]
    if kind == ";" and inner.holds != "module_decl":
        yield Resumption(inner.stack, skipped=1)
    elif kind == "}" and inner.holds != "module_decl":
        yield Resumption(inner.stack)
    elif kind == "{" and previous != "_ATTRIBUTES":
        yield Resumption(_after(inner.stack, HEADINGS[inner.holds]))
    if kind in DECLARATIONS:
        yield from _declaration(lists)
    if kind in STATEMENTS or previous == "{}" or (at_error and _begins_call(kind)):
        yield _statement(inner)
    if kind == "module":
        yield Resumption(lists[-1].stack, balance=1 - len(lists))


def _begins_call(kind: str) -> bool:
    """Whether it is a name, as words that are not reserved may be, or the head of a dotted one."""
    return kind in ("IDENT", "op", "dist", "schedule", "numerics") or kind in tables().words - RESERVED


def _declaration(lists: Sequence[OpenList]) -> Iterator[Resumption]:
    for closed, outer in enumerate(lists):
        if outer.holds == "decl":
            yield Resumption(outer.stack, balance=-closed)
    if lists[0].holds == "module_decl":
        yield Resumption(_after(lists[0].stack, "module IDENT {"), balance=1)


def _statement(inner: OpenList) -> Resumption:
    match inner.holds:
        case "stmt":
            return Resumption(inner.stack)
        case "decl":
            return Resumption(_after(inner.stack, "func IDENT ( ) {"), balance=1)
    return Resumption(_after(inner.stack, "module IDENT { func IDENT ( ) {"), balance=2)


def _after(stack: Stack, kinds: str) -> Stack:
    """The stack after tokens that are not in the text."""
    for kind in kinds.split():
        following = advance(stack, made(kind))
        assert following is not None, kind
        stack = following
    return stack
