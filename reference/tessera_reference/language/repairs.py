"""How to go on after a syntax error: the changes of one token that could have been meant, and the places to read on.

A change is tried by reading on: the best is the one that lets most of the following text be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .automaton import Stack, advance, made
from .lexer import BRACKETS, ERROR, Lexer, Token, marked, unbroken
from .resumptions import open_lists, resumptions
from .tables import END, tables

HORIZON = 40
"""How many tokens behind the error a change is tried on."""

LOOKBACK = 6
"""How many tokens before the error a change may be made."""

CONVINCING = 3
"""How many tokens behind the error and the change must read on."""

BROKEN_INTO = 3
"""Into how many tokens a slip of the finger breaks one."""

FARTHEST = 20_000
"""How many tokens are passed over in search of a place to read on."""

REMEMBERED = 100
"""How many tokens before the place that is read are kept."""

BRACES = {"{": 1, "}": -1}


class Repair(NamedTuple):
    """Go on with `stack` at the token `resume`."""

    stack: Stack
    resume: int
    balance: int = 0
    """How many more braces are open then than in the text."""
    reach: int = 0
    """The first token that still cannot follow."""
    cost: int = 0
    """How unlikely it is that this was meant."""


class Window:
    """The tokens around the place that is read, and the stack before each that was read."""

    def __init__(self, lexer: Lexer) -> None:
        self.position = 0
        self.barrier = 0
        """The first token that a change may touch."""
        self._rest = iter(lexer)
        self._tokens: list[Token] = []
        self._stacks: list[Stack] = []

    def token(self, index: int) -> Token:
        """A token, or the end of the text."""
        while index >= len(self._tokens):
            self._tokens.append(next(self._rest, self._tokens[-1] if self._tokens else made(END)))
        return self._tokens[index]

    def stack(self, index: int) -> Stack:
        """The stack before a token that was read."""
        return self._stacks[index]

    def split(self, pieces: Sequence[Token]) -> None:
        """Put pieces in the place of the token at hand."""
        self._tokens[self.position : self.position + 1] = pieces

    def remember(self, stack: Stack) -> None:
        """The stack before the token at hand; what lies far behind is forgotten now and then."""
        del self._stacks[self.position :]
        self._stacks += [stack] * (self.position + 1 - len(self._stacks))
        gone = self.position - REMEMBERED
        if gone > 20 * REMEMBERED:
            del self._tokens[:gone], self._stacks[:gone]
            self.position -= gone
            self.barrier = max(0, self.barrier - gone)

    def go_on(self, repair: Repair) -> None:
        """Read on where a repair says; what it changed is not changed again."""
        self.position = self.barrier = repair.resume

    def reach(self, stack: Stack, start: int, limit: int) -> int:
        """The first token from `start` on that cannot follow, or the limit."""
        following: Stack | None = stack
        for index in range(start, limit):
            token = self.token(index)
            misplaced: list[Token] = []
            following = advance(following, token, misplaced) if following else None
            if following is None or misplaced:
                return index
            if token.kind == END:
                break
        return limit


def best_change(window: Window) -> Repair | None:
    """The change of one token, at the error or a little before it, that was most likely meant, if any convinces."""
    error = window.position
    best: Repair | None = None
    for place in range(error, max(window.barrier, error - LOOKBACK) - 1, -1):
        for repair in _changes(window, place):
            if repair.reach < max(error + 1, repair.resume) + CONVINCING:
                continue
            if best is None or (-repair.reach, repair.cost) < (-best.reach, best.cost):
                best = repair
        if best and best.reach >= error + HORIZON:
            break
    return best


def _changes(window: Window, place: int) -> Iterator[Repair]:
    """Take a token out, put one in, exchange it, or swap it with the next."""
    token, other = window.token(place), window.token(place + 1)
    if token.kind != END:
        yield from _tried(window, place, 1, [], 2)
    if other.kind != END:
        yield from _tried(window, place, 2, [other, token], 2)
    if token.kind == ERROR:
        yield from _tried(window, place, 1, unbroken(token), 2)
    if token.text in BRACKETS:
        bracket = made(BRACKETS[token.text])
        yield from _tried(window, place, 1, [token, bracket], 1)
        yield from _tried(window, place, 2, [token, bracket], 2)
        yield from _tried(window, place, 2, [token], 2)
    kinds = set(tables().actions[window.stack(place).state])
    if place:
        kinds.update(BRACKETS.get(window.token(place - 1).text, ""))
    for kind in sorted(kinds):
        cost = 1 if not kind.isidentifier() else 2 if kind.isupper() else 3
        for removed in range(_glued(window, place) + 1):
            yield from _tried(window, place, removed, [made(kind)], cost + removed)


def _glued(window: Window, place: int) -> int:
    """How many tokens without a blank between them may be one that was broken; 0 at the end of the text."""
    if window.token(place).kind == END:
        return 0
    width = 1
    while width < BROKEN_INTO and window.token(place + width - 1).end == window.token(place + width).start:
        width += 1
    return width


def _tried(window: Window, place: int, removed: int, given: list[Token], cost: int) -> Iterator[Repair]:
    """The repair that puts given tokens in the place of others, if they can stand there."""
    error, resume = window.position, place + removed
    out = [window.token(index) for index in range(place, resume)]
    cost += 2 * (error - place)
    if place > window.barrier and window.token(place - 1).text in BRACKETS:  # the token before may read otherwise now
        place -= 1
        given = [window.token(place), *given]
    stack: Stack | None = window.stack(place)
    for token, following in pairwise([*given, window.token(resume)]):
        stack = advance(stack, marked(token, following.text or following.kind)) if stack else None
    if stack is not None:
        balance = sum(BRACES.get(token.kind, 0) for token in given) - sum(BRACES.get(token.kind, 0) for token in out)
        yield Repair(stack, resume, balance, window.reach(stack, resume, error + HORIZON), cost)


def next_place(window: Window, attempts: int) -> tuple[Repair | None, int]:
    """The next place where a statement, a declaration or a block can be read, and how many attempts are left."""
    lists = open_lists(window.stack(window.position))
    depth, previous = 0, ""
    for index in range(window.position, window.position + FARTHEST):
        kind = window.token(index).kind
        if kind == END or attempts <= 0:
            break
        if depth == 0 and previous != ".":
            for resumption in resumptions(lists, kind, previous, index == window.position):
                attempts -= 1
                resume = index + resumption.skipped
                wanted = resume + (1 if resumption.skipped else CONVINCING)  # behind a semicolon all begins anew
                if window.reach(resumption.stack, resume, wanted) == wanted:
                    return Repair(resumption.stack, resume, resumption.balance), attempts
        depth += BRACES.get(kind, 0)
        if depth < 0:
            depth, lists = 0, lists[1:] or lists
        previous = "{}" if kind == "}" and depth == 0 else kind
    return None, attempts
