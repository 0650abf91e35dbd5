"""`tessera-reference verify` and `fmt`: check a program or IR text, and print it in canonical form."""

from __future__ import annotations

import argparse
from typing import Any

from ..ir.targets import DEFAULT
from ..ir.text import print_module
from ..language import format_program
from ..schedule.lowering import verify_stated_schedules
from .program import (
    BadInput,
    file_command,
    level_given,
    modules_of,
    read_text,
    show_text,
    target_named,
    write_file,
)


def register_verify(subparsers: Any) -> None:
    """Add `verify`."""
    summary = "check a program, or IR text, and say what is wrong with it"
    parser = file_command(subparsers, "verify", verify, summary, ir=True)
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"what kernels and schedules are for; {DEFAULT} unless given"
    )


def verify(options: argparse.Namespace) -> int:
    """Check the file, and count its functions. Raises `Rejection`."""
    modules, _ = modules_of(options)
    if level_given(options, options.source_text) is None:
        verify_stated_schedules(modules, [target_named(options.target)])
    count = sum(len(module.functions) for module in modules)
    print(f"{options.file}: ok, {count} function{'s' * (count != 1)}")
    return 0


# `tessera-reference fmt`: a program in canonical form.


def register_fmt(subparsers: Any) -> None:
    """Add `fmt`."""
    parser = file_command(subparsers, "fmt", format_file, "print a program, or IR text, in canonical form", ir=True)
    parser.add_argument(
        "--check", action="store_true", help="print nothing; exit with 1 if the file is not in canonical form"
    )
    parser.add_argument("--write", action="store_true", help="change the file in place")


def format_file(options: argparse.Namespace) -> int:
    """Print or write the canonical form, or compare the file with it."""
    text = read_text(options)
    if level_given(options, text) is None:
        formatted = format_program(text, options.file)
    else:
        formatted = "".join(map(print_module, modules_of(options)[0]))
    if options.check:
        return 0 if formatted == text else 1
    if not options.write:
        show_text(formatted)
        return 0
    if options.file == "-":
        raise BadInput("--write needs a file, not standard input")
    write_file(options.file, formatted)
    return 0
