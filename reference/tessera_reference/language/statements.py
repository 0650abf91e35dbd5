"""Statements: from syntax to instructions (spec sections 2.3, 4).

Assignment binds a name to a new value (AMB-LANG-52); to change slices of it is to make an updated tensor (AMB-LANG-95).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..graph.control import Assert, Barrier
from ..graph.slicing import Update
from ..ir.diagnostics import Span
from ..ir.module import Value
from ..ir.operation import Refusal
from ..ir.spelling import did_you_mean
from ..ir.types import Mesh, Type, dtype_of
from . import syntax as s
from .annotations import resolve_type
from .common_attributes import profile
from .control import lower_for, lower_if, lower_while
from .directives import lower_dist_statement, lower_schedule
from .expressions import Expressions, Surroundings
from .indexing import lower_slices
from .scope import Scope

ReturnLowering = Callable[["Statements", s.Return], None]


@dataclass(frozen=True)
class Setting:
    """What the statements of one function have in common."""

    around: Surroundings
    meshes: Mapping[str, Mesh]
    give_back: ReturnLowering
    kernel: bool


@dataclass(frozen=True)
class Statements:
    """Lowers the statements of one block into its scope."""

    scope: Scope
    setting: Setting

    @property
    def expressions(self) -> Expressions:
        """Expressions of this block."""
        return Expressions(self.scope, self.setting.around)

    def _inner_block(self, scope: Scope, block: s.Block) -> None:
        """Lower the statements of a block within this one into its own scope."""
        Statements(scope, self.setting).block(block)

    def block(self, block: s.Block) -> None:
        """Every statement in order; what cannot be reached is checked and warned about once."""
        warned = False
        for position, statement in enumerate(block.statements):
            if self.scope.exit is not None and not warned:
                warned = True
                self.scope.findings.report(
                    "types", "this can never be reached", statement.span, clause="AMB-LANG-93", severity="warning"
                )
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
                lower_if(self.expressions, statement, self._inner_block)
            case s.For():
                lower_for(self.expressions, statement, self._inner_block)
            case s.While():
                lower_while(self.expressions, statement, self._inner_block)
            case s.Return():
                self.setting.give_back(self, statement)
            case s.Barrier():
                self.scope.emit(Barrier(label=statement.label or ""), (), statement.span)
            case s.Assert():
                condition = self.expressions.lower(statement.condition)
                if condition is not None:
                    made: Any = Assert(condition=condition.type, message=statement.message or "")  # type: ignore[arg-type]
                    self.scope.emit(made, (condition,), statement.span)

    def resolve(self, type_: s.TypeExpr) -> Type | None:
        """The type that an annotation names; None after a reported error."""
        try:
            return resolve_type(type_, self.setting.around.aliases)
        except Refusal as refusal:
            self.scope.findings.refused(refusal, type_.span)
            return None

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
        """`X[0:2] = V;` gives X a new value; V has the shape of the slice, or is a scalar that fills it."""
        assert assign.slices is not None
        slices = lower_slices(self.expressions.lower, self.scope.findings, assign.slices)
        value = self.expressions.lower(assign.value, dtype_of(whole.type) if whole else None)
        if whole is None and not broken:
            self._refuse(f"{assign.name!r} has no value yet to assign a part of", assign.span, "LANG-03.1-01")
        updated = None
        if whole and value and slices:
            made: Any = Update
            bounds = tuple(bound.type for bound in slices.bounds)
            operation = made(x=whole.type, value=value.type, bounds=bounds, spec=slices.spec)
            updated = self.scope.emit(operation, (whole, value, *slices.bounds), assign.span, assign.name)
        self.scope.assign(assign.name, updated[0] if updated else None)

    def _refuse_unknown(self, assign: s.Assign) -> None:
        constant = assign.name in self.setting.around.constants
        remedy = "declare a variable with let" if constant else did_you_mean(assign.name, self.scope.visible())
        what = f"{assign.name!r} is a constant of the module" if constant else f"unknown name {assign.name!r}"
        self._refuse(what, assign.span, "LANG-02.3-19", remedy or f"declare it: let {assign.name}: ... = ...;")
        self.expressions.lower(assign.value)
        self.scope.give_up(assign.name, assign.span)

    def _refuse(self, message: str, span: Span, clause: str, remedy: str = "") -> None:
        requirement = "a variable or parameter that was declared"
        self.scope.findings.report("types", message, span, requirement=requirement, clause=clause, remedy=remedy)

    # Calls as statements

    def _call(self, call: s.Call, first: bool) -> None:
        match call.callee:
            case ("schedule", *_):
                lower_schedule(self.expressions, call)
            case ("dist", *_):
                lower_dist_statement(self.expressions, call, self.setting.meshes)
            case ("numerics", *_):
                self._profile(call, first)
            case _:
                self.setting.around.call(self.expressions, call, "")

    def _profile(self, call: s.Call, first: bool) -> None:
        """`numerics.profile("strict");` at the head of a block (AMB-LANG-51, AMB-LANG-111)."""
        if call.callee != ("numerics", "profile") or len(call.arguments) != 1 or call.named:
            self._numerics(call.span, "this is no numerics annotation", 'numerics.profile("strict")')
            return
        if not first:
            self._numerics(call.span, "a numerics profile stands behind other statements", "the head of a block")
            return
        try:
            self.scope.profile = profile(call.arguments[0])
        except Refusal as refusal:
            self.scope.findings.refused(refusal, call.arguments[0].span)

    def _numerics(self, span: Span, message: str, requirement: str) -> None:
        self.scope.findings.report("numerics", message, span, requirement=requirement, clause="LANG-02-07")
