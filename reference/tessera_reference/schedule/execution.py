"""Executing Schedule IR: nest by nest, tile by tile, through stages and buffers (spec sections 4, 6).

Each nest becomes one instruction of the function, which the interpreter of Graph IR then runs. So control flow,
collectives, ranks and all other operations outside nests work as at the Graph level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from ..graph import execution as graph_execution
from ..ir.module import Instruction, Module
from ..ir.operation import Environment, Operation
from ..ir.targets import Target
from ..ir.types import Type
from ..numerics.array import Array
from .nest_executor import execute_nest
from .nests import Nest
from .rewriting import with_nests_replaced
from .staging import Event, Observer, Tracer

__all__ = ["Event", "Observer", "execute", "execute_on_mesh", "runnable"]


@dataclass(frozen=True)
class RunNest(Operation):
    """Executes one nest. Created only here; it has no text form."""

    nest: Nest
    tracer: Tracer

    name: ClassVar[str] = "tessera.schedule.nest"
    clauses: ClassVar[tuple[str, ...]] = ()
    roles = {}  # noqa: RUF012  # as declared operations have them
    kinds = {}  # noqa: RUF012

    def infer(self) -> tuple[Type, ...]:
        """The outputs."""
        return tuple(value.type for value in self.nest.outputs)

    def execute(self, *inputs: Array, env: Environment) -> tuple[Array, ...]:
        """The outputs, from the inputs."""
        return execute_nest(self.nest, inputs, env, self.tracer)


def runnable(module: Module, target: Target, observer: Observer | None = None) -> Module:
    """The module with an instruction for each nest; nests are numbered in the order of the module's text."""
    numbers = count()

    def replacement(nest: Nest) -> tuple[Instruction, ...]:
        operation = RunNest(nest, Tracer(next(numbers), observer))
        return (Instruction(operation, nest.inputs, nest.outputs, nest.location),)

    return with_nests_replaced(module, target, replacement)


def execute(
    module: Module,
    function: str,
    inputs: Mapping[str, Array],
    target: Target,
    observer: Observer | None = None,
) -> tuple[Array, ...]:
    """Run a function of Schedule IR on named inputs; results and errors as `graph.execution.execute` has them.

    Operations with unknown extents run as Graph IR; `specialize` makes extents known.
    """
    if function not in module.functions:
        raise graph_execution.UnknownFunction(function, tuple(module.functions))
    return graph_execution.execute(runnable(module, target, observer), function, inputs)


def execute_on_mesh(
    module: Module,
    function: str,
    inputs: Sequence[Mapping[str, Array]],
    target: Target,
    mesh: str | None = None,
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, as `graph.execution.execute_on_mesh` does."""
    return graph_execution.execute_on_mesh(runnable(module, target), function, inputs, mesh)
