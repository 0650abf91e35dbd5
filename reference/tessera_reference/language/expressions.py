"""Expressions, indices, calls of operations, constants: from syntax to values (spec sections 2.3, 3.1, 5.3, 14.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..graph.collectives import Collective, missing_declaration, ranks_along
from ..graph.constant import Constant, ConstTensor
from ..graph.elementwise import Negate
from ..graph.interpreter import Interpreter
from ..graph.movement import Slice
from ..ir.attributes import COMMON_ATTRIBUTES, check_common
from ..ir.diagnostics import Location, Rejection, Span, UnsupportedConstruct, counted, did_you_mean
from ..ir.operation import SPELLINGS, AttributeValue, Function, Module, Operation, Refusal, fields_of
from ..ir.types import Mesh, Scalar, Tensor, Type, Value, dtype_of
from ..numerics.array import Array
from ..numerics.formats import DType, dtype
from . import syntax as s
from .scope import Findings, Frame, Scope
from .values import (
    COMPARISONS,
    Aliases,
    Number,
    as_number,
    attribute_value,
    default_dtype,
    element_like,
    is_untyped,
    number_of,
    read_common,
    resolve_type,
)

# Indices and slices: `X[i, a:b:s]`, to read and to assign (spec section 2.3; AMB-LANG-23, AMB-LANG-96).


@dataclass(frozen=True)
class Slices:
    """The entries in the brackets: a text for each dimension, in which `$k` is the k-th of `bounds`."""

    spec: tuple[str, ...]
    bounds: tuple[Value, ...]


def lower_slices(expressions: Expressions, slices: Sequence[s.Expr | s.SliceRange]) -> Slices | None:
    """Return indices and slices as `graph.slicing` takes them; None after a reported error."""
    bounds: list[Value] = []
    spec = []
    for slice_ in slices:
        if isinstance(slice_, s.SliceRange):
            parts = [_part(expressions, part, bounds) for part in (slice_.start, slice_.stop, slice_.step)]
            spec.append(None if None in parts else ":".join(str(part) for part in parts).removesuffix(":"))
        else:
            spec.append(_part(expressions, slice_, bounds))
    texts = tuple(text for text in spec if text is not None)
    return Slices(texts, tuple(bounds)) if len(texts) == len(spec) else None


def _part(expressions: Expressions, expr: s.Expr | None, bounds: list[Value]) -> str | None:
    """Return one number of an index or slice: digits of a literal, or a computed bound."""
    if expr is None:
        return ""
    numeral = as_number(expr)
    digits = numeral.literal.text.lstrip("0") or "0" if numeral and isinstance(numeral.literal, s.IntLiteral) else ""
    if numeral and 0 < len(digits) <= 18:
        return f"{'-' if numeral.negative and digits != '0' else ''}{digits}"
    value = expressions.lower(expr, dtype("int32"))
    if value is None:
        return None
    if value.type != Scalar(dtype("int32")):
        message = f"an index is {value.type}, not int32"
        expressions.report("types", message, expr.span, "an int32 scalar", "AMB-LANG-96", "cast it with op.cast")
        return None
    bounds.append(value)
    return f"${len(bounds) - 1}"


# Expressions: from syntax to values (spec sections 2.3, 3.1, 14.2).
#
# Nothing is cast implicitly (LANG-03.1-05). A literal takes the dtype of its place: that of the annotation or of the
# other operand, else int32 or fp32 (AMB-LANG-54). An expression with a reported error has no value, and its uses are
# not reported again.


Results = tuple[Value, ...] | None
"""The results of a call; None after a reported error."""

CallLowering = Callable[["Expressions", s.Call, str], Results]

ReferenceLowering = Callable[["Expressions", s.Name], tuple[bool, Value | None]]
"""A function from a name to True if a function has it, and to that function as a value; None after a reported error."""


@dataclass(frozen=True)
class Given:
    """A value known at compile time: that of a constant or of a default."""

    array: Array
    type: Type


@dataclass(frozen=True)
class Surroundings:
    """The names that expressions may use besides those of their scope."""

    call: CallLowering
    constants: Mapping[str, s.Let]
    value_of: Callable[[str], Given | None]
    """The value of a constant of the module; None after a reported error in it."""
    aliases: Aliases
    reference: ReferenceLowering | None = None
    """The lowering of a function's name to a value; None in constants, where functions are not values."""


@dataclass(frozen=True)
class Expressions:
    """The lowering of expressions into one scope."""

    scope: Scope
    around: Surroundings
    literals: bool = False
    """True if the enclosing expression is known to have literals only."""

    def lower(self, expr: s.Expr, expected_dtype: DType | None = None, hint: str = "") -> Value | None:
        """Return the value of an expression; its literals become `expected_dtype`. None after a reported error."""
        numeral = as_number(expr)
        if numeral:
            return self._number(numeral, expr.span, expected_dtype or default_dtype(expr), hint)
        match expr:
            case s.BoolLiteral():
                return self._one(self.scope.emit(Constant(value=expr.value, dtype=dtype("bool")), (), expr.span, hint))
            case s.StringLiteral():
                self.report("types", "a string is no value", expr.span, "a number or a tensor", "LANG-03.1-01")
                return None
            case s.Name():
                return self._name(expr, expected_dtype)
            case s.Group():
                return self.lower(expr.inner, expected_dtype, hint)
            case s.Unary():
                return self._unary(expr, expected_dtype, hint)
            case s.Binary():
                return self._binary(expr, expected_dtype, hint)
            case s.Index():
                return self._index(expr, hint)
            case s.TensorExpr():
                return self._tensor(expr, hint)
            case s.Call():
                return self._call(expr, hint)
        raise AssertionError(f"{type(expr).__name__} is no expression")

    def report(self, category: Any, message: str, span: Span, requirement: str, clause: str, remedy: str = "") -> None:
        """Keep a finding about an expression."""
        self.scope.findings.report(category, message, span, requirement, clause, remedy)

    def _number(self, numeral: Number, span: Span, dtype: DType, hint: str) -> Value | None:
        with self.scope.findings.refusals(span):
            operation = Constant(value=number_of(numeral, dtype), dtype=dtype)
            return self._one(self.scope.emit(operation, (), span, hint))
        return None

    def _name(self, name: s.Name, dtype: DType | None) -> Value | None:
        binding = self.scope.find(name.text)
        if binding is None and name.text in self.around.constants:
            constant = self.around.value_of(name.text)
            return self.given(constant, name.span) if constant is not None else None
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

    def given(self, constant: Given, span: Span) -> Value | None:
        """Return a known value at its place of use: a number, or a tensor of numbers."""
        array, type_ = constant.array, constant.type
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

    def _unary(self, expr: s.Unary, expected_dtype: DType | None, hint: str) -> Value | None:
        operand = self.lower(expr.operand, expected_dtype)
        if operand is None:
            return None
        if expr.operator == "-":
            return self._one(self.scope.build(Negate, (operand,), expr.span, hint))
        dtype = dtype_of(operand.type)
        if dtype is None or dtype.kind == "bool":
            self.report("types", f"unary + is not defined on {dtype}", expr.span, "a numeric dtype", "LANG-11-01")
            return None
        return operand

    def _binary(self, expr: s.Binary, expected_dtype: DType | None, hint: str) -> Value | None:
        self._warn_about_precedence(expr)
        left, right = self._operands(expr, expected_dtype)
        if left is None or right is None:
            return None
        texts = {"a": expr.left.span, "b": expr.right.span}
        return self._one(self.scope.build(SPELLINGS[expr.operator], (left, right), expr.span, hint, texts=texts))

    def _operands(self, expr: s.Binary, expected_dtype: DType | None) -> tuple[Value | None, Value | None]:
        """Return both operands, of one dtype: a literal takes it from the other operand."""
        if expr.operator in COMPARISONS or expr.operator == "@":
            expected_dtype = None
        if self.literals or (is_untyped(expr.right) and is_untyped(expr.left)):
            both = expected_dtype or default_dtype(expr.left, expr.right)
            inside = replace(self, literals=True)
            return inside.lower(expr.left, both), inside.lower(expr.right, both)
        if is_untyped(expr.left):
            right = self.lower(expr.right, expected_dtype)
            return (self.lower(expr.left, dtype_of(right.type)) if right else None), right
        left = self.lower(expr.left, expected_dtype)
        if is_untyped(expr.right):
            return left, (self.lower(expr.right, dtype_of(left.type)) if left else None)
        return left, self.lower(expr.right, expected_dtype)

    def _warn_about_precedence(self, expr: s.Binary) -> None:
        """Warn about `A + B @ C`, which reads differently in Python (LANG-14.2-05, AMB-LANG-18)."""
        sides = (expr.left, "+-"), (expr.right, "+-*/")
        if expr.operator != "@" or not any(isinstance(e, s.Binary) and e.operator in signs for e, signs in sides):
            return
        text = self.scope.findings.text
        left, right = (f"({text(e.span)})" if isinstance(e, s.Binary) else text(e.span) for e, _ in sides)
        message = f"@ binds looser than the operators beside it: this is {left} @ {right}"
        requirement, remedy = "the precedence of section 14.2", "write the parentheses that you mean"
        self.scope.findings.warn("syntax", message, expr.span, requirement, "LANG-14.2-05", remedy)

    def _index(self, expr: s.Index, hint: str) -> Value | None:
        operand = self.lower(expr.operand)
        slices = lower_slices(self, expr.slices)
        if operand is None or slices is None:
            return None
        return self._one(self.scope.build(Slice, (operand, *slices.bounds), expr.span, hint, spec=slices.spec))

    def _tensor(self, expr: s.TensorExpr, hint: str) -> Value | None:
        """Return zeros for a tensor type in expression position (AMB-LANG-53)."""
        with self.scope.findings.refusals(expr.span):
            type_ = resolve_type(expr.type, self.around.aliases)
            assert isinstance(type_, Tensor)
            if not all(isinstance(dim, int) for dim in type_.shape):
                message = f"{type_} as a value has an unknown extent"
                raise Refusal("shapes", message, "extents that are known", "LANG-02.3-35")
            operation = ConstTensor(shape=type_.shape, dtype=type_.dtype, layout=type_.layout.text)  # type: ignore[arg-type]  # all are integers
            return self._one(self.scope.emit(operation, (), expr.span, hint))
        return None

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


# Calls of operations, `op.*` and `dist.*`: operands, own and common attributes (sections 2.3, 5.3, 9).


NAMESPACES = ("op", "dist")


@dataclass(frozen=True)
class Prepared:
    """An operation with operands and attributes, not yet appended."""

    operation: Operation
    operands: tuple[Value, ...]
    texts: Mapping[str, Span]
    common: dict[str, AttributeValue]


def call_operation(expressions: Expressions, call: s.Call, hint: str, meshes: Mapping[str, Mesh]) -> Results:
    """Append the operation that a call names. Return its results, or None after a reported error."""
    ready, scope = prepare(expressions, call, meshes), expressions.scope
    if ready is None:
        return None
    results = scope.emit(ready.operation, ready.operands, call.span, hint, ready.texts, attributes=ready.common)
    if results is None:
        return None
    with scope.findings.refusals(call.span, ready.operation):
        check_common(ready.common, tuple(value.type for value in results), meshes)
        return results
    return None


def prepare(expressions: Expressions, call: s.Call, meshes: Mapping[str, Mesh]) -> Prepared | None:
    """Lower the operands and read the attributes of a call; None after a reported error."""
    spelling = ".".join(call.callee)
    if spelling not in SPELLINGS:
        _unknown(expressions, call, spelling)
        return None
    declared = SPELLINGS[spelling]
    names = operand_names(declared, len(call.arguments))
    values = _operands(expressions, call, declared, names or [])
    like = next((dtype_of(value.type) for value in values if value is not None), None)
    attributes, common = _attributes(expressions, call, declared, like), _common(expressions, call, declared)
    if names is None:
        _wrong_count(expressions, call, declared)
        return None
    operands = tuple(value for value in values if value is not None)
    if attributes is None or common is None or len(operands) != len(values):
        return None
    if not _complete(expressions, call, declared, attributes):
        return None
    with expressions.scope.findings.refusals(call.span):
        if issubclass(declared, Collective):
            ranks = ranks_along(meshes, attributes["axis"], attributes.get("mesh"))
            attributes |= {**ranks, "mesh": ranks["grid"]}
        operation = declared(**fields_of(declared, tuple([value.type for value in operands])), **attributes)
        texts = {name: argument.span for name, argument in zip(names, call.arguments, strict=True)}
        return Prepared(operation, operands, texts, common)
    return None


def _operands(
    expressions: Expressions, call: s.Call, declared: type[Operation], names: list[str]
) -> list[Value | None]:
    """Return the operands of a call; a literal takes the dtype of the operands in `alike` (AMB-LANG-125)."""
    values: dict[int, Value | None] = {}
    alike = [position for position, name in enumerate(names) if name in declared.alike]
    literals = [position for position in alike if is_untyped(call.arguments[position])]
    for position, argument in enumerate(call.arguments):
        if position not in literals:
            values[position] = expressions.lower(argument)
    typed = [value for position in alike if (value := values.get(position)) is not None]
    dtype = dtype_of(typed[0].type) if typed else default_dtype(*(call.arguments[numeral] for numeral in literals))
    for position in literals:
        values[position] = expressions.lower(call.arguments[position], dtype)
    return [values[position] for position in range(len(call.arguments))]


def operand_names(declared: type[Operation], count: int) -> list[str] | None:
    """Return the name of each of `count` operands; None where the operation does not take that many."""
    extra = count - len(declared.singles)
    if extra < 0 or (extra and not declared.rest):
        return None
    return [*declared.singles, *[f"{declared.rest}[{i}]" for i in range(extra)]]


def _unknown(expressions: Expressions, call: s.Call, spelling: str) -> None:
    head = call.callee[0]
    spellings = [candidate for candidate in SPELLINGS if candidate.partition(".")[0] == head and "." in candidate]
    if head in NAMESPACES:
        remedy = did_you_mean(spelling, spellings)
        message = f"unknown {'operator' if head == 'op' else 'collective'} {spelling}"
        requirement = "an operator" if head == "op" else f"one of {', '.join(spellings)}"
        expressions.report("types", message, call.span, requirement, "LANG-02-04", remedy)
    else:
        remedy = did_you_mean(head, [*NAMESPACES, "schedule"])
        expressions.report("types", f"unknown name {spelling}", call.span, "op.* or dist.*", "LANG-02-04", remedy)


def _wrong_count(expressions: Expressions, call: s.Call, declared: type[Operation]) -> None:
    spelling = ".".join(call.callee)
    names = [*declared.singles, *([f"{declared.rest}, ..."] if declared.rest else [])]
    count = len(call.arguments)
    message = f"{spelling} takes {counted(len(names), 'operand')}, {count} given"
    remedy = "attributes are given by name" if count > len(names) else ""
    expressions.report("types", message, call.span, f"{spelling}({', '.join(names)})", "LANG-11-01", remedy)


def _attributes(
    expressions: Expressions, call: s.Call, declared: type[Operation], like: DType | None
) -> dict[str, Any] | None:
    """Return keyword arguments and the attribute block together; repeated ones must agree (AMB-LANG-100)."""
    spelling = ".".join(call.callee)
    names = declared.own_attributes
    values: dict[str, AttributeValue] = {}
    sound = True
    for entry in sorted(call.named, key=lambda entry: entry.name != "dtype"):
        if entry.name not in names:
            if entry.name not in COMMON_ATTRIBUTES:
                remedy = did_you_mean(entry.name, names)
                requirement = f"one of {', '.join(names)}" if names else "no attributes of its own"
                message = f"{spelling} has no attribute {entry.name!r}"
                expressions.report("types", message, entry.span, requirement, "LANG-02.3-13", remedy)
                sound = False
            continue
        try:
            element, kind = values.get("dtype"), names[entry.name]
            if not isinstance(element, DType):
                element = element_like(like, entry.value, kind) if like else None
            value = attribute_value(entry.value, kind, element)
        except Refusal as refusal:
            expressions.scope.findings.refused(refusal, entry.span)
            sound = False
            continue
        if values.setdefault(entry.name, value) != value:
            message = f"{spelling}: {entry.name} is given twice and differs"
            expressions.report("types", message, entry.span, "one value of an attribute", "LANG-02.3-32")
            sound = False
    return values if sound else None


def _common(expressions: Expressions, call: s.Call, declared: type[Operation]) -> dict[str, AttributeValue] | None:
    """Return the common attributes that this operation does not declare itself (LANG-05.3-01 to -06)."""
    with expressions.scope.findings.refusals(call.span):
        return read_common([entry for entry in call.named if entry.name not in declared.roles])
    return None


def _complete(expressions: Expressions, call: s.Call, declared: type[Operation], attributes: Mapping[str, Any]) -> bool:
    """Return True if every attribute without a default is present; report the first missing one."""
    for name in declared.required_attributes:
        if name in attributes:
            continue
        if issubclass(declared, Collective):
            expressions.scope.findings.refused(missing_declaration(declared, name), call.span)
            return False
        spelling = ".".join(call.callee)
        message, remedy = f"{spelling} needs the attribute {name}", f"write {spelling}(..., {name}=...)"
        expressions.report("types", message, call.span, f"a value of {name}", "LANG-11-01", remedy)
        return False
    return True


# Constant expressions, of module constants and of parameter defaults (LANG-02.3-05, AMB-LANG-74).


def check_constant(findings: Findings, expr: s.Expr, constants: Mapping[str, s.Let], subject: str) -> bool:
    """Return True for an expression of literals, constants and pure operators; report the first other part."""
    for leaf in _leaves(expr):
        if isinstance(leaf, s.Name) and leaf.text not in constants:
            _refuse(findings, leaf, f"{subject} is not constant: {leaf.text!r} is no constant", "a constant expression")
            return False
        if isinstance(leaf, s.Call) and not _is_pure(leaf):
            name = ".".join(leaf.callee)
            _refuse(findings, leaf, f"{subject} is not constant: it calls {name}", "literals, constants and op.* calls")
            return False
    return True


def evaluate(
    findings: Findings, around: Surroundings, expr: s.Expr, type_: Type, subject: str, name: str
) -> Given | None:
    """Return the value of a constant expression, computed once; None after a reported error."""
    if not check_constant(findings, expr, around.constants, subject):
        return None
    scope = Scope(Frame(findings), None)
    value = Expressions(scope, around).lower(expr, dtype_of(type_), name)
    if value is None or not scope.fits(type_, value.type, expr.span, name):
        return None
    location = Location(findings.filename, expr.span)
    function = Function(name, scope.block((), (value,), "return"), (value.type,), location)
    try:
        next(Interpreter(Module("", {name: function}, location)).run(function, ()))
    except StopIteration as finished:
        return Given(finished.value[0], value.type)
    except Rejection as rejection:
        findings.diagnostics += [replace(diagnostic, phase="verify") for diagnostic in rejection.diagnostics]
        return None
    raise AssertionError("a constant expression has no collective")


def _leaves(expr: s.Expr) -> Iterator[s.Expr]:
    """Yield the names and calls of an expression, without recursion."""
    pending: list[s.Node] = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, s.Name | s.Call):
            yield node
        pending += [child for child in reversed(s.children(node)) if not isinstance(child, s.Keyword | s.Attribute)]


def _is_pure(call: s.Call) -> bool:
    declared = SPELLINGS.get(".".join(call.callee))
    return declared is None or not declared.effects if call.callee[0] == "op" else False


def _refuse(findings: Findings, expr: s.Expr, message: str, requirement: str) -> None:
    findings.report("types", message, expr.span, requirement, "LANG-02.3-05")
