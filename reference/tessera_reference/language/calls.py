"""Calls of operations, `op.*` and `dist.*`: operands, attributes, and those any may carry (sections 2.3, 5.3, 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..graph.collectives import Collective, missing_declaration
from ..graph.mesh_axes import resolve_axis
from ..ir.builder import fields_of
from ..ir.common_attributes import check_common
from ..ir.diagnostics import Span
from ..ir.module import Value
from ..ir.operation import SPELLINGS, AttributeValue, Operation, Refusal
from ..ir.spelling import did_you_mean
from ..ir.types import Mesh, dtype_of
from ..numerics.formats import DType
from . import syntax as s
from .common_attributes import COMMON_ATTRIBUTES, read_common
from .expressions import CallLowering, Expressions, Results
from .values import attribute_value, default_dtype, is_untyped

NAMESPACES = ("op", "dist")


@dataclass(frozen=True)
class Prepared:
    """An operation with everything it is given, not yet appended."""

    operation: Operation
    operands: tuple[Value, ...]
    texts: Mapping[str, Span]
    common: dict[str, AttributeValue]


def call_operation(expressions: Expressions, call: s.Call, hint: str, meshes: Mapping[str, Mesh]) -> Results:
    """Append the operation that a call names. Returns its results, or None after a reported error."""
    ready = prepare(expressions, call, meshes)
    if ready is None:
        return None
    results = expressions.scope.emit(
        ready.operation, ready.operands, call.span, hint, ready.texts, attributes=ready.common
    )
    return results if results is not None and _agrees(expressions, call, ready, results, meshes) else None


def call_operation_in(meshes: Mapping[str, Mesh]) -> CallLowering:
    """Lowers calls where only operations can be called, such as in constants."""
    return lambda expressions, call, hint: call_operation(expressions, call, hint, meshes)


def prepare(expressions: Expressions, call: s.Call, meshes: Mapping[str, Mesh]) -> Prepared | None:
    """Lower the operands and read the attributes of a call; None after a reported error."""
    spelling = ".".join(call.callee)
    if spelling not in SPELLINGS:
        _unknown(expressions, call, spelling)
        return None
    declared = SPELLINGS[spelling]
    names = operand_names(declared, len(call.arguments))
    values = _operands(expressions, call, declared, names or [])
    attributes, common = _attributes(expressions, call, declared), _common(expressions, call, declared)
    if names is None:
        _wrong_count(expressions, call, declared)
        return None
    operands = tuple(value for value in values if value is not None)
    if attributes is None or common is None or len(operands) != len(values):
        return None
    if not _complete(expressions, call, declared, attributes):
        return None
    try:
        if issubclass(declared, Collective):
            mesh, group = resolve_axis(meshes, attributes["axis"], attributes.get("mesh"))
            attributes |= {"mesh": mesh, "group": group}
        made = _made(declared, operands, attributes)
    except Refusal as refusal:
        expressions.scope.findings.refused(refusal, call.span)
        return None
    texts = {name: argument.span for name, argument in zip(names, call.arguments, strict=True)}
    return Prepared(made, operands, texts, common)


def _operands(
    expressions: Expressions, call: s.Call, declared: type[Operation], names: list[str]
) -> list[Value | None]:
    """The operands of a call; a literal takes the dtype of those that it is to be like (AMB-LANG-125)."""
    values: dict[int, Value | None] = {}
    alike = [position for position, name in enumerate(names) if name in declared.alike]
    literals = [position for position in alike if is_untyped(call.arguments[position])]
    for position, argument in enumerate(call.arguments):
        if position not in literals:
            values[position] = expressions.lower(argument)
    typed = [value for position in alike if (value := values.get(position)) is not None]
    wanted = dtype_of(typed[0].type) if typed else default_dtype(*(call.arguments[each] for each in literals))
    for position in literals:
        values[position] = expressions.lower(call.arguments[position], wanted)
    return [values[position] for position in range(len(call.arguments))]


def operand_names(declared: type[Operation], count: int) -> list[str] | None:
    """The name of each of `count` operands; nothing where the operation does not take that many."""
    extra = count - len(declared.singles)
    if extra < 0 or (extra and not declared.rest):
        return None
    return [*declared.singles, *[f"{declared.rest}[{i}]" for i in range(extra)]]


def _made(declared: Any, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> Operation:
    made: Operation = declared(**fields_of(declared, tuple([value.type for value in operands])), **attributes)
    return made


def _unknown(expressions: Expressions, call: s.Call, spelling: str) -> None:
    head = call.callee[0]
    known = [each for each in SPELLINGS if each.partition(".")[0] == head and "." in each]
    if head in NAMESPACES:
        remedy = did_you_mean(spelling, known)
        message = f"unknown {'operator' if head == 'op' else 'collective'} {spelling}"
        requirement = "an operator" if head == "op" else f"one of {', '.join(known)}"
        expressions.report("types", message, call.span, requirement, "LANG-02-04", remedy)
    else:
        remedy = did_you_mean(head, [*NAMESPACES, "schedule"])
        expressions.report("types", f"unknown name {spelling}", call.span, "op.* or dist.*", "LANG-02-04", remedy)


def _wrong_count(expressions: Expressions, call: s.Call, declared: type[Operation]) -> None:
    spelling = ".".join(call.callee)
    names = [*declared.singles, *([f"{declared.rest}, ..."] if declared.rest else [])]
    given = len(call.arguments)
    expressions.report(
        "types",
        f"{spelling} takes {_count(len(names), 'operand')}, {given} given",
        call.span,
        f"{spelling}({', '.join(names)})",
        "LANG-11-01",
        "attributes are given by name" if given > len(names) else "",
    )


def _attributes(expressions: Expressions, call: s.Call, declared: type[Operation]) -> dict[str, Any] | None:
    """Keyword arguments and the attribute block together; given twice they must agree (AMB-LANG-100)."""
    spelling = ".".join(call.callee)
    known = declared.own_attributes
    values: dict[str, AttributeValue] = {}
    sound = True
    for given in sorted(call.named, key=lambda given: given.name != "dtype"):
        if given.name not in known:
            if given.name not in COMMON_ATTRIBUTES:
                remedy = did_you_mean(given.name, known)
                requirement = f"one of {', '.join(known)}" if known else "no attributes of its own"
                message = f"{spelling} has no attribute {given.name!r}"
                expressions.report("types", message, given.span, requirement, "LANG-02.3-13", remedy)
                sound = False
            continue
        try:
            held = values.get("dtype")
            element = held if isinstance(held, DType) else None
            value = attribute_value(given.value, known[given.name], element)
        except Refusal as refusal:
            expressions.scope.findings.refused(refusal, given.span)
            sound = False
            continue
        if values.setdefault(given.name, value) != value:
            message = f"{spelling}: {given.name} is given twice and differs"
            expressions.report("types", message, given.span, "one value of an attribute", "LANG-02.3-32")
            sound = False
    return values if sound else None


def _common(expressions: Expressions, call: s.Call, declared: type[Operation]) -> dict[str, AttributeValue] | None:
    """What any operation may carry, apart from what this one declares itself (LANG-05.3-01 to -06)."""
    try:
        return read_common([given for given in call.named if given.name not in declared.roles], call.span)
    except Refusal as refusal:
        expressions.scope.findings.refused(refusal, call.span)
        return None


def _complete(expressions: Expressions, call: s.Call, declared: type[Operation], attributes: Mapping[str, Any]) -> bool:
    """Whether every attribute without a default is given; reports the first that is not."""
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


def _agrees(
    expressions: Expressions, call: s.Call, ready: Prepared, results: tuple[Value, ...], meshes: Mapping[str, Mesh]
) -> bool:
    try:
        check_common(ready.common, tuple(value.type for value in results), meshes)
    except Refusal as refusal:
        expressions.scope.findings.refused(refusal, call.span, ready.operation)
        return False
    return True


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
