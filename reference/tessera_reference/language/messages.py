"""Syntax errors in the reader's words (spec section 12)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..ir.diagnostics import Diagnostic, Span
from .lexer import END, RESERVED, spellings
from .nesting import CHAIN_LIMIT, NESTING_LIMIT
from .tree import Token

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
"""How a message names an expected kind; kinds that are not here are shown as they are spelled."""


def unexpected(token: Token, previous: Token, following: Token, types: AbstractSet[str]) -> Diagnostic:
    """A finding at a token that cannot follow the previous one; `types` are those of the tokens that can."""
    expected = {spellings().get(type, type) for type in types}
    text = token.value if len(token.value) <= LONGEST else f"{token.value[:LONGEST]}..."
    found = f"the reserved word {text!r}" if text in RESERVED else repr(text)
    span = token.span
    if token.type == END:
        found = "the end of the text"
        line, column = previous.span[2:]
        span = Span(line, column, line, column + 1)
    message, remedy = f"found {found}, expected {_expectation(expected)}", _remedy(token, previous, following, expected)
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
    """What to do about a mistake that is common in texts from other languages; empty for others."""
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
