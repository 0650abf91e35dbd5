"""One module: its declarations by name, its constants and functions as Graph IR (spec sections 2.3, 3, 5).

A function may be called before it is declared, so functions are lowered on demand; recursion is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.common_attributes import PROFILES
from ..ir.diagnostics import Location, Span
from ..ir.module import Function, Module
from ..ir.operation import Refusal
from ..ir.types import Mesh, Type
from ..numerics.formats import DTYPES
from . import syntax as s
from .annotations import resolve_mesh, resolve_type
from .calls import call_operation_in
from .constants import evaluate
from .expressions import CallLowering, Given, ReferenceLowering, Surroundings
from .scope import Findings
from .values import word_of

LowerFunction: TypeAlias = "Callable[[ModuleLowering, s.FunctionDecl], Function | None]"
"""Lowers a function of the module; None where an error in it was reported."""


@dataclass
class ModuleLowering:
    """The declarations of one module, and its functions: declared, being lowered, lowered."""

    declaration: s.ModuleDecl
    findings: Findings
    lower_function: LowerFunction
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
        """Every declaration, each once."""
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
        self._require_no_cycle(declaration)
        self.aliases[declaration.name] = resolve_type(declaration.type, self.aliases)
        self.alias_spans[declaration.name] = declaration.span

    def _require_no_cycle(self, declaration: s.TypeDecl) -> None:
        """Raise `Refusal` for a type that stands for itself, by way of others or not."""
        means = {each.name: each.type for each in self.declaration.declarations if isinstance(each, s.TypeDecl)}
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
        self.findings.report(
            "types",
            f"{what} {declaration.name!r} is declared twice",
            place,
            requirement="one declaration of a name in a module",
            clause="AMB-LANG-86",
        )

    def constant(self, name: str) -> Given | None:
        """The value of a constant, computed once; None where an error in it was reported."""
        declaration = self.constants[name]
        if name in self.computing:
            self.findings.report(
                "types",
                f"the constant {name!r} depends on itself",
                declaration.span,
                requirement="constants that can be computed one by one",
                clause="LANG-02.3-05",
            )
            return None
        if name not in self.known:
            self.computing.append(name)
            self.known[name] = self._compute(declaration)
            self.computing.pop()
        return self.known[name]

    def _compute(self, constant: s.Let) -> Given | None:
        around = self.surroundings(constant.span, call_operation_in(self.meshes))
        try:
            type_ = resolve_type(constant.type, around.aliases)
        except Refusal as refusal:
            self.findings.refused(refusal, constant.type.span)
            return None
        assert constant.value is not None  # the grammar demands it
        return evaluate(self.findings, around, constant.value, type_, "the constant", constant.name)

    def surroundings(self, place: Span, call: CallLowering, reference: ReferenceLowering | None = None) -> Surroundings:
        """What expressions at a place of the module may refer to; aliases are known below their declaration only."""
        above = {name: type_ for name, type_ in self.aliases.items() if self.alias_spans[name] < place}
        return Surroundings(call, self.constants, self.constant, above, reference)

    def function(self, name: str) -> Function | None:
        """A declared function, lowered; None where an error in it was reported."""
        if name not in self.lowered:
            self.in_progress.append(name)
            self.lowered[name] = self.lower_function(self, self.declared[name])
            self.in_progress.pop()
        return self.lowered[name]

    def profile(self, name: str) -> str | None:
        """The numerics profile that a function declares, if it is one."""
        declaration = self.declared[name]
        given: list[object] = [each.value for each in declaration.attributes if each.name == "numerics_profile"]
        first = declaration.body.statements[0] if declaration.body.statements else None
        if isinstance(first, s.CallStatement) and first.call.callee == ("numerics", "profile"):
            given = [*first.call.arguments[:1], *given]  # of the block, which wins (AMB-LANG-111)
        return next((word_of(value) for value in given if word_of(value) in PROFILES), None)
