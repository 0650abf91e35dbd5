"""Control flow, directives and statements: from syntax to instructions (spec sections 2.3, 4, 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..graph.constant import LayoutCast
from ..graph.control import Assert, Barrier, Directive, For, If, While
from ..graph.movement import Update
from ..ir.attributes import require_profile
from ..ir.diagnostics import Category, Span, did_you_mean
from ..ir.operation import AttributeValue, Block, Refusal
from ..ir.types import Mesh, Scalar, Tensor, Type, Value, dtype_of, joined
from ..numerics.formats import dtype
from . import syntax as s
from .expressions import Expressions, Surroundings, lower_slices, prepare
from .scope import Binding, Findings, Scope
from .values import as_number, attribute_value, plain_value, resolve_type, word_of

# Control flow: if, for and while become operations with regions (spec section 2.3; AMB-LANG-52, -85, -92).
#
# The outer names that a region assigns are its results: those of the if, or the values carried through the loop.


def _merged(scope: Scope, name: str, branches: Sequence[Scope]) -> Type | None:
    """Return the type of a name after branches that reach their end; None where not all assign it a value."""
    bindings = [assigned for branch in branches if (assigned := branch.outside(name)) is not None]
    values = [binding.value for binding in bindings]
    present = [value.type for value in values if value is not None]
    type_ = present[0] if present else None
    for other in present[1:]:
        type_ = joined(type_, other) if type_ is not None else None
    if type_ is not None and len(present) == len(values):
        return type_
    scope.assign(name, None, partly=not any(binding.broken for binding in bindings))
    return None


def _yielding(branch: Scope, arguments: tuple[Value, ...], names: Sequence[str]) -> Block:
    """Return a finished region that yields its last values of `names`."""
    if branch.exit is not None:
        return branch.block(arguments, ())
    values = [branch.outside(name) for name in names]
    return branch.block(arguments, tuple(binding.value for binding in values if binding and binding.value))


def _carried(scope: Scope, body: s.Block, hidden: tuple[str, ...]) -> list[str]:
    """Return the outer names with a value that a loop's body assigns, in order of their first assignment."""
    names = dict.fromkeys(_assigned(body.statements, set(hidden)))
    return [name for name in names if (binding := scope.find(name)) is not None and binding.value is not None]


def _assigned(statements: Sequence[s.Statement], hidden: set[str]) -> Iterator[str]:
    """Yield the names that statements assign, without those that they declare themselves."""
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
    """Return the arguments of a loop's region, to which the carried names are bound inside."""
    arguments = []
    for name in names:
        argument = Value(scope.frame.fresh(name), _value(scope, name).type)
        inside.assign(name, argument)
        arguments.append(argument)
    return tuple(arguments)


def _check_unchanged(scope: Scope, inside: Scope, names: Sequence[str], span: Span) -> None:
    """Require that a loop does not change the shape or layout of a name (AMB-LANG-92)."""
    if inside.exit is not None:
        return
    for name in names:
        before, after = _value(scope, name).type, inside.rebound[name].value
        if after is None or after.type == before:
            continue
        assert isinstance(before, Tensor) and isinstance(after.type, Tensor)  # an assignment keeps kind, rank and dtype
        category: Category = "shapes" if before.shape != after.type.shape else "layouts"
        message = f"the loop changes {name!r} from {before} to {after.type}"
        requirement = "the same type and shape in every turn"
        remedy = "assign what has another shape to a name declared inside the loop"
        scope.findings.report(category, message, span, requirement, "AMB-LANG-92", remedy)
        inside.rebound[name] = Binding(inside.rebound[name].span, None, broken=True)


def _leave(scope: Scope, inside: Scope, names: Sequence[str], results: tuple[Value, ...] | None) -> None:
    """Bind the carried names to a loop's results; other names that it may assign have no certain value."""
    for name, value in zip(names, results or (None,) * len(names), strict=True):
        scope.assign(name, value)
    for name in inside.rebound:
        if name not in names:
            _mark_unsure(scope, name, inside.rebound[name])


def _mark_unsure(scope: Scope, name: str, after: Binding) -> None:
    binding = scope.find(name)
    if binding is not None and binding.value is None and not binding.broken and not after.broken:
        scope.assign(name, None, partly=True)


def _refuse_condition(expressions: Expressions, type_: Type, span: Span) -> None:
    remedy = "take one element, as in x[0]" if isinstance(type_, Tensor) else "compare it: x != 0"
    expressions.report("types", f"the condition is {type_}, not bool", span, "a scalar bool", "AMB-LANG-55", remedy)


# Schedule and dist statements, `@schedule(...)`: metadata of the IR (sections 2.3, 6; AMB-LANG-13, -16, -110).


SETTINGS: dict[str, dict[str, Any]] = {
    "tile": {"m": int, "n": int, "k": int, "pad": int | tuple[int, ...]},
    "fuse": {},
    "pipeline": {"double_buffer": bool, "depth": int, "stages": tuple[str, ...]},
    "prefetch": {"scope": str, "align": int},
    "layout_cast": {"to": str},
}
"""The settings of each schedule directive, and the kinds of their values (section 6.1)."""

Settings = tuple[tuple[str, AttributeValue], ...]


def lower_schedule(expressions: Expressions, call: s.Call) -> None:
    """Lower `schedule.tile(C, m=128);` to a directive; `schedule.layout_cast(A, to=...)` also changes A's layout."""
    settings = read_settings(expressions.scope.findings, call)
    values = [expressions.lower(argument) for argument in call.arguments]
    subjects = tuple(value for value in values if value is not None)
    if settings is None or len(subjects) != len(values):
        return
    if not subjects:
        message = f"{'.'.join(call.callee)} names nothing to schedule"
        expressions.report("schedule", message, call.span, "the values that it concerns", "LANG-02.3-43")
        return
    _emit(expressions.scope, ".".join(call.callee), subjects, settings, call.span)
    if call.callee[1:] == ("layout_cast",):
        _cast_layout(expressions, call, subjects[0], dict(settings))


def _cast_layout(expressions: Expressions, call: s.Call, subject: Value, settings: dict[str, AttributeValue]) -> None:
    """Bind the operand's name of a layout cast to the cast value from here on (LANG-03.3-02)."""
    name = call.arguments[0]
    if not isinstance(name, s.Name) or "to" not in settings:
        message = "schedule.layout_cast takes a name and the layout that it is to have"
        expressions.report("schedule", message, call.span, 'schedule.layout_cast(X, to="row_major")', "LANG-06.1-05")
        return
    results = expressions.scope.build(LayoutCast, (subject,), call.span, name.text, to=settings["to"])
    if expressions.scope.find(name.text) is not None:
        expressions.scope.assign(name.text, results[0] if results else None)


def lower_dist_statement(expressions: Expressions, call: s.Call, meshes: Mapping[str, Mesh]) -> None:
    """Lower a dist call without a used value: metadata only, checked like any other call, with a warning."""
    ready = prepare(expressions, call, meshes)
    if ready is None:
        return
    scope, name = expressions.scope, ".".join(call.callee)
    with scope.findings.refusals(call.span, ready.operation):
        ready.operation.results()
        _emit(scope, name, ready.operands, tuple(ready.operation.attributes.items()), call.span)
        message, remedy = f"{name} as a statement communicates nothing", f"write X = {name}(...);"
        scope.findings.warn("distributed", message, call.span, "a use of its value", "AMB-LANG-119", remedy)


def read_settings(findings: Findings, call: s.Call) -> Settings | None:
    """Return the settings of a schedule directive, each of its kind; None after a reported error."""
    with findings.refusals(call.span):
        if len(call.callee) != 2 or call.callee[1] not in SETTINGS:
            message = f"unknown directive {'.'.join(call.callee)}"
            requirement = f"schedule.{', schedule.'.join(SETTINGS)}"
            remedy = did_you_mean(".".join(call.callee[1:]), SETTINGS, "schedule.{}")
            raise Refusal("schedule", message, requirement, "LANG-02.3-43", remedy)
        return _settings(call.named, SETTINGS[call.callee[1]], ".".join(call.callee))
    return None


def _settings(entries: Sequence[s.Keyword | s.Attribute], choices: dict[str, Any], name: str) -> Settings:
    values: dict[str, AttributeValue] = {}
    for key in entries:
        if key.name not in choices:
            message = f"{name} has no setting {key.name!r}"
            requirement = f"one of {', '.join(choices)}" if choices else "no settings"
            raise Refusal("schedule", message, requirement, "LANG-02.3-43", did_you_mean(key.name, choices))
        value = attribute_value(key.value, choices[key.name])
        if values.setdefault(key.name, value) != value:
            message = f"{name}: {key.name} is given twice and differs"
            raise Refusal("types", message, "one value of a setting", "LANG-02.3-32")
    return tuple(values.items())


def read_annotations(findings: Findings, annotations: Sequence[s.Annotation]) -> Settings:
    """Return `@schedule(tile=128, ...)` as attributes of its function; positional arguments mean nothing there."""
    values: dict[str, AttributeValue] = {}
    for annotation in annotations:
        for argument in annotation.arguments:
            message = "an annotation names its settings"
            findings.report("schedule", message, argument.span, "@schedule(name=value)", "LANG-02-06")
        for keyword in annotation.keywords:
            try:
                value = plain_value(keyword.value)
            except Refusal as refusal:
                findings.refused(refusal, keyword.span)
                continue
            if values.setdefault(keyword.name, value) != value:
                message = f"@schedule: {keyword.name} is given twice and differs"
                findings.report("schedule", message, keyword.span, "one value of a setting", "LANG-02-06")
    return tuple(values.items())


def _emit(scope: Scope, directive: str, subjects: tuple[Value, ...], settings: Settings, span: Span) -> None:
    scope.build(Directive, subjects, span, directive=directive, settings=settings)


# Statements: from syntax to instructions (spec sections 2.3, 4).
#
# Assignment binds a name to a new value (AMB-LANG-52); an assignment to a slice makes an updated tensor (AMB-LANG-95).


ReturnLowering = Callable[["Statements", s.Return], None]


@dataclass(frozen=True)
class Statements:
    """The lowering of one block's statements into its scope."""

    scope: Scope
    around: Surroundings
    meshes: Mapping[str, Mesh]
    give_back: ReturnLowering
    kernel: bool

    @property
    def expressions(self) -> Expressions:
        """Expressions of this block."""
        return Expressions(self.scope, self.around)

    def _inner(self, scope: Scope, block: s.Block) -> None:
        """Lower the statements of a block within this one into its own scope."""
        replace(self, scope=scope).block(block)

    def block(self, block: s.Block) -> None:
        """Lower every statement in order; check unreachable ones, and warn about them once."""
        warned = False
        for position, statement in enumerate(block.statements):
            if self.scope.exit is not None and not warned:
                warned = True
                message = "this can never be reached"
                self.scope.findings.warn("types", message, statement.span, "", "AMB-LANG-93")
            self._statement(statement, position == 0)

    def _statement(self, statement: s.Statement, first: bool) -> None:
        match statement:
            case s.Let():
                self._let(statement)
            case s.Assign():
                self._assign(statement)
            case s.CallStatement():
                self._call(statement.call, first)
            case s.If():
                self._if(statement)
            case s.For():
                self._for(statement)
            case s.While():
                self._while(statement)
            case s.Return():
                self.give_back(self, statement)
            case s.Barrier():
                self.scope.emit(Barrier(label=statement.label or ""), (), statement.span)
            case s.Assert():
                condition = self.expressions.lower(statement.condition)
                if condition is not None:
                    self.scope.build(Assert, (condition,), statement.span, message=statement.message or "")

    def resolve(self, type_: s.TypeExpr) -> Type | None:
        """Return the type that an annotation names; None after a reported error."""
        with self.scope.findings.refusals(type_.span):
            return resolve_type(type_, self.around.aliases)
        return None

    # Control flow

    def _if(self, statement: s.If) -> None:
        """Lower an if with or without else; names that its branches assign are its results."""
        scope, expressions = self.scope, self.expressions
        condition = expressions.lower(statement.condition)
        branches = then, otherwise = scope.inner(), scope.inner()
        self._inner(then, statement.then)
        if statement.otherwise is not None:
            self._inner(otherwise, statement.otherwise)
        open_branches = [branch for branch in branches if branch.exit is None]
        names = list(dict.fromkeys(name for branch in open_branches for name in branch.rebound))
        merged = {name: _merged(scope, name, open_branches) for name in names}
        carried = [name for name in names if merged[name] is not None]
        types = tuple(type_ for type_ in merged.values() if type_ is not None)
        if condition is not None and isinstance(condition.type, Tensor):
            _refuse_condition(expressions, condition.type, statement.condition.span)
            condition = None
        if condition is not None:
            blocks = tuple(_yielding(branch, (), carried) for branch in branches)
            results = scope.build(If, (condition,), statement.span, regions=blocks, returns=types)
            for name, value in zip(carried, results or (None,) * len(carried), strict=True):
                scope.assign(name, value)
        if not open_branches:
            scope.leave("unreachable")

    def _for(self, statement: s.For) -> None:
        """Lower a loop over a range; its variable is int32, and names it assigns are carried from turn to turn."""
        scope, expressions = self.scope, self.expressions
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
        self._inner(inside, statement.body)
        _check_unchanged(scope, inside, names, statement.span)
        start, stop, by = ends
        if start is None or stop is None or by is None:
            return
        before = tuple(_value(scope, name) for name in names)
        body = _yielding(inside, arguments, names)
        results = scope.build(For, (start, stop, by, *before), statement.span, regions=(body,))
        _leave(scope, inside, names, results)

    def _while(self, statement: s.While) -> None:
        """Lower a loop on a condition, which is computed anew before each turn."""
        scope, expressions = self.scope, self.expressions
        names = _carried(scope, statement.body, hidden=())
        testing, inside = scope.inner(), scope.inner()
        tested = _enter(testing, scope, names)
        condition = replace(expressions, scope=testing).lower(statement.condition)
        if condition is not None and condition.type != Scalar(dtype("bool")):
            _refuse_condition(expressions, condition.type, statement.condition.span)
            condition = None
        arguments = _enter(inside, scope, names)
        self._inner(inside, statement.body)
        _check_unchanged(scope, inside, names, statement.span)
        if condition is None:
            return
        before = tuple(_value(scope, name) for name in names)
        blocks = (testing.block(tested, (condition,)), _yielding(inside, arguments, names))
        results = scope.build(While, before, statement.span, regions=blocks)
        _leave(scope, inside, names, results)

    # Variables

    def _let(self, let: s.Let) -> None:
        type_ = self.resolve(let.type)
        value = self.expressions.lower(let.value, dtype_of(type_), let.name) if let.value else None
        broken = type_ is None or (let.value is not None and value is None)
        if type_ and value and let.value and not self.scope.fits(type_, value.type, let.value.span, f"let {let.name}"):
            value, broken = None, True
        self.scope.declare(let.name, let.span, value if type_ else None, type_, broken=broken)

    def _assign(self, assign: s.Assign) -> None:
        binding = self.scope.find(assign.name)
        if binding is None:
            self._refuse_unknown(assign)
            return
        if assign.slices is not None:
            self._assign_slice(assign, binding.value, binding.broken)
            return
        value = self.expressions.lower(assign.value, dtype_of(binding.declared), assign.name)
        declared = binding.declared
        if value and not (declared and self.scope.fits(declared, value.type, assign.value.span, assign.name)):
            value = None
        self.scope.assign(assign.name, value)

    def _assign_slice(self, assign: s.Assign, whole: Value | None, broken: bool) -> None:
        """Lower `X[0:2] = V;`, a new value of X; V has the shape of the slice, or is a scalar that fills it."""
        assert assign.slices is not None
        slices = lower_slices(self.expressions, assign.slices)
        value = self.expressions.lower(assign.value, dtype_of(whole.type) if whole else None)
        if whole is None and not broken:
            self._refuse(f"{assign.name!r} has no value yet to assign a part of", assign.span, "LANG-03.1-01")
        updated = None
        if whole and value and slices:
            operands = (whole, value, *slices.bounds)
            updated = self.scope.build(Update, operands, assign.span, assign.name, spec=slices.spec)
        self.scope.assign(assign.name, updated[0] if updated else None)

    def _refuse_unknown(self, assign: s.Assign) -> None:
        constant = assign.name in self.around.constants
        remedy = "declare a variable with let" if constant else did_you_mean(assign.name, self.scope.visible())
        what = f"{assign.name!r} is a constant of the module" if constant else f"unknown name {assign.name!r}"
        self._refuse(what, assign.span, "LANG-02.3-19", remedy or f"declare it: let {assign.name}: ... = ...;")
        self.expressions.lower(assign.value)
        self.scope.give_up(assign.name, assign.span)

    def _refuse(self, message: str, span: Span, clause: str, remedy: str = "") -> None:
        requirement = "a variable or parameter that was declared"
        self.scope.findings.report("types", message, span, requirement, clause, remedy)

    # Calls as statements

    def _call(self, call: s.Call, first: bool) -> None:
        match call.callee:
            case ("schedule", *_):
                lower_schedule(self.expressions, call)
            case ("dist", *_):
                lower_dist_statement(self.expressions, call, self.meshes)
            case ("numerics", *_):
                self._profile(call, first)
            case _:
                self.around.call(self.expressions, call, "")

    def _profile(self, call: s.Call, first: bool) -> None:
        """Lower `numerics.profile("strict");` at the head of a block (AMB-LANG-51, AMB-LANG-111)."""
        if call.callee != ("numerics", "profile") or len(call.arguments) != 1 or call.named:
            self._numerics(call.span, "this is no numerics annotation", 'numerics.profile("strict")')
            return
        if not first:
            self._numerics(call.span, "a numerics profile follows other statements", "the head of a block")
            return
        with self.scope.findings.refusals(call.arguments[0].span):
            self.scope.profile = require_profile(word_of(call.arguments[0]))

    def _numerics(self, span: Span, message: str, requirement: str) -> None:
        self.scope.findings.report("numerics", message, span, requirement, "LANG-02-07")
