"""`tessera-reference compare-levels`: a function at every level, and where they differ."""

from __future__ import annotations

import argparse
from typing import Any

from ..levels.comparison import compare_levels
from ..levels.execution import EXECUTIONS, LEVELS
from ..numerics.environment import check_environment
from .program import Assignment, BadInput, add_lowering_options, compile_file, file_command, load, lowering_of, selected

PLACE_IN_HELP = 8


def register(subparsers: Any) -> None:
    """Add `compare-levels`."""
    parser = file_command(
        subparsers, "compare-levels", run, "run a function at every level, and find where they differ"
    )
    parser.add_argument("function", metavar="FUNCTION", help="NAME or MODULE.NAME")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="one parameter's value")
    parser.add_argument("--native", action="store_true", help="the machine code of this machine too")
    add_lowering_options(parser)


def run(options: argparse.Namespace) -> int:
    """Say where levels first differ; 0 where all levels agree, 1 where one does not."""
    check_environment()
    modules = compile_file(options).modules
    lowering = lowering_of(options)
    module, function = selected(modules, options.function)
    assignments = [Assignment.read(text) for text in options.input]
    for assignment in assignments:
        if assignment.rank is not None:
            raise BadInput(f"input {assignment.subject}: every rank is given the same inputs")
    arrays = {argument.name: load(argument.name, argument.path, argument.bits, function) for argument in assignments}
    levels = EXECUTIONS if options.native else LEVELS
    compared = compare_levels(module, function.name, arrays, lowering.target, lowering.options, levels)
    print(f"@{function.name}: {', '.join(compared.levels)} agree on {lowering.target.name}")
    if compared.difference is not None:
        print(compared.difference)
    if compared.failure is not None:
        print(f"{EXECUTIONS[len(compared.levels)]}: {compared.failure}")
    return 0 if compared.agree else 1
