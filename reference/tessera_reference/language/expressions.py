"""Expressions: from syntax to values (spec sections 2.3, 3.1, 14.2).

Nothing is cast implicitly (LANG-03.1-05). A literal takes the dtype that its place asks for: that of the annotation or
of the other operand, else int32 or fp32 (AMB-LANG-54). An expression about which something was reported has no value,
and nothing more is said about what it is used in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..graph.constant import Constant
from ..graph.elementwise import Negate
from ..ir.diagnostics import Span
from ..ir.module import Value
from ..ir.operation import SPELLINGS, AttributeValue, Operation, Refusal, Role
from ..numerics.formats import DType, dtype
from . import syntax as s
from .annotations import did_you_mean, resolve_dtype
from .literals import number
from .scope import Scope
from .unsupported import NAMESPACES, PLANNED

COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})

CallFunction = Callable[[s.Call, "Expressions"], tuple[Value, ...] | None]


@dataclass(frozen=True)
class Number:
    """A numeric literal with the signs before it."""

    literal: s.IntLiteral | s.FloatLiteral
    negative: bool


def as_number(expr: s.Expr) -> Number | None:
    """The number that a literal, in parentheses or behind signs, is."""
    match expr:
        case s.IntLiteral() | s.FloatLiteral():
            return Number(expr, False)
        case s.Group():
            return as_number(expr.inner)
        case s.Unary():
            inner = as_number(expr.operand)
            return inner and Number(inner.literal, inner.negative != (expr.operator == "-"))
    return None


def is_untyped(expr: s.Expr) -> bool:
    """Whether an expression is made of numeric literals only, and so takes its dtype from its place."""
    match expr:
        case s.Group():
            return is_untyped(expr.inner)
        case s.Unary():
            return is_untyped(expr.operand)
        case s.Binary():
            arithmetic = expr.operator not in COMPARISONS and expr.operator != "@"
            return arithmetic and is_untyped(expr.left) and is_untyped(expr.right)
    return isinstance(expr, s.IntLiteral | s.FloatLiteral)


def default_dtype(*exprs: s.Expr) -> DType:
    """fp32 if a float literal occurs, else int32."""
    return dtype("fp32" if any(map(_has_float, exprs)) else "int32")


def _has_float(expr: s.Expr) -> bool:
    match expr:
        case s.Group():
            return _has_float(expr.inner)
        case s.Unary():
            return _has_float(expr.operand)
        case s.Binary():
            return _has_float(expr.left) or _has_float(expr.right)
    return isinstance(expr, s.FloatLiteral)


@dataclass(frozen=True)
class Expressions:
    """Lowers the expressions of one function into its scope."""

    scope: Scope
    call_function: CallFunction

    def lower(self, expr: s.Expr, wanted: DType | None = None, hint: str = "") -> Value | None:
        """The value of an expression; literals in it become `wanted`. Nothing after a reported error."""
        found = as_number(expr)
        if found:
            return self._number(found, expr.span, wanted or default_dtype(expr), hint)
        match expr:
            case s.BoolLiteral():
                return self._one(self.scope.emit(Constant(value=expr.value, dtype=dtype("bool")), (), expr.span, hint))
            case s.StringLiteral():
                self._report("types", "a string is no value", expr.span, "a number or a tensor", "LANG-03.1-01")
                return None
            case s.Name():
                return self._name(expr)
            case s.Group():
                return self.lower(expr.inner, wanted, hint)
            case s.Unary():
                return self._unary(expr, wanted, hint)
            case s.Binary():
                return self._binary(expr, wanted, hint)
            case s.Call():
                return self._call_value(expr, hint)
        raise AssertionError(f"{type(expr).__name__} is not carried out and should not get here")

    def _number(self, found: Number, span: Span, wanted: DType, hint: str) -> Value | None:
        literal = found.literal
        try:
            value = number(literal.text, found.negative, isinstance(literal, s.FloatLiteral), wanted)
        except Refusal as refusal:
            self.scope.findings.refused(refusal, span)
            return None
        return self._one(self.scope.emit(Constant(value=value, dtype=wanted), (), span, hint))

    def _name(self, name: s.Name) -> Value | None:
        binding = self.scope.names.get(name.text)
        if binding is None:
            remedy = did_you_mean(name.text, self.scope.names)
            self._report("types", f"unknown name {name.text!r}", name.span, "a declared name", "LANG-03.1-01", remedy)
            return None
        if binding.value is None and not binding.broken:
            message = f"{name.text!r} is used before anything is assigned to it"
            remedy = f"give it a value where it is declared, in line {binding.span.line}"
            self._report("types", message, name.span, "a value on every path", "LANG-03.1-01", remedy)
        return binding.value

    def _unary(self, expr: s.Unary, wanted: DType | None, hint: str) -> Value | None:
        operand = self.lower(expr.operand, wanted)
        if operand is None:
            return None
        if expr.operator == "-":
            return self._one(self.scope.emit(Negate(x=operand.type), (operand,), expr.span, hint))
        if operand.type.dtype.kind == "bool":
            self._report("types", "unary + is not defined on bool", expr.span, "a numeric dtype", "LANG-11-01")
            return None
        return operand

    def _binary(self, expr: s.Binary, wanted: DType | None, hint: str) -> Value | None:
        self._warn_about_precedence(expr)
        left, right = self._operands(expr, wanted)
        if left is None or right is None:
            return None
        operation: Any = SPELLINGS[expr.operator]
        texts = {"a": expr.left.span, "b": expr.right.span}
        made = operation(a=left.type, b=right.type)
        return self._one(self.scope.emit(made, (left, right), expr.span, hint, texts))

    def _operands(self, expr: s.Binary, wanted: DType | None) -> tuple[Value | None, Value | None]:
        """Both operands, of one dtype: a literal's follows from the other operand."""
        if expr.operator in COMPARISONS or expr.operator == "@":
            wanted = None
        if is_untyped(expr.left) and is_untyped(expr.right):
            both = wanted or default_dtype(expr.left, expr.right)
            return self.lower(expr.left, both), self.lower(expr.right, both)
        if is_untyped(expr.left):
            right = self.lower(expr.right, wanted)
            return (self.lower(expr.left, right.type.dtype) if right else None), right
        left = self.lower(expr.left, wanted)
        if is_untyped(expr.right):
            return left, (self.lower(expr.right, left.type.dtype) if left else None)
        return left, self.lower(expr.right, wanted)

    def _warn_about_precedence(self, expr: s.Binary) -> None:
        """`A + B @ C` reads differently in Python (LANG-14.2-05, AMB-LANG-18)."""
        sides = (expr.left, "+-"), (expr.right, "+-*/")
        if expr.operator != "@" or not any(isinstance(e, s.Binary) and e.operator in signs for e, signs in sides):
            return
        text = self.scope.findings.text
        left, right = (f"({text(e.span)})" if isinstance(e, s.Binary) else text(e.span) for e, _ in sides)
        self.scope.findings.report(
            "syntax",
            f"@ binds looser than the operators beside it: this is {left} @ {right}",
            expr.span,
            requirement="the precedence of section 14.2",
            clause="LANG-14.2-05",
            remedy="write the parentheses that you mean",
            severity="warning",
        )

    # Calls

    def _call_value(self, call: s.Call, hint: str) -> Value | None:
        results = self.call(call, hint)
        if results is not None and len(results) != 1:
            name = ".".join(call.callee)
            self._report(
                "types",
                f"{name} returns {len(results)} values",
                call.span,
                "one value in an expression",
                "LANG-03.1-01",
            )
            return None
        return self._one(results)

    def call(self, call: s.Call, hint: str = "") -> tuple[Value, ...] | None:
        """The results of a call. Nothing after a reported error."""
        spelling = ".".join(call.callee)
        if spelling in SPELLINGS:
            return self._call_operation(call, SPELLINGS[spelling], hint)
        if len(call.callee) == 1:
            return self.call_function(call, self)
        if call.callee[0] == "op" and len(call.callee) == 2:
            known = [each.removeprefix("op.") for each in SPELLINGS if each.startswith("op.")] + sorted(PLANNED)
            remedy = did_you_mean(call.callee[1], known, "op.{}")
            self._report("types", f"unknown operator {spelling}", call.span, "an operator", "LANG-02-04", remedy)
        else:
            remedy = did_you_mean(call.callee[0], ["op", *NAMESPACES])
            self._report("types", f"unknown name {spelling}", call.span, "op.* or dist.*", "LANG-02-04", remedy)
        return None

    def _call_operation(self, call: s.Call, declared: type[Operation], hint: str) -> tuple[Value, ...] | None:
        spelling = ".".join(call.callee)
        names = [name for name, role in declared.roles.items() if role is Role.OPERAND]
        operands = [self.lower(argument) for argument in call.arguments]
        attributes = self._attributes(call, declared)
        if len(operands) != len(names):
            self._report(
                "types",
                f"{spelling} takes {_count(len(names), 'operand')}, {len(operands)} given",
                call.span,
                f"{spelling}({', '.join(names)})",
                "LANG-11-01",
                "attributes are given by name" if len(operands) > len(names) else "",
            )
            return None
        present = tuple(operand for operand in operands if operand is not None)
        if attributes is None or len(present) != len(names) or not self._complete(call, declared, attributes):
            return None
        made: Any = declared
        fields = dict(zip(names, (operand.type for operand in present), strict=True)) | attributes
        texts = {n: a.span for n, a in zip(names, call.arguments, strict=True)}
        return self.scope.emit(made(**fields), present, call.span, hint, texts)

    def _attributes(self, call: s.Call, declared: type[Operation]) -> dict[str, Any] | None:
        """Keyword arguments and the attribute block together; given twice they must agree."""
        spelling = ".".join(call.callee)
        known = [name for name, role in declared.roles.items() if role is Role.ATTRIBUTE]
        values: dict[str, AttributeValue] = {}
        sound = True
        for given in call.named:
            if given.name not in known:
                remedy = did_you_mean(given.name, known)
                requirement = f"one of {', '.join(known)}"
                message = f"{spelling} has no attribute {given.name!r}"
                self._report("types", message, given.span, requirement, "LANG-02.3-13", remedy)
                sound = False
                continue
            try:
                value = attribute_value(given.value, declared.kinds[given.name])
            except Refusal as refusal:
                self.scope.findings.refused(refusal, given.span)
                sound = False
                continue
            if values.setdefault(given.name, value) != value:
                message = f"{spelling}: {given.name} is given twice and differs"
                self._report("types", message, given.span, "one value of an attribute", "LANG-02.3-32")
                sound = False
        return values if sound else None

    def _complete(self, call: s.Call, declared: type[Operation], attributes: Mapping[str, Any]) -> bool:
        """Whether every attribute without a default is given; reports the first that is not."""
        for name in declared.required_attributes():
            if name not in attributes:
                spelling = ".".join(call.callee)
                remedy = f"write {spelling}(..., {name}=...)"
                message, clause = f"{spelling} needs the attribute {name}", "LANG-11-01"
                self._report("types", message, call.span, f"a value of {name}", clause, remedy)
                return False
        return True

    def _report(self, category: Any, message: str, span: Span, requirement: str, clause: str, remedy: str = "") -> None:
        self.scope.findings.report(category, message, span, requirement=requirement, clause=clause, remedy=remedy)

    @staticmethod
    def _one(results: tuple[Value, ...] | None) -> Value | None:
        return results[0] if results else None


def attribute_value(value: s.Expr | s.ListValue, kinds: tuple[Any, ...]) -> AttributeValue:
    """What an attribute is given, as one of the kinds it takes. Raises `Refusal`."""
    if DType in kinds and isinstance(value, s.Name | s.StringLiteral):
        return resolve_dtype(value.text if isinstance(value, s.Name) else value.value)
    if tuple in kinds and isinstance(value, s.ListValue):
        return tuple(attribute_value(item, (int,)) for item in value.items)
    if str in kinds and isinstance(value, s.Name | s.StringLiteral):
        return value.text if isinstance(value, s.Name) else value.value
    if bool in kinds and isinstance(value, s.BoolLiteral):
        return value.value
    found = None if isinstance(value, s.ListValue) else as_number(value)
    if found and int in kinds and isinstance(found.literal, s.IntLiteral):
        text = found.literal.text
        return int(number(text.lstrip("+-"), found.negative != text.startswith("-"), False, dtype("int64")))
    wanted = {DType: "a dtype", tuple: "a list of integers", str: "a word", bool: "true or false", int: "an integer"}
    phrase = " or ".join(wanted[kind] for kind in kinds if kind in wanted)
    raise Refusal("types", f"expected {phrase}", phrase, "LANG-02.3-13", "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
