"""`tessera-reference completion`: commands and options completed by a shell."""

from __future__ import annotations

import argparse
from typing import Any

from ..ir.diagnostics import MissingTool

PLACE_IN_HELP = 11
INSTALL = "pip install 'tessera-conformance[completion]'"


def register(subparsers: Any) -> None:
    """Add `completion`."""
    parser = subparsers.add_parser("completion", help="print the completions of a shell")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell that reads the script")
    parser.set_defaults(run=run, source_text="")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise MissingTool("shtab", INSTALL) from None
    from . import register_all

    parser = argparse.ArgumentParser(prog="tessera-reference")
    commands = parser.add_subparsers(metavar="COMMAND")
    register_all(commands, [])
    for command in commands.choices.values():
        for action in command._actions:
            if action.dest == "file":
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's
    print(shtab.complete(parser, options.shell))
    return 0
