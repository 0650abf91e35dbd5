"""Parsing: text to `Program` (spec sections 2.1, 2.3, 14).

Lark's LALR parser is fed token by token and makes the syntax tree from its leaves up, without recursion. It stops at
the first wrong token. To find several, the tokens around that one are edited and all are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lark.exceptions import UnexpectedToken

from ..ir.diagnostics import Diagnostic, Rejection, Span
from . import messages
from .lexer import END, MOST_PROBLEMS, Lexer, as_accepted, span_of
from .nesting import COUNTED, Nesting
from .recovery import made, resumption
from .syntax import ModuleDecl, Program
from .tree import Token, span, start_parser

MOST_EDITS = 5 * MOST_PROBLEMS  # after so many the rest of the text is not read


class Stop(NamedTuple):
    """Where the parser does not go on."""

    at: int  # the index of the token that it refuses
    finding: Diagnostic | None = None  # what is wrong, unless it is that this token cannot follow those before it
    final: bool = False  # whether nothing behind it can be read


def parse(source: str, filename: str = "<source>") -> Program:
    """The syntax tree of `source`. Raises `Rejection` with what is wrong, each of phase lex or parse."""
    lexer = Lexer(source)
    modules = _read(start_parser(), lexer)
    if isinstance(modules, Stop) or lexer.problems:
        raise Rejection([replace(finding, filename=filename) for finding in _diagnose(source)])
    return Program(span(modules) if modules else Span(1, 1, 1, 1), modules, filename)


def _read(parser: Any, tokens: Iterable[Token]) -> tuple[ModuleDecl, ...] | Stop:
    """The modules of a program from all its tokens, or where the parser does not go on."""
    feed, choices = parser.feed_token, parser.choices
    nesting = Nesting()
    modules: tuple[ModuleDecl, ...] = ()
    for index, token in enumerate(tokens):
        text, type = token.value, token.type
        if text in COUNTED and type != "_ATTRIBUTES" and (excess := nesting.count(text, "STAR" in choices())):
            return Stop(index, messages.beyond_limit(excess, token.span), final=True)
        if type != "IDENT" and text.isidentifier():
            token = as_accepted(token, choices())
        try:
            modules = feed(token)
        except UnexpectedToken:
            return Stop(index)
        except Rejection as misplaced:
            return Stop(index, misplaced.diagnostics[0])
    return modules


def _diagnose(source: str) -> list[Diagnostic]:
    """What is wrong with a text that is no program, in its order, ten findings at most."""
    lexer = Lexer(source)
    tokens = list(lexer)
    found = {problem.span: problem for problem in lexer.problems}
    lexical = [span[:2] for span in found]
    for edits in range(MOST_EDITS):
        stop = _read(start_parser(), tokens)
        if not isinstance(stop, Stop) or len(found) >= MOST_PROBLEMS:
            break
        token = tokens[stop.at]
        hidden = token.type == END and (lexer.cut_short or edits > 0)  # it may be their doing
        if not hidden and not any(token.span[:2] <= place < token.span[2:] for place in lexical):
            finding = stop.finding or _unexpected(tokens, stop.at)
            if not (lexer.cut_short and lexer.doubtful_line and finding.span.line >= lexer.doubtful_line):
                found.setdefault(finding.span, finding)
        edit = None if stop.final else resumption(tokens, stop.at)
        if edit is None:
            break
        tokens[edit.start : edit.stop] = map(made, edit.given.split())
    return sorted(found.values(), key=lambda finding: finding.span)[:MOST_PROBLEMS]


def _unexpected(tokens: Sequence[Token], at: int) -> Diagnostic:
    """A token that cannot follow those before it, with those that can."""
    parser = start_parser()
    _read(parser, tokens[:at])
    previous = next((token for token in reversed(tokens[:at]) if token.line), made(""))
    following = tokens[min(at + 1, len(tokens) - 1)]
    return messages.unexpected(tokens[at], previous, following, parser.accepts())


def decode(data: bytes, filename: str = "<source>") -> str:
    """The text of a file's bytes. Raises `Rejection` at the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before, message = data[: error.start].decode("utf-8"), f"the byte 0x{data[error.start]:02x} is not UTF-8"
        span, remedy = span_of(before, len(before), 1), "save the file as UTF-8"
        finding = Diagnostic("syntax", "lex", message, span, filename, (), "text in UTF-8", "AMB-LANG-145", remedy)
        raise Rejection([finding]) from None
