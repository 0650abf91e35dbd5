"""`tessera-reference run` and `compare-levels`: a function run on files, at one level or at all."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..graph.execution import mesh_in_force
from ..graph.interpreter import describe
from ..ir.operation import Function, Instruction, Module
from ..ir.types import Scalar, Tensor, dtype_of
from ..levels.comparison import code, compare_levels, differing
from ..levels.execution import EXECUTIONS, LEVELS, Execution, execute_at, execute_on_mesh_at
from ..numerics.array import Array
from ..numerics.environment import check_environment
from ..schedule.execution import Event
from .program import (
    Assignment,
    BadInput,
    add_lowering_options,
    compile_file,
    file_command,
    load,
    load_input,
    lowering_of,
    modules_of,
    save,
    selected,
)

FILES_HELP = """
files:
  Inputs and outputs are .npy files. An input's numbers must be values of the parameter's dtype: fp8 and bf16, which
  numpy lacks, are given as any float array that they represent exactly, and are written as float32. NAME:bits=FILE
  reads or writes storage codes instead, as unsigned integers of the dtype's width.
  With one result, --output and --expect may call it anything; several are called r0, r1, ... in order, those of a
  kernel by the names of its tensor parameters. --expect compares bits; any NaN is like any other.
  On a mesh, NAME@RANK=FILE is the input or output of one rank, counted row-major; an input without a rank is that of
  all others, an output without one is rank 0's.
  FILE may be - for a program on standard input.
"""


def register_run(subparsers: Any) -> None:
    """Add `run`."""
    parser = file_command(subparsers, "run", run, "run a function on .npy files", epilog=FILES_HELP, ir=True)
    parser.add_argument(
        "--function", metavar="NAME", help="the function, or MODULE.NAME; needed when there are several"
    )
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="one parameter's value")
    parser.add_argument("--output", action="append", default=[], metavar="NAME=FILE.npy", help="where a result goes")
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="another implementation's result: print the first element that differs, and end with 1",
    )
    parser.add_argument(
        "--level",
        choices=("strict", "deterministic", "fast"),
        default="strict",
        help="numerics level; the reference computes the strict bits under each",
    )
    parser.add_argument(
        "--at",
        choices=EXECUTIONS,
        help="the level of IR that is executed, or machine code; the file's own unless given, graph for a program",
    )
    add_lowering_options(parser)
    parser.add_argument(
        "--trace",
        action="store_true",
        help="print each operation as it is executed, with a digest of its bits; at schedule what is done to each tile",
    )
    parser.add_argument(
        "--values",
        metavar="DIR",
        help="write the value of each operation to DIR/N-NAME.npy, numbered as executed; on a mesh to N-NAME@RANK.npy",
    )


def run(options: argparse.Namespace) -> int:
    """Run a function on files, and write or print its results. Raises `BadInput` and as `execute_at` does."""
    check_environment()
    how = lowering_of(options)
    modules, start = modules_of(options)
    at: Execution = options.at or start
    if EXECUTIONS.index(at) < EXECUTIONS.index(start):
        possible = ", ".join(EXECUTIONS[EXECUTIONS.index(start) :])
        raise BadInput(f"--at {at}: {options.file} is IR of {start}, which is below it; expected one of {possible}")
    module, function = selected(modules, options.function)
    outputs, expected = ([Assignment.read(text) for text in texts] for texts in (options.output, options.expect))
    assignments = [Assignment.read(text) for text in options.input]
    names = _result_names(function)
    for results_named in (outputs, expected):
        _check_outputs(results_named, function, names)
    _check_inputs(assignments)
    arrays = {argument: load_input(argument, function) for argument in assignments}
    observe, events = _observer(options), trace_event if options.trace else None
    if any(argument.rank is not None for argument in (*assignments, *outputs, *expected)):
        inputs = _inputs_by_rank(module, function, arrays)
        results = execute_on_mesh_at(at, module, function.name, inputs, *how, observer=observe, start=start)
    else:
        shared, alone = (
            {assignment.name: array for assignment, array in arrays.items()},
            observe and partial(observe, None),
        )
        results = (execute_at(at, module, function.name, shared, *how, alone, events, start),)

    def result(kind: str, argument: Assignment) -> Array:
        if (argument.rank or 0) >= len(results):
            raise BadInput(f"{kind} {argument.subject}: there are ranks 0 to {len(results) - 1}")
        return results[argument.rank or 0][0 if len(names) == 1 else names.index(argument.name)]

    for argument in outputs:
        save(result("output", argument), argument.path, argument.bits)
    if not (outputs or expected):
        for rank, of_rank in enumerate(results):
            _show(names, of_rank, f"@{rank}" * (len(results) > 1))
    verdicts = [_compared(argument, result("expected", argument)) for argument in expected]
    return 0 if all(verdicts) else 1


def _compared(argument: Assignment, right: Array) -> bool:
    """Print the first element of a file that has not the bits of a result, and return True if there is none."""
    subject = f"expected {argument.subject}"
    kind = Tensor(right.shape, right.dtype) if right.shape else Scalar(right.dtype)
    actual = load(subject, argument, kind)
    if actual.shape != right.shape:
        raise BadInput(f"{subject}: {argument.path} has the shape {list(actual.shape)}, the result {list(right.shape)}")
    places = differing(right, actual)
    if not places:
        print(f"{argument.subject}: the bits of {argument.path} are those of the reference")
        return True
    index = [int(number) for number in np.unravel_index(places[0], right.shape)] if right.shape else ""
    found, wanted = (f"{array.values.reshape(-1)[places[0]]} ({code(array, places[0])})" for array in (actual, right))
    extent = f"{len(places)} of {right.values.size} elements differ"
    print(f"{argument.subject}{index}: {argument.path} has {found}, expected {wanted}; {extent}")
    return False


def _inputs_by_rank(module: Module, function: Function, arrays: Mapping[Assignment, Array]) -> list[dict[str, Array]]:
    """Return the inputs of each rank: its own, and those given for all ranks."""
    count = module.meshes[mesh_in_force(module, function, None)].size
    for argument in arrays:
        if argument.rank is not None and argument.rank >= count:
            raise BadInput(f"input {argument.subject}: there are ranks 0 to {count - 1}")
    shared = {assignment.name: array for assignment, array in arrays.items() if assignment.rank is None}
    return [
        shared | {assignment.name: array for assignment, array in arrays.items() if assignment.rank == rank}
        for rank in range(count)
    ]


def _show(names: Sequence[str], results: Sequence[Array], suffix: str) -> None:
    for name, array in zip(names, results, strict=True):
        print(f"{name}{suffix} {describe(array)}\n{array.values}")


def _check_inputs(assignments: Sequence[Assignment]) -> None:
    subjects = [argument.subject for argument in assignments]
    for subject in subjects:
        if subjects.count(subject) > 1:
            raise BadInput(f"input {subject} is given twice")


def _result_names(function: Function) -> list[str]:
    """Return the names of results: those of a kernel as its tensor parameters, others by number."""
    if function.kernel:
        return [value.name for value in function.parameters if isinstance(value.type, Tensor)]
    return [f"r{index}" for index in range(len(function.results))]


def _check_outputs(outputs: Sequence[Assignment], function: Function, names: Sequence[str]) -> None:
    for output in outputs:
        if not names or (len(names) > 1 and output.name not in names):
            raise BadInput(f"output {output.name}: {function.name} returns {', '.join(names) or 'nothing'}")
        expected = dtype_of(function.results[0 if len(names) == 1 else names.index(output.name)])
        if output.bits and expected is not None and expected.storage_bytes > 8:
            raise BadInput(f"output {output.name}: there are no integers as wide as its codes")
    if len(names) == 1 and len({output.rank for output in outputs}) < len(outputs):
        raise BadInput(f"{function.name} returns one value, and several outputs are asked for")


# The lines of `run --trace`, each executed operation, or each step on a tile, and the files of `run --values`.


def _observer(options: argparse.Namespace) -> Callable[[int | None, Instruction, tuple[Array, ...]], None] | None:
    """Return the observer of the operations that `run` traces or whose values it writes; None for neither."""
    if not options.trace and options.values is None:
        return None
    numbers = count(1)
    if options.values is not None:
        try:
            Path(options.values).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"--values {options.values}: {error.strerror}") from error

    def observe(rank: int | None, instruction: Instruction, results: tuple[Array, ...]) -> None:
        if options.trace:
            trace(instruction, results)
        number, suffix = next(numbers), "" if rank is None else f"@{rank}"
        if options.values is not None:
            for value, array in zip(instruction.results, results, strict=True):
                save(array, str(Path(options.values, f"{number}-{value.name}{suffix}.npy")), bits=False)

    return observe


def trace(instruction: Instruction, results: tuple[Array, ...]) -> None:
    """Print a line for an executed operation: its place, its results, a digest of their bits."""
    span = instruction.location.span
    values = [
        f"%{value.name} {array.dtype}{list(array.shape)} {digest(array)}"
        for value, array in zip(instruction.results, results, strict=True)
    ]
    print(f"{span.line}:{span.column} {instruction.operation.name} {'; '.join(values)}".rstrip())


def trace_event(event: Event) -> None:
    """Print a line for a step on a tile: its nest, and its buffer."""
    buffer = f" in buffer {event.slot}" if event.slot >= 0 else ""
    print(f"nest {event.nest} {event.kind} tile {list(event.tile)}{buffer}")


def digest(array: Array) -> str:
    """Return sixteen hexadecimal digits that differ between arrays with different bits."""
    return hashlib.sha256(array.to_bits()).hexdigest()[:16]


# `tessera-reference compare-levels`: a function at every level, and the first difference.


def register_compare_levels(subparsers: Any) -> None:
    """Add `compare-levels`."""
    parser = file_command(
        subparsers, "compare-levels", compare, "run a function at every level, and find where they differ"
    )
    parser.add_argument("function", metavar="FUNCTION", help="NAME or MODULE.NAME")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="one parameter's value")
    parser.add_argument("--native", action="store_true", help="the machine code of this machine too")
    add_lowering_options(parser)


def compare(options: argparse.Namespace) -> int:
    """Print where levels first differ; return 0 if all levels agree, 1 if one differs."""
    check_environment()
    modules = compile_file(options).modules
    target, schedule = lowering_of(options)
    module, function = selected(modules, options.function)
    assignments = [Assignment.read(text) for text in options.input]
    for assignment in assignments:
        if assignment.rank is not None:
            raise BadInput(f"input {assignment.subject}: every rank is given the same inputs")
    arrays = {argument.name: load_input(argument, function) for argument in assignments}
    levels = EXECUTIONS if options.native else LEVELS
    compared = compare_levels(module, function.name, arrays, target, schedule, levels)
    print(f"@{function.name}: {', '.join(compared.levels)} agree on {target.name}")
    if compared.difference is not None:
        print(compared.difference)
    if compared.failure is not None:
        print(f"{EXECUTIONS[len(compared.levels)]}: {compared.failure}")
    return 0 if compared.agree else 1
