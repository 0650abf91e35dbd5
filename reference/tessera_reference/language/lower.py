"""Modules: their declarations, from syntax to Graph IR (spec sections 2.3, 3, 5; LANG-02-01).

A function may be called before it is declared, so functions are lowered on demand; recursion is refused. Analysis goes
on after an error wherever that makes sense, so that one run reports many.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..graph.call import Call
from ..ir.diagnostics import Location
from ..ir.module import Function, Module
from ..ir.operation import Refusal
from ..ir.types import Mesh, Type, dtype_of
from ..numerics.formats import DTYPES
from . import syntax as s
from .annotations import resolve_mesh, resolve_type
from .calls import call_operation
from .common_attributes import PROFILES
from .constants import check_constant
from .expressions import Expressions, Surroundings
from .functions import FunctionLowering
from .scope import Findings, Frame, Scope
from .values import word_of


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


@dataclass
class ModuleLowering:
    """The declarations of one module, and its functions: declared, being lowered, lowered."""

    declaration: s.ModuleDecl
    findings: Findings
    declared: dict[str, s.FunctionDecl] = field(default_factory=dict)
    aliases: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, s.Let] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)
    lowered: dict[str, Function | None] = field(default_factory=dict)
    in_progress: list[str] = field(default_factory=list)
    loosest_known: dict[str, str | None] = field(default_factory=dict)

    def lower(self) -> Module:
        """Every declaration, each once."""
        names: set[str] = set()
        for declaration in self.declaration.declarations:
            if declaration.name in names:
                self._twice(declaration)
            else:
                names.add(declaration.name)
                self._declare(declaration)
        for constant in self.constants.values():
            self._check_constant(constant)
        functions = {name: self.function(name) for name in self.declared}
        location = Location(self.findings.filename, self.declaration.span)
        present = {name: function for name, function in functions.items() if function is not None}
        return Module(self.declaration.name, present, location, self.meshes)

    def _declare(self, declaration: s.Declaration) -> None:
        try:
            match declaration:
                case s.FunctionDecl():
                    self.declared[declaration.name] = declaration
                case s.TypeDecl():
                    self._alias(declaration)
                case s.MeshDecl():
                    self.meshes[declaration.name] = resolve_mesh(declaration.type)
                case s.Let():
                    self.constants[declaration.name] = declaration
        except Refusal as refusal:
            self.findings.refused(refusal, declaration.span)

    def _alias(self, declaration: s.TypeDecl) -> None:
        """A name for a type; it may use those above it only, so none can refer to itself (AMB-LANG-50, AMB-LANG-99)."""
        if declaration.name in DTYPES:
            raise Refusal("types", f"{declaration.name} is a dtype", "another name", "AMB-LANG-86", "")
        self.aliases[declaration.name] = resolve_type(declaration.type, self.aliases)

    def _twice(self, declaration: s.Declaration) -> None:
        what = "function" if isinstance(declaration, s.FunctionDecl) else "name"
        place = declaration.name_span if isinstance(declaration, s.FunctionDecl) else declaration.span
        self.findings.report(
            "types",
            f"{what} {declaration.name!r} is declared twice",
            place,
            requirement="one declaration of a name in a module",
            clause="AMB-LANG-86",
        )

    def _check_constant(self, constant: s.Let) -> None:
        """Lower a constant once where it is declared, so that what is wrong with it is said there."""
        scope = Scope(Frame(self.findings), None)
        try:
            type_ = resolve_type(constant.type, self.aliases)
        except Refusal as refusal:
            self.findings.refused(refusal, constant.type.span)
            return
        assert constant.value is not None  # the grammar demands it
        if not check_constant(self.findings, constant.value, self.constants, "the constant", (constant.name,)):
            return
        value = Expressions(scope, self.surroundings).lower(constant.value, dtype_of(type_), constant.name)
        if value is not None:
            scope.fits(type_, value.type, constant.value.span, f"let {constant.name}")

    @property
    def surroundings(self) -> Surroundings:
        """What expressions outside functions may refer to."""
        return Surroundings(
            lambda expressions, call, hint: call_operation(expressions, call, hint, self.meshes),
            self.constants,
            self.aliases,
        )

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
            if attribute.name == "numerics_profile" and word_of(attribute.value) in PROFILES:
                return word_of(attribute.value)
        return None

    def loosest(self, name: str) -> str | None:
        """The profile a lowered function runs under: its own, else the loosest among what it calls."""
        if name not in self.loosest_known:
            function = self.lowered[name]
            operations = [instruction.operation for instruction in function.body.walk()] if function else []
            called = [self.loosest(operation.callee) for operation in operations if isinstance(operation, Call)]
            declared = [profile for profile in called if profile]
            self.loosest_known[name] = self.profile(name) or min(declared, key=PROFILES.index, default=None)
        return self.loosest_known[name]
