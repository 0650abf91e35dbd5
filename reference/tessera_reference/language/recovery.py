"""Where to read on behind a syntax error, so that one pass reports several (spec section 12).

The rest of the smallest statement, declaration or heading around the error is cut out of the tokens, up to its `;`, its
block, the end of the block around it, or a line that begins with another statement or declaration. Tokens that the text
lacks are put in, so that what follows stands in the right list. Where the braces of the text do not match, the first
brace at an error that the count has too many is taken for the mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .lexer import END, RESERVED, spellings, terminals
from .tree import Token

STATEMENTS = frozenset({"LET", "RETURN", "IF", "FOR", "WHILE", "BARRIER", "ASSERT"})
DECLARATIONS = frozenset({"FUNC", "KERNEL", "TYPE", "MESH"})
WITH_BLOCK = frozenset({"MODULE", "FUNC", "KERNEL", "IF", "FOR", "WHILE"})
ROOTS = frozenset({"op", "dist", "schedule", "numerics"})
BRACES = {"LBRACE": 1, "RBRACE": -1}

HEADINGS = ("module IDENT", "func IDENT ( )", "if ( IDENT )")
"""What a block may follow in the program, in a module and in a block."""


class Edit(NamedTuple):
    """Tokens to put in the place of those from `start` up to `stop`."""

    start: int
    stop: int
    given: Sequence[str] = ()
    """Their spellings or types."""


def resumption(tokens: Sequence[Token], error: int) -> Edit | None:
    """How to read on behind a wrong token; nothing where no place to do so follows."""
    depth, start, in_attributes = _around(tokens, error)
    missing = balance(tokens)  # closing braces, or opening ones if it is negative
    if missing < 0 and start == error and error and tokens[error - 1].type == "RBRACE":
        return Edit(error - 1, error)
    if in_attributes and tokens[error].type == "LBRACE" and tokens[error + 1].line > tokens[error].line:
        in_attributes, missing = False, missing - 1
    with_block = any(token.type in WITH_BLOCK for token in tokens[start:error])
    for index in range(error, len(tokens) - 1):
        kind, begins_line = tokens[index].type, tokens[index].line > tokens[index - 1].end_line
        if kind in BRACES and BRACES[kind] * missing > 0 and (index == error or kind == "RBRACE"):
            missing -= BRACES[kind]  # one too many
        elif in_attributes:
            in_attributes = kind != "RBRACE"
        elif kind == "LBRACE" and tokens[index - 1].type == "_ATTRIBUTES":
            in_attributes = True
        elif kind == "LBRACE":
            return Edit(start, index, HEADINGS[min(depth, 2)].split())
        elif kind == "RBRACE" and depth:
            return Edit(start, index) if index > start else None
        elif kind == "SEMICOLON" and depth and not with_block and _may_end(tokens, index, depth):
            return Edit(start, index + 1)
        elif begins_line or index == error:
            opens_block = missing < 0 and with_block
            wanted = _depth_of_item(tokens, index, depth + opens_block)
            if opens_block and wanted == depth + 1:
                return Edit(start, index, [*HEADINGS[min(depth, 2)].split(), "{"])
            goes_on = wanted is not None and (wanted < depth or (wanted == depth and index > start))
            if wanted is not None and goes_on and (begins_line or index == start):
                return Edit(start, index, ["}"] * (depth - wanted))
            if wanted is not None and wanted > depth and index == start and not depth:
                return Edit(start, index, " ".join(f"{heading} {{" for heading in HEADINGS[:wanted]).split())
        with_block |= kind in WITH_BLOCK
    return None


def _around(tokens: Sequence[Token], error: int) -> tuple[int, int, bool]:
    """How many blocks are open at a token, where its item in the innermost begins, and whether it is an attribute."""
    depth = start = 0
    in_attributes = in_type = False
    for index, token in enumerate(tokens[:error]):
        kind = token.type
        if kind == "LBRACE" and tokens[index - 1].type == "_ATTRIBUTES":
            in_attributes = True
        elif kind in ("TENSOR", "MEMREF", "FRAGMENT"):
            in_type = True
        elif in_attributes or in_type:
            in_attributes &= kind != "RBRACE"
            in_type &= kind != "MORETHAN"
        elif kind in BRACES or kind == "SEMICOLON":
            depth += BRACES.get(kind, 0)
            start = index + 1
    return depth, start, in_attributes


def _depth_of_item(tokens: Sequence[Token], index: int, depth: int) -> int | None:
    """How many blocks must be open around the statement or declaration that begins with a token, if one does."""
    token, following = tokens[index], tokens[min(index + 1, len(tokens) - 1)].value
    if token.type == "MODULE":
        return 0
    if (token.type in DECLARATIONS and following != "<") or (token.type == "LET" and depth < 2):
        return 1
    is_name = token.value.isidentifier() and (token.value not in RESERVED or token.value in ROOTS)
    begins = token.type in STATEMENTS or (is_name and following in ("=", "(", ".", "["))
    return max(depth, 2) if begins else None


def _may_end(tokens: Sequence[Token], index: int, depth: int) -> bool:
    """Whether a semicolon ends its item: what follows begins a line, a statement or a declaration, or ends a block."""
    following = tokens[index + 1]
    begins = following.line > tokens[index].line or following.type in ("RBRACE", END)
    wanted = _depth_of_item(tokens, index + 1, depth)
    return begins or (wanted is not None and wanted <= depth)


def balance(tokens: Iterable[Token]) -> int:
    """How many more braces open than close."""
    return sum(BRACES.get(token.type, 0) for token in tokens)


def made(text: str) -> Token:
    """A token that is not in the text, by its spelling or its type."""
    kind = terminals().get(text, text)
    return Token(kind, spellings().get(kind, ""), 0, 0, 0, 0)
