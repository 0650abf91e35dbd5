"""Comments and blank lines of a text, put into the canonical spelling where they stood (spec section 2.1).

The spelling has the tokens of the text in their order, so that a comment keeps its place between two of them. One that
ends its line stays behind the token before it; one that begins a line keeps a line of its own, or stays before the
token that it shares the line with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .spelling import APART, BREAK, DEDENT, GAP, LINE, SPACE, Mark, Part
from .tree import Token

CLOSING = frozenset({")", "]", "}", ",", ";", ":", ">", ".", ""})
"""A comment on their line belongs to what stands before them."""


@dataclass(frozen=True)
class Comment:
    """A comment between two tokens."""

    text: str
    own_line: bool
    """Whether it has a line of its own."""
    after_blank: bool = False
    """Whether a blank line comes before it."""
    tight: bool = False
    """Whether it sticks to the bracket before it."""

    @property
    def ends_line(self) -> bool:
        """Whether a new line follows."""
        return self.own_line or self.text.startswith("//") or "\n" in self.text


@dataclass(frozen=True)
class BlankLine:
    """A blank line before the next token."""


OPENING = frozenset("([<")

BLANKS = frozenset({SPACE, BREAK, LINE, GAP, APART})

Woven: TypeAlias = Part | Comment | BlankLine


def woven(parts: Iterable[Part], tokens: Sequence[Token], comments: Sequence[Token]) -> Iterator[Woven]:
    """The parts of a spelling with the comments and the blank lines of the text that has these tokens."""
    text = _Text(tokens, comments)
    marks: list[Mark] = [LINE]
    for part in parts:
        if isinstance(part, Mark):
            marks.append(part)
            continue
        yield from text.between(part, marks)
        yield part
        marks = []
    yield from text.between("", marks)


class _Text:
    """The tokens and comments of a text, as far as they are not yet spelled."""

    def __init__(self, tokens: Sequence[Token], comments: Sequence[Token]) -> None:
        self._tokens = tokens
        self._comments = comments
        self._token = 0
        self._comment = 0
        self._end_line = 0
        """The line in which the last token ends."""

    def between(self, part: str, marks: Sequence[Mark]) -> Iterator[Woven]:
        """What stands before the next part: marks, comments and blank lines."""
        while unspelled := self._unspelled(part):
            self._token += unspelled
        token = self._tokens[self._token]
        found = []
        while self._comment < len(self._comments) and self._comments[self._comment].span < token.span:
            found.append(self._comments[self._comment])
            self._comment += 1
        yield from self._placed(found, marks, token)
        assert token.type == "STRING" or token.value == part or {token.value, part} == {",", ";"}, (
            f"{part!r} is spelled where the text has {token.value!r}"
        )
        self._end_line = token.end_line
        self._token += 1

    def _unspelled(self, part: str) -> int:
        """How many tokens here have no spelling: an attribute block without attributes, a colon without its step."""
        values = [token.value for token in self._tokens[self._token : self._token + 3]]
        if values == ["@", "{", "}"]:
            return 3
        return int(values[0] == ":" and part in (",", "]"))

    def _placed(self, comments: list[Token], marks: Sequence[Mark], token: Token) -> Iterator[Woven]:
        if not comments and not (GAP in marks or APART in marks):
            yield from marks
            return
        trailing, own, leading = self._divided(comments, token)
        before = self._tokens[self._token - 1].value if self._token else ""
        tight = before in OPENING and not BLANKS & set(marks)
        yield from (Comment(_tidy(comment), own_line=False, tight=tight) for comment in trailing)
        end_line = trailing[-1].end_line if trailing else self._end_line
        place = marks.index(DEDENT) if DEDENT in marks else len(marks)
        listed = bool({GAP, APART, LINE} & set(marks))
        blank_allowed = GAP in marks
        yield from marks[:place]
        for comment in own:
            blank = listed and blank_allowed and comment.line > end_line + 1
            yield Comment(_tidy(comment), own_line=True, after_blank=blank)
            end_line, blank_allowed = comment.end_line, True
        first = leading[0] if leading else token
        if listed and blank_allowed and first.line > end_line + 1 and place == len(marks) and token.value:
            yield BlankLine()
        yield from marks[place:]
        yield from (Comment(_tidy(comment), own_line=False, tight=tight) for comment in leading)

    def _divided(self, comments: list[Token], token: Token) -> tuple[list[Token], list[Token], list[Token]]:
        """Those that end the line of the last token, those in between, those on the line of the next token."""
        rest = list(comments)
        leading: list[Token] = []
        line = token.line
        while rest and token.value not in CLOSING and rest[-1].value.startswith("/*") and rest[-1].line == line:
            leading.insert(0, rest.pop())
        trailing: list[Token] = []
        while rest and rest[0].line == self._end_line:
            trailing.append(rest.pop(0))
        return trailing, rest, leading


def _tidy(comment: Token) -> str:
    text = comment.value
    return text.rstrip() if text.startswith("//") else text
