"""The subcommands of `tessera-reference`, each with a function that adds its parser, such as `check.register_verify`.

A parser sets `run`, a function of the parsed options that returns the exit code.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

COMMANDS = {
    "run": "run",
    "verify": "check",
    "fmt": "check",
    "print": "lowering",
    "explain": "images",
    "compile": "images",
    "inspect": "images",
    "lower": "lowering",
    "compare-levels": "run",
    "plan": "lowering",
    "wsp": "wsp",
    "serve": "tools",
    "build-c-library": "tools",
    "host-io": "host_io",
    "completion": "tools",
    "lsp": "tools",
}
"""The module of each command, in the order of the help."""


def register_all(subparsers: Any, arguments: Sequence[str]) -> None:
    """Add the parser of the command in the arguments, or of every one; others need not be imported."""
    for name in COMMANDS.keys() & set(arguments[:1]) or COMMANDS:
        module = import_module(f".{COMMANDS[name]}", __name__)
        getattr(module, f"register_{name.replace('-', '_')}")(subparsers)
