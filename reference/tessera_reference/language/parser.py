"""Parsing (spec sections 2.1, 2.3, 12).

Text to `Program`, with errors in the words of the reader and recovery after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from lark.exceptions import UnexpectedToken

from ..ir.diagnostics import Diagnostic, Rejection, Span
from .grammar import (
    CHAIN_LIMIT,
    COUNTED,
    END,
    MOST_PROBLEMS,
    NESTING_LIMIT,
    RESERVED,
    Lexer,
    Nesting,
    Token,
    as_accepted,
    span,
    span_of,
    spellings,
    start_parser,
    without_collection,
)
from .syntax import ModuleDecl, Program

# Syntax errors in the reader's words (spec section 12).


# What a set of expected kinds means, tried in order: a phrase stands for its kinds wherever all are expected.
PHRASES: tuple[tuple[str, frozenset[str]], ...] = (
    ("an operator", frozenset({"+", "*", "@"})),
    ("an expression", frozenset({"IDENT", "INT", "FLOAT", "STRING", "(", "+", "op", "tensor"})),
    ("a statement", frozenset({"IDENT", "let", "return", "barrier"})),
    ("a declaration", frozenset({"func", "kernel", "type"})),
    ("a type", frozenset({"IDENT", "tensor", "memref"})),
    ("a value", frozenset({"IDENT", "INT", "STRING", "["})),
    ("a dimension", frozenset({"INT", "?"})),
)

CLOSERS = frozenset({";", ")", "}", "]", ",", ":"})  # told beside a phrase
IMPLIED = frozenset({"-", "/", "WORD"})  # what another kind's name already says
LONGEST = 60  # more of a token is not shown

NAMES = {
    "IDENT": "a name",
    "INT": "an integer",
    "FLOAT": "a number",
    "STRING": "a string",
    "SHAPE_NAME": "a dtype",
    "_ATTRIBUTES": "'@{'",
    "+": "'+' or '-'",
    "*": "'*' or '/'",
    END: "the end of the text",
}
"""Names of expected kinds in messages; kinds that are not here are shown as they are spelled."""


def unexpected(token: Token, previous: Token, following: Token, types: AbstractSet[str]) -> Diagnostic:
    """A finding at a token that cannot follow the previous one; `types` are those of the tokens that can."""
    expected = {spellings().get(kind, kind) for kind in types}
    text = token.value if len(token.value) <= LONGEST else f"{token.value[:LONGEST]}..."
    actual = f"the reserved word {text!r}" if text in RESERVED else repr(text)
    span = token.span
    if token.type == END:
        actual = "the end of the text"
        line, column = previous.span[2:]
        span = Span(line, column, line, column + 1)
    message, remedy = (
        f"found {actual}, expected {_expectation(expected)}",
        _remedy(token, previous, following, expected),
    )
    return Diagnostic("syntax", "parse", message, span, "", (), "the grammar of section 2.3", "LANG-02.3-01", remedy)


def beyond_limit(excess: str, span: Span) -> Diagnostic:
    """A finding at the token that exceeds a limit of this parser."""
    requirement = (
        f"at most {NESTING_LIMIT} brackets, braces, signs and arrows open in one place and {CHAIN_LIMIT} operators and "
        "subscripts inside one another, as this parser has it"
    )
    clause, remedy = "AMB-LANG-144", "name a part of it with let"
    return Diagnostic("syntax", "parse", excess, span, "", (), requirement, clause, remedy)


def _remedy(token: Token, previous: Token, following: Token, expected: AbstractSet[str]) -> str:
    """Return the remedy of a mistake that is common in texts from other languages; empty for others."""
    text, is_name = token.value, token.value.isidentifier() and token.value not in RESERVED
    before, (line, column) = previous.value, previous.span[2:]
    if text in ("==", "!=", "<", ">", "<=", ">=") and "@" in expected:
        return "comparisons do not chain (AMB-LANG-20): put the first into parentheses or a let"
    if is_name and before.isidentifier() and expected >= {"(", ".", "=", "["}:
        return "variables are declared with let: let name: type = value;"
    if text == "if" and before == "else":
        return "else takes a block: else { if (...) { ... } }"
    if text.isidentifier() and before[:1].isdigit() and (line, column) == token.span[:2]:
        return "integers are decimal (LANG-02.1-02)" if before == "0" else "a number ends with its last digit"
    if text == "," and following.value == "layout":
        return "a layout stands after a semicolon: tensor<128x64xbf16; layout=row_major>"
    if text == "," and "x" in expected:
        return "dimensions are joined by x: tensor<128x64xbf16> (AMB-LANG-09)"
    if text == "*" and following.value == "/" and following.span[:2] == token.span[2:]:
        return "comments do not nest (LANG-14.1-10): one ends at its first */"
    if text in "+-*/@" and following.value == "=" and "=" in expected:
        return f"there is no '{text}=': assign the whole expression"
    if text == "." and following.type == "INT":
        return "digits stand before a point: 0.5"
    if ";" in expected and token.line > line:
        return "is a ';' missing at the end of the line before?"
    return ""


def _expectation(kinds: AbstractSet[str]) -> str:
    """Expected kinds as a phrase: what closes the construct first, then what may go on."""
    phrase = next((phrase for phrase, group in PHRASES if group <= kinds), None)
    named = kinds & CLOSERS if phrase else kinds - IMPLIED
    words = sorted(NAMES.get(kind, repr(kind)) for kind in named)
    words = [*words, phrase] if phrase == "an operator" else [phrase, *words] if phrase else words
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# Where to read on behind a syntax error, so that one pass reports several (spec section 12).
#
# The rest of the smallest statement, declaration or heading around the error is cut out of the tokens, up to its `;`,
# its block, the end of the block around it, or a line that begins with another statement or declaration. Tokens that
# the text lacks are put in, so that what follows stands in the right block. If the text has too many opening or too
# many closing braces, the first of them at or behind the error is taken for the mistake.


STATEMENTS = frozenset({"LET", "RETURN", "IF", "FOR", "WHILE", "BARRIER", "ASSERT"})
DECLARATIONS = frozenset({"FUNC", "KERNEL", "TYPE", "MESH"})
WITH_BLOCK = frozenset({"MODULE", "FUNC", "KERNEL", "IF", "FOR", "WHILE"})
ROOTS = frozenset({"op", "dist", "schedule", "numerics"})
BRACES = {"LBRACE": 1, "RBRACE": -1}
ENDS = {"_ATTRIBUTES": "RBRACE", "TENSOR": "MORETHAN", "MEMREF": "MORETHAN", "FRAGMENT": "MORETHAN"}
"""Tokens that end an attribute block or a type, whose braces and semicolons are not those of statements."""


class Edit(NamedTuple):
    """Tokens to put in the place of those from `start` up to `stop`."""

    start: int
    stop: int
    given: str = ""  # their types


def resumption(tokens: Sequence[Token], error: int) -> Edit | None:
    """Return the edit of the tokens to read on behind a wrong one; None where no place to do so follows."""
    depth, start, end = _around(tokens, error)
    missing = sum(BRACES.get(token.type, 0) for token in tokens)  # closing braces, or opening ones if it is negative
    if missing < 0 and 0 < start == error and tokens[error - 1].type == "RBRACE":
        return Edit(error - 1, error)
    in_attributes = end == "RBRACE"
    with_block = any(token.type in WITH_BLOCK for token in tokens[start:error])
    for index in range(error, len(tokens) - 1):
        kind, begins_line = tokens[index].type, tokens[index].line > tokens[index - 1].end_line
        ends_line = tokens[index + 1].line > tokens[index].line or tokens[index + 1].type in ("RBRACE", END)
        opens_block = missing < 0 and with_block and begins_line
        target_depth = _depth_of_item(tokens, index, depth + opens_block)
        if BRACES.get(kind, 0) * missing > 0:
            missing -= BRACES[kind]  # one too many
        elif in_attributes or kind == "_ATTRIBUTES":
            in_attributes = kind != "RBRACE"
        elif kind == "LBRACE":
            return Edit(start, index, _headings(depth, depth + 1).removesuffix("LBRACE"))
        elif kind == "RBRACE" and depth:
            return Edit(start, index) if index > start else None
        elif kind == "SEMICOLON" and depth and not with_block and ends_line:
            return Edit(start, index + 1)
        elif target_depth is not None and target_depth > depth and (opens_block or (index == start and not depth)):
            return Edit(start, index, _headings(depth, target_depth))
        elif target_depth is not None and target_depth <= depth - (index == start) and (begins_line or index == start):
            return Edit(start, index, "RBRACE " * (depth - target_depth))
        with_block |= kind in WITH_BLOCK
    return None


def _around(tokens: Sequence[Token], error: int) -> tuple[int, int, str]:
    """Return the open blocks at a token, the start of its item in the innermost, and the end of its attributes."""
    depth, start, end = 0, 0, ""
    for index, token in enumerate(tokens[:error]):
        kind = token.type
        if end:
            end = "" if kind == end else end
        elif kind in ENDS:
            end = ENDS[kind]
        elif kind in BRACES or kind == "SEMICOLON":
            depth += BRACES.get(kind, 0)
            start = index + 1
    return depth, start, end


def _depth_of_item(tokens: Sequence[Token], index: int, depth: int) -> int | None:
    """Return the depth of the statement or declaration that begins with a token, if one does."""
    token, following = tokens[index], tokens[index + 1].value
    if token.type == "MODULE":
        return 0
    if (token.type in DECLARATIONS and following != "<") or (token.type == "LET" and depth < 2):
        return 1
    is_name = token.value.isidentifier() and (token.value not in RESERVED or token.value in ROOTS)
    begins = token.type in STATEMENTS or (is_name and following in ("=", "(", ".", "["))
    return max(depth, 2) if begins else None


def _headings(depth: int, target: int) -> str:
    """Headings that open blocks around a statement or declaration, until `wanted` blocks are open."""
    kinds = ("MODULE IDENT LBRACE", "FUNC IDENT LPAR RPAR LBRACE", "IF LPAR IDENT RPAR LBRACE")
    return " ".join(kinds[min(level, 2)] for level in range(depth, target))


def made(kind: str) -> Token:
    """A token that is not in the text."""
    return Token(kind, spellings().get(kind, ""), 0, 0, 1, 1)


# Parsing: text to `Program` (spec sections 2.1, 2.3, 14).
#
# Lark's LALR parser is fed token by token and makes the syntax tree from its leaves up, without recursion. It stops
# at the first wrong token. To find several, the tokens around that one are edited and all are read again.


MOST_EDITS = 5 * MOST_PROBLEMS  # after so many the rest of the text is not read


class Stop(NamedTuple):
    """The place at which the parser does not go on."""

    at: int  # the index of the token that it refuses
    finding: Diagnostic | None = None  # what is wrong, unless it is that this token cannot follow those before it
    final: bool = False  # whether nothing behind it can be read


def parse(source: str, filename: str = "<source>") -> Program:
    """The syntax tree of `source`. Raises `Rejection` with what is wrong, each of phase lex or parse."""
    lexer = Lexer(source)
    with without_collection():
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
        text, kind = token.value, token.type
        if text in COUNTED and kind != "_ATTRIBUTES" and (excess := nesting.count(text, "STAR" in choices())):
            return Stop(index, beyond_limit(excess, token.span), final=True)
        if kind != "IDENT" and text.isidentifier():
            token = as_accepted(token, choices())
        try:
            modules = feed(token)
        except UnexpectedToken:
            return Stop(index)
        except Rejection as misplaced:
            return Stop(index, misplaced.diagnostics[0])
    return modules


def _diagnose(source: str) -> list[Diagnostic]:
    """Return the faults of a text that is no program, in its order, ten findings at most."""
    lexer = Lexer(source)
    tokens = list(lexer)
    problems = {problem.span: problem for problem in lexer.problems}
    lexical = [span[:2] for span in problems]
    for edits in range(MOST_EDITS):
        stop = _read(start_parser(), tokens)
        if not isinstance(stop, Stop) or len(problems) >= MOST_PROBLEMS:
            break
        token = tokens[stop.at]
        hidden = token.type == END and (lexer.cut_short or edits > 0)  # it may be their doing
        if not hidden and not any(token.span[:2] <= place < token.span[2:] for place in lexical):
            finding = stop.finding or _unexpected(tokens, stop.at)
            if not (lexer.cut_short and lexer.doubtful_line and finding.span.line >= lexer.doubtful_line):
                problems.setdefault(finding.span, finding)
        edit = None if stop.final else resumption(tokens, stop.at)
        if edit is None:
            break
        tokens[edit.start : edit.stop] = map(made, edit.given.split())
    return sorted(problems.values(), key=lambda finding: finding.span)[:MOST_PROBLEMS]


def _unexpected(tokens: Sequence[Token], at: int) -> Diagnostic:
    """A token that cannot follow those before it, with those that can."""
    parser = start_parser()
    _read(parser, tokens[:at])
    previous = next((token for token in reversed(tokens[:at]) if token.line), made(""))
    following = tokens[min(at + 1, len(tokens) - 1)]
    return unexpected(tokens[at], previous, following, parser.accepts())


def decode(data: bytes, filename: str = "<source>") -> str:
    """The text of a file's bytes. Raises `Rejection` at the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before, message = data[: error.start].decode("utf-8"), f"the byte 0x{data[error.start]:02x} is not UTF-8"
        span, remedy = span_of(before, len(before), 1), "save the file as UTF-8"
        finding = Diagnostic("syntax", "lex", message, span, filename, (), "text in UTF-8", "AMB-LANG-145", remedy)
        raise Rejection([finding]) from None
