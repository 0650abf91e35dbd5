"""The command `tessera-conformance`: run the suite, read its reports, keep clauses and vectors, prove that it bites."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Container, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import fill

from tessera_conformance import __version__
from tessera_conformance.terminal import (
    UNREAD,
    CommandParser,
    Interrupted,
    error_text,
    forget_output,
    interrupt_once,
    print_error,
)

TASKS = {
    "connect an implementation": {
        "new-adapter": ("commands.adapters", "write the skeleton of an adapter"),
        "smoke": ("commands.smoke", "ask an implementation one question of each kind"),
        "serve": ("commands.adapters", "serve a Python adapter over the line protocol"),
        "probe": ("probe.commands", "reveal the order and arithmetic of sums"),
    },
    "judge it": {
        "run": ("commands.run", "run the conformance suite"),
        "fuzz": ("fuzz.trials", "generated programs, legal and not"),
        "deviations": ("reports.publish", "write down what fails as known deviations"),
    },
    "understand a failure": {
        "reproduce": ("commands.run", "run one case and write a standalone script for it"),
        "diagnose": ("commands.run", "name plausible causes of failing arithmetic"),
    },
    "read, join and publish reports": {
        "report": ("reports.publish", "render a report file"),
        "compare": ("reports.publish", "hold two reports against each other"),
        "merge": ("reports.publish", "join the reports of the shards of one run"),
        "bundle": ("submissions.verify", "the submission of a report; bundle verify checks one"),
    },
    "examine the suite": {
        "clauses": ("commands.clauses", "the clauses: list, show, check, lock, coverage"),
        "vectors": ("commands.vectors", "the golden vectors: fill, check, diff"),
        "strength": ("strength.commands", "run the violators and write the kill matrix"),
        "schema": ("reports.publish", "the schema of a TOML file, for an editor"),
        "completion": ("cli", "the completions of a shell: bash, zsh or tcsh"),
        "interface": ("commands.clauses", "check or renew what is made from the interface.toml files"),
    },
}
"""The commands by task, each with its module, whose `configure_NAME` declares arguments and handler, and its help."""

COMMANDS = {name: command for commands in TASKS.values() for name, command in commands.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0 for success, 1 for a failed judgement, 2 for a request that cannot be served."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser, subparsers = _parser(arguments[:1])  # the other modules need not be imported
    parsed, rest = parser.parse_known_args(arguments)
    if rest and not getattr(parsed, "takes_rest", False):
        chosen = subparsers.choices.get(arguments[0], parser)
        chosen.error(f"unrecognized arguments: {' '.join(rest)}")
    parsed.rest = rest
    restore = interrupt_once()
    try:
        code = int(parsed.handler(parsed))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        forget_output()
        return UNREAD
    except OSError as error:
        forget_output()
        print_error(error_text(str(error.filename or "standard output"), str(error.strerror)))
        return 2
    except Interrupted as signal_:
        print("interrupted", file=sys.stderr)
        return signal_.exit_code
    finally:
        restore()
    return code


def _parser(configured: Container[str]) -> tuple[CommandParser, argparse._SubParsersAction[CommandParser]]:
    """Return the parser of the command line, and those of all commands, of which some are configured."""
    parser = CommandParser(
        prog="tessera-conformance",
        description=fill(__doc__ or "", 100),
        epilog=_commands_by_task(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, help="one of those below")
    for name, (module, help_text) in COMMANDS.items():
        # `--help` would list a command with a help again, without its task; shtab skips those without one
        command = subparsers.add_parser(name, help=help_text) if configured is COMMANDS else subparsers.add_parser(name)
        if name in configured:
            configure = getattr(import_module(f"tessera_conformance.{module}"), f"configure_{name.replace('-', '_')}")
            configure(command)
    return parser, subparsers


def configure_completion(parser: argparse.ArgumentParser) -> None:
    """The command `completion`."""
    parser.description = (
        "Print the script that completes commands and options in a shell; needs the extra `completion`."
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell that reads the script")
    parser.set_defaults(handler=print_completion)


def print_completion(arguments: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        do = "pip install 'tessera-conformance[completion]'"
        print_error(error_text("tessera-conformance completion", "the package shtab is not installed", do=do))
        return 2
    from tessera_conformance.options import add_options

    parser, subparsers = _parser(COMMANDS)
    for name, command in subparsers.choices.items():
        command.description = COMMANDS[name][1]
        if command.get_default("takes_rest"):  # options of the suite, which pytest reads
            add_options(command.add_argument)
    complete_paths(parser, shtab.FILE, shtab.DIRECTORY)
    print(shtab.complete(parser, arguments.shell))
    return 0


def complete_paths(parser: argparse.ArgumentParser, file: object, directory: object) -> None:
    """Complete every argument that is a path, of this parser and its subparsers, as one."""
    for action in parser._actions:
        if action.type is Path:
            action.complete = directory if action.metavar == "DIR" else file  # type: ignore[attr-defined]  # shtab's
        for below in action.choices.values() if isinstance(action.choices, dict) else ():
            complete_paths(below, file, directory)


def _commands_by_task() -> str:
    """Return the commands as `--help` lists them."""
    lines = []
    for task, commands in TASKS.items():
        lines.append(f"{task}:")
        lines.extend(f"  {name:<13}{help_text}" for name, (_, help_text) in commands.items())
        lines.append("")
    return "\n".join([*lines, "`tessera-conformance COMMAND --help` shows what a command takes."])
