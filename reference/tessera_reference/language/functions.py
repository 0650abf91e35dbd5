"""Functions and kernels: signature, body and returns (spec section 2.3; AMB-LANG-12, -26, -93, -98)."""

from __future__ import annotations

from ..ir.common_attributes import check_common
from ..ir.diagnostics import Location, Span
from ..ir.dimensions import joined, shown
from ..ir.module import Block, Function, Value
from ..ir.operation import AttributeValue, Refusal
from ..ir.spelling import did_you_mean
from ..ir.types import Fragment, Memref, Mesh, Tensor, Type, dtype_of
from . import syntax as s
from .calls import call_operation
from .common_attributes import COMMON_ATTRIBUTES, read_common
from .constants import evaluate
from .directives import read_annotations
from .expressions import Expressions, Given, Results
from .function_calls import call_function, function_value
from .modules import ModuleLowering
from .scope import Frame, Scope
from .statements import Setting, Statements


def lower_function(module: ModuleLowering, declaration: s.FunctionDecl) -> Function | None:
    """A function or kernel of a module; None where an error in it was reported."""
    return FunctionLowering(module, declaration).lower()


class FunctionLowering:
    """One function or kernel."""

    def __init__(self, module: ModuleLowering, declaration: s.FunctionDecl) -> None:
        self.module = module
        self.declaration = declaration
        self.findings = module.findings
        self.kernel = isinstance(declaration, s.KernelDecl)
        self.scope = Scope(Frame(module.findings), module.profile(declaration.name))
        self.around = module.surroundings(declaration.span, self.call, self.reference)
        self.broken = False
        setting = Setting(self.around, module.meshes, self.give_back, self.kernel)
        self.statements = Statements(self.scope, setting)
        self.wanted: Type | None = None
        self.returned: tuple[Type, ...] | None = None
        self.buffers: list[str] = []
        """A kernel's tensor parameters."""

    def lower(self) -> Function | None:
        """The function; None where an error in it was reported."""
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
        body = self.scope.block(tuple(value for value in parameters if value), self._at_end(), "return")
        types = self.returned or ()
        if self.wanted is not None:
            types = (shown(self.wanted),)
        if self.kernel:
            types = tuple(value.type for value in body.arguments if value.name in self.buffers)
            self._warn_of_unused(body)
        location = Location(self.findings.filename, declaration.name_span)
        if self.scope.profile is not None:
            attributes |= {"numerics_profile": self.scope.profile}
        arrays = {name: given.array for name, given in defaults.items()}
        return Function(declaration.name, body, types, location, attributes, self.kernel, arrays)

    # Signature

    def _attributes(self) -> dict[str, AttributeValue]:
        """The attribute block and the annotations of the function (LANG-02-06, -07, -09; LANG-10-04)."""
        declaration = self.declaration
        values: dict[str, AttributeValue] = {}
        try:
            values = read_common(declaration.attributes, declaration.span)
            check_common({"mesh_axes": values.get("mesh_axes", ())}, (), self.module.meshes)
        except Refusal as refusal:
            self.findings.refused(refusal, declaration.attributes[0].span)
        for attribute in declaration.attributes:
            if attribute.name not in COMMON_ATTRIBUTES:
                self.findings.report(
                    "types",
                    f"nothing reads the attribute {attribute.name!r} of a function",
                    attribute.span,
                    requirement=f"one of {', '.join(COMMON_ATTRIBUTES)}",
                    clause="LANG-05.3-01",
                    remedy=did_you_mean(attribute.name, COMMON_ATTRIBUTES),
                    severity="warning",
                )
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
        """The values of defaults, which are constants of trailing parameters of a func (AMB-LANG-74)."""
        defaults: dict[str, Given] = {}
        given = False
        for parameter in self.declaration.parameters:
            if parameter.default is None:
                if given:
                    message = f"{parameter.name!r} has no default and stands behind one that has"
                    self._refuse(parameter.span, message, "defaults on trailing parameters only", "AMB-LANG-74")
                continue
            given = True
            if self.kernel:
                self._refuse(parameter.span, "a parameter of a kernel has a default", "none", "AMB-LANG-74")
                continue
            binding = self.scope.find(parameter.name)
            if binding is not None and binding.declared is not None:
                value = evaluate(
                    self.findings, self.around, parameter.default, binding.declared, "a default", parameter.name
                )
                defaults |= {parameter.name: value} if value is not None else {}
        return defaults

    def _warn_of_unused(self, body: Block) -> None:
        """Say which tiles, fragments and meshes of a kernel nothing uses (AMB-LANG-187)."""
        used = {value for instruction in body.walk() for value in instruction.operands}
        for parameter, value in zip(self.declaration.parameters, body.arguments, strict=True):
            if isinstance(value.type, Memref | Fragment | Mesh) and value not in used:
                self.findings.report(
                    "types",
                    f"nothing uses {parameter.name!r}, a {value.type}",
                    parameter.span,
                    requirement="an operation that takes it, which the levels below have",
                    clause="AMB-LANG-187",
                    remedy="leave it out, or take a tensor",
                    severity="warning",
                )

    # Returns

    def give_back(self, statements: Statements, statement: s.Return) -> None:
        """A return statement; a kernel returns its buffers as they are then."""
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
            self._refuse(
                statement.span,
                f"{self.declaration.name!r} returns {len(values)} values, its annotation one",
                "exactly one value, of the annotated type",
                "AMB-LANG-26",
                "leave the annotation out to return several values" if values else "",
            )
        elif self.wanted is not None:
            statements.scope.fits(self.wanted, values[0].type, statement.values[0].span, "return")
        else:
            self._agree(statement.span, tuple(value.type for value in values))
        statements.scope.leave("return", values)

    def _returned_values(self, statements: Statements, statement: s.Return) -> tuple[Value, ...] | None:
        """The values of a return; a call with several results, standing alone, returns them all."""
        expressions = statements.expressions
        if len(statement.values) == 1 and isinstance(statement.values[0], s.Call):
            results = self.call(expressions, statement.values[0], "")
            if results is None or len(results) > 1:
                return results
            if results:
                return results
        values = [expressions.lower(value, dtype_of(self.wanted)) for value in statement.values]
        present = tuple(value for value in values if value is not None)
        return present if len(present) == len(values) else None

    def _agree(self, span: Span, types: tuple[Type, ...]) -> None:
        """Without an annotation the returns of a function agree (AMB-LANG-12)."""
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
        """Finish a body whose end control reaches: refuse it where a value was to be returned."""
        if self.scope.exit is not None or self.kernel:
            return
        if self.declaration.result is not None or self.returned:
            wanted = self.declaration.result
            self._refuse(
                self.declaration.name_span,
                f"{self.declaration.name!r} does not return a value",
                f"a return of {self.findings.text(wanted.span) if wanted else 'the same types'} on every path",
                "AMB-LANG-93",
            )

    def _at_end(self) -> tuple[Value, ...]:
        return self._buffers(self.scope) if self.kernel else ()

    def _buffers(self, scope: Scope) -> tuple[Value, ...]:
        """What a kernel's tensor parameters hold (AMB-LANG-98)."""
        found = [scope.parameter(name) for name in self.buffers]
        return tuple(binding.value for binding in found if binding and binding.value)

    # Calls

    def reference(self, expressions: Expressions, name: s.Name) -> tuple[bool, Value | None]:
        """Whether a name is that of a function of the module, and the function as a value."""
        return function_value(self.module, expressions, name)

    def call(self, expressions: Expressions, call: s.Call, hint: str) -> Results:
        """A call of an operation or of a function of the module; None after a reported error."""
        if len(call.callee) == 1:
            return call_function(self.module, expressions, call)
        if call.callee[0] == "schedule":
            message = f"{'.'.join(call.callee)} yields no value"
            self._refuse(call.span, message, "a statement of its own", "LANG-02.3-53")
            return None
        return call_operation(expressions, call, hint, self.module.meshes)

    def _refuse(self, span: Span, message: str, requirement: str, clause: str, remedy: str = "") -> None:
        self.findings.report("types", message, span, requirement=requirement, clause=clause, remedy=remedy)


def _differ(a: Type, b: Type) -> bool:
    """Whether two tensor types have an extent that is known in both and is not the same."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    return any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a.shape, b.shape, strict=False))
