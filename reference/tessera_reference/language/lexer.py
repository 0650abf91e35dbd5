"""Text to tokens (spec sections 2.1 and 14.1).

The type of a token is a terminal of `grammar.lark`. What is no token is recorded as a problem, once, and reading goes
on behind it, so that one pass finds several: a word with a stray character becomes a token of type `ERROR`, a string in
the wrong quotes a string.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache

from lark.lexer import PatternStr

from ..ir.diagnostics import Diagnostic, Span
from .tree import ESCAPES, Token, lalr_parser

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

CONTEXTUAL = {"tensor": "<", "memref": "<", "fragment": "<", "fn": r"\(", "assert": r"\("}
"""What must come next for these to be the words of their rules, as a regular expression."""

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


@cache
def terminals() -> dict[str, str]:
    """The name of each terminal that the grammar quotes, by its spelling."""
    quoted = (terminal for terminal in lalr_parser().terminals if isinstance(terminal.pattern, PatternStr))
    return {terminal.pattern.value: terminal.name for terminal in quoted}


@cache
def _types() -> dict[str, str]:
    """The type of each word and mark that is no name wherever it stands."""
    return dict.fromkeys(RESERVED, "WORD") | {text: terminals()[text] for text in terminals().keys() - CONTEXTUAL}


@cache
def spellings() -> dict[str, str]:
    """The spelling of each terminal that the grammar quotes, by its name."""
    return {name: spelling for spelling, name in terminals().items()}


@cache
def _scanner() -> re.Pattern[str]:
    """One alternative for each kind of token, and for each kind of mistake."""
    names = ("IDENT", "WS", "COMMENT", "FLOAT", "INT", "STRING")
    rules = {name: lalr_parser().get_terminal(name).pattern.to_regexp() for name in names}
    gap = f"(?:{rules['WS']}|{rules['COMMENT']})*+"
    punctuation = sorted((text for text in terminals() if not text.isidentifier()), key=lambda text: (-len(text), text))
    alternatives = {
        "contextual": "|".join(f"{word}(?={gap}{following})" for word, following in CONTEXTUAL.items()),
        "word": rf"(?>{rules['IDENT']})(?!{STRAY})",
        "newline": r"\n[ \t\r\n]*",
        "COMMENT": rules["COMMENT"],
        "open_comment": r"/\*",
        "_ATTRIBUTES": rf"@(?={gap}\{{)",  # AMB-LANG-17
        "mark": "|".join(map(re.escape, punctuation)),
        "FLOAT": rules["FLOAT"],
        "INT": rules["INT"],
        "STRING": rules["STRING"],
        "end": r"\Z",
        "wrong_escape": r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"',
        "open_string": r'"',
        "wrong_quotes": r"'[^'\n]*'|`[^`\n]*`|[\u201c\u201d][^\u201c\u201d\n]*[\u201c\u201d]",
        "wrong_comment": r"#(?=[\s#!])[^\n]*",
        "wrong_space": r"\A\ufeff|[\s\u200b\u2060\ufeff]++",
        "stray": rf"[A-Za-z0-9_]*+(?:{STRAY}[A-Za-z0-9_]*+)++|[\s\S]",
    }
    return re.compile(r"[ \t\r]*+(?:" + "|".join(f"(?P<{name}>{rule})" for name, rule in alternatives.items()) + ")")


_PIECES = re.compile(r"complex(?:64|128)(?![A-Za-z0-9_])|x|[0-9]+|[A-Za-wyz_][A-Za-wyz0-9_]*")


def as_accepted(token: Token, accepted: Collection[str]) -> list[Token]:
    """A token as the tokens that the parser accepts in its place, if there are such; otherwise the token itself.

    A word of the grammar that is not reserved is a name elsewhere (AMB-LANG-02); inside the angle brackets of tensor
    and memref a word is split at each x (AMB-LANG-06).
    """
    type, text, line, column = token.type, token.value, token.line, token.column
    if type in accepted or type == ERROR or not text.isidentifier():
        return [token]
    if text in RESERVED:
        return [token.retyped("WORD") if "WORD" in accepted else token]
    if "IDENT" in accepted:
        return [token.retyped("IDENT")]
    if type == "SHAPE_NAME" or not ("X" in accepted or "SHAPE_NAME" in accepted):
        return [token]
    pieces = ((match[0], column + match.start(), column + match.end()) for match in _PIECES.finditer(text))
    return [Token(_type_of_piece(piece), piece, line, start, line, end) for piece, start, end in pieces]


def _type_of_piece(text: str) -> str:
    return "INT" if text.isdigit() else "X" if text == "x" else "WORD" if text in RESERVED else "SHAPE_NAME"


class Lexer:
    """The tokens of a text, read once, the last of type `END`; what was wrong is found in `problems`."""

    def __init__(self, source: str, filename: str = "<source>") -> None:
        self.source = source
        self.filename = filename
        self.problems: list[Diagnostic] = []
        self.comments: list[Token] = []
        self.cut_short = False
        """Whether reading ended before the text: something is never closed, or too much is wrong."""
        self.doubtful_line: int | None = None
        """Where a string is never closed, the line from which on quotes may be out of step."""
        self._first_long_string: int | None = None
        """The line where the first string of several lines begins."""

    def __iter__(self) -> Iterator[Token]:
        types = _types()
        line, start_of_line, end_column = 1, 0, 1
        for match in _scanner().finditer(self.source):
            kind = match.lastgroup or ""
            text, end = match[kind], match.end()
            end_column = end - start_of_line + 1
            column = end_column - len(text)
            if kind == "word" or kind == "mark":
                yield Token(types.get(text, "IDENT"), text, line, column, line, end_column)
            elif kind == "contextual":
                yield Token(terminals()[text], text, line, column, line, end_column)
            elif kind == "INT" or kind == "FLOAT" or kind == "_ATTRIBUTES":
                yield Token(kind, text, line, column, line, end_column)
            else:
                first_line = line
                if "\n" in text:
                    line += text.count("\n")
                    start_of_line = end - len(text) + text.rindex("\n") + 1
                    end_column = end - start_of_line + 1
                if kind == "end":
                    break
                if kind != "newline":
                    yield from self._other(Token(kind, text, first_line, column, line, end_column))
                if self.cut_short:
                    break
        yield Token(END, "", line, end_column, line, end_column)

    def _other(self, token: Token) -> Iterator[Token]:
        """Strings, comments and what is wrong, as the tokens that are left of them."""
        kind, text = token.type, token.value
        if kind == "COMMENT":
            self.comments.append(token)
        elif kind == "STRING":
            if "\n" in text:
                self._first_long_string = self._first_long_string or token.line
            yield token
        else:
            self._report(token)
            if kind in READ_AS:
                yield token.retyped(READ_AS[kind])

    def _report(self, token: Token) -> None:
        """Keep what is wrong with a token that is none."""
        text = token.value
        if token.type == "open_comment":
            self.cut_short = True
            self._problem("this comment is never closed", token, 0, 1, "LANG-14.1-10", "close it with */")
        elif token.type == "open_string":
            self.cut_short = True
            first = self._first_long_string
            self.doubtful_line = first or token.line
            remedy = 'close it with "' + (f", or the one that begins in line {first}" if first else "")
            self._problem("this string is never closed", token, 0, 1, "LANG-14.1-04", remedy)
        elif token.type == "wrong_escape":
            for match in re.finditer(r"\\([\s\S])", text):
                if match[1] not in ESCAPES:
                    message = f"unknown escape {match[0] if match[0].isprintable() else repr(match[0])} in a string"
                    self._problem(message, token, match.start(), 2, "LANG-14.1-04", r"escapes: \\ \" \n \r \t")
        else:
            stray = re.search(STRAY, text) if token.type == "stray" else None
            at = stray.start() if stray else 0
            remedy = HINTS.get(text[at : at + 2], HINTS.get(text[at], ""))
            self._problem(f"unexpected character {text[at]!r}", token, at, 1, "LANG-14.1-01", remedy)
        self.cut_short |= len(self.problems) >= MOST_PROBLEMS

    def _problem(self, message: str, token: Token, at: int, length: int, clause: str, remedy: str) -> None:
        """Keep what is wrong with the characters of a token from a place on."""
        before = token.value[:at]
        line = token.line + before.count("\n")
        column = at - before.rfind("\n") if "\n" in before else token.column + at
        place, wanted = Span(line, column, line, column + length), "a token of section 14.1"
        self.problems.append(Diagnostic("syntax", "lex", message, place, self.filename, (), wanted, clause, remedy))
