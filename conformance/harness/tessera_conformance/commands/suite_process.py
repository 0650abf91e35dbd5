"""The process of `tessera-conformance run`: pytest, its number of processes, and errors in one form."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import closing
from typing import Any

import pytest

from tessera_conformance.cases import parse_shard, suite_directory
from tessera_conformance.executor.cases import seconds_of_case
from tessera_conformance.options import add_options
from tessera_conformance.protocol import Fault
from tessera_conformance.registry.cases import current_index
from tessera_conformance.selection import NothingChosen, place_of
from tessera_conformance.session import Session
from tessera_conformance.terminal import UNANSWERABLE, UNREAD, forget_output, of_argparse, print_error
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate

# The number of processes of a run without `-n`: that of the processors, if the run is long and the implementation
# declares that several processes of it may answer at the same time.


LONG = 60.0
"""The least seconds of a run that several processes do; another process takes about ten until its first case."""
MOST = 8
"""The most processes; each of them has the whole suite in its memory."""
ALONE = (
    *("usepdb", "collectonly", "list_cases", "reproduce", "executor", "maxfail", "numprocesses"),
    *("cases", "clauses", "features", "failed", "keyword", "markexpr", "lf", "stepwise"),
)
"""Options with which a run is short, or stays in one process."""


def processes(config: pytest.Config) -> int:
    """Return the number of processes; 0 if the run stays in one."""
    option = config.option
    cores = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST)
    if cores < 2 or not config.pluginmanager.hasplugin("xdist"):
        return 0
    if any(getattr(option, name, None) not in (None, "", 0, False, []) for name in ALONE) or option.numprocesses == 0:
        return 0
    if getattr(option, "dist", "no") != "no" or _seconds(config) < LONG:
        return 0
    return cores if _allows(option) else 0


def _seconds(config: pytest.Config) -> float:
    """Return the approximate seconds of the run in one process."""
    try:
        count = parse_shard(config.option.shard)[1] if config.option.shard else 1
        of_the_suite = config.args_source is not pytest.Config.ArgsSource.ARGS
        named = [] if of_the_suite else [place_of(str(one), config.invocation_params.dir) for one in config.args]
    except (NothingChosen, ValueError):
        return 0.0  # the run reports it
    whole = not named or any(place.path == suite_directory() for place in named)
    index = current_index()
    if index is None:
        return float("inf") if whole else 0.0
    nodes = (name for name, case in index.items() if whole or any(place.holds(case.node) for place in named))
    return sum(map(seconds_of_case, nodes)) / count


def _allows(option: Any) -> bool:
    """True if several processes of the implementation may answer at the same time: the Hello has `parallel`."""
    if option.impl == "reference":
        return True
    try:
        transport = locate(option.impl, option.compiler)
        with closing(Session(transport, option.deadline, option.start_deadline)) as session:
            hello = session.open()
    except ImplementationUnavailable:
        return False  # the run reports it
    return not isinstance(hello, Fault) and hello.message.get("parallel") is True


# The process of `tessera-conformance run`: pytest, whose errors of arguments have the form of all other errors.


PROGRAM = "tessera-conformance run"
OF_PYTEST = "--lf --last-failed --list --maxfail --exitfirst --collect-only --numprocesses --verbose"
"""Options of pytest that runs often use."""


class SuiteProcess:
    """A plugin that reports wrong arguments of pytest in one sentence, and starts several processes for a long run."""

    def __init__(self) -> None:
        self._processes = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, object, object]:
        """Let several processes do a long run if the implementation allows it."""
        self._processes = processes(config)
        if self._processes:
            config.option.numprocesses, config.option.dist = self._processes, "worksteal"
        try:
            return (yield)
        except BrokenPipeError:
            forget_output()
            return UNREAD

    def pytest_sessionstart(self) -> None:
        """Print the number of processes, once nothing forbids them."""
        if self._processes:
            print(f"{self._processes} processes share the cases out; -n0 leaves them to one", file=sys.stderr)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        """Print the wrong argument in one sentence."""
        try:
            return (yield)
        except pytest.UsageError as error:
            for message in map(str, error.args):
                print_error(of_argparse(message, PROGRAM, known_options()) if ": error: " in message else message)
            sys.exit(UNANSWERABLE)


def known_options() -> list[str]:
    """Return the long options of the suite, and those of pytest that runs often use."""
    names = OF_PYTEST.split()
    add_options(lambda *flags, **settings: names.extend(flags))
    return names


def main() -> int:
    """Run pytest; the reader of its output may end before the output does."""
    code = int(pytest.main(sys.argv[1:], plugins=[SuiteProcess()]))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        forget_output()
        return UNREAD
    return code


if __name__ == "__main__":
    sys.exit(main())
