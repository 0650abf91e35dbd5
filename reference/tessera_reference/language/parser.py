"""Parsing: text to `Program` (spec sections 2.1, 2.3, 14).

One pass over the tokens drives Lark's LALR parser, which makes the syntax tree from its leaves up, without recursion.
It stops at the first thing that is wrong; `diagnose` then reads the text once more and says what there is.
"""

from __future__ import annotations

from lark.exceptions import UnexpectedToken

from ..ir.diagnostics import Location, Rejection, Span, UnsupportedConstruct
from . import messages
from .lexer import RESERVED, Lexer, as_accepted
from .nesting import Nesting, steps
from .recovery import diagnose
from .syntax import ModuleDecl, Program
from .tree import MisplacedArgument, span, start_parser

__all__ = ["RESERVED", "decode", "parse", "parse_bytes", "too_deep"]


def parse(source: str, filename: str = "<source>") -> Program:
    """The syntax tree of `source`. Raises `Rejection` with what is wrong, each of phase lex or parse."""
    tree = _tree(source, filename)
    if tree is None:
        raise Rejection(diagnose(source, filename))
    return tree


def _tree(source: str, filename: str) -> Program | None:
    """The syntax tree, or None where something is wrong."""
    lexer = Lexer(source)
    parser = start_parser()
    feed, choices = parser.feed_token, parser.choices
    nesting, nesting_steps = Nesting(), steps()
    modules: tuple[ModuleDecl, ...] = ()
    try:
        for token in lexer:
            accepted = choices()
            step = nesting_steps.get(token.type)
            if step and (excess := step(nesting, "STAR" in accepted)):
                raise Rejection([messages.beyond_limit(excess, token.span, filename)])
            if token.type in accepted:
                modules = feed(token)
            else:
                for piece in as_accepted(token, accepted):
                    feed(piece)
    except (UnexpectedToken, MisplacedArgument):
        return None
    if lexer.problems:
        return None
    return Program(span(modules) if modules else Span(1, 1, 1, 1), modules, filename)


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
