"""Control flow: if, for and while become operations with regions (spec section 2.3; AMB-LANG-52, -85, -92).

The names around a region that it assigns are its results: those of the if, or the values carried through the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..graph.control import For, If, While
from ..ir.diagnostics import Category, Span
from ..ir.dimensions import joined
from ..ir.module import Block, Value
from ..ir.types import Scalar, Tensor, Type
from ..numerics.formats import dtype
from . import syntax as s
from .expressions import Expressions
from .scope import Binding, Scope
from .values import as_number

LowerBlock = Callable[[Scope, s.Block], None]
"""Lowers the statements of a block into its scope."""


def lower_if(expressions: Expressions, statement: s.If, lower_block: LowerBlock) -> None:
    """An if with or without else; names that its branches assign are its results."""
    scope = expressions.scope
    condition = expressions.lower(statement.condition)
    branches = then, otherwise = scope.inner(), scope.inner()
    lower_block(then, statement.then)
    if statement.otherwise is not None:
        lower_block(otherwise, statement.otherwise)
    open_branches = [branch for branch in branches if branch.exit is None]
    names = list(dict.fromkeys(name for branch in open_branches for name in branch.rebound))
    merged = {name: _merged(scope, name, open_branches) for name in names}
    carried = [name for name in names if merged[name] is not None]
    types = tuple(type_ for type_ in merged.values() if type_ is not None)
    if condition is not None and isinstance(condition.type, Tensor):
        _refuse_condition(expressions, condition.type, statement.condition.span)
        condition = None
    if condition is not None:
        made: Any = If
        blocks = tuple(_yielding(branch, (), carried) for branch in branches)
        operation = made(condition=condition.type, returns=types)
        results = scope.emit(operation, (condition,), statement.span, regions=blocks)
        for name, value in zip(carried, results or (None,) * len(carried), strict=True):
            scope.assign(name, value)
    if not open_branches:
        scope.leave("unreachable")


def _merged(scope: Scope, name: str, branches: Sequence[Scope]) -> Type | None:
    """The type of a name after branches that reach their end; None, and no value, where not all give it one."""
    bindings = [found for branch in branches if (found := branch.outside(name)) is not None]
    values = [binding.value for binding in bindings]
    present = [value.type for value in values if value is not None]
    type_ = present[0] if present else None
    for other in present[1:]:
        type_ = joined(type_, other) if type_ is not None else None
    if type_ is not None and len(present) == len(values):
        return type_
    partly = not any(binding.broken for binding in bindings)
    scope.assign(name, None)
    if partly:
        _mark_partly(scope, name)
    return None


def _mark_partly(scope: Scope, name: str) -> None:
    """Mark a name that only some paths assign: it has no value, which is an error only where it is used."""
    table = scope.names if name in scope.names else scope.rebound
    found = table[name]
    table[name] = Binding(found.span, None, found.declared, broken=False, partly=True)


def _yielding(branch: Scope, arguments: tuple[Value, ...], names: Sequence[str]) -> Block:
    """A finished region that hands back what it made of `names`."""
    if branch.exit is not None:
        return branch.block(arguments, ())
    values = [branch.outside(name) for name in names]
    return branch.block(arguments, tuple(found.value for found in values if found and found.value))


def lower_for(expressions: Expressions, statement: s.For, lower_block: LowerBlock) -> None:
    """A loop over a range; its variable is int32, and what it assigns is carried from turn to turn."""
    scope = expressions.scope
    if len(statement.names) > 1:
        message = "a for statement over one range binds one name"
        expressions.report("types", message, statement.span, "one name", "AMB-LANG-28", "nest two loops")
    index = dtype("int32")
    step = as_number(statement.step) if statement.step else None
    if step and isinstance(step.literal, s.IntLiteral) and not step.literal.text.strip("0") and statement.step:
        expressions.report("types", "the step is 0", statement.step.span, "a step other than 0", "AMB-LANG-29")
    ends = [expressions.lower(end, index) for end in (statement.start, statement.stop)]
    one = s.IntLiteral(statement.span, "1")
    ends.append(expressions.lower(statement.step or one, index))
    names = _carried(scope, statement.body, hidden=statement.names)
    inside = scope.inner()
    arguments = _enter(inside, scope, names)
    for name in statement.names[:1]:
        counter = inside.value(name, Scalar(index))
        inside.declare(name, statement.span, counter, counter.type)
        arguments = (counter, *arguments)
    lower_block(inside, statement.body)
    _check_unchanged(scope, inside, names, statement.span)
    start, stop, by = ends
    if start is None or stop is None or by is None:
        return
    before = tuple(_value(scope, name) for name in names)
    made: Any = For
    operation = made(start=start.type, stop=stop.type, step=by.type, carried=tuple(value.type for value in before))
    body = _yielding(inside, arguments, names)
    results = scope.emit(operation, (start, stop, by, *before), statement.span, regions=(body,))
    _leave(scope, inside, names, results)


def lower_while(expressions: Expressions, statement: s.While, lower_block: LowerBlock) -> None:
    """A loop on a condition, which is computed anew before each turn."""
    scope = expressions.scope
    names = _carried(scope, statement.body, hidden=())
    testing, inside = scope.inner(), scope.inner()
    tested = _enter(testing, scope, names)
    condition = replace(expressions, scope=testing).lower(statement.condition)
    if condition is not None and condition.type != Scalar(dtype("bool")):
        _refuse_condition(expressions, condition.type, statement.condition.span)
        condition = None
    arguments = _enter(inside, scope, names)
    lower_block(inside, statement.body)
    _check_unchanged(scope, inside, names, statement.span)
    if condition is None:
        return
    before = tuple(_value(scope, name) for name in names)
    made: Any = While
    operation = made(carried=tuple(value.type for value in before))
    blocks = (testing.block(tested, (condition,)), _yielding(inside, arguments, names))
    results = scope.emit(operation, before, statement.span, regions=blocks)
    _leave(scope, inside, names, results)


def _carried(scope: Scope, body: s.Block, hidden: tuple[str, ...]) -> list[str]:
    """The outer names with a value that a loop's body assigns, in order of their first assignment."""
    found = dict.fromkeys(_assigned(body.statements, set(hidden)))
    return [name for name in found if (binding := scope.find(name)) is not None and binding.value is not None]


def _assigned(statements: Sequence[s.Statement], hidden: set[str]) -> Iterator[str]:
    """The names that statements assign, without those that they declare themselves."""
    for statement in statements:
        match statement:
            case s.Let():
                hidden = hidden | {statement.name}
            case s.Assign() if statement.name not in hidden:
                yield statement.name
            case s.If():
                yield from _assigned(statement.then.statements, hidden)
                if statement.otherwise is not None:
                    yield from _assigned(statement.otherwise.statements, hidden)
            case s.For():
                yield from _assigned(statement.body.statements, hidden | set(statement.names))
            case s.While():
                yield from _assigned(statement.body.statements, hidden)


def _value(scope: Scope, name: str) -> Value:
    binding = scope.find(name)
    assert binding is not None and binding.value is not None
    return binding.value


def _enter(inside: Scope, scope: Scope, names: Sequence[str]) -> tuple[Value, ...]:
    """The arguments of a loop's region: each carried name stands for one of them there."""
    arguments = []
    for name in names:
        argument = Value(scope.frame.fresh(name), _value(scope, name).type)
        inside.assign(name, argument)
        arguments.append(argument)
    return tuple(arguments)


def _check_unchanged(scope: Scope, inside: Scope, names: Sequence[str], span: Span) -> None:
    """A loop may not give a name another shape or layout (AMB-LANG-92)."""
    if inside.exit is not None:
        return
    for name in names:
        before, after = _value(scope, name).type, inside.rebound[name].value
        if after is None or after.type == before:
            continue
        assert isinstance(before, Tensor) and isinstance(after.type, Tensor)  # an assignment keeps kind, rank and dtype
        category: Category = "shapes" if before.shape != after.type.shape else "layouts"
        scope.findings.report(
            category,
            f"the loop changes {name!r} from {before} to {after.type}",
            span,
            requirement="the same type and shape in every turn",
            clause="AMB-LANG-92",
            remedy="assign what has another shape to a name declared inside the loop",
        )
        inside.rebound[name] = Binding(inside.rebound[name].span, None, broken=True)


def _leave(scope: Scope, inside: Scope, names: Sequence[str], results: tuple[Value, ...] | None) -> None:
    """After a loop the carried names stand for its results; others that it may assign have no certain value."""
    for name, value in zip(names, results or (None,) * len(names), strict=True):
        scope.assign(name, value)
    for name in inside.rebound:
        if name not in names:
            _mark_unsure(scope, name, inside.rebound[name])


def _mark_unsure(scope: Scope, name: str, after: Binding) -> None:
    found = scope.find(name)
    if found is not None and found.value is None and not found.broken and not after.broken:
        scope.assign(name, None)
        _mark_partly(scope, name)


def _refuse_condition(expressions: Expressions, type_: Type, span: Span) -> None:
    remedy = "take one element, as in x[0]" if isinstance(type_, Tensor) else "compare it: x != 0"
    expressions.report("types", f"the condition is {type_}, not bool", span, "a scalar bool", "AMB-LANG-55", remedy)
