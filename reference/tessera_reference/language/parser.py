"""Parsing: text to `Program` (spec sections 2.1, 2.3, 14).

Lark's LALR parser is fed token by token and makes the syntax tree from its leaves up, without recursion. It stops at
the first wrong token, which is reported; the tokens around it are edited and read again, so that several are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lark.exceptions import UnexpectedToken

from ..ir.diagnostics import Diagnostic, Location, Rejection, Span, UnsupportedConstruct
from . import messages
from .lexer import END, MOST_PROBLEMS, RESERVED, Lexer, as_accepted
from .nesting import COUNTED, OPERATORS_OR_OPENING, Nesting
from .recovery import balance, made, resumption
from .syntax import ModuleDecl, Program
from .tree import MisplacedArgument, Parser, Token, span, start_parser

__all__ = ["RESERVED", "decode", "parse", "parse_bytes", "too_deep"]

MOST_EDITS = 5 * MOST_PROBLEMS
"""After so many edits the rest of the text is not read."""


class Stop(NamedTuple):
    """The parser does not go on: at a token, or at its first pieces, or because of what it makes of those before it."""

    at: int
    token: Token
    misplaced: Span | None = None
    """Where a positional argument stands behind one by keyword."""
    excess: str = ""
    """The limit that is exceeded."""


def parse(source: str, filename: str = "<source>") -> Program:
    """The syntax tree of `source`. Raises `Rejection` with what is wrong, each of phase lex or parse."""
    lexer = Lexer(source, filename)
    modules = _read(start_parser(), lexer)
    if isinstance(modules, Stop):
        raise Rejection([_described([], modules, filename)] if modules.excess else _diagnose(source, modules, filename))
    if lexer.problems:
        raise Rejection(lexer.problems)
    return Program(span(modules) if modules else Span(1, 1, 1, 1), modules, filename)


def _read(parser: Parser, tokens: Iterable[Token]) -> tuple[ModuleDecl, ...] | Stop:
    """The modules of a program from all its tokens, or why the parser does not go on."""
    feed, choices = parser.feed_token, parser.choices
    nesting = Nesting()
    modules: tuple[ModuleDecl, ...] = ()
    for index, token in enumerate(tokens):
        piece, text = token, token.value
        try:
            if text in COUNTED:
                behind_operand = text in OPERATORS_OR_OPENING and "STAR" in choices() and token.type != "_ATTRIBUTES"
                if excess := nesting.count(text, behind_operand):
                    return Stop(index, token, excess=excess)
                feed(token)
            elif token.type in (accepted := choices()):
                modules = feed(token)
            else:
                for piece in as_accepted(token, accepted):
                    feed(piece)
        except UnexpectedToken:
            return Stop(index, piece)
        except MisplacedArgument as misplaced:
            return Stop(index, piece, misplaced.span)
    return modules


def _diagnose(source: str, stop: Stop, filename: str) -> list[Diagnostic]:
    """What is wrong with a text that is no program, in its order, ten findings at most."""
    lexer = Lexer(source, filename)
    tokens = list(lexer)
    found = {problem.span: problem for problem in lexer.problems}
    lexical = [span[:2] for span in found]
    unclosed = 0
    for _ in range(MOST_EDITS):
        if len(found) >= MOST_PROBLEMS:
            break
        token = stop.token
        hidden = token.type == END and (lexer.cut_short or unclosed > 0)
        if not hidden and not any(token.span[:2] <= place < token.span[2:] for place in lexical):
            diagnostic = _described(tokens, stop, filename)
            if lexer.doubtful_line is None or diagnostic.span.line < lexer.doubtful_line:
                found.setdefault(diagnostic.span, diagnostic)
        edit = None if stop.excess else resumption(tokens, stop.at)
        if edit is None:
            break
        given = [made(text) for text in edit.given]
        unclosed += balance(given) - balance(tokens[edit.start : edit.stop])
        tokens[edit.start : edit.stop] = given
        result = _read(start_parser(), tokens)
        if not isinstance(result, Stop):
            break
        stop = result
    return sorted(found.values(), key=lambda diagnostic: diagnostic.span)[:MOST_PROBLEMS]


def _described(tokens: Sequence[Token], stop: Stop, filename: str) -> Diagnostic:
    if stop.excess:
        return messages.beyond_limit(stop.excess, stop.token.span, filename)
    if stop.misplaced:
        return messages.misplaced_argument(stop.misplaced, filename)
    parser = start_parser()
    _read(parser, tokens[: stop.at])
    for piece in as_accepted(tokens[stop.at], parser.choices()):
        if piece.span == stop.token.span:
            break
        parser.feed_token(piece)
    previous = next((token for token in reversed(tokens[: stop.at]) if token.line), None)
    following = tokens[min(stop.at + 1, len(tokens) - 1)]
    return messages.unexpected(stop.token, previous, following, parser.accepts(), filename)


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
