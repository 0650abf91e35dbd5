"""The subcommands of `tessera-reference`: every module here with a `register` is one, or several that belong together.

`register` adds the parsers, each of which sets `run`, a function of the parsed options that returns the exit code.
`PLACE_IN_HELP` orders the list of commands.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def register_all(subparsers: Any) -> None:
    """Add the parser of every subcommand."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    commands = [module for module in modules if hasattr(module, "register")]
    for command in sorted(commands, key=lambda command: command.PLACE_IN_HELP):
        command.register(subparsers)
