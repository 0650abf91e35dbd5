"""The process of `tessera-conformance run`: pytest, whose errors of arguments have the form of all other errors."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from tessera_conformance.commands.sharing import processes
from tessera_conformance.terminal.errors import UNANSWERABLE, UNREAD, forget_output, of_argparse, print_error

PROGRAM = "tessera-conformance run"
_KNOWN = (
    "--lf",
    "--last-failed",
    "--list",
    "--maxfail",
    "--exitfirst",
    "--collect-only",
    "--numprocesses",
    "--verbose",
)


class SuiteProcess:
    """A plugin that ends the process with one sentence where pytest cannot read its arguments, and shares a run out."""

    def __init__(self) -> None:
        self._processes = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, object, object]:
        """Let several processes do a long run where the implementation allows it."""
        self._processes = processes(config)
        if self._processes:
            config.option.numprocesses, config.option.dist = self._processes, "worksteal"
        try:
            return (yield)
        except BrokenPipeError:
            forget_output()
            return UNREAD

    def pytest_sessionstart(self) -> None:
        """Say that the run is shared out, once nothing forbids it."""
        if self._processes:
            print(f"{self._processes} processes share the cases out; -n0 leaves them to one", file=sys.stderr)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        """Say in one sentence which argument is wrong."""
        try:
            return (yield)
        except pytest.UsageError as error:
            for message in map(str, error.args):
                print_error(of_argparse(message, PROGRAM, known_options()) if ": error: " in message else message)
            sys.exit(UNANSWERABLE)


def known_options() -> list[str]:
    """The long options of the suite, and those of pytest that a run is often given."""
    from tessera_conformance.options import add_options

    names: list[str] = [*_KNOWN]
    add_options(lambda *flags, **settings: names.extend(flags))
    return names


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:], plugins=[SuiteProcess()]))
