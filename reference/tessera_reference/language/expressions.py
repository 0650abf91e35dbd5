"""Expressions: from syntax to values (spec sections 2.3, 3.1, 14.2).

Nothing is cast implicitly (LANG-03.1-05). A literal takes the dtype that its place asks for: that of the annotation or
of the other operand, else int32 or fp32 (AMB-LANG-54). An expression with a reported error has no value, and
what uses it is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..graph.constant import Constant, ConstTensor
from ..graph.elementwise import Negate
from ..graph.slicing import Slice
from ..ir.diagnostics import Location, Span, UnsupportedConstruct
from ..ir.module import Value
from ..ir.operation import SPELLINGS, Refusal, require
from ..ir.spelling import did_you_mean
from ..ir.types import Tensor, Type, dtype_of
from ..numerics.array import Array
from ..numerics.formats import DType, dtype
from . import syntax as s
from .annotations import Aliases, resolve_type
from .indexing import lower_slices
from .scope import Scope
from .values import COMPARISONS, Number, as_number, default_dtype, is_untyped, number_of

Results = tuple[Value, ...] | None
"""What a call gives; None after a reported error."""

CallLowering = Callable[["Expressions", s.Call, str], Results]

ReferenceLowering = Callable[["Expressions", s.Name], tuple[bool, Value | None]]
"""Whether a name is a function's, and the function as a value; None after a reported error."""


@dataclass(frozen=True)
class Given:
    """A value that is known when the program is compiled: that of a constant or of a default."""

    array: Array
    type: Type


@dataclass(frozen=True)
class Surroundings:
    """What expressions may refer to besides the names of their scope."""

    call: CallLowering
    constants: Mapping[str, s.Let]
    value_of: Callable[[str], Given | None]
    """The value of a constant of the module; None where an error in it was reported."""
    aliases: Aliases
    reference: ReferenceLowering | None = None
    """Where functions are values: not in constants."""


@dataclass(frozen=True)
class Expressions:
    """Lowers expressions into one scope."""

    scope: Scope
    around: Surroundings
    literals: bool = False
    """Whether the expression around is known to have literals only."""

    def lower(self, expr: s.Expr, wanted: DType | None = None, hint: str = "") -> Value | None:
        """The value of an expression; literals in it become `wanted`. None after a reported error."""
        found = as_number(expr)
        if found:
            return self._number(found, expr.span, wanted or default_dtype(expr), hint)
        match expr:
            case s.BoolLiteral():
                return self._one(self.scope.emit(Constant(value=expr.value, dtype=dtype("bool")), (), expr.span, hint))
            case s.StringLiteral():
                self.report("types", "a string is no value", expr.span, "a number or a tensor", "LANG-03.1-01")
                return None
            case s.Name():
                return self._name(expr, wanted)
            case s.Group():
                return self.lower(expr.inner, wanted, hint)
            case s.Unary():
                return self._unary(expr, wanted, hint)
            case s.Binary():
                return self._binary(expr, wanted, hint)
            case s.Index():
                return self._index(expr, hint)
            case s.TensorExpr():
                return self._tensor(expr, hint)
            case s.Call():
                return self._call(expr, hint)
        raise AssertionError(f"{type(expr).__name__} is no expression")

    def report(self, category: Any, message: str, span: Span, requirement: str, clause: str, remedy: str = "") -> None:
        """Keep a finding about an expression."""
        self.scope.findings.report(category, message, span, requirement=requirement, clause=clause, remedy=remedy)

    def _number(self, found: Number, span: Span, wanted: DType, hint: str) -> Value | None:
        try:
            value = number_of(found, wanted)
        except Refusal as refusal:
            self.scope.findings.refused(refusal, span)
            return None
        return self._one(self.scope.emit(Constant(value=value, dtype=wanted), (), span, hint))

    def _name(self, name: s.Name, wanted: DType | None) -> Value | None:
        binding = self.scope.find(name.text)
        if binding is None and name.text in self.around.constants:
            known = self.around.value_of(name.text)
            return self.given(known, name.span) if known is not None else None
        if binding is None and self.around.reference is not None:
            is_function, value = self.around.reference(self, name)
            if is_function:
                return value
        if binding is None:
            remedy = did_you_mean(name.text, [*self.scope.visible(), *self.around.constants])
            self.report("types", f"unknown name {name.text!r}", name.span, "a declared name", "LANG-03.1-01", remedy)
            self.scope.give_up(name.text, name.span)
            return None
        if binding.value is None and not binding.broken:
            message = (
                f"{name.text!r} has a value on some of the paths that lead here only"
                if binding.partly
                else f"{name.text!r} is used before anything is assigned to it"
            )
            remedy = f"give it a value where it is declared, in line {binding.span.line}"
            self.report("types", message, name.span, "a value on every path", "LANG-03.1-01", remedy)
        return binding.value

    def given(self, known: Given, span: Span) -> Value | None:
        """A known value where it is used: a number, or a tensor of numbers."""
        array, type_ = known.array, known.type
        operation: Constant | ConstTensor
        if array.dtype.kind == "complex":
            raise UnsupportedConstruct("language.complex_constant", Location(self.scope.findings.filename, span))
        if isinstance(type_, Tensor):
            numbers = tuple(array.values.reshape(-1).tolist())
            value = numbers[0] if numbers and len(set(map(repr, numbers))) == 1 else numbers
            operation = ConstTensor(shape=array.shape, dtype=array.dtype, value=value, layout=type_.layout.text)
        else:
            operation = Constant(value=array.values.item(), dtype=array.dtype)
        return self._one(self.scope.emit(operation, (), span))

    def _unary(self, expr: s.Unary, wanted: DType | None, hint: str) -> Value | None:
        operand = self.lower(expr.operand, wanted)
        if operand is None:
            return None
        if expr.operator == "-":
            return self._one(self.scope.emit(Negate(x=operand.type), (operand,), expr.span, hint))  # type: ignore[arg-type]  # `emit` refuses other types
        held = dtype_of(operand.type)
        if held is None or held.kind == "bool":
            self.report("types", f"unary + is not defined on {held}", expr.span, "a numeric dtype", "LANG-11-01")
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
        if self.literals or (is_untyped(expr.right) and is_untyped(expr.left)):
            both = wanted or default_dtype(expr.left, expr.right)
            inside = replace(self, literals=True)
            return inside.lower(expr.left, both), inside.lower(expr.right, both)
        if is_untyped(expr.left):
            right = self.lower(expr.right, wanted)
            return (self.lower(expr.left, dtype_of(right.type)) if right else None), right
        left = self.lower(expr.left, wanted)
        if is_untyped(expr.right):
            return left, (self.lower(expr.right, dtype_of(left.type)) if left else None)
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

    def _index(self, expr: s.Index, hint: str) -> Value | None:
        operand = self.lower(expr.operand)
        slices = lower_slices(self.lower, self.scope.findings, expr.slices)
        if operand is None or slices is None:
            return None
        made: Any = Slice
        operation = made(x=operand.type, bounds=tuple(value.type for value in slices.bounds), spec=slices.spec)
        return self._one(self.scope.emit(operation, (operand, *slices.bounds), expr.span, hint))

    def _tensor(self, expr: s.TensorExpr, hint: str) -> Value | None:
        """A tensor type in expression position: zeros of that type (AMB-LANG-53)."""
        try:
            type_ = resolve_type(expr.type, self.around.aliases)
            assert isinstance(type_, Tensor)
            require(
                all(isinstance(dim, int) for dim in type_.shape),
                "shapes",
                f"{type_} as a value has an unknown extent",
                "extents that are known",
                "LANG-02.3-35",
            )
            operation = ConstTensor(shape=type_.shape, dtype=type_.dtype, layout=type_.layout.text)  # type: ignore[arg-type]  # all are integers
        except Refusal as refusal:
            self.scope.findings.refused(refusal, expr.span)
            return None
        return self._one(self.scope.emit(operation, (), expr.span, hint))

    def _call(self, call: s.Call, hint: str) -> Value | None:
        results = self.around.call(self, call, hint)
        if results is not None and len(results) != 1:
            name = ".".join(call.callee)
            count = f"{len(results)} values" if results else "no value"
            self.report("types", f"{name} returns {count}", call.span, "one value in an expression", "LANG-03.1-01")
            return None
        return self._one(results)

    @staticmethod
    def _one(results: Results) -> Value | None:
        return results[0] if results else None
