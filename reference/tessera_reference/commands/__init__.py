"""The subcommands of `tessera-reference`: every module here with a `register` is one, or several that belong together.

`register` adds the parsers, each of which sets `run`, a function of the parsed options that returns the exit code.
`PLACE_IN_HELP` orders the list of commands.
"""

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def register_all(subparsers: Any, arguments: Sequence[str]) -> None:
    """Add the parser of the subcommand that the arguments begin with, or of every one; others need not be imported."""
    names = [module.name for module in iter_modules(__path__)]
    requested = [name for name in names if name.replace("_", "-") in arguments[:1]]
    commands = _commands(requested) or _commands(names)
    for command in sorted(commands, key=lambda command: command.PLACE_IN_HELP):
        command.register(subparsers)


def _commands(names: Sequence[str]) -> list[Any]:
    """Those of the modules that are subcommands."""
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return [module for module in modules if hasattr(module, "register")]
