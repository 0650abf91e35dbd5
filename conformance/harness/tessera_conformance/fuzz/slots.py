"""Places between statements: what is visible there, and the program with something put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tessera_conformance.fuzz import tree as t


@dataclass(frozen=True)
class Slot:
    """A place before a statement or at the end of a block: the names with a value there, and the function it is in."""

    visible: Mapping[str, t.Type]
    function: t.Function


def slots_of(program: t.Program) -> list[Slot]:
    """Every place where a statement can stand and be reached, in source order."""
    walk = _Walk(None, ())
    walk.program(program)
    return walk.slots


def with_statements(program: t.Program, number: int, statements: Sequence[t.Stmt]) -> t.Program:
    """The program with statements put into one of its slots."""
    return _Walk(number, tuple(statements)).program(program)


class _Walk:
    """Goes through a program once, counts its slots, and puts statements into one of them."""

    def __init__(self, target: int | None, statements: tuple[t.Stmt, ...]) -> None:
        self.slots: list[Slot] = []
        self._target = target
        self._statements = statements

    def program(self, program: t.Program) -> t.Program:
        return t.Program(tuple(self._module(module) for module in program.modules))

    def _module(self, module: t.Module) -> t.Module:
        constants = {each.name: each.type for each in module.declarations if isinstance(each, t.Let)}
        made = [
            self._function(each, constants) if isinstance(each, t.Function) else each for each in module.declarations
        ]
        return t.Module(module.name, tuple(made))

    def _function(self, function: t.Function, constants: Mapping[str, t.Type]) -> t.Function:
        visible = {**constants, **{each.name: each.type for each in function.parameters}}
        body = self._block(function.body, visible, function)
        return replace(function, body=body)

    def _block(self, block: t.Block, outer: Mapping[str, t.Type], function: t.Function) -> t.Block:
        visible = dict(outer)
        pending: dict[str, t.Type] = {}
        made: list[t.Stmt] = []
        for statement in block:
            made += self._slot(visible, function)
            made.append(self._inside(statement, visible, function))
            if isinstance(statement, t.Let) and statement.value is None:
                pending[statement.name] = statement.type
                visible.pop(statement.name, None)
            elif isinstance(statement, t.Let):
                visible[statement.name] = statement.type
            visible.update(pending if isinstance(statement, t.Assign | t.If) else {})
        if not block or not ends(block[-1]):
            made += self._slot(visible, function)
        return tuple(made)

    def _slot(self, visible: Mapping[str, t.Type], function: t.Function) -> tuple[t.Stmt, ...]:
        self.slots.append(Slot(dict(visible), function))
        return self._statements if len(self.slots) - 1 == self._target else ()

    def _inside(self, statement: t.Stmt, visible: Mapping[str, t.Type], function: t.Function) -> t.Stmt:
        match statement:
            case t.If(condition, then, otherwise):
                first = self._block(then, visible, function)
                second = None if otherwise is None else self._block(otherwise, visible, function)
                return t.If(condition, first, second)
            case t.For():
                inner = {**visible, statement.name: t.Type("int32")}
                body = self._block(statement.body, inner, function)
                return replace(statement, body=body)
            case t.While(condition, body):
                return t.While(condition, self._block(body, visible, function))
        return statement


def ends(statement: t.Stmt) -> bool:
    """Whether nothing after a statement is reached."""
    if isinstance(statement, t.If):
        return statement.otherwise is not None and all(
            bool(block) and ends(block[-1]) for block in (statement.then, statement.otherwise)
        )
    return isinstance(statement, t.Return)
