"""The C header that comes with a library: where it lies, and the values of its enumerators and macros."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["constants", "found_header"]

NAME = "tessera.h"
PLACES = (".", "../include", "include")
"""Where a header is looked for, from the folder of the library."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(TESS_\w+)[ \t]+(\S[^\n]*)$", re.M)
ENUMERATION = re.compile(r"\benum\b[^{;]*\{([^}]*)\}", re.S)
NUMBER = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}


def found_header(library: str) -> Path | None:
    """The header beside a library, in `../include` or in `include`."""
    folder = Path(library).resolve().parent
    return next((path for place in PLACES if (path := folder / place / NAME).is_file()), None)


def constants(text: str) -> dict[str, int]:
    """The enumerators and macros `TESS_...` that are whole numbers; what cannot be read is left out."""
    plain = COMMENT.sub(" ", text.replace("\\\n", " "))
    known: dict[str, int] = {}
    for name, value in MACRO.findall(plain):
        _define(known, name, value)
    for body in ENUMERATION.findall(plain):
        for name, value in _enumerators(body, known):
            known[name] = value
    return known


def _enumerators(body: str, known: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Each enumerator with its value: one more than the one before, where none is given."""
    following = 0
    for entry in body.split(","):
        name, _, stated = (part.strip() for part in entry.partition("="))
        if not name:
            continue
        value = _value(stated, known) if stated else following
        if value is None:
            return
        yield name, value
        following = value + 1


def _define(known: dict[str, int], name: str, text: str) -> None:
    value = _value(text, known)
    if value is not None:
        known[name] = value


def _value(text: str, known: Mapping[str, int]) -> int | None:
    """The value of a constant expression of whole numbers, None where it is none."""
    try:
        return _evaluated(ast.parse(NUMBER.sub(r"\1", text).strip(), mode="eval").body, known)
    except (SyntaxError, ValueError, KeyError, TypeError):
        return None


def _evaluated(node: ast.expr, known: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand, known)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_evaluated(operand, known)
        case ast.BinOp(left=left, op=op, right=right):
            return int(OPERATORS[type(op)](_evaluated(left, known), _evaluated(right, known)))
    raise ValueError("no constant")
