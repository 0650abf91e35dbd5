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

CLOSERS = frozenset({";", ")", "}", "]", ",", ":"})
"""What may follow a phrase and is still worth a word."""

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
"""What a kind is called when it stands alone; the rest are shown as they are spelled."""

IMPLIED = frozenset({"-", "/", "WORD"})
"""What another kind's name already says."""

LONGEST = 60
"""More of a token is not shown."""

COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
DECLARING = frozenset({"func", "mesh", "kernel", "type", "let"})


def unexpected(
    token: Token, previous: Token | None, following: Token, expected: AbstractSet[str], filename: str
) -> Diagnostic:
    """A token that cannot follow; `expected` are the types of those that can."""
    expected = {spellings().get(type, type) for type in expected}
    if token.type == END:
        found = "the end of the text"
        line, column = (previous.end_line, previous.end_column) if previous else (1, 1)
        span = Span(line, column, line, column + 1)
    else:
        found = f"the reserved word {token.value!r}" if token.value in RESERVED else repr(_shortened(token.value))
        span = token.span
    message = f"found {found}, expected {_expectation(expected)}"
    return _diagnostic(message, span, filename, "LANG-02.3-01", _remedy(token, previous, following, expected))


def misplaced_argument(span: Span, filename: str) -> Diagnostic:
    """A positional argument behind one by keyword."""
    message = "a positional argument stands after a keyword argument"
    return _diagnostic(message, span, filename, "AMB-LANG-14", "positional arguments come first")


def beyond_limit(excess: str, span: Span, filename: str) -> Diagnostic:
    """The token that goes beyond a limit of this parser."""
    requirement = (
        f"at most {NESTING_LIMIT} brackets, braces, signs and arrows open in one place and {CHAIN_LIMIT} operators and "
        "subscripts inside one another, as this parser has it"
    )
    remedy = "name a part of it with let"
    return Diagnostic("syntax", "parse", excess, span, filename, (), requirement, "AMB-LANG-144", remedy)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _remedy(token: Token, previous: Token | None, following: Token, expected: AbstractSet[str]) -> str:
    """A word about the mistakes that people bring from other languages."""
    before = previous.value if previous else ""
    adjacent = previous is not None and (previous.end_line, previous.end_column) == (token.line, token.column)
    if token.value in COMPARISONS and "@" in expected:
        return "comparisons do not chain (AMB-LANG-20): put the first into parentheses or a let"
    two_names = token.value.isidentifier() and token.value not in RESERVED and before.isidentifier()
    if two_names and expected >= {"(", ".", "=", "["}:
        return "variables are declared with let: let name: type = value;"
    if token.value == "if" and before == "else":
        return "else takes a block: else { if (...) { ... } }"
    if adjacent and previous is not None and previous.type in ("INT", "FLOAT") and token.value.isidentifier():
        return "integers are decimal (LANG-02.1-02)" if before == "0" else "a number ends with its last digit"
    if token.value == "," and following.value == "layout":
        return "a layout stands after a semicolon: tensor<128x64xbf16; layout=row_major>"
    if token.value == "," and "x" in expected:
        return "dimensions are joined by x: tensor<128x64xbf16> (AMB-LANG-09)"
    if token.value in DECLARING and "module" in expected:
        return "declarations stand inside a module { ... } (AMB-LANG-11)"
    if token.value in "+-*/@" and following.value == "=" and "=" in expected:
        return f"there is no '{token.value}=': assign the whole expression"
    if token.value == "." and following.type == "INT":
        return "digits stand before a point: 0.5"
    if ";" in expected and previous is not None and token.line > previous.end_line:
        return "is a ';' missing at the end of the line before?"
    return ""


def _expectation(kinds: AbstractSet[str]) -> str:
    """Expected kinds as a phrase: what closes the construct first, then what may go on."""
    phrase = next((phrase for phrase, group in PHRASES if group <= kinds), None)
    named = kinds & CLOSERS if phrase else kinds - IMPLIED
    words = sorted(NAMES.get(kind, repr(kind)) for kind in named)
    words = [*words, phrase] if phrase == "an operator" else [phrase, *words] if phrase else words
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _diagnostic(message: str, span: Span, filename: str, clause: str, remedy: str) -> Diagnostic:
    return Diagnostic("syntax", "parse", message, span, filename, (), "the grammar of section 2.3", clause, remedy)


def undecodable(byte: int, before: str, filename: str) -> Diagnostic:
    """A byte that is no part of a text, and the text before it."""
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    place = Span(line, column, line, column + 1)
    message = f"the byte 0x{byte:02x} is not UTF-8"
    return Diagnostic(
        "syntax", "lex", message, place, filename, (), "text in UTF-8", "AMB-LANG-145", "save the file as UTF-8"
    )
