"""Constant expressions: of module constants and of parameter defaults (LANG-02.3-05, AMB-LANG-74)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.operation import SPELLINGS
from . import syntax as s
from .scope import Findings


def check_constant(
    findings: Findings, expr: s.Expr, constants: Mapping[str, s.Let], subject: str, within: tuple[str, ...] = ()
) -> bool:
    """Whether an expression is made of literals, constants and pure operators; reports the first thing that is not.

    `within` names the constants whose value it is part of: none may depend on itself.
    """
    for each in _leaves(expr):
        if isinstance(each, s.Name) and each.text in constants:
            value = constants[each.text].value
            if each.text in within:
                _refuse(findings, each, f"{subject} depends on itself", "constants that can be computed one by one")
                return False
            if value is not None and not check_constant(findings, value, constants, subject, (*within, each.text)):
                return False
        elif isinstance(each, s.Name):
            _refuse(findings, each, f"{subject} is not constant: {each.text!r} is no constant", "a constant expression")
            return False
        elif isinstance(each, s.Call) and not _is_pure(each):
            name = ".".join(each.callee)
            _refuse(findings, each, f"{subject} is not constant: it calls {name}", "literals, constants and op.* calls")
            return False
    return True


def _leaves(expr: s.Expr) -> Iterator[s.Expr]:
    """The names and calls of an expression, without recursion."""
    pending: list[object] = [expr]
    while pending:
        each = pending.pop()
        match each:
            case s.Name():
                yield each
            case s.Call():
                yield each
                pending += reversed(each.arguments)
            case s.Group():
                pending.append(each.inner)
            case s.Unary():
                pending.append(each.operand)
            case s.Binary():
                pending += [each.right, each.left]
            case s.Index():
                pending += [*reversed(each.slices), each.operand]
            case s.SliceRange():
                pending += [part for part in (each.step, each.stop, each.start) if part is not None]


def _is_pure(call: s.Call) -> bool:
    declared = SPELLINGS.get(".".join(call.callee))
    return declared is None or not declared.effects if call.callee[0] == "op" else False


def _refuse(findings: Findings, expr: s.Expr, message: str, requirement: str) -> None:
    findings.report("types", message, expr.span, requirement=requirement, clause="LANG-02.3-05")
