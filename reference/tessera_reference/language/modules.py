"""Modules and their functions: from source text to verified Graph IR (spec sections 2.3, 3, 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from ..graph.control import Call, CallValue, FunctionValue, type_of_function
from ..graph.grad import missing_adjoints
from ..ir.attributes import COMMON_ATTRIBUTES, PROFILES, check_common
from ..ir.diagnostics import Diagnostic, Location, Rejection, Span, UnsupportedConstruct, counted, did_you_mean
from ..ir.operation import AttributeValue, Block, Function, Module, Refusal
from ..ir.types import (
    Dim,
    Fragment,
    FunctionType,
    Memref,
    Mesh,
    Tensor,
    Type,
    Value,
    dtype_of,
    joined,
    shown,
    substituted,
)
from ..ir.verifier import verify
from ..numerics.formats import DTYPES
from . import syntax as s
from .expressions import (
    CallLowering,
    Expressions,
    Given,
    ReferenceLowering,
    Results,
    Surroundings,
    call_operation,
    evaluate,
)
from .parser import deep_recursion, parse, without_collection
from .scope import Findings, Frame, Scope
from .statements import Statements, read_annotations
from .syntax import Program
from .values import read_common, resolve_mesh, resolve_type, word_of

# One module: its declarations by name, its constants and functions as Graph IR (spec sections 2.3, 3, 5).
#
# A function may be called before it is declared, so functions are lowered on demand; recursion is refused.


@dataclass
class ModuleLowering:
    """The declarations of one module, and its functions: declared, being lowered, lowered."""

    declaration: s.ModuleDecl
    findings: Findings
    declared: dict[str, s.FunctionDecl] = field(default_factory=dict)
    aliases: dict[str, Type] = field(default_factory=dict)
    alias_spans: dict[str, Span] = field(default_factory=dict)
    constants: dict[str, s.Let] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)
    known: dict[str, Given | None] = field(default_factory=dict)
    computing: list[str] = field(default_factory=list)
    lowered: dict[str, Function | None] = field(default_factory=dict)
    in_progress: list[str] = field(default_factory=list)

    def lower(self) -> Module:
        """Lower every declaration once, and return the module."""
        names: set[str] = set()
        for declaration in self.declaration.declarations:
            if declaration.name in names:
                self._twice(declaration)
            else:
                names.add(declaration.name)
                self._declare(declaration)
        for name in self.constants:
            self.constant(name)
        functions = {name: self.function(name) for name in self.declared}
        location = Location(self.findings.filename, self.declaration.span)
        present = {name: function for name, function in functions.items() if function is not None}
        return Module(self.declaration.name, present, location, self.meshes)

    def _declare(self, declaration: s.Declaration) -> None:
        with self.findings.refusals(declaration.span):
            match declaration:
                case s.FunctionDecl():
                    self.declared[declaration.name] = declaration
                case s.TypeDecl():
                    self._alias(declaration)
                case s.MeshDecl():
                    self.meshes[declaration.name] = resolve_mesh(declaration.type)
                case s.Let():
                    self.constants[declaration.name] = declaration

    def _alias(self, declaration: s.TypeDecl) -> None:
        """Declare a name for a type of earlier names, so that none refers to itself (AMB-LANG-50, AMB-LANG-99)."""
        if declaration.name in DTYPES:
            raise Refusal("types", f"{declaration.name} is a dtype", "another name", "AMB-LANG-86", "")
        self._require_no_cycle(declaration)
        self.aliases[declaration.name] = resolve_type(declaration.type, self.aliases)
        self.alias_spans[declaration.name] = declaration.span

    def _require_no_cycle(self, declaration: s.TypeDecl) -> None:
        """Raise `Refusal` for a type that is an alias of itself, directly or through others."""
        declarations = [declared for declared in self.declaration.declarations if isinstance(declared, s.TypeDecl)]
        means = {declared.name: declared.type for declared in declarations}
        path, type_ = [declaration.name], declaration.type
        while isinstance(type_, s.NamedType) and type_.name in means and type_.name not in self.aliases:
            path.append(type_.name)
            if type_.name in path[:-1]:
                circle = " = ".join(path[path.index(type_.name) :])
                raise Refusal("types", f"types in a circle: {circle}", "a dtype at its end", "AMB-LANG-50", "")
            type_ = means[type_.name]

    def _twice(self, declaration: s.Declaration) -> None:
        what = "function" if isinstance(declaration, s.FunctionDecl) else "name"
        place = declaration.name_span if isinstance(declaration, s.FunctionDecl) else declaration.span
        message = f"{what} {declaration.name!r} is declared twice"
        self.findings.report("types", message, place, "one declaration of a name in a module", "AMB-LANG-86")

    def constant(self, name: str) -> Given | None:
        """Return the value of a constant, computed once; None after a reported error in it."""
        declaration = self.constants[name]
        if name in self.computing:
            message = f"the constant {name!r} depends on itself"
            requirement = "constants that can be computed one by one"
            self.findings.report("types", message, declaration.span, requirement, "LANG-02.3-05")
            return None
        if name not in self.known:
            self.computing.append(name)
            self.known[name] = self._compute(declaration)
            self.computing.pop()
        return self.known[name]

    def _compute(self, constant: s.Let) -> Given | None:
        around = self.surroundings(constant.span, partial(call_operation, meshes=self.meshes))
        assert constant.value is not None  # the grammar requires it
        with self.findings.refusals(constant.type.span):
            type_ = resolve_type(constant.type, around.aliases)
            return evaluate(self.findings, around, constant.value, type_, "the constant", constant.name)
        return None

    def surroundings(self, place: Span, call: CallLowering, reference: ReferenceLowering | None = None) -> Surroundings:
        """Return the names that expressions at a place may use; aliases are visible only below their declaration."""
        above = {name: type_ for name, type_ in self.aliases.items() if self.alias_spans[name] < place}
        return Surroundings(call, self.constants, self.constant, above, reference)

    def function(self, name: str) -> Function | None:
        """Return a declared function, lowered; None after a reported error in it."""
        if name not in self.lowered:
            self.in_progress.append(name)
            self.lowered[name] = FunctionLowering(self, self.declared[name]).lower()
            self.in_progress.pop()
        return self.lowered[name]

    def profile(self, name: str) -> str | None:
        """Return the numerics profile that a function declares, or None."""
        declaration = self.declared[name]
        values: list[object] = [given.value for given in declaration.attributes if given.name == "numerics_profile"]
        first = declaration.body.statements[0] if declaration.body.statements else None
        if isinstance(first, s.CallStatement) and first.call.callee == ("numerics", "profile"):
            values = [*first.call.arguments[:1], *values]  # the block's profile takes precedence (AMB-LANG-111)
        return next((word_of(value) for value in values if word_of(value) in PROFILES), None)


# Calls of the module's functions: arguments, dimensions, profiles (LANG-02.3-32; AMB-LANG-08, -74, -97).


def call_function(module: ModuleLowering, expressions: Expressions, call: s.Call) -> Results:
    """Append the call of a function of the module. Return its results, or None after a reported error."""
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
    return expressions.scope.build(Call, arguments, call.span, attributes=common, callee=name, returns=returns)


def function_value(module: ModuleLowering, expressions: Expressions, name: s.Name) -> tuple[bool, Value | None]:
    """Return True for a function's name, and the function as a value; None after a reported error (AMB-LANG-187)."""
    if name.text not in module.declared:
        return False, None
    if not _callable(module, expressions, name.span, name.text):
        return True, None
    results, function = None, module.function(name.text)
    if function is not None:
        with expressions.scope.findings.refusals(name.span):
            operation = FunctionValue(callee=name.text, type=type_of_function(name.text, function))
            results = expressions.scope.emit(operation, (), name.span)
    return True, results[0] if results else None


def _call_value(expressions: Expressions, call: s.Call) -> Results:
    """Append the call of the function in a variable."""
    function = expressions.lower(s.Name(call.span, call.callee[0]))
    if function is None or not isinstance(function.type, FunctionType):
        return None
    parameters = function.type.parameters
    if call.keywords or len(call.arguments) != len(parameters):
        signature = f"{counted(len(parameters), 'argument')} in order: ({', '.join(map(str, parameters))})"
        given = f"{len(call.arguments)} by place and {len(call.keywords)} by name are given"
        _refuse(expressions, call.span, f"{call.callee[0]}: {given}", signature)
        return None
    common = _common(expressions, call)
    pairs = zip(call.arguments, parameters, strict=True)
    arguments = [expressions.lower(argument, dtype_of(type_)) for argument, type_ in pairs]
    present = tuple(operand for operand in arguments if operand is not None)
    if common is None or len(present) != len(arguments):
        return None
    return expressions.scope.build(CallValue, (function, *present), call.span, attributes=common)


def _callable(module: ModuleLowering, expressions: Expressions, span: Span, name: str) -> bool:
    if name not in module.declared:
        remedy = did_you_mean(name, [*module.declared, "assert", "barrier"])
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
    module: ModuleLowering, expressions: Expressions, call: s.Call, declaration: s.FunctionDecl, callee: Function | None
) -> tuple[Value, ...] | None:
    """Return the arguments in parameter order; literals take their dtypes, missing ones their defaults."""
    names = [parameter.name for parameter in declaration.parameters]
    arguments: dict[str, s.Expr | s.ListValue] = dict(zip(names, call.arguments, strict=False))
    wrong, remedy = "", ""
    if len(call.arguments) > len(names):
        wrong = f"takes {counted(len(names), 'argument')}, {len(call.arguments)} given"
    for keyword in call.keywords:
        if keyword.name in arguments:
            wrong = wrong or f"argument {keyword.name} is given twice"
        elif keyword.name not in names and not wrong:
            wrong, remedy = f"no parameter {keyword.name!r}", did_you_mean(keyword.name, names)
        arguments[keyword.name] = keyword.value
    defaults = {optional.name: optional.default for optional in declaration.parameters if optional.default is not None}
    missing = [name for name in names if name not in arguments and name not in defaults]
    if wrong or missing:
        signature = f"{declaration.name}({', '.join(names)})"
        wrong = wrong or f"no argument for {', '.join(missing)}"
        _refuse(expressions, call.span, f"{declaration.name}: {wrong}", signature, remedy)
        return None
    values: list[Value | None] = []
    for parameter in declaration.parameters:
        expr = arguments.get(parameter.name)
        if isinstance(expr, s.ListValue):
            _refuse(expressions, expr.span, "a list is no value", "a number or a tensor")
            return None
        try:
            type_: Type | None = resolve_type(parameter.type, module.aliases)
        except Refusal:
            type_ = None
        if expr is not None:
            values.append(expressions.lower(expr, dtype_of(type_)))
        elif callee is not None and parameter.name in callee.defaults and type_ is not None:
            values.append(expressions.given(Given(callee.defaults[parameter.name], type_), call.span))
    present = tuple(value for value in values if value is not None)
    return present if len(present) == len(names) else None


def _common(expressions: Expressions, call: s.Call) -> dict[str, AttributeValue] | None:
    """Return the attribute block of a call: annotations that any operation may carry."""
    with expressions.scope.findings.refusals(call.attributes[0].span if call.attributes else call.span):
        for attribute in call.attributes:
            if attribute.name not in COMMON_ATTRIBUTES:
                names = ", ".join(COMMON_ATTRIBUTES)
                message = f"a call has no attribute {attribute.name!r}"
                raise Refusal("types", message, f"one of {names}", "LANG-02.3-13", "")
        return read_common(call.attributes)
    return None


def _bind_dims(
    expressions: Expressions, call: s.Call, callee: Function, arguments: tuple[Value, ...]
) -> dict[str, Dim] | None:
    """Return the extents of the callee's open dimensions in this call; report arguments that do not fit."""
    there = Scope(Frame(expressions.scope.findings), None)
    for parameter, argument in zip(callee.parameters, arguments, strict=True):
        if not there.fits(parameter.type, argument.type, call.span, f"{callee.name}: {parameter.name}"):
            return None
    return there.frame.dims


def _refuse(expressions: Expressions, span: Span, message: str, requirement: str, remedy: str = "") -> None:
    expressions.report("types", message, span, requirement, "LANG-11-01", remedy)


# Functions and kernels: signature, body and returns (spec section 2.3; AMB-LANG-12, -26, -93, -98).


class FunctionLowering:
    """The lowering of one function or kernel."""

    def __init__(self, module: ModuleLowering, declaration: s.FunctionDecl) -> None:
        self.module = module
        self.declaration = declaration
        self.findings = module.findings
        self.kernel = isinstance(declaration, s.KernelDecl)
        self.scope = Scope(Frame(module.findings), module.profile(declaration.name))
        self.around = module.surroundings(declaration.span, self.call, partial(function_value, module))
        self.broken = False
        self.statements = Statements(self.scope, self.around, module.meshes, self.give_back, self.kernel)
        self.wanted: Type | None = None
        self.returned: tuple[Type, ...] | None = None
        self.buffers: list[str] = []
        """A kernel's tensor parameters."""

    def lower(self) -> Function | None:
        """Return the function; None after a reported error in it."""
        before = self.findings.errors
        declaration = self.declaration
        attributes = self._attributes()
        parameters = tuple(self._parameter(parameter) for parameter in declaration.parameters)
        defaults = self._defaults()
        if declaration.result is not None:
            self.wanted = self.statements.resolve(declaration.result)
            if self.kernel:
                self._refuse(declaration.result.span, "a kernel returns no value", "no result annotation", "AMB-RT-20")
        self.statements.block(declaration.body)
        self._end()
        if self.broken or self.findings.errors > before:
            return None
        at_end = self._buffers(self.scope) if self.kernel else ()
        body = self.scope.block(tuple(value for value in parameters if value), at_end, "return")
        types = self.returned or ()
        if self.wanted is not None:
            types = (shown(self.wanted),)
        if self.kernel:
            types = tuple(value.type for value in body.arguments if value.name in self.buffers)
            self._warn_of_unused(body)
        location = Location(self.findings.filename, declaration.name_span)
        if self.scope.profile is not None:
            attributes |= {"numerics_profile": self.scope.profile}
        arrays = {name: default.array for name, default in defaults.items()}
        return Function(declaration.name, body, types, location, attributes, self.kernel, arrays)

    # Signature

    def _attributes(self) -> dict[str, AttributeValue]:
        """Return the attribute block and the annotations of the function (LANG-02-06, -07, -09; LANG-10-04)."""
        declaration = self.declaration
        values: dict[str, AttributeValue] = {}
        with self.findings.refusals(declaration.attributes[0].span if declaration.attributes else declaration.span):
            values = read_common(declaration.attributes)
            check_common({"mesh_axes": values.get("mesh_axes", ())}, (), self.module.meshes)
        for attribute in declaration.attributes:
            if attribute.name not in COMMON_ATTRIBUTES:
                message = f"nothing reads the attribute {attribute.name!r} of a function"
                requirement = f"one of {', '.join(COMMON_ATTRIBUTES)}"
                remedy = did_you_mean(attribute.name, COMMON_ATTRIBUTES)
                self.findings.warn("types", message, attribute.span, requirement, "LANG-05.3-01", remedy)
        schedule = read_annotations(self.findings, declaration.annotations)
        return values | ({"schedule": schedule} if declaration.annotations else {})

    def _parameter(self, parameter: s.Parameter) -> Value | None:
        """Declare a parameter; each `?` in its type becomes a dimension of its own (AMB-LANG-122)."""
        type_ = self.statements.resolve(parameter.type)
        value = None
        if type_ is not None:
            value = self.scope.value(parameter.name, type_)
            if isinstance(value.type, Tensor):
                self.buffers.append(parameter.name)
                self.scope.frame.dims.update((dim, dim) for dim in value.type.shape if isinstance(dim, str))
        declared = value.type if value else None
        self.scope.declare(parameter.name, parameter.span, value, declared, broken=value is None)
        return value

    def _defaults(self) -> dict[str, Given]:
        """Return the values of defaults, which are constants of trailing parameters of a func (AMB-LANG-74)."""
        defaults: dict[str, Given] = {}
        has_default = False
        for parameter in self.declaration.parameters:
            if parameter.default is None:
                if has_default:
                    message = f"{parameter.name!r} has no default and follows one that has one"
                    self._refuse(parameter.span, message, "defaults on trailing parameters only", "AMB-LANG-74")
                continue
            has_default = True
            if self.kernel:
                self._refuse(parameter.span, "a parameter of a kernel has a default", "none", "AMB-LANG-74")
                continue
            binding = self.scope.find(parameter.name)
            if binding is not None and binding.declared is not None:
                expr, type_ = parameter.default, binding.declared
                value = evaluate(self.findings, self.around, expr, type_, "a default", parameter.name)
                defaults |= {parameter.name: value} if value is not None else {}
        return defaults

    def _warn_of_unused(self, body: Block) -> None:
        """Warn of tiles, fragments and meshes of a kernel that nothing uses (AMB-LANG-187)."""
        used = {value for instruction in body.walk() for value in instruction.operands}
        for parameter, value in zip(self.declaration.parameters, body.arguments, strict=True):
            if isinstance(value.type, Memref | Fragment | Mesh) and value not in used:
                message, remedy = f"nothing uses {parameter.name!r}, a {value.type}", "leave it out, or take a tensor"
                requirement = "an operation that takes it, which the levels below have"
                self.findings.warn("types", message, parameter.span, requirement, "AMB-LANG-187", remedy)

    # Returns

    def give_back(self, statements: Statements, statement: s.Return) -> None:
        """Lower a return statement; a kernel returns its buffers in their current state."""
        if self.kernel:
            if statement.values:
                self._refuse(statement.span, "a kernel returns no value", "return;", "AMB-RT-20")
            statements.scope.leave("return", self._buffers(statements.scope))
            return
        values = self._returned_values(statements, statement)
        if values is None:
            self.broken = True
            statements.scope.leave("unreachable")
            return
        if self.declaration.result is not None and len(values) != 1:
            message = f"{self.declaration.name!r} returns {len(values)} values, its annotation one"
            remedy = "leave the annotation out to return several values" if values else ""
            self._refuse(statement.span, message, "exactly one value, of the annotated type", "AMB-LANG-26", remedy)
        elif self.wanted is not None:
            statements.scope.fits(self.wanted, values[0].type, statement.values[0].span, "return")
        else:
            self._agree(statement.span, tuple(value.type for value in values))
        statements.scope.leave("return", values)

    def _returned_values(self, statements: Statements, statement: s.Return) -> tuple[Value, ...] | None:
        """Return the values of a return; a lone call with several results returns them all."""
        expressions = statements.expressions
        if len(statement.values) == 1 and isinstance(statement.values[0], s.Call):
            results = self.call(expressions, statement.values[0], "")
            if results is None or results:
                return results
        values = [expressions.lower(value, dtype_of(self.wanted)) for value in statement.values]
        present = tuple(value for value in values if value is not None)
        return present if len(present) == len(values) else None

    def _agree(self, span: Span, types: tuple[Type, ...]) -> None:
        """Require that the returns of a function without an annotation agree (AMB-LANG-12)."""
        if self.returned is None:
            self.returned = types
            return
        both = [joined(a, b) for a, b in zip(self.returned, types, strict=False)]
        agreed = tuple(type_ for type_ in both if type_ is not None)
        shapes = zip(self.returned, types, strict=False)
        if len(self.returned) != len(types) or len(agreed) != len(both) or any(_differ(a, b) for a, b in shapes):
            self._refuse(span, "the returns of a function disagree", "the same types everywhere", "AMB-LANG-12")
        else:
            self.returned = agreed

    def _end(self) -> None:
        """Finish a body whose end control reaches; refuse it where a value must be returned."""
        if self.scope.exit is not None or self.kernel:
            return
        if self.declaration.result is not None or self.returned:
            result, message = self.declaration.result, f"{self.declaration.name!r} does not return a value"
            requirement = f"a return of {self.findings.text(result.span) if result else 'the same types'} on every path"
            self._refuse(self.declaration.name_span, message, requirement, "AMB-LANG-93")

    def _buffers(self, scope: Scope) -> tuple[Value, ...]:
        """Return the tensor parameters of a kernel (AMB-LANG-98)."""
        bindings = [scope.parameter(name) for name in self.buffers]
        return tuple(binding.value for binding in bindings if binding and binding.value)

    # Calls

    def call(self, expressions: Expressions, call: s.Call, hint: str) -> Results:
        """Return the results of a call of an operation or of a function of the module; None after a reported error."""
        if len(call.callee) == 1:
            return call_function(self.module, expressions, call)
        if call.callee[0] == "schedule":
            message = f"{'.'.join(call.callee)} yields no value"
            self._refuse(call.span, message, "a statement of its own", "LANG-02.3-53")
            return None
        return call_operation(expressions, call, hint, self.module.meshes)

    def _refuse(self, span: Span, message: str, requirement: str, clause: str, remedy: str = "") -> None:
        self.findings.report("types", message, span, requirement, clause, remedy)


def _differ(a: Type, b: Type) -> bool:
    """True if two tensor types have an extent that is known in both and differs."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    return any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a.shape, b.shape, strict=False))


# Programs: from syntax to Graph IR (spec sections 2.3, 3, 5; LANG-02-01).
#
# Analysis continues after an error wherever possible, so that one run reports many.


def lower_program(program: s.Program, findings: Findings) -> tuple[Module, ...]:
    """Return the modules of a program, which are meaningless if `findings` then contain an error."""
    modules: dict[str, Module] = {}
    for declaration in program.modules:
        if declaration.name in modules:
            message = f"module {declaration.name!r} is declared twice"
            findings.report("types", message, declaration.span, "one declaration of a name", "AMB-LANG-86")
        modules[declaration.name] = ModuleLowering(declaration, findings).lower()
    return tuple(modules.values())


# The entry of the language: from source text to verified Graph IR.


@dataclass(frozen=True)
class CompiledModule:
    """A legal program as Graph IR, with the warnings about it."""

    modules: tuple[Module, ...]
    warnings: tuple[Diagnostic, ...]
    source: str
    filename: str

    @property
    def module(self) -> Module:
        """The only module. Raises `ValueError` when there is none or several."""
        if len(self.modules) != 1:
            raise ValueError(f"{self.filename} has {len(self.modules)} modules, not one")
        return self.modules[0]


def compile_source(source: str, filename: str = "<source>") -> CompiledModule:
    """Compile a program to Graph IR.

    Raises `Rejection` for an illegal program, `UnsupportedConstruct` for a legal one that goes beyond this reference.
    """
    try:
        with without_collection(), deep_recursion():
            return _lower(parse(source, filename), source)
    except RecursionError:
        raise UnsupportedConstruct("language.deep_nesting", Location(filename, Span(1, 1, 1, 2))) from None


def _lower(program: Program, source: str) -> CompiledModule:
    filename = program.filename
    findings = Findings(source, filename)
    modules = lower_program(program, findings)
    errors = [diagnostic for diagnostic in findings.diagnostics if diagnostic.severity == "error"]
    if errors:
        raise Rejection(errors)
    for module in modules:
        verify(module)
        missing = missing_adjoints(module)
        if missing:
            raise Rejection(missing)
    return CompiledModule(modules, tuple(findings.diagnostics), source, filename)
