"""`tessera-reference print`: a program's syntax tree or its IR."""

from __future__ import annotations

import argparse
from typing import Any

from ..language import parse, print_tree
from ..levels.execution import LEVELS
from .lower import show_lowered
from .program import add_lowering_options, add_shape_options, file_command, read_text, show_text

PLACE_IN_HELP = 3


def register(subparsers: Any) -> None:
    """Add `print`."""
    parser = file_command(subparsers, "print", run, "print a program's syntax tree or its IR", ir=True)
    parser.add_argument("--level", choices=("ast", *LEVELS), help="what to print; IR text as it is, or graph")
    add_lowering_options(parser)
    add_shape_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print a program at a level."""
    if options.level == "ast":
        show_text(print_tree(parse(read_text(options), options.file)))
    else:
        show_lowered(options.level, options)
    return 0
