"""Lowering of modules to each level, and execution of functions at each (sections 4, 6, 7, 8).

Graph IR is lowered to Schedule IR, that to Tile IR, that to Target IR; the bits are the same at each (LANG-08.2-01,
AMB-LANG-78). Operations that a kernel cannot hold stay in the function of the host, which Graph IR's interpreter runs.
A kernel has extents that are numbers, so a program is specialized to its inputs before it receives any. The code of a
level is imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ..graph import execution as graph_execution
from ..graph.execution import RankObserver, function_named
from ..graph.interpreter import Observer, bind, reachable
from ..ir.operation import Function, Module
from ..ir.targets import Target
from ..numerics.array import Array
from ..schedule.choices import Options as Options

if TYPE_CHECKING:
    from ..schedule.execution import Observer as EventObserver

Level = Literal["graph", "schedule", "tile", "target"]

LEVELS: tuple[Level, ...] = ("graph", "schedule", "tile", "target")
"""The levels, from the highest to the lowest."""

Execution = Level | Literal["native"]

EXECUTIONS: tuple[Execution, ...] = (*LEVELS, "native")
"""The ways to run a program: at a level, or at Target IR with machine code for kernels of independent threads."""


def lower(module: Module, to: Level, target: Target, options: Options | None = None, start: Level = "graph") -> Module:
    """Return a module of the level `start` at a level that is not above it.

    Raises `Rejection` with phase lower for what the level cannot hold.
    """
    for level in LEVELS[LEVELS.index(start) + 1 : LEVELS.index(to) + 1]:
        module = lower_from_above(module, level, target, options or Options())
    return module


def lower_from_above(module: Module, to: Level, target: Target, options: Options) -> Module:
    """Return a module of the level above `to` at `to`, which is not Graph IR; the options are those of Schedule IR."""
    if to == "schedule":
        from ..schedule.lowering import to_schedule

        return to_schedule(module, target, options)
    if to == "tile":
        from ..tile.lowering import to_tile

        return to_tile(module, target)
    from ..target_ir.lowering import to_target

    return to_target(module, target)


def executable(
    module: Module, to: Execution, target: Target, options: Options | None = None, start: Level = "graph"
) -> Module:
    """Return the executable form of a module of the level `start`; at Schedule IR each nest is an instruction.

    Raises as `lower` does, and `MissingTool` for `native` where llvmlite is not installed.
    """
    if to == "native":
        from ..target_ir.emission.host import native

        return native(lower(module, "target", target, options, start))
    lowered = lower(module, to, target, options, start)
    if to != "schedule":
        return lowered
    from ..schedule.execution import runnable

    return runnable(lowered, target)


def execute_at(
    level: Execution,
    module: Module,
    function: str,
    inputs: Mapping[str, Array],
    target: Target,
    options: Options | None = None,
    observer: Observer | None = None,
    events: EventObserver | None = None,
    start: Level = "graph",
) -> tuple[Array, ...]:
    """Run a function of the level `start`, lowered to a level, on named inputs.

    Results are as of `graph.execution.execute`.

    At Schedule IR `events` is called for each step of a nest, at the others `observer` for each host instruction.
    Raises as `lower` and as the execution of the level.
    """
    if level == "graph":
        return graph_execution.execute(module, function, inputs, observer)
    special = specialized(module, function, inputs) if start == "graph" else module
    if level == "native":
        return graph_execution.execute(executable(special, level, target, options, start), function, inputs, observer)
    return run_lowered(level, lower(special, level, target, options, start), function, inputs, target, observer, events)


def run_lowered(
    level: Level,
    lowered: Module,
    function: str,
    inputs: Mapping[str, Array],
    target: Target,
    observer: Observer | None = None,
    events: EventObserver | None = None,
) -> tuple[Array, ...]:
    """Run a host function of a module that is already at a level; observed as by `execute_at`."""
    if level == "schedule":
        from ..schedule import execution as schedule_execution

        return schedule_execution.execute(lowered, function, inputs, target, events)
    return graph_execution.execute(lowered, function, inputs, observer)


def execute_on_mesh_at(
    level: Execution,
    module: Module,
    function: str,
    inputs: Sequence[Mapping[str, Array]],
    target: Target,
    options: Options | None = None,
    mesh: str | None = None,
    observer: RankObserver | None = None,
    start: Level = "graph",
) -> tuple[tuple[Array, ...], ...]:
    """Run a function of the level `start` at a level on every rank of a mesh, inputs and results by rank.

    Ranks run one program, specialized to the inputs of rank 0; another rank's operand does not fit if its shapes
    differ. At Schedule IR the observer gets a whole nest as one instruction. Raises as `execute_at` does.
    """
    if level == "graph" or not inputs:
        return graph_execution.execute_on_mesh(module, function, inputs, mesh, observer)
    special = specialized(module, function, inputs[0]) if start == "graph" else module
    program = executable(special, level, target, options, start)
    return graph_execution.execute_on_mesh(program, function, inputs, mesh, observer)


def specialized(module: Module, function: str, inputs: Mapping[str, Array]) -> Module:
    """Return a function and its callees for these inputs' shapes. Raises `UnknownFunction`, `InputMismatch`."""
    return for_shapes(module, function_named(module, function), shapes_of(module, function, inputs))


def shapes_of(module: Module, function: str, inputs: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of a function. Raises `UnknownFunction`, `InputMismatch`."""
    entry = function_named(module, function)
    return {p.name: a.shape for p, a in zip(entry.parameters, bind(entry, inputs), strict=True)}


def for_shapes(module: Module, entry: Function, shapes: Mapping[str, tuple[int, ...]]) -> Module:
    """Return a function and its callees, for parameters of these shapes. Raises `Rejection`."""
    from ..schedule.lowering import specialize

    return specialize(_only(module, entry), entry.name, shapes)


def _only(module: Module, entry: Function) -> Module:
    """Return the module with only a function and its callees."""
    operations = [instruction.operation for instruction in reachable(module, entry)]
    called = {operation.attributes.get(operation.calls) for operation in operations}
    functions = {name: function for name, function in module.functions.items() if name == entry.name or name in called}
    return replace(module, functions=functions)
