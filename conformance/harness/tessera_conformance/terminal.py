"""The terminal of a command: errors in one sentence, and its end by Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn, TypeAlias

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
