"""The two written forms of an explicit reduction tree: text, ((c 0 1) 2), and JSON, [["c", 0, 1], 2].

Both are read into the same flat sequence of tokens, "(" and ")" around the children of a node, leaves and "c", and
refused with the place of what is wrong. Nothing recurses: ten thousand levels are read as easily as ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from .errors import MalformedTree

__all__ = ["LIMIT", "START", "Token", "is_index", "text_of_tokens", "tokens_of_json", "tokens_of_text"]

Token: TypeAlias = int | str

START = "c"
"""The start value, as a child."""

LIMIT = 10**9
"""Leaves are numbered below this."""

_WORD = re.compile(r"0|[1-9][0-9]{0,8}|[()c]")
_CLOSE = object()
_END = ""


def tokens_of_text(text: str) -> tuple[Token, ...]:
    """Read the text of an explicit tree. Raises `MalformedTree`, which names the column, counted from 1."""
    return _checked(_words(text))


def tokens_of_json(value: object) -> tuple[Token, ...]:
    """Read an explicit tree from nested lists. Raises `MalformedTree`, which names the path, such as $[1][0]."""
    return _checked(_nested(value))


def text_of_tokens(tokens: tuple[Token, ...]) -> str:
    """Write an explicit tree: a space between children, none beside a parenthesis that encloses them."""
    pieces: list[str] = []
    for before, token in zip(("(", *tokens), tokens, strict=False):
        pieces += ["" if before == "(" or token == ")" else " ", str(token)]
    return "".join(pieces)


def is_index(value: object) -> TypeGuard[int]:
    """Whether a value is the index of a leaf."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """Where a token of a text was read: a column, from 1."""

    text: str
    column: int

    def refusal(self, problem: str) -> MalformedTree:
        return MalformedTree(problem, self.text, self.column)


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """Where an item of nested lists stands: at an index of the list around it."""

    index: int = 0
    around: _Path | None = None

    def refusal(self, problem: str) -> MalformedTree:
        indices, place = [], self
        while place.around is not None:
            indices.append(place.index)
            place = place.around
        return MalformedTree(problem, path="$" + "".join(f"[{index}]" for index in reversed(indices)))


_Place: TypeAlias = _Column | _Path


def _words(text: str) -> Iterator[tuple[Token, _Place]]:
    """Yield every token of a text, then an empty one for its end."""
    before, at = "(", 0
    while at < len(text):
        spaced = text[at] == " "
        at += spaced
        word = _WORD.match(text, at)
        place = _Column(text, at + 1)
        if word is None:
            raise place.refusal("expected a leaf, c, ( or )")
        if spaced != (before != "(" and word[0] != ")"):
            raise place.refusal("no space belongs before this" if spaced else "expected a space before this")
        yield (int(word[0]) if word[0].isdigit() else word[0]), place
        before, at = word[0], word.end()
    yield _END, _Column(text, len(text) + 1)


def _nested(value: object) -> Iterator[tuple[Token, _Place]]:
    """Yield every token of nested lists, then an empty one for the end."""
    waiting: list[tuple[object, _Path]] = [(value, _Path())]
    while waiting:
        item, place = waiting.pop()
        if item is _CLOSE:
            yield ")", place
        elif isinstance(item, list | tuple):
            yield "(", place
            waiting.append((_CLOSE, place))
            waiting += [(child, _Path(i, place)) for i, child in enumerate(item)][::-1]
        elif is_index(item) or item == START:
            yield item, place
        else:
            raise place.refusal('expected "fold", "pairwise", {"ring": S}, a leaf, "c", or a list of two or more')
    yield _END, _Path()


def _checked(placed: Iterator[tuple[Token, _Place]]) -> tuple[Token, ...]:
    """Check that the tokens are one nesting, in which every leaf of 0..n-1 stands once and c at most once."""
    tokens: list[Token] = []
    seen: dict[Token, _Place] = {}
    children = [0]  # of the nodes that are open; the first entry counts whole trees
    for token, place in placed:
        if token == _END:
            if children != [1]:
                raise place.refusal("expected " + ("a child or )" if len(children) > 1 else "a tree"))
        elif token == ")":
            if len(children) == 1:
                raise place.refusal("nothing is open that this could close")
            if children.pop() < 2:
                raise place.refusal("a node has two or more children")
        elif children == [1]:
            raise place.refusal("the tree has ended before this")
        elif token in seen:
            raise place.refusal(f"{'c' if token == START else f'leaf {token}'} stands here a second time")
        else:
            children[-1] += 1
            if token == "(":
                children.append(0)
            else:
                seen[token] = place
        tokens.append(token)
    leaves = [token for token in seen if isinstance(token, int)]
    for leaf in leaves:
        if leaf >= len(leaves):
            raise seen[leaf].refusal(f"leaf {leaf} of a tree of {len(leaves)}, whose leaves are 0 to {len(leaves) - 1}")
    return tuple(tokens[:-1])
