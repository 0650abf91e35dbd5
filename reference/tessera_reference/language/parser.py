"""Parsing: text to `Program`, and syntax errors in the reader's words (spec sections 2.1, 2.3, 14).

A character that starts no token is a lexical error, a token out of place a parse error; both have category `syntax`.
The first error ends the parse.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NoReturn

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken
from lark.exceptions import VisitError

from ..ir.diagnostics import Diagnostic, Location, Phase, Rejection, Span, UnsupportedConstruct
from .syntax import Program
from .tree import MisplacedArgument, TreeBuilder

RESERVED = frozenset(
    [
        "module",
        "func",
        "kernel",
        "let",
        "return",
        "if",
        "else",
        "for",
        "while",
        "in",
        "schedule",
        "dist",
        "op",
        "mesh",
        "type",
        "dtype",
        "layout",
        "precision",
        "numerics",
        "pipeline",
        "barrier",
        "shared",
        "align",
        "asm",
        "import",
        "from",
        "as",
    ]
)
"""The reserved words of section 2.1."""

# What a set of expected terminals means, tried in order: a phrase stands for its terminals wherever all are expected.
PHRASES: tuple[tuple[str, frozenset[str]], ...] = (
    ("an operator", frozenset({"SIGN", "FACTOR", "AT"})),
    ("an expression", frozenset({"IDENT", "INT", "FLOAT", "STRING", "LPAR", "SIGN", "_OP", "_TENSOR"})),
    ("a name", frozenset({"IDENT", "_MODULE", "_ASM"})),
    ("a statement", frozenset({"IDENT", "_LET", "_RETURN", "_BARRIER"})),
    ("a declaration", frozenset({"_FUNC", "_KERNEL", "_TYPE"})),
    ("a type", frozenset({"IDENT", "_TENSOR", "_MEMREF"})),
    ("a value", frozenset({"IDENT", "INT", "STRING", "LSQB"})),
    ("a dimension", frozenset({"INT", "UNKNOWN"})),
)

# What may follow a phrase and is still worth a word.
CLOSERS = frozenset({"SEMICOLON", "RPAR", "RBRACE", "RSQB", "COMMA", "COLON"})

# What a terminal is called when it stands alone; the rest are shown as they are spelled.
NAMES = {
    "IDENT": "a name",
    "INT": "an integer",
    "FLOAT": "a number",
    "STRING": "a string",
    "SHAPE_NAME": "a dtype",
    "SIGN": "'+' or '-'",
    "FACTOR": "'*' or '/'",
    "_ATTRIBUTES": "'@{'",
    "$END": "the end of the text",
    "_EXTENTS": "'shape'",
    "_X": "'x'",
}

HINTS = {
    "&&": "there is no logical 'and': nest two ifs",
    "||": "there is no logical 'or': nest two ifs",
    "!": "did you mean '!='?",
    "%": "there is no remainder operator",
    "'": 'strings stand in double quotes: "text"',
}

COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


@cache
def grammar() -> Lark:
    """The compiled grammar; building it takes a tenth of a second, once."""
    text = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        start="program",
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=True,
    )


def parse(source: str, filename: str = "<source>") -> Program:
    """The syntax tree of `source`. Raises `Rejection` with phase lex or parse."""
    try:
        return TreeBuilder(filename).transform(grammar().parse(source))
    except UnexpectedCharacters as error:
        _lexical(source, filename, error)
    except UnexpectedToken as error:
        _misplaced(source, filename, error)
    except RecursionError:
        raise too_deep(filename) from None
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise too_deep(filename) from None
        if not isinstance(error.orig_exc, MisplacedArgument):
            raise error.orig_exc from error
        message = "a positional argument stands after a keyword argument"
        _reject("parse", message, error.orig_exc.span, filename, "AMB-LANG-14", "positional arguments come first")


def too_deep(filename: str) -> UnsupportedConstruct:
    """The answer to a program nested deeper than Python's stack allows."""
    return UnsupportedConstruct("language.deep_nesting", Location(filename, Span(1, 1, 1, 2)))


def _lexical(source: str, filename: str, error: UnexpectedCharacters) -> NoReturn:
    rest = source[error.pos_in_stream :]
    start = Span(error.line, error.column, error.line, error.column + 1)
    if rest.startswith("/*"):
        _reject("lex", "this comment is never closed", start, filename, "LANG-14.1-10", "close it with */")
    if rest.startswith('"'):
        _open_string(rest, start, filename)
    remedy = HINTS.get(rest[:2], HINTS.get(rest[0], ""))
    _reject("lex", f"unexpected character {rest[0]!r}", start, filename, "LANG-14.1-01", remedy)


def _open_string(rest: str, start: Span, filename: str) -> NoReturn:
    legal = re.match(r'"([^"\\]|\\["\\nrt])*', rest)
    assert legal is not None
    if legal.end() >= len(rest) - 1:
        _reject("lex", "this string is never closed", start, filename, "LANG-14.1-04", 'close it with "')
    before = rest[: legal.end()]
    line = start.line + before.count("\n")
    column = len(before) - before.rfind("\n") if "\n" in before else start.column + len(before)
    escape = rest[legal.end() : legal.end() + 2]
    place = Span(line, column, line, column + 2)
    _reject("lex", f"unknown escape {escape} in a string", place, filename, "LANG-14.1-04", r"escapes: \\ \" \n \r \t")


def _misplaced(source: str, filename: str, error: UnexpectedToken) -> NoReturn:
    token = error.token
    if token.type == "$END":
        lines = source.rstrip().split("\n")
        place = Span(len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)
        found = "the end of the text"
    else:
        place = Span(token.line, token.column, token.end_line, token.end_column)
        found = f"the reserved word {str(token)!r}" if token in RESERVED else repr(str(token))
    expected = _expectation(error.accepts or error.expected)
    message = f"found {found}, expected {expected}"
    _reject("parse", message, place, filename, "LANG-02.3-01", _remedy(source, token, error))


def _remedy(source: str, token: Token, error: UnexpectedToken) -> str:
    """A word about the mistakes that people bring from other languages."""
    before, after = source[: token.start_pos].rstrip(), source[token.end_pos :]
    accepts = error.accepts or set()
    if token in COMPARISONS and "AT" in accepts:
        return "comparisons do not chain (AMB-LANG-20): put the first into parentheses or a let"
    if token == "if" and before.endswith("else"):
        return "else takes a block: else { if (...) { ... } }"
    if re.fullmatch(r"x[0-9A-Fa-f]*", token) and before.endswith("0"):
        return "integers are decimal (LANG-02.1-02)"
    if token == "," and re.match(r"\s*layout\b", after):
        return "a layout stands after a semicolon: tensor<128x64xbf16; layout=row_major>"
    if token == "," and re.search(r"(?:tensor|memref)\s*<[^;<>]*$", before):
        return "dimensions are joined by x: tensor<128x64xbf16> (AMB-LANG-09)"
    if token in {"func", "mesh", "kernel", "type", "let"} and "_MODULE" in accepts:
        return "declarations stand inside a module { ... } (AMB-LANG-11)"
    if token == "." and after[:1].isdigit():
        return "digits stand before a point: 0.5"
    if "SEMICOLON" in accepts and "\n" in source[len(before) : token.start_pos]:
        return "is a ';' missing at the end of the line before?"
    return ""


def _expectation(terminals: set[str]) -> str:
    """Expected terminals as a phrase: what closes the construct first, then what may go on."""
    phrase = next((phrase for phrase, group in PHRASES if group <= terminals), None)
    named = terminals & CLOSERS if phrase else terminals
    words = sorted(NAMES.get(name) or _spelling(name) for name in named)
    words = [*words, phrase] if phrase == "an operator" else [phrase, *words] if phrase else words
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _spelling(terminal: str) -> str:
    for definition in grammar().terminals:
        if definition.name == terminal:
            return repr(str(definition.pattern.value).split("(?")[0])
    return repr(terminal)


def _reject(phase: Phase, message: str, span: Span, filename: str, clause: str, remedy: str = "") -> NoReturn:
    requirement = "a token of section 14.1" if phase == "lex" else "the grammar of section 2.3"
    diagnostic = Diagnostic("syntax", phase, message, span, filename, (), requirement, clause, remedy)
    raise Rejection([diagnostic]) from None
