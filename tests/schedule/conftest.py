"""Programs of the DSL and texts of Schedule IR, and what the Graph level makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tessera_reference.ir.operation import Function, Module
from tessera_reference.ir.targets import Target, target_of
from tessera_reference.ir.text_reader import read_modules
from tessera_reference.language import compile_source
from tessera_reference.schedule.nests import Nest, Plan, verify_schedule


class Schedules:
    """Programs, texts and plans that the tests of this folder share."""

    @staticmethod
    def program(signature: str, body: str, mesh: str = "") -> Module:
        """A module with the function f; a body without a semicolon is what it returns."""
        statements = body if ";" in body else f"return {body};"
        return compile_source(f"module m {{ {mesh} func f({signature}) {{ {statements} }} }}", "t.tsr").module

    @staticmethod
    def text(parameters: str, lines: Sequence[str], results: str = "", types: str = "") -> str:
        """A module of Schedule IR with the function f."""
        inside = "\n".join(lines)
        signature = ", ".join(word.partition(": ")[2] for word in parameters.split(", %"))
        return (
            f'"builtin.module"() ({{\n"tessera.graph.func"() ({{\n^bb0({parameters}):\n{inside}\n'
            f'"tessera.graph.return"({results}) : ({types}) -> ()\n'
            f'}}) {{sym_name = "f", function_type = ({signature}) -> ({types})}} : () -> ()\n'
            '}) {sym_name = "m"} : () -> ()\n'
        )

    @classmethod
    def read(cls, parameters: str, lines: Sequence[str], results: str = "", types: str = "") -> Function:
        """The function f of a text."""
        return read_modules(cls.text(parameters, lines, results, types))[0].functions["f"]

    @classmethod
    def accepted(
        cls, parameters: str, lines: Sequence[str], results: str = "", types: str = "", target: str = "sm_90"
    ) -> Function:
        """A text whose schedule is legal."""
        function = cls.read(parameters, lines, results, types)
        verify_schedule(function, target_of(target))
        return function

    @staticmethod
    def nests(function: Function, target: str = "sm_90") -> list[tuple[object, ...]]:
        """Return the parts of a function: each nest in short, what stays by its name."""
        return [Schedules.short(nest) for nest in Plan(function, target_of(target)).block(function.body)]

    @staticmethod
    def short(step: object) -> tuple[object, ...]:
        """A nest: kind, operations, inputs, outputs, tile, depth, staged inputs."""
        if not isinstance(step, Nest):
            return ("host", step.operation.short_name)  # type: ignore[attr-defined]  # an instruction
        names = [value.name for value in step.inputs], [value.name for value in step.outputs]
        operations = [instruction.operation.short_name for instruction in step.instructions]
        return (step.kind, operations, *names, step.tile, step.depth, sorted(value.name for value in step.staged))


@pytest.fixture
def schedules() -> type[Schedules]:
    return Schedules


@pytest.fixture
def target() -> Target:
    return target_of("sm_90")
