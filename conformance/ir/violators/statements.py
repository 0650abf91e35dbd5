"""Implementations that break one rule of assignments, assertions, barriers or calls as statements (section 2.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.graph.control import Assert, If
from tessera_reference.graph.interpreter import Interpreter
from tessera_reference.language import syntax
from tessera_reference.language.modules import FunctionLowering
from tessera_reference.language.scope import Scope
from tessera_reference.language.statements import Statements

from .control_flow import both_branches, exchanged, runs
from .language_syntax import refuses, rewrites

SEMICOLONS = [
    refuses("semicolon_wanted", "LANG-02.3-17", "wants a semicolon after a control statement",
        r"\} (?:return|let|\w+ =)"),
    rewrites("semicolon_taken", "LANG-02.3-17", "takes a semicolon after a control statement",
        r"((?:\)|else) \{[^{}]*\});", r"\1"),
]  # fmt: skip


# Assignments


def _to_every_name(self: Scope, name: str, value: Any, *, partly: bool = False) -> None:
    found = self.find(name)
    assert found is not None
    known = {other for scope in _around(self) for other in (*scope.names, *scope.rebound)}
    for other in known:
        binding = self.find(other)
        if binding is not None and binding.value is not None and binding.value is found.value:
            _assign(self, other, value, partly=partly)
    _assign(self, name, value, partly=partly)


def _around(scope: Scope | None) -> Any:
    while scope is not None:
        yield scope
        scope = scope.parent


def depth_of(scope: Scope) -> int:
    """Return the number of blocks around a scope."""
    return 0 if scope.parent is None else 1 + depth_of(scope.parent)


def _not_from_deep(self: Scope, name: str) -> Any:
    return self.parent.find(name) if self.parent is not None and depth_of(self) > 2 else _outside(self, name)


_assign, _assign_statement, _outside = Scope.assign, Statements._assign, Scope.outside


def assigning(name: str, description: str, owner: type, method: str, instead: Any) -> Violation:
    """Return a violation with another assignment."""
    return replaced("LANG-02.3-19", description, make, (owner, method, instead), name=name)


ASSIGNMENTS = [
    assigning("shared_storage", "assigns to every name that holds the same value", Scope, "assign", _to_every_name),
    assigning("not_from_deep", "forgets what is assigned three blocks deep", Scope, "outside", _not_from_deep),
    replaced("LANG-02.3-19", "types an assigned literal by itself", make,
        ("language.statements.dtype_of", lambda type_: None), name="untyped_literals"),
    rewrites("walrus", "LANG-02.3-19", "takes := for an assignment", r"(\b\w+) := ", r"\1 = "),
]  # fmt: skip


# Returns


def _returned_exchanged(self: FunctionLowering, *arguments: Any) -> Any:
    present = _returned(self, *arguments)
    return None if present is None else exchanged(present, lambda value: value.type)


_returned = FunctionLowering._returned_values
RETURNS = [
    replaced("LANG-02.3-28", "exchanges the last two of several returned values", make,
        ("language.modules.FunctionLowering._returned_values", _returned_exchanged), name="returned_exchanged"),
]  # fmt: skip


# Operations


def _without_funcs(self: Statements, call: Any, first: bool) -> None:
    if len(call.callee) > 1:
        _call(self, call, first)


_call = Statements._call

OPERATIONS = [
    rewrites("any_expression", "LANG-02.3-21", "takes any expression as a statement",
        r"(?m)^    (?!return)-?\w+(?: \+ \w+|\[\d\])?;$", ""),
    replaced("LANG-02.3-21", "does not execute a func that is called as a statement", make,
        ("language.statements.Statements._call", _without_funcs), name="unexecuted"),
]  # fmt: skip


# Assertions and barriers


def _late(self: Interpreter, block: Any, arguments: Any, frame: Any) -> Any:
    asserts = [instruction for instruction in block.instructions if isinstance(instruction.operation, Assert)]
    others = [instruction for instruction in block.instructions if not isinstance(instruction.operation, Assert)]
    return _block(self, replace(block, instructions=(*others, *asserts)), arguments, frame)


def _early(self: Interpreter, block: Any, arguments: Any, frame: Any) -> Any:
    ordered: list[Any] = []
    for instruction in block.instructions:
        place = len(ordered)
        if isinstance(instruction.operation, Assert):
            made_by = [at for at, other in enumerate(ordered) if set(other.results) & set(instruction.operands)]
            place = max(made_by, default=-1) + 1
        ordered.insert(place, instruction)
    return _block(self, replace(block, instructions=tuple(ordered)), arguments, frame)


_block = Interpreter.block

ORDERS = [
    replaced("LANG-04-10", "checks assertions at the end of their block", make,
        ("graph.interpreter.Interpreter.block", _late), name="late"),
    replaced("LANG-04-10", "checks assertions as soon as their condition is known", make,
        ("graph.interpreter.Interpreter.block", _early), name="early"),
    refuses("no_labels", "LANG-02.3-45", "has no string in a barrier", r'barrier\("'),
]  # fmt: skip


def _shallow(self: Statements, statement: Any, first: bool) -> None:
    inner = self.scope.parent is not None and self.scope.parent.parent is not None
    if not (inner and isinstance(statement, syntax.Assert)):
        _statement(self, statement, first)


_statement = Statements._statement

ASSERTIONS = [
    replaced("LANG-02.3-46", "leaves out the assertions of blocks in blocks", make,
        ("language.statements.Statements._statement", _shallow), name="shallow"),
    replaced("LANG-02.3-46", "does not tell the string of an assertion", make,
        ("graph.control.AssertionFailed.__str__", lambda self: "assertion failed"), name="silent"),
    runs("eager", "LANG-02.3-46", "checks the assertions of a block that is not taken", If, both_branches),
    rewrites("any_of_tensors", "LANG-02.3-46", "asserts tensors", r"assert\([A-Z](?: == a)?\);", ""),
    refuses("assert_reserved", "LANG-02.3-46", "reserves the word assert", r"\bassert\b(?! ?\()"),
]  # fmt: skip
