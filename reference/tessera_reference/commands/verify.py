"""`tessera-reference verify`: whether a program, or IR text, is legal."""

from __future__ import annotations

import argparse
from typing import Any

from ..ir.targets import DEFAULT
from ..schedule.lowering import verify_stated_schedules
from .program import file_command, level_given, modules_of, target_named

PLACE_IN_HELP = 1


def register(subparsers: Any) -> None:
    """Add `verify`."""
    summary = "check a program, or IR text, and say what is wrong with it"
    parser = file_command(subparsers, "verify", run, summary, ir=True)
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"what kernels and schedules are for; {DEFAULT} unless given"
    )


def run(options: argparse.Namespace) -> int:
    """Check the file, and count its functions. Raises `Rejection`."""
    modules, _ = modules_of(options)
    if level_given(options, options.source_text) is None:
        verify_stated_schedules(modules, [target_named(options.target)])
    count = sum(len(module.functions) for module in modules)
    print(f"{options.file}: ok, {count} function{'s' * (count != 1)}")
    return 0
