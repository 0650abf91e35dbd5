"""Constant expressions: of module constants and of parameter defaults (LANG-02.3-05, AMB-LANG-74)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..graph.interpreter import Interpreter
from ..ir.diagnostics import Location, Rejection
from ..ir.module import Function, Module
from ..ir.operation import SPELLINGS
from ..ir.types import Type, dtype_of
from . import syntax as s
from .expressions import Expressions, Given, Surroundings
from .scope import Findings, Frame, Scope


def check_constant(findings: Findings, expr: s.Expr, constants: Mapping[str, s.Let], subject: str) -> bool:
    """Whether an expression is made of literals, constants and pure operators; reports the first thing that is not."""
    for each in _leaves(expr):
        if isinstance(each, s.Name) and each.text not in constants:
            _refuse(findings, each, f"{subject} is not constant: {each.text!r} is no constant", "a constant expression")
            return False
        if isinstance(each, s.Call) and not _is_pure(each):
            name = ".".join(each.callee)
            _refuse(findings, each, f"{subject} is not constant: it calls {name}", "literals, constants and op.* calls")
            return False
    return True


def evaluate(
    findings: Findings, around: Surroundings, expr: s.Expr, wanted: Type, subject: str, name: str
) -> Given | None:
    """The value of a constant expression, computed once; None after a reported error."""
    if not check_constant(findings, expr, around.constants, subject):
        return None
    scope = Scope(Frame(findings), None)
    value = Expressions(scope, around).lower(expr, dtype_of(wanted), name)
    if value is None or not scope.fits(wanted, value.type, expr.span, name):
        return None
    location = Location(findings.filename, expr.span)
    function = Function(name, scope.block((), (value,), "return"), (value.type,), location)
    try:
        next(Interpreter(Module("", {name: function}, location)).run(function, ()))
    except StopIteration as finished:
        return Given(finished.value[0], value.type)
    except Rejection as rejection:
        findings.diagnostics += [replace(each, phase="verify") for each in rejection.diagnostics]
        return None
    raise AssertionError("a constant expression meets no other rank")


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
