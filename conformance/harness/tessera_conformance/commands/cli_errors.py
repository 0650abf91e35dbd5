"""Foreseen errors of a command, one sentence on standard error and exit code 2; and the problems that it finds."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterable
from typing import TypeAlias

from tessera_conformance.terminal_text import visible

Handler = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

UNANSWERABLE = 2
"""The exit code of a question that cannot be answered."""


def reporting_errors(handler: Handler, *foreseen: type[Exception]) -> Handler:
    """The handler, with the foreseen errors and those of files printed instead of raised."""

    @functools.wraps(handler)
    def handle(arguments: argparse.Namespace) -> int:
        try:
            return handler(arguments)
        except foreseen as error:
            print(f"error: {visible(str(error))}", file=sys.stderr)
        except BrokenPipeError:
            raise  # the reader of our output has seen enough; `cli.main` ends quietly
        except OSError as error:
            print(f"error: {visible(str(error.filename or 'output'))}: {error.strerror}", file=sys.stderr)
        return UNANSWERABLE

    return handle


def print_problems(problems: Iterable[Exception]) -> None:
    """The problems that a command found, on standard output."""
    for problem in problems:
        print(f"error: {visible(str(problem))}")
