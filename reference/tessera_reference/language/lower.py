"""Functions and modules: from syntax to Graph IR (spec sections 2.3, 3, 5; LANG-02-01).

A function may be called before it is declared, so signatures are found on demand; recursion is refused. Analysis goes
on after an error wherever that makes sense, so that one run reports many.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..graph.call import Call
from ..ir.diagnostics import Location, Span
from ..ir.module import Block, Function, Module, Value
from ..ir.operation import AttributeValue, Refusal
from ..ir.types import Dim, Tensor, Type, is_unknown
from . import syntax as s
from .annotations import did_you_mean, resolve_type
from .expressions import Expressions
from .scope import Findings, Scope

PROFILES = ("fast", "deterministic", "strict")
"""Numerics profiles, the loosest first (spec section 10)."""


def lower_program(program: s.Program, findings: Findings) -> tuple[Module, ...]:
    """The modules of a program; meaningless when `findings` then hold an error."""
    modules: dict[str, Module] = {}
    for declaration in program.modules:
        if declaration.name in modules:
            findings.report(
                "types",
                f"module {declaration.name!r} is declared twice",
                declaration.span,
                requirement="one declaration of a name",
                clause="AMB-LANG-86",
            )
        modules[declaration.name] = ModuleLowering(declaration, findings).lower()
    return tuple(modules.values())


def word_of(value: object) -> str:
    """The word that an attribute value is, bare or quoted; empty for any other."""
    if isinstance(value, s.Name):
        return value.text
    return value.value if isinstance(value, s.StringLiteral) else ""


@dataclass
class ModuleLowering:
    """The functions of one module: declared, being lowered, lowered."""

    declaration: s.ModuleDecl
    findings: Findings
    declared: dict[str, s.FunctionDecl] = field(default_factory=dict)
    lowered: dict[str, Function | None] = field(default_factory=dict)
    in_progress: list[str] = field(default_factory=list)
    loosest_known: dict[str, str | None] = field(default_factory=dict)

    def lower(self) -> Module:
        """Every function, each once."""
        for declaration in self.declaration.declarations:
            assert isinstance(declaration, s.FunctionDecl)
            if declaration.name in self.declared:
                self.findings.report(
                    "types",
                    f"function {declaration.name!r} is declared twice",
                    declaration.name_span,
                    requirement="one declaration of a name in a module",
                    clause="AMB-LANG-86",
                )
            else:
                self.declared[declaration.name] = declaration
        functions = {name: self.function(name) for name in self.declared}
        location = Location(self.findings.filename, self.declaration.span)
        return Module(self.declaration.name, {n: f for n, f in functions.items() if f is not None}, location)

    def function(self, name: str) -> Function | None:
        """A declared function, lowered; nothing when something about it was reported."""
        if name not in self.lowered:
            self.in_progress.append(name)
            self.lowered[name] = FunctionLowering(self, self.declared[name]).lower()
            self.in_progress.pop()
        return self.lowered[name]

    def profile(self, name: str) -> str | None:
        """The numerics profile that a function declares, if it is one."""
        for attribute in self.declared[name].attributes:
            value = attribute.value
            if word_of(value) in PROFILES:
                return word_of(value)
        return None

    def loosest(self, name: str) -> str | None:
        """The profile a lowered function runs under: its own, else the loosest among what it calls."""
        if name not in self.loosest_known:
            function = self.lowered[name]
            operations = [instruction.operation for instruction in function.body.instructions] if function else []
            called = [self.loosest(operation.callee) for operation in operations if isinstance(operation, Call)]
            declared = [profile for profile in called if profile]
            self.loosest_known[name] = self.profile(name) or min(declared, key=PROFILES.index, default=None)
        return self.loosest_known[name]


class FunctionLowering:
    """One function: its signature, then its statements."""

    def __init__(self, module: ModuleLowering, declaration: s.FunctionDecl) -> None:
        self.module = module
        self.declaration = declaration
        self.findings = module.findings
        self.scope = Scope(module.findings, module.profile(declaration.name))
        self.expressions = Expressions(self.scope, self.call_function)
        self.returned: tuple[Value, ...] | None = None
        self.reached: int | None = None

    def lower(self) -> Function | None:
        """The function; nothing when anything about it was reported."""
        before = self._errors()
        self._check_attributes()
        parameters = tuple(self._parameter(parameter) for parameter in self.declaration.parameters)
        wanted = self._resolve(self.declaration.result) if self.declaration.result else None
        for statement in self.declaration.body.statements:
            self._statement(statement, wanted)
        if self.returned is None and self.declaration.result:
            self.findings.report(
                "types",
                f"{self.declaration.name!r} does not return a value",
                self.declaration.name_span,
                requirement=f"a return of {self.findings.text(self.declaration.result.span)} on every path",
                clause="LANG-02.3-11",
            )
        if self._errors() > before:
            return None
        body = Block(
            tuple(value for value in parameters if value),
            tuple(self.scope.instructions[: self.reached]),
            self.returned or (),
        )
        attributes: dict[str, AttributeValue] = {"numerics_profile": self.scope.profile} if self.scope.profile else {}
        location = Location(self.findings.filename, self.declaration.name_span)
        results = tuple(value.type for value in body.results)
        return Function(self.declaration.name, body, results, location, attributes)

    def _errors(self) -> int:
        return sum(diagnostic.severity == "error" for diagnostic in self.findings.diagnostics)

    # Signature

    def _check_attributes(self) -> None:
        words: set[str] = set()
        for attribute in self.declaration.attributes:
            value = attribute.value
            word = word_of(value)
            words.add(word)
            if word not in PROFILES or len(words) > 1:
                text = self.findings.text(value.span)
                self.findings.report(
                    "numerics",
                    f"{text} is no numerics profile" if word not in PROFILES else f"a second numerics profile, {text}",
                    attribute.span,
                    requirement=f"one of {', '.join(PROFILES)}",
                    clause="LANG-10-04",
                    remedy=did_you_mean(word, PROFILES),
                )

    def _resolve(self, type_: s.TypeExpr) -> Type | None:
        try:
            return resolve_type(type_)
        except Refusal as refusal:
            self.findings.refused(refusal, type_.span)
            return None

    def _parameter(self, parameter: s.Parameter) -> Value | None:
        """Declare a parameter; each `?` in its type becomes a dimension of its own."""
        type_ = self._resolve(parameter.type)
        if isinstance(type_, Tensor):
            marked = tuple(
                f"?{parameter.name}.{axis}" if is_unknown(dim) else dim for axis, dim in enumerate(type_.shape)
            )
            type_ = replace(type_, shape=marked)
            self.scope.dims.update((dim, dim) for dim in marked if isinstance(dim, str))
        value = Value(parameter.name, type_) if type_ else None
        self.scope.declare(parameter.name, parameter.span, value, broken=value is None)
        return value

    # Statements

    def _statement(self, statement: s.Statement, wanted: Type | None) -> None:
        match statement:
            case s.Let():
                self._let(statement)
            case s.CallStatement():
                self.expressions.call(statement.call)
            case s.Return():
                self._return(statement, wanted)
            case _:
                raise AssertionError(f"{type(statement).__name__} is not carried out and should not get here")

    def _let(self, let: s.Let) -> None:
        type_ = self._resolve(let.type)
        value = self.expressions.lower(let.value, type_.dtype if type_ else None, let.name) if let.value else None
        broken = type_ is None or (let.value is not None and value is None)
        if type_ and value and let.value and not self.scope.fits(type_, value.type, let.value.span, f"let {let.name}"):
            value, broken = None, True
        self.scope.declare(let.name, let.span, value if type_ else None, broken=broken)

    def _return(self, statement: s.Return, wanted: Type | None) -> None:
        annotated = self.declaration.result is not None
        asked = wanted.dtype if wanted else None
        values = [self.expressions.lower(value, asked) for value in statement.values]
        present = tuple(value for value in values if value is not None)
        if annotated and len(values) != 1:
            self.findings.report(
                "types",
                f"{self.declaration.name!r} returns {len(values)} values, its annotation one",
                statement.span,
                requirement="exactly one value, of the annotated type",
                clause="AMB-LANG-26",
                remedy="leave the annotation out to return several values" if values else "",
            )
        elif len(present) == len(values) and wanted:
            self.scope.fits(wanted, present[0].type, statement.values[0].span, "return")
        if self.returned is None:
            self.returned, self.reached = present, len(self.scope.instructions)
        elif len(present) == len(values) and [v.type for v in present] != [v.type for v in self.returned]:
            self.findings.report("types", "the returns of a function disagree", statement.span, clause="AMB-LANG-12")

    # Calls of functions

    def call_function(self, call: s.Call, expressions: Expressions) -> tuple[Value, ...] | None:
        """A call of a function of the module; nothing after a reported error."""
        name = call.callee[0]
        if name not in self.module.declared:
            remedy = did_you_mean(name, self.module.declared)
            self._refuse(call.span, f"unknown function {name!r}", "a function of this module", remedy)
            return None
        if name in self.module.in_progress:
            cycle = [*self.module.in_progress[self.module.in_progress.index(name) :], name]
            message = f"recursion: {' calls '.join(cycle)}"
            self._refuse(call.span, message, "functions that never come back to themselves")
            return None
        callee = self.module.function(name)
        arguments = self._arguments(call, self.module.declared[name])
        if callee is None or arguments is None:
            return None
        self._check_profiles(call, name)
        sizes = self._bind_dims(call, callee, arguments)
        if sizes is None:
            return None
        returns = tuple(_substitute(type_, sizes) for type_ in callee.results)
        operation = Call(arguments=tuple(value.type for value in arguments), callee=name, returns=returns)
        return self.scope.emit(operation, arguments, call.span)

    def _arguments(self, call: s.Call, declaration: s.FunctionDecl) -> tuple[Value, ...] | None:
        """The arguments in the order of the parameters; literals take the parameters' dtypes."""
        names = [parameter.name for parameter in declaration.parameters]
        given: dict[str, s.Expr | s.ListValue] = dict(zip(names, call.arguments, strict=False))
        sound = len(call.arguments) <= len(names)
        for keyword in call.keywords:
            sound = sound and keyword.name in names and keyword.name not in given
            given[keyword.name] = keyword.value
        if not sound or len(given) != len(names):
            signature = f"{declaration.name}({', '.join(names)})"
            self._refuse(call.span, f"{declaration.name}: these are not its arguments", signature)
            return None
        values: list[Value] = []
        for parameter in declaration.parameters:
            expr = given[parameter.name]
            if isinstance(expr, s.ListValue):
                self._refuse(expr.span, "a list is no value", "a number or a tensor")
                return None
            try:
                wanted = resolve_type(parameter.type).dtype
            except Refusal:
                wanted = None
            value = self.expressions.lower(expr, wanted)
            if value:
                values.append(value)
        return tuple(values) if len(values) == len(names) else None

    def _bind_dims(self, call: s.Call, callee: Function, arguments: tuple[Value, ...]) -> dict[str, Dim] | None:
        """What the callee's open dimensions are in this call; the arguments must fit its signature."""
        there = Scope(self.findings, None)
        for parameter, argument in zip(callee.parameters, arguments, strict=True):
            if not there.fits(parameter.type, argument.type, call.span, f"{callee.name}: {parameter.name}"):
                return None
        return there.dims

    def _check_profiles(self, call: s.Call, name: str) -> None:
        ours, theirs = self.scope.profile, self.module.loosest(name)
        if ours and theirs and PROFILES.index(theirs) < PROFILES.index(ours):
            self.findings.report(
                "numerics",
                f"a {ours} function calls {name}, which is {theirs}",
                call.span,
                requirement="callees at least as strict as their callers",
                clause="LANG-11-16",
                remedy=f"declare {name} as {ours}",
            )

    def _refuse(self, span: Span, message: str, requirement: str, remedy: str = "") -> None:
        self.findings.report("types", message, span, requirement=requirement, clause="LANG-11-01", remedy=remedy)


def _substitute(type_: Type, sizes: dict[str, Dim]) -> Type:
    if not isinstance(type_, Tensor):
        return type_
    return replace(type_, shape=tuple(sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in type_.shape))
