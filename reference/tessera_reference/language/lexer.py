"""Text to tokens (spec sections 2.1 and 14.1).

The type of a token is a terminal of `grammar.lark`. What is no token is recorded as a problem, once, and reading goes
on behind it, so that one pass finds several: a word with a stray character becomes a token of type `ERROR`, a string in
the wrong quotes a string.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import NamedTuple

import lark
from lark.lexer import PatternStr

from ..ir.diagnostics import Span
from .tree import ESCAPES, lalr_parser

RESERVED = frozenset(
    (
        "module func kernel let return if else for while in schedule dist op mesh type dtype layout precision numerics "
        "pipeline barrier shared align asm import from as"
    ).split()
)
"""The reserved words of section 2.1."""

END = "$END"
"""The type of the token behind the last one."""

ERROR = "$ERROR"
"""The type of a token that is none; the problem is already recorded."""

MOST_PROBLEMS = 10
"""After so many problems the rest of the text is not read."""

STRAY = r"""(?:(?!!=)[^A-Za-z0-9_\s{}()\[\];:,.=<>+\-*/@?"])"""
"""A character that belongs to no token."""

READ_AS = {"wrong_escape": "STRING", "wrong_quotes": "STRING", "stray": ERROR}
"""The type of the token that a mistake is replaced by; others leave none."""

BRACKETS = {"tensor": "<", "memref": "<", "fragment": "<", "fn": "(", "assert": "(", "@": "{"}
"""What must come next for these to be the words of their rules, and for @ to open attributes (AMB-LANG-17)."""

HINTS = {
    "&&": "there is no logical 'and': nest two ifs",
    "||": "there is no logical 'or': nest two ifs",
    "!": "did you mean '!='?",
    "%": "there is no remainder operator",
    "'": 'strings stand in double quotes: "text"',
    "`": 'strings stand in double quotes: "text"',
    "#": "comments begin with // or stand between /* and */",
    "\0": "a NUL byte: is this a text file?",
    "\u201c": 'strings stand in double quotes: "text"',
    "\u201d": 'strings stand in double quotes: "text"',
    "\u00a0": "a no-break space: type a plain one",
    "\u2212": "did you mean '-'?",
    "\u2013": "did you mean '-'?",
    "\u00d7": "did you mean '*'?",
    "\ufeff": "a byte order mark: save the file without it",
}


class Token(lark.Token):
    """A token and its place, without the offsets of Lark's own; the end column is the first one behind it."""

    __slots__ = ()

    line: int
    column: int
    end_line: int
    end_column: int

    def __new__(cls, type: str, value: str, line: int, column: int, end_line: int, end_column: int) -> Token:
        """Lark's constructor takes three times as long."""
        token = str.__new__(cls, value)
        token.type, token.value = type, value
        token.line, token.column, token.end_line, token.end_column = line, column, end_line, end_column
        return token

    @property
    def start(self) -> tuple[int, int]:
        """Line and column of its first character."""
        return self.line, self.column

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.line, self.column, self.end_line, self.end_column)

    def retyped(self, type: str) -> Token:
        """The same text as another terminal."""
        return Token(type, self.value, self.line, self.column, self.end_line, self.end_column)


class Problem(NamedTuple):
    """A lexical error."""

    message: str
    span: Span
    clause: str
    remedy: str


@cache
def terminals() -> dict[str, str]:
    """The name of each terminal that the grammar quotes, by its spelling."""
    quoted = (terminal for terminal in lalr_parser().terminals if isinstance(terminal.pattern, PatternStr))
    return {terminal.pattern.value: terminal.name for terminal in quoted}


@cache
def _types() -> dict[str, str]:
    """The type of each word and mark that is no name."""
    return dict.fromkeys(RESERVED, "WORD") | terminals()


@cache
def spellings() -> dict[str, str]:
    """The spelling of each terminal that the grammar quotes, by its name."""
    return {name: spelling for spelling, name in terminals().items()}


def _pattern(terminal: str) -> str:
    return lalr_parser().get_terminal(terminal).pattern.to_regexp()


@cache
def _scanner() -> re.Pattern[str]:
    """One alternative for each kind of token, and for each kind of mistake."""
    punctuation = sorted((text for text in terminals() if not text.isidentifier()), key=lambda text: (-len(text), text))
    alternatives = {
        "WORD": rf"(?>{_pattern('IDENT')})(?!{STRAY})",
        "NEWLINE": r"\n[ \t\r\n]*",
        "COMMENT": _pattern("COMMENT"),
        "open_comment": r"/\*",
        "PUNCTUATION": "|".join(map(re.escape, punctuation)),
        "FLOAT": _pattern("FLOAT"),
        "INT": _pattern("INT"),
        "STRING": _pattern("STRING"),
        "END": r"\Z",
        "wrong_escape": r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"',
        "open_string": r'"',
        "wrong_quotes": r"'[^'\n]*'|`[^`\n]*`|[\u201c\u201d][^\u201c\u201d\n]*[\u201c\u201d]",
        "wrong_comment": r"#(?=[\s#!])[^\n]*",
        "wrong_space": r"\A\ufeff|[\s\u200b\u2060\ufeff]++",
        "stray": rf"[A-Za-z0-9_]*+(?:{STRAY}[A-Za-z0-9_]*+)++|[\s\S]",
    }
    return re.compile(r"[ \t\r]*+(?:" + "|".join(f"(?P<{name}>{rule})" for name, rule in alternatives.items()) + ")")


@cache
def _next_mark() -> re.Pattern[str]:
    """The first character behind white space and comments, if there is one."""
    return re.compile(rf"(?:{_pattern('WS')}|{_pattern('COMMENT')})*+([\s\S]?)")


_PIECES = re.compile(r"complex(?:64|128)(?![A-Za-z0-9_])|x|[0-9]+|[A-Za-wyz_][A-Za-wyz0-9_]*")


def as_accepted(token: Token, accepted: Collection[str]) -> list[Token]:
    """A token as the tokens that the parser accepts in its place, if there are such; otherwise the token itself.

    A word of the grammar that is not reserved is a name elsewhere (AMB-LANG-02); inside the angle brackets of tensor
    and memref a word is split at each x (AMB-LANG-06).
    """
    if token.type in accepted or token.type == ERROR or not token.value.isidentifier():
        return [token]
    if token.value in RESERVED:
        return [token.retyped("WORD")] if "WORD" in accepted else [token]
    if "IDENT" in accepted:
        return [token.retyped("IDENT")]
    if token.type != "SHAPE_NAME" and ("X" in accepted or "SHAPE_NAME" in accepted):
        return [_piece(token, match.start(), match[0]) for match in _PIECES.finditer(token.value)]
    return [token]


def _piece(token: Token, offset: int, text: str) -> Token:
    type = "INT" if text.isdigit() else "X" if text == "x" else "WORD" if text in RESERVED else "SHAPE_NAME"
    column = token.column + offset
    return Token(type, text, token.line, column, token.line, column + len(text))


class Lexer:
    """The tokens of a text, read once, the last of type `END`; what was wrong is found in `problems`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.comments: list[Token] = []
        self.cut_short = False
        """Whether reading ended before the text: something is never closed, or too much is wrong."""
        self.doubtful_line: int | None = None
        """Where a string is never closed, the line from which on quotes may be out of step."""
        self._first_long_string: Token | None = None

    def __iter__(self) -> Iterator[Token]:
        types = _types()
        line, start_of_line, end_column = 1, 0, 1
        for match in _scanner().finditer(self.source):
            group = match.lastgroup or ""
            text, end = match[group], match.end()
            end_column = end - start_of_line + 1
            column = end_column - len(text)
            if group == "WORD" or group == "PUNCTUATION":
                kind = self._kind(text, end) if text in BRACKETS else types.get(text, "IDENT")
                yield Token(kind, text, line, column, line, end_column)
                continue
            first_line = line
            if "\n" in text:
                line += text.count("\n")
                start_of_line = end - len(text) + text.rindex("\n") + 1
                end_column = end - start_of_line + 1
            kept = self._other(Token(group, text, first_line, column, line, end_column))
            if kept is not None:
                yield kept
            if group == "END" or self.cut_short:
                break
        yield Token(END, "", line, end_column, line, end_column)

    def _kind(self, text: str, end: int) -> str:
        """The type of a word or an @, which depends on the first character behind it."""
        following = _next_mark().match(self.source, end)
        if following is not None and following[1] == BRACKETS[text]:
            return "_ATTRIBUTES" if text == "@" else terminals()[text]
        return terminals()["@"] if text == "@" else "IDENT"

    def _other(self, token: Token) -> Token | None:
        """What is neither a word nor a mark, and what is wrong; None where nothing is left of it."""
        match token.type:
            case "INT" | "FLOAT":
                return token
            case "NEWLINE" | "END":
                return None
            case "STRING":
                if "\n" in token.value and self._first_long_string is None:
                    self._first_long_string = token
                return token
            case "COMMENT":
                self.comments.append(token)
                return None
            case "open_comment":
                self._never_closed(token, "comment", "LANG-14.1-10", "close it with */")
            case "open_string":
                first = self._first_long_string
                self.doubtful_line = first.line if first else token.line
                other = f", or the one that begins in line {self.doubtful_line}" if first else ""
                self._never_closed(token, "string", "LANG-14.1-04", 'close it with "' + other)
            case "wrong_escape":
                self._wrong_escapes(token)
            case _:
                stray = re.search(STRAY, token.value) if token.type == "stray" else None
                at = stray.start() if stray else 0
                hint = HINTS.get(token.value[at : at + 2], HINTS.get(token.value[at], ""))
                self._report(f"unexpected character {token.value[at]!r}", token, at, 1, "LANG-14.1-01", hint)
        self.cut_short |= len(self.problems) >= MOST_PROBLEMS
        return token.retyped(READ_AS[token.type]) if token.type in READ_AS else None

    def _never_closed(self, token: Token, what: str, clause: str, remedy: str) -> None:
        self._report(f"this {what} is never closed", token, 0, 1, clause, remedy)
        self.cut_short = True

    def _wrong_escapes(self, token: Token) -> None:
        for match in re.finditer(r"\\([\s\S])", token.value):
            if match[1] not in ESCAPES:
                shown = match[0] if match[0].isprintable() else repr(match[0])
                message, remedy = f"unknown escape {shown} in a string", r"escapes: \\ \" \n \r \t"
                self._report(message, token, match.start(), 2, "LANG-14.1-04", remedy)

    def _report(self, message: str, token: Token, at: int, length: int, clause: str, remedy: str) -> None:
        """Keep what is wrong with the characters of a token from a place on."""
        before = token.value[:at]
        line = token.line + before.count("\n")
        column = at - before.rfind("\n") if "\n" in before else token.column + at
        self.problems.append(Problem(message, Span(line, column, line, column + length), clause, remedy))
