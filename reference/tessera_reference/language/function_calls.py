"""Calls of the module's functions: arguments, dimensions, profiles (LANG-02.3-32; AMB-LANG-08, -74, -97)."""

from __future__ import annotations

from ..graph.call import Call
from ..graph.function_values import CallValue, FunctionValue, type_of_function
from ..ir.diagnostics import Span
from ..ir.dimensions import substituted
from ..ir.module import Function, Value
from ..ir.operation import AttributeValue, Refusal
from ..ir.spelling import did_you_mean
from ..ir.types import Dim, FunctionType, Type, dtype_of
from . import syntax as s
from .annotations import resolve_type
from .common_attributes import COMMON_ATTRIBUTES, read_common
from .expressions import Expressions, Given, Results
from .modules import ModuleLowering
from .scope import Frame, Scope


def call_function(module: ModuleLowering, expressions: Expressions, call: s.Call) -> Results:
    """Append the call of a function of the module. Returns its results, or None after a reported error."""
    name = call.callee[0]
    local = expressions.scope.find(name)
    if local is not None and isinstance(local.declared, FunctionType):
        return _call_value(expressions, call)
    if not _callable(module, expressions, call.span, name):
        return None
    callee = module.function(name)
    arguments = _arguments(module, expressions, call, module.declared[name], callee)
    common = _common(expressions, call)
    if callee is None or arguments is None or common is None:
        return None
    sizes = _bind_dims(expressions, call, callee, arguments)
    if sizes is None:
        return None
    returns = tuple(substituted(type_, sizes) for type_ in callee.results)
    operation = Call(arguments=tuple(value.type for value in arguments), callee=name, returns=returns)
    return expressions.scope.emit(operation, arguments, call.span, attributes=common)


def function_value(module: ModuleLowering, expressions: Expressions, name: s.Name) -> tuple[bool, Value | None]:
    """Whether a name is a function's, and the function as a value; None after a reported error (AMB-LANG-187)."""
    if name.text not in module.declared:
        return False, None
    if not _callable(module, expressions, name.span, name.text):
        return True, None
    function = module.function(name.text)
    if function is None:
        return True, None
    try:
        operation = FunctionValue(callee=name.text, type=type_of_function(name.text, function))
    except Refusal as refusal:
        expressions.scope.findings.refused(refusal, name.span)
        return True, None
    results = expressions.scope.emit(operation, (), name.span)
    return True, results[0] if results else None


def _call_value(expressions: Expressions, call: s.Call) -> Results:
    """Append the call of the function that a variable holds."""
    function = expressions.lower(s.Name(call.span, call.callee[0]))
    if function is None or not isinstance(function.type, FunctionType):
        return None
    wanted = function.type.parameters
    if call.keywords or len(call.arguments) != len(wanted):
        signature = f"{len(wanted)} arguments in order: ({', '.join(map(str, wanted))})"
        _refuse(expressions, call.span, f"{call.callee[0]}: these are not its arguments", signature)
        return None
    common = _common(expressions, call)
    pairs = zip(call.arguments, wanted, strict=True)
    arguments = [expressions.lower(argument, dtype_of(type_)) for argument, type_ in pairs]
    present = tuple(each for each in arguments if each is not None)
    if common is None or len(present) != len(arguments):
        return None
    operation = CallValue(function=function.type, arguments=tuple(each.type for each in present))
    return expressions.scope.emit(operation, (function, *present), call.span, attributes=common)


def _callable(module: ModuleLowering, expressions: Expressions, span: Span, name: str) -> bool:
    if name not in module.declared:
        remedy = did_you_mean(name, module.declared)
        _refuse(expressions, span, f"unknown function {name!r}", "a function of this module", remedy)
        return False
    if isinstance(module.declared[name], s.KernelDecl):
        message = f"{name!r} is a kernel, which is launched, not called"
        _refuse(expressions, span, message, "a func", "declare it as a func")
        return False
    if name in module.in_progress:
        cycle = [*module.in_progress[module.in_progress.index(name) :], name]
        message = f"recursion: {' calls '.join(cycle)}"
        _refuse(expressions, span, message, "functions that never come back to themselves")
        return False
    return True


def _arguments(
    module: ModuleLowering,
    expressions: Expressions,
    call: s.Call,
    declaration: s.FunctionDecl,
    callee: Function | None,
) -> tuple[Value, ...] | None:
    """The arguments in the order of the parameters; literals take their dtypes, what is left out its default."""
    names = [parameter.name for parameter in declaration.parameters]
    given: dict[str, s.Expr | s.ListValue] = dict(zip(names, call.arguments, strict=False))
    sound = len(call.arguments) <= len(names)
    for keyword in call.keywords:
        sound = sound and keyword.name in names and keyword.name not in given
        given[keyword.name] = keyword.value
    defaults = {each.name: each.default for each in declaration.parameters if each.default is not None}
    if not sound or any(name not in given and name not in defaults for name in names):
        signature = f"{declaration.name}({', '.join(names)})"
        _refuse(expressions, call.span, f"{declaration.name}: these are not its arguments", signature)
        return None
    values: list[Value | None] = []
    for parameter in declaration.parameters:
        expr = given.get(parameter.name)
        if isinstance(expr, s.ListValue):
            _refuse(expressions, expr.span, "a list is no value", "a number or a tensor")
            return None
        try:
            wanted: Type | None = resolve_type(parameter.type, module.aliases)
        except Refusal:
            wanted = None
        if expr is not None:
            values.append(expressions.lower(expr, dtype_of(wanted)))
        elif callee is not None and parameter.name in callee.defaults and wanted is not None:
            values.append(expressions.given(Given(callee.defaults[parameter.name], wanted), call.span))
    present = tuple(value for value in values if value is not None)
    return present if len(present) == len(names) else None


def _common(expressions: Expressions, call: s.Call) -> dict[str, AttributeValue] | None:
    """The attribute block of a call: annotations that any operation may carry."""
    try:
        for attribute in call.attributes:
            if attribute.name not in COMMON_ATTRIBUTES:
                known = ", ".join(COMMON_ATTRIBUTES)
                message = f"a call has no attribute {attribute.name!r}"
                raise Refusal("types", message, f"one of {known}", "LANG-02.3-13", "")
        return read_common(call.attributes, call.span)
    except Refusal as refusal:
        expressions.scope.findings.refused(refusal, call.attributes[0].span)
        return None


def _bind_dims(
    expressions: Expressions, call: s.Call, callee: Function, arguments: tuple[Value, ...]
) -> dict[str, Dim] | None:
    """The extents of the callee's open dimensions in this call; reports arguments that do not fit its signature."""
    there = Scope(Frame(expressions.scope.findings), None)
    for parameter, argument in zip(callee.parameters, arguments, strict=True):
        if not there.fits(parameter.type, argument.type, call.span, f"{callee.name}: {parameter.name}"):
            return None
    return there.frame.dims


def _refuse(expressions: Expressions, span: Span, message: str, requirement: str, remedy: str = "") -> None:
    expressions.report("types", message, span, requirement, "LANG-11-01", remedy)
