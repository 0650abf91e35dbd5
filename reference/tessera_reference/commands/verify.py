"""`tessera-reference verify`: whether a program, or IR text, is legal."""

from __future__ import annotations

import argparse
from typing import Any

from ..ir.targets import DEFAULT
from ..levels.execution import LEVELS
from ..levels.texts import read_at
from ..schedule.lowering import verify_stated_schedules
from .program import compile_file, file_command, read_text, target_named

PLACE_IN_HELP = 1


def register(subparsers: Any) -> None:
    """Add `verify`."""
    parser = file_command(subparsers, "verify", run, "check a program, or IR text, and say what is wrong with it")
    parser.add_argument("--ir", choices=LEVELS, metavar="LEVEL", help="the file is IR of this level")
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"what kernels and schedules are for; {DEFAULT} unless given"
    )


def run(options: argparse.Namespace) -> int:
    """Check the file, and count its functions. Raises `Rejection`."""
    if options.ir is None:
        modules = compile_file(options).modules
        verify_stated_schedules(modules, [target_named(options.target)])
    else:
        modules = read_at(options.ir, read_text(options), target_named(options.target), options.file)
    count = sum(len(module.functions) for module in modules)
    print(f"{options.file}: ok, {count} function{'s' * (count != 1)}")
    return 0
