"""The terminal of a command: errors in one sentence, the progress of a run, and its end by Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import pytest

# Known names near one that is unknown: what may have been meant.


def meant(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean A or B?` where a known name is near; the second where it is about as near."""
    names = difflib.get_close_matches(name, list(candidates), n=2, cutoff=0.6)
    ratios = [difflib.SequenceMatcher(None, word, name).ratio() for word in names]
    nearest = [candidate for candidate, ratio in zip(names, ratios, strict=True) if ratio > ratios[0] - 0.05]
    return f"; did you mean {' or '.join(nearest)}?" if nearest else ""


# Text of others as a terminal may get it: no escape sequence, and nothing that turns the order of what is shown.


HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
)
"""Control and format characters, but for the line feed and the tab, as a class of a regular expression."""
_HIDDEN = re.compile(f"[{HIDDEN}]")


TAIL_LINES = 12
"""Lines that are shown of what an implementation wrote."""


def quoted_tail(text: str, indent: str = "  ") -> list[str]:
    """The last lines of what another program wrote, each behind a bar."""
    return [f"{indent}| {line}" for line in text.strip().splitlines()[-TAIL_LINES:]]


def visible(text: str) -> str:
    """The text with each hidden character written as Python escapes it."""
    return escaped(_HIDDEN, text)


def escaped(unwanted: re.Pattern[str], text: str) -> str:
    """The text with each character that a rendering cannot show written as Python escapes it."""
    return unwanted.sub(lambda found: ascii(found[0])[1:-1], text)


# Foreseen errors of a command, one sentence on standard error and exit code 2; and the problems that it finds.
#
# Every message has one form: `error: WHERE: what is wrong; what was expected; what to do`.


Handler = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

UNANSWERABLE = 2
"""The exit code of a question that cannot be answered."""
UNREAD = 141
"""The exit code of a command whose reader, such as `head`, has seen enough: that of a process ended by SIGPIPE."""
_OF_ARGPARSE = re.compile(r"(?:[^\n]*: error: )?(?:argument (?P<where>[^:]+): )?(?P<what>.*)")
_CHOICE = re.compile(r"invalid choice: '?(?P<value>.*?)'? \((?:choose from )?(?P<known>.*)\)")
_VALUE = re.compile(r"invalid \w+ value: (?P<value>.*)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<value>.*)")


def error_text(where: str, what: str, expected: str = "", do: str = "") -> str:
    """One message: `WHERE: what; expected ...; do`, each part where there is one."""
    return "; ".join(filter(None, [f"{where}: {what}" if where else what, expected and f"expected {expected}", do]))


def print_error(message: object) -> None:
    """Print a message in the form of all, on standard error."""
    print(f"error: {visible(str(message))}", file=sys.stderr)


def forget_output() -> None:
    """Discard buffered output, which cannot be written and must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reporting_errors(handler: Handler, *foreseen: type[Exception]) -> Handler:
    """The handler, with the foreseen errors and those of files printed instead of raised."""

    @functools.wraps(handler)
    def handle(arguments: argparse.Namespace) -> int:
        try:
            return handler(arguments)
        except foreseen as error:
            print_error(error)
        except BrokenPipeError:
            raise  # the reader of our output has seen enough; `cli.main` ends quietly
        except OSError as error:
            print_error(error_text(str(error.filename or "output"), str(error.strerror)))
        return UNANSWERABLE

    return handle


def print_problems(problems: Iterable[Exception]) -> None:
    """The problems that a command found, on standard output."""
    for problem in problems:
        print(f"error: {visible(str(problem))}")


class CommandParser(argparse.ArgumentParser):
    """A parser of arguments whose errors have the form of all the others, without the usage before them."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end with exit code 2."""
        print_error(of_argparse(message, self.prog, self._option_string_actions))
        self.exit(UNANSWERABLE)


def of_argparse(message: str, program: str, known_options: Iterable[str] = ()) -> str:
    """Return an error of argparse, or of pytest with it, in the form of all the others."""
    line = next((text for text in message.splitlines() if ": error: " in text), message.strip())
    match = _OF_ARGPARSE.fullmatch(line)
    where, what = (match["where"] or program, match["what"]) if match else (program, line)
    remedy = f"`{program} --help` shows what it takes"
    if choice := _CHOICE.fullmatch(what):
        words = [word.strip("'") for word in choice["known"].split(", ")]
        place = program if where in ("COMMAND", "ACTION") else where
        hint = meant(choice["value"], words).removeprefix("; ")
        return error_text(place, f"unknown {where.lower().strip('-')} {choice['value']}", either(words), hint or remedy)
    if value := _VALUE.fullmatch(what):
        return error_text(where, f"{value['value']} is not what it takes", do=remedy)
    if unknown := _UNKNOWN.fullmatch(what):
        first = unknown["value"].partition("=")[0].split()[0]
        return error_text(
            unknown["value"], "no such argument", do=meant(first, known_options).removeprefix("; ") or remedy
        )
    return error_text(where, what, do=remedy)


def either(names: Iterable[str]) -> str:
    """The names as a choice: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


# Ctrl-C and SIGTERM: the first of them interrupts, and nothing after it disturbs what is still to be put in order.


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Raised where the process is when a signal comes; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)

    @property
    def exit_code(self) -> int:
        """Return the exit code that a shell reports of a process which the signal ended."""
        return 128 + self.number


def interrupt_once() -> Callable[[], None]:
    """Let the first of the signals raise `Interrupted`, and ignore the others; gives what takes that back.

    Only the main thread of a process can ask for it; elsewhere nothing happens.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.signal(number, _interrupt) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def _interrupt(number: int, frame: FrameType | None) -> None:
    for signal_number in SIGNALS:
        signal.signal(signal_number, signal.SIG_IGN)
    raise Interrupted(number)


# An interruption of a run under xdist: its workers are interrupted too.
#
# A signal may come to the first process alone. xdist then asks the workers to end, which they do after the case that
# they are at, and interrupts them 5 s later.


class WorkerInterruption:
    """A plugin of the process that shares out the cases: passes an interruption on to the workers it has started."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Remember the process of a worker of this machine; xdist offers no other way to it."""
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        if node.gateway.spec.popen and process is not None:
            self._processes.append(process)

    def pytest_keyboard_interrupt(self) -> None:
        """Interrupt them; a worker ignores the second of two signals."""
        for process in self._processes:
            process.send_signal(signal.SIGINT)


# Progress of a run by the seconds that its cases take, in the place of pytest's percentage of their number.


LEAST = 1.0
"""Seconds before a rate says anything."""
WIDEST = len(" [100%, 9999/s, 59:59 left]")
PYTEST = len(" [100%]")


class Progress:
    """A plugin that writes `[ 43%, 210/s, 1:10 left]` at the end of each line of dots.

    `seconds` estimates the time of each case by the node ids of the run, or nothing where some test of the run is
    no case. A case that turns out not to apply takes no time, and no longer counts.
    """

    def __init__(
        self,
        config: pytest.Config,
        seconds: Callable[[list[str]], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._seconds_of, self._clock = config, seconds, clock
        self._left: dict[str, float] = {}
        self._done = 0.0
        self._cases = 0
        self._started: float | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin with the cases of this process."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Begin with what the first worker has collected."""
        self._begin(list(ids))

    def _begin(self, nodes: list[str]) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        names = ("_get_progress_information_message", "_screen_width", "_show_progress_info")
        if self._left or reporter is None or not all(hasattr(reporter, name) for name in names):
            return
        self._left = dict(self._seconds_of(nodes))
        if self._left and reporter._show_progress_info == "progress":
            reporter._get_progress_information_message = self.message
            reporter._screen_width -= WIDEST - PYTEST

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a case that ended."""
        if self._started is None:
            self._started = self._clock()
        if report.skipped and not hasattr(report, "wasxfail"):
            self._left[report.nodeid] = 0.0
        if report.when not in ("setup", "call"):
            self._done += self._left.pop(report.nodeid, 0.0)
            self._cases += 1

    def message(self) -> str:
        """Return the share of the cases' time that is done, cases a second, and the time left."""
        left = sum(self._left.values())
        whole = self._done + left
        parts = [f"{int(100 * self._done / whole) if whole and self._left else 100:3d}%"]
        elapsed = self._clock() - self._started if self._started is not None else 0.0
        if elapsed >= LEAST and self._done:
            parts.append(f"{self._cases / elapsed:.0f}/s")
            parts.append(f"{in_minutes(elapsed * left / self._done)} left" if self._left else in_minutes(elapsed))
        return f" [{', '.join(parts)}]"


def in_minutes(seconds: float) -> str:
    """`1:10`; `2 h` where it is hours."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}" if whole < 6000 else f"{whole / 3600:.0f} h"
