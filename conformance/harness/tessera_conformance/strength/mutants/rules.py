"""The rules by which code is changed: each finds the places in a function that it fits, and what stands there instead.

The operators are those of mutation testing as mutmut and cosmic-ray have them. Left alone is what no case can judge:
texts of errors, annotations, docstrings, and what is evaluated when a module is imported, as default values are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

__all__ = ["Change", "changed", "changes"]

OTHER_OPERATOR: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""What an operator becomes."""

Rewrite = Callable[[Any], ast.AST]


@dataclass(frozen=True)
class Change:
    """One place of a function, the number of its node in a walk, and a rule that fits it.

    A case can tell it only where it executes the line `reached`: of the branch that is dropped, or of the place itself.
    """

    rule: str
    place: int
    line: int
    before: str
    after: str
    reached: int


def changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Change]:
    """Every change that some rule makes of a function."""
    found = []
    for place, node in enumerate(_walk(function)):
        for rule, rewrite in _fitting(node):
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(rewrite(deepcopy(node))))
            line = getattr(node, "lineno", function.lineno)
            if before != after:
                found.append(Change(rule, place, line, before, after, _reached(node, rule, line)))
    return found


def _reached(node: ast.AST, rule: str, line: int) -> int:
    """The line that is executed where a change makes a difference."""
    branch = {"branch dropped": "body", "else dropped": "orelse"}.get(rule)
    if branch is None:
        return line
    inner = getattr(node, branch)
    return int((inner[0] if isinstance(inner, list) else inner).lineno)


def changed(function: ast.FunctionDef | ast.AsyncFunctionDef, change: Change) -> None:
    """Make a change in the tree of its function."""
    node = next(each for place, each in enumerate(_walk(function)) if place == change.place)
    rewrite = dict(_fitting(node))[change.rule]
    substitute = ast.copy_location(rewrite(deepcopy(node)), node)
    _Substitution(node, substitute).visit(function)
    ast.fix_missing_locations(function)


class _Substitution(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def _walk(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, those left out that no rule may change."""
    waiting: list[ast.AST] = list(reversed(_without_docstring(function.body)))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_inner(node))


def _inner(node: ast.AST) -> list[ast.AST]:
    """The children in which changes are looked for."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return list(_without_docstring(node.body))
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value is not None else []
    return list(ast.iter_child_nodes(node))


def _without_docstring(body: list[ast.stmt]) -> list[ast.AST]:
    first = body[0]
    has_one = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return list(body[1:] if has_one else body)


def _fitting(node: ast.AST) -> Iterator[tuple[str, Rewrite]]:
    """The rules that fit a node, with what they make of a copy of it."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER_OPERATOR:
            yield "comparison", _other_comparison
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OTHER_OPERATOR:
            yield "operator", _other_operator
        case ast.BoolOp():
            yield "operator", _other_operator
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "unary", lambda copy: copy.operand
        case ast.Constant(value=bool()):
            yield "constant", lambda copy: ast.Constant(not copy.value)
        case ast.Constant(value=int() | float()):
            yield "off by one", lambda copy: ast.Constant(copy.value + 1)
        case ast.If() | ast.IfExp():
            yield "branch dropped", _never
            if node.orelse:
                yield "else dropped", _always
        case ast.Call(func=called, args=[first, second, *_]) if _has_an_order(called, first, second):
            yield "argument order", _swapped
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "statement removed", lambda copy: ast.Pass()
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _stores(node)):
        yield "statement removed", lambda copy: ast.Pass()


def _has_an_order(called: ast.expr, *arguments: ast.expr) -> bool:
    """Whether two arguments may be exchanged, and to another effect: the greater of two is that in any order."""
    symmetric = isinstance(called, ast.Name) and called.id in ("max", "min")
    return not symmetric and not any(isinstance(each, ast.Starred) for each in arguments)


def _stores(node: ast.Assign) -> bool:
    """Whether it stores into an object: a name that is never bound is a crash, which proves nothing."""
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)


def _other_comparison(copy: ast.Compare) -> ast.AST:
    copy.ops = [OTHER_OPERATOR[type(copy.ops[0])]()]  # type: ignore[list-item]
    return copy


def _other_operator(copy: Any) -> ast.AST:
    copy.op = OTHER_OPERATOR[type(copy.op)]()
    return copy  # type: ignore[no-any-return]


def _never(copy: ast.If | ast.IfExp) -> ast.AST:
    copy.test = ast.Constant(False)
    return copy


def _always(copy: ast.If | ast.IfExp) -> ast.AST:
    copy.test = ast.Constant(True)
    return copy


def _swapped(copy: ast.Call) -> ast.AST:
    copy.args[:2] = [copy.args[1], copy.args[0]]
    return copy
