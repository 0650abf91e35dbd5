"""Where to read on behind a syntax error, so that one pass reports several (spec section 12).

The rest of the smallest statement, declaration or heading around the error is cut out of the tokens, up to its `;`, its
block, the end of the block around it, or a line that begins with another statement or declaration. Tokens that the text
lacks are put in, so that what follows stands in the right block. If the text has too many opening or too many closing
braces, the first of them at or behind the error is taken for the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .lexer import END, RESERVED, spellings
from .tree import Token

STATEMENTS = frozenset({"LET", "RETURN", "IF", "FOR", "WHILE", "BARRIER", "ASSERT"})
DECLARATIONS = frozenset({"FUNC", "KERNEL", "TYPE", "MESH"})
WITH_BLOCK = frozenset({"MODULE", "FUNC", "KERNEL", "IF", "FOR", "WHILE"})
ROOTS = frozenset({"op", "dist", "schedule", "numerics"})
BRACES = {"LBRACE": 1, "RBRACE": -1}
ENDS = {"_ATTRIBUTES": "RBRACE", "TENSOR": "MORETHAN", "MEMREF": "MORETHAN", "FRAGMENT": "MORETHAN"}
"""What ends an attribute block or a type, whose braces and semicolons are not those of statements."""


class Edit(NamedTuple):
    """Tokens to put in the place of those from `start` up to `stop`."""

    start: int
    stop: int
    given: str = ""  # their types


def resumption(tokens: Sequence[Token], error: int) -> Edit | None:
    """How to edit the tokens to read on behind a wrong one; None where no place to do so follows."""
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
        wanted = _depth_of_item(tokens, index, depth + opens_block)
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
        elif wanted is not None and wanted > depth and (opens_block or (index == start and not depth)):
            return Edit(start, index, _headings(depth, wanted))
        elif wanted is not None and wanted <= depth - (index == start) and (begins_line or index == start):
            return Edit(start, index, "RBRACE " * (depth - wanted))
        with_block |= kind in WITH_BLOCK
    return None


def _around(tokens: Sequence[Token], error: int) -> tuple[int, int, str]:
    """How many blocks are open at a token, where its item in the innermost begins, and the end of its attributes."""
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
    """How many blocks must be open around the statement or declaration that begins with a token, if one does."""
    token, following = tokens[index], tokens[index + 1].value
    if token.type == "MODULE":
        return 0
    if (token.type in DECLARATIONS and following != "<") or (token.type == "LET" and depth < 2):
        return 1
    is_name = token.value.isidentifier() and (token.value not in RESERVED or token.value in ROOTS)
    begins = token.type in STATEMENTS or (is_name and following in ("=", "(", ".", "["))
    return max(depth, 2) if begins else None


def _headings(depth: int, wanted: int) -> str:
    """Headings that open blocks around a statement or declaration, until `wanted` blocks are open."""
    kinds = ("MODULE IDENT LBRACE", "FUNC IDENT LPAR RPAR LBRACE", "IF LPAR IDENT RPAR LBRACE")
    return " ".join(kinds[min(level, 2)] for level in range(depth, wanted))


def made(type: str) -> Token:
    """A token that is not in the text."""
    return Token(type, spellings().get(type, ""), 0, 0, 1, 1)
