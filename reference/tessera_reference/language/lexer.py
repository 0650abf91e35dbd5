"""Text to tokens (spec sections 2.1 and 14.1).

The type of a token is a terminal of `grammar.lark`. A text that is no token is recorded as a problem, and
reading goes on behind it: a word with a stray character becomes a token of type `ERROR`, a string in the wrong quotes a
token of type `STRING`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache

from lark.lexer import PatternStr

from ..ir.diagnostics import Diagnostic, Span
from .tree import ESCAPES, Token, lalr_parser

RESERVED = frozenset(
    "module func kernel let return if else for while in schedule dist op mesh type dtype layout precision numerics "
    "pipeline barrier shared align asm import from as".split()
)
"""The reserved words of section 2.1."""

END = "$END"  # the type of the token behind the last one
ERROR = "$ERROR"  # the type of a token that is none; the problem is already recorded
MOST_PROBLEMS = 10  # after so many the rest of the text is not read

STRAY = r"""(?:(?!!=)[^A-Za-z0-9_\s{}()\[\];:,.=<>+\-*/@?"])"""  # a character of no token

READ_AS = {"wrong_escape": "STRING", "wrong_quotes": "STRING", "stray": ERROR}
"""The type of the token that takes the place of a mistake; other mistakes leave no token."""

TYPES = ("tensor", "memref", "fragment", "mesh")
"""Words of types that angle brackets follow."""

CONTEXTUAL = {"tensor": "<", "memref": "<", "fragment": "<", "fn": r"\(", "assert": r"\("}
"""These words are keywords only before this, a regular expression; elsewhere they are names."""

HINTS = {
    **dict.fromkeys("'`\u201c\u201d", 'strings stand in double quotes: "text"'),
    **dict.fromkeys("\u2212\u2013", "did you mean '-'?"),
    "\u00d7": "did you mean '*'?",
    "!": "did you mean '!='?",
    "&&": "there is no logical 'and': nest two ifs",
    "||": "there is no logical 'or': nest two ifs",
    "%": "there is no remainder operator",
    "#": "comments begin with // or stand between /* and */",
    "\0": "a NUL byte: is this a text file?",
    "\u00a0": "a no-break space: type a plain one",
    "\ufeff": "a byte order mark: save the file without it",
}
"""What to do about a character that belongs to no token."""


@cache
def spellings() -> dict[str, str]:
    """The spelling of each terminal that the grammar quotes, by its name."""
    return {each.name: each.pattern.value for each in lalr_parser().terminals if isinstance(each.pattern, PatternStr)}


@cache
def _types() -> dict[str, str]:
    """The type of each word and mark that the grammar knows; other words are names."""
    quoted = {spelling: name for name, spelling in spellings().items() if spelling not in CONTEXTUAL}
    return dict.fromkeys(RESERVED, "WORD") | quoted


@cache
def _scanner() -> re.Pattern[str]:
    """One alternative for each kind of token, named by its type in capitals, and for each kind of mistake."""
    names = ("IDENT", "WS", "COMMENT", "FLOAT", "INT", "STRING")
    rules = {name: lalr_parser().get_terminal(name).pattern.to_regexp() for name in names}
    gap = f"(?:{rules['WS']}|{rules['COMMENT']})*+"
    marks = sorted((text for text in _types() if not text.isidentifier()), key=len, reverse=True)
    alternatives = {
        **{word.upper(): f"{word}(?={gap}{following})" for word, following in CONTEXTUAL.items()},
        "word": rf"(?>{rules['IDENT']})(?!{STRAY})",
        "newline": r"\n[ \t\r\n]*",
        "COMMENT": rules["COMMENT"],
        "open_comment": r"/\*",
        "_ATTRIBUTES": rf"@(?={gap}\{{)",  # AMB-LANG-17
        "mark": "|".join(map(re.escape, marks)),
        **{name: rules[name] for name in ("FLOAT", "INT", "STRING")},
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


def as_accepted(word: Token, accepted: Collection[str]) -> Token:
    """A word as the parser accepts it: one of the grammar that is not reserved is a name elsewhere (AMB-LANG-02)."""
    if word.type in accepted:
        return word
    others = ("WORD",) if word.value in RESERVED else ("IDENT",) if word.type == "X" else ("IDENT", "SHAPE_NAME")
    return next((replace(word, type=type) for type in others if type in accepted), word)


class Lexer:
    """The tokens of a text, read once, the last of type `END`; what was wrong is found in `problems`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.comments: list[Token] = []
        self.cut_short = False
        """Whether reading ended before the text: something is never closed, or too much is wrong."""
        self.doubtful_line: int | None = None
        """Where the first string of several lines begins, or one never closed: quotes may be out of step from there."""

    def __iter__(self) -> Iterator[Token]:
        types = _types()
        line, before_line = 1, -1  # the number of the line, and the index of the character before it
        in_shape = False  # of a tensor or memref
        in_type = False  # between the angle brackets of a type
        before = ""  # the word or mark before
        for match in _scanner().finditer(self.source):
            kind = match.lastgroup or ""
            text, end = match[kind], match.end()
            start = end - len(text)
            first_line, column = line, start - before_line
            if "\n" in text:
                line += text.count("\n")
                before_line = start + text.rindex("\n")
                if kind == "newline":
                    continue
            end_column = end - before_line
            if kind == "mark" and in_type and text == ">=":  # the end of a type, and what a declaration gives
                in_type = in_shape = False
                yield Token(types[">"], ">", first_line, column, line, column + 1)
                yield Token(types["="], "=", first_line, column + 1, line, end_column)
            elif kind == "mark" or (kind == "word" and not in_shape):
                in_shape = in_shape and text in "<?"
                in_type = (in_type and text not in (">", "{", "}")) or (text == "<" and before in TYPES)
                before = text
                yield Token(types.get(text, "IDENT"), text, first_line, column, line, end_column)
            elif kind == "word":
                yield from _pieces(text, line, column)
            elif kind == "COMMENT":
                self.comments.append(Token(kind, text, first_line, column, line, end_column))
            elif kind.isupper():
                in_shape = kind in ("TENSOR", "MEMREF") or (in_shape and kind == "INT")
                before = text
                if kind == "STRING" and line > first_line:
                    self.doubtful_line = self.doubtful_line or first_line
                yield Token(kind, text, first_line, column, line, end_column)
            elif kind != "end":
                self._report(kind, text, start)
                if kind in READ_AS:
                    yield Token(READ_AS[kind], text, first_line, column, line, end_column)
                if self.cut_short:
                    break
        yield Token(END, "", line, end - before_line, line, end - before_line)

    def _report(self, kind: str, text: str, start: int) -> None:
        """Record what is wrong with a text that is no token, by its kind."""
        if kind == "open_comment":
            self._problem("this comment is never closed", start, 1, "LANG-14.1-10", "close it with */")
        elif kind == "open_string":
            first = self.doubtful_line
            remedy = 'close it with "' + (f", or the one that begins in line {first}" if first else "")
            self._problem("this string is never closed", start, 1, "LANG-14.1-04", remedy)
            self.doubtful_line = first or self.problems[-1].span.line
        elif kind == "wrong_escape":
            for match in re.finditer(r"\\([\s\S])", text):
                if match[1] not in ESCAPES:
                    message = f"unknown escape {match[0] if match[0].isprintable() else repr(match[0])} in a string"
                    self._problem(message, start + match.start(), 2, "LANG-14.1-04", r"escapes: \\ \" \n \r \t")
        else:
            stray = re.search(STRAY, text)
            at = stray.start() if stray else 0
            remedy = HINTS.get(text[at : at + 2], HINTS.get(text[at], ""))
            self._problem(f"unexpected character {text[at]!r}", start + at, 1, "LANG-14.1-01", remedy)
        self.cut_short = kind in ("open_comment", "open_string") or len(self.problems) >= MOST_PROBLEMS

    def _problem(self, message: str, start: int, length: int, clause: str, remedy: str) -> None:
        """Record what is wrong with some characters of the text."""
        span, requirement = span_of(self.source, start, length), "a token of section 14.1"
        self.problems.append(Diagnostic("syntax", "lex", message, span, "", (), requirement, clause, remedy))


def _pieces(word: str, line: int, column: int) -> Iterator[Token]:
    """A word of a shape, split at each x (AMB-LANG-06)."""
    types = _types()
    for match in _PIECES.finditer(word):
        text, start = match[0], column + match.start()
        type = "INT" if text.isdigit() else types.get(text, "SHAPE_NAME")
        yield Token(type, text, line, start, line, start + len(text))


def span_of(text: str, start: int, length: int) -> Span:
    """The place of some characters of a line."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return Span(line, column, line, column + length)
