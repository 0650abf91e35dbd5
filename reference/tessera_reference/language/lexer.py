"""Text to tokens (spec sections 2.1 and 14.1).

The kind of a token is a terminal of the grammar; a quoted terminal's kind is its spelling. What is no token is noted as
a problem, once, and reading goes on behind it, so that one pass finds several: a word with a stray character becomes a
token of kind `ERROR`, a string in the wrong quotes a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ..ir.diagnostics import Span
from .tables import END, tables

RESERVED = frozenset(
    (
        "module func kernel let return if else for while in schedule dist op mesh type dtype layout precision numerics "
        "pipeline barrier shared align asm import from as"
    ).split()
)
"""The reserved words of section 2.1."""

ERROR = "$ERROR"
"""The kind of a token that is none; the problem is already noted."""

ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
"""What stands behind a backslash, and what it means (AMB-LANG-05)."""

MOST_PROBLEMS = 10
"""After so many problems the rest of the text is not read."""

LONGEST_WORD = 200
"""More of a broken word is not looked at."""

STRAY = r"""(?:(?!!=)[^A-Za-z0-9_\s{}()\[\];:,.=<>+\-*/@?"])"""
"""A character that belongs to no token."""

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


class Token(NamedTuple):
    """One token and its place; the end column is the first one behind it."""

    kind: str
    text: str
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def start(self) -> tuple[int, int]:
        """Line and column of its first character."""
        return self[2:4]

    @property
    def end(self) -> tuple[int, int]:
        """Line and column of the first character behind it."""
        return self[4:6]

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.line, self.column, self.end_line, self.end_column)


class Problem(NamedTuple):
    """A lexical error."""

    message: str
    span: Span
    clause: str
    remedy: str


@cache
def _scanner() -> re.Pattern[str]:
    """One alternative for each kind of token, and for each kind of mistake."""
    grammar = tables()
    longest_first = sorted(grammar.punctuation, key=lambda spelling: (-len(spelling), spelling))
    alternatives = {
        "WORD": rf"(?>{grammar.patterns['IDENT']})(?!{STRAY})",
        "NEWLINE": r"\n[ \t\r\n]*",
        "COMMENT": grammar.patterns["COMMENT"],
        "open_comment": r"/\*",
        "PUNCTUATION": "|".join(re.escape(spelling) for spelling in longest_first),
        "FLOAT": grammar.patterns["FLOAT"],
        "INT": grammar.patterns["INT"],
        "STRING": grammar.patterns["STRING"],
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
    patterns = tables().patterns
    return re.compile(rf"(?:{patterns['WS']}|{patterns['COMMENT']})*+([\s\S])")


def unbroken(token: Token) -> list[Token]:
    """What is left of a token of kind `ERROR` without its stray characters, as if it all stood at its beginning."""
    *rest, _ = Lexer(re.sub(STRAY, " ", token.text[:LONGEST_WORD]))
    return [part._replace(line=token.line, column=token.column, end_line=token.line) for part in rest]


def marked(token: Token, following: str) -> Token:
    """A token as what the first character behind it makes it: a word of the grammar or a name, one @ or the other."""
    wanted = BRACKETS.get(token.text)
    if wanted is None:
        return token
    if token.text == "@":
        return token._replace(kind="_ATTRIBUTES" if following == wanted else "@")
    return token._replace(kind=token.text if following == wanted else "IDENT")


class Lexer:
    """The tokens of a text, read once, the last of kind `END`; what was wrong is found in `problems`."""

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
        words = tables().words
        line, start_of_line, end_column = 1, 0, 1
        for match in _scanner().finditer(self.source):
            group = match.lastgroup or ""
            text, end = match[group], match.end()
            end_column = end - start_of_line + 1
            column = end_column - len(text)
            if group == "WORD" or group == "PUNCTUATION":
                kind = text if group == "PUNCTUATION" or text in words else "IDENT"
                token = Token(kind, text, line, column, line, end_column)
                yield token if text not in BRACKETS else self._marked(token, end)
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

    def _marked(self, token: Token, end: int) -> Token:
        following = _next_mark().match(self.source, end)
        return marked(token, following[1] if following else "")

    def _other(self, token: Token) -> Token | None:
        """What is neither a word nor a mark, and what is wrong; None where nothing is left of it."""
        match token.kind:
            case "INT" | "FLOAT":
                return token
            case "NEWLINE" | "END":
                return None
            case "STRING":
                if token.end_line > token.line and self._first_long_string is None:
                    self._first_long_string = token
                return token
            case "COMMENT":
                self.comments.append(token)
                return None
        kept = self._mistake(token)
        self.cut_short |= len(self.problems) >= MOST_PROBLEMS
        return kept

    def _mistake(self, token: Token) -> Token | None:
        match token.kind:
            case "open_comment":
                self._never_closed(token, "comment", "LANG-14.1-10", "close it with */")
            case "open_string":
                remedy, self.doubtful_line = 'close it with "', token.line
                if self._first_long_string:
                    self.doubtful_line = self._first_long_string.line
                    remedy += f", or the one that begins in line {self.doubtful_line}"
                self._never_closed(token, "string", "LANG-14.1-04", remedy)
            case "wrong_escape":
                self._wrong_escapes(token)
                return token._replace(kind="STRING")
            case "wrong_quotes":
                self._unexpected(token, 0)
                return token._replace(kind="STRING")
            case "wrong_comment" | "wrong_space":
                self._unexpected(token, 0)
            case _:
                stray = re.search(STRAY, token.text)
                self._unexpected(token, stray.start() if stray else 0)
                return token._replace(kind=ERROR)
        return None

    def _never_closed(self, token: Token, what: str, clause: str, remedy: str) -> None:
        place = Span(token.line, token.column, token.line, token.column + 1)
        self.problems.append(Problem(f"this {what} is never closed", place, clause, remedy))
        self.cut_short = True

    def _unexpected(self, token: Token, at: int) -> None:
        """A character of a token that can stand in none."""
        found = token.text[at : at + 2]
        hint = HINTS.get(found, HINTS.get(found[0], ""))
        place = Span(token.line, token.column + at, token.line, token.column + at + 1)
        self.problems.append(Problem(f"unexpected character {found[0]!r}", place, "LANG-14.1-01", hint))

    def _wrong_escapes(self, token: Token) -> None:
        for match in re.finditer(r"\\([\s\S])", token.text):
            if match[1] not in ESCAPES:
                before = token.text[: match.start()]
                line = token.line + before.count("\n")
                column = len(before) - before.rfind("\n") if "\n" in before else token.column + len(before)
                place = Span(line, column, line, column + 2)
                shown = match[0] if match[0].isprintable() else repr(match[0])
                message, remedy = f"unknown escape {shown} in a string", r"escapes: \\ \" \n \r \t"
                self.problems.append(Problem(message, place, "LANG-14.1-04", remedy))
