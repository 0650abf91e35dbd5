"""`tessera-reference print`: a program's syntax tree or its IR."""

from __future__ import annotations

import argparse
from typing import Any

from ..language import parse, print_tree
from ..levels.execution import LEVELS
from .lower import show_lowered
from .program import add_lowering_options, add_shape_options, compile_file, file_command, read_text

PLACE_IN_HELP = 3


def register(subparsers: Any) -> None:
    """Add `print`."""
    parser = file_command(subparsers, "print", run, "print a program's syntax tree or its IR")
    parser.add_argument("--level", choices=("ast", *LEVELS), default="graph", help="what to print")
    add_lowering_options(parser)
    add_shape_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print a program at a level."""
    if options.level == "ast":
        print(print_tree(parse(read_text(options), options.file)), end="")
    else:
        show_lowered(compile_file(options).modules, options.level, options)
    return 0
