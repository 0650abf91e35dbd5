"""Integer constant expressions of C: the values of enumerators, of flags, and of conditions of the preprocessor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from pycparser import c_ast
from pycparser.c_parser import CParser, ParseError

from .errors import UnreadableHeader

__all__ = ["evaluate", "evaluate_text"]

_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "|": operator.or_,
    "&": operator.and_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&&": lambda left, right: bool(left) and bool(right),
    "||": lambda left, right: bool(left) or bool(right),
    "<<": lambda left, right: left << min(max(right, 0), 64),
    ">>": lambda left, right: left >> min(max(right, 0), 64),
}

_UNARY: Mapping[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": operator.not_,
}


def evaluate(node: c_ast.Node, known: Mapping[str, int]) -> int:
    """Return the value of an expression over the names in `known`. Raises `UnreadableHeader`: it is no constant."""
    match node:
        case c_ast.Constant(type=kind, value=text) if "int" in kind:
            return _number(text)
        case c_ast.ID(name=name) if name in known:
            return known[name]
        case c_ast.UnaryOp(op=op, expr=inner) if op in _UNARY:
            return int(_UNARY[op](evaluate(inner, known)))
        case c_ast.BinaryOp(op=op, left=left, right=right) if op in _BINARY:
            return int(_BINARY[op](evaluate(left, known), evaluate(right, known)))
        case c_ast.TernaryOp(cond=condition, iftrue=yes, iffalse=no):
            return evaluate(yes if evaluate(condition, known) else no, known)
        case c_ast.Cast(expr=inner):
            return evaluate(inner, known)
        case _:
            raise UnreadableHeader(f"no integer constant expression: {type(node).__name__} at {node.coord}")


def evaluate_text(text: str, known: Mapping[str, int]) -> int:
    """Return the value of an expression given as text. Raises `UnreadableHeader`."""
    try:
        unit = CParser().parse(f"enum {{ value = ({text}) }};")
    except ParseError as error:
        raise UnreadableHeader(f"no integer constant expression: {text!r} ({error})") from None
    return evaluate(unit.ext[0].type.values.enumerators[0].value, known)


def _number(text: str) -> int:
    digits = text.lower().rstrip("ul")
    octal = len(digits) > 1 and digits.startswith("0") and digits.isdigit()
    return int(digits, 8) if octal else int(digits, 0)
