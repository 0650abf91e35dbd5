"""The terminal of a command: errors in one sentence, and its interruption by Ctrl-C or SIGTERM."""

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

# Known names similar to an unknown one, as suggestions.


def meant(name: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean A or B?` if a known name is similar; the second if it is about as similar."""
    names = difflib.get_close_matches(name, list(candidates), n=2, cutoff=0.6)
    ratios = [difflib.SequenceMatcher(None, word, name).ratio() for word in names]
    nearest = [candidate for candidate, ratio in zip(names, ratios, strict=True) if ratio > ratios[0] - 0.05]
    return f"; did you mean {' or '.join(nearest)}?" if nearest else ""


# Foreign text for a terminal: without escape sequences and characters that reorder the display.


HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
)
"""Control and format characters, but for the line feed and the tab, as a class of a regular expression."""
_HIDDEN = re.compile(f"[{HIDDEN}]")


TAIL_LINES = 12
"""The number of lines shown of an implementation's output."""


def quoted_tail(text: str, indent: str = "  ") -> list[str]:
    """Return the last lines of another program's output, each behind a bar."""
    return [f"{indent}| {line}" for line in text.strip().splitlines()[-TAIL_LINES:]]


def visible(text: str) -> str:
    """Return the text with each hidden character written as Python escapes it."""
    return escaped(_HIDDEN, text)


def escaped(unwanted: re.Pattern[str], text: str) -> str:
    """Return the text with each character that a rendering cannot show written as Python escapes it."""
    return unwanted.sub(lambda found: ascii(found[0])[1:-1], text)


# Foreseen errors of a command, one sentence on standard error and exit code 2; and the problems that it finds.
#
# Every message has one form: `error: WHERE: what is wrong; what was expected; what to do`.


Handler = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

UNANSWERABLE = 2
"""The exit code of a command that cannot be carried out."""
UNREAD = 141
"""The exit code of a command whose reader, such as `head`, has closed the pipe: that of a process ended by SIGPIPE."""
_OF_ARGPARSE = re.compile(r"(?:[^\n]*: error: )?(?:argument (?P<where>[^:]+): )?(?P<what>.*)")
_CHOICE = re.compile(r"invalid choice: '?(?P<value>.*?)'? \((?:choose from )?(?P<known>.*)\)")
_VALUE = re.compile(r"invalid \w+ value: (?P<value>.*)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<value>.*)")


def error_text(where: str, what: str, expected: str = "", do: str = "") -> str:
    """Return one message: `WHERE: what; expected ...; do`, without empty parts."""
    return "; ".join(filter(None, [f"{where}: {what}" if where else what, expected and f"expected {expected}", do]))


def print_error(message: object) -> None:
    """Print a message in the form of all errors, on standard error."""
    print(f"error: {visible(str(message))}", file=sys.stderr)


def forget_output() -> None:
    """Discard buffered output, which cannot be written and must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reporting_errors(handler: Handler, *foreseen: type[Exception]) -> Handler:
    """Return the handler, which prints the foreseen errors and those of files instead of raising them."""

    @functools.wraps(handler)
    def handle(arguments: argparse.Namespace) -> int:
        try:
            return handler(arguments)
        except foreseen as error:
            print_error(error)
        except BrokenPipeError:
            raise  # the reader has closed the pipe; `cli.main` ends quietly
        except OSError as error:
            print_error(error_text(str(error.filename or "output"), str(error.strerror)))
        return UNANSWERABLE

    return handle


def print_problems(problems: Iterable[Exception]) -> None:
    """Print the problems that a command found, on standard output."""
    for problem in problems:
        print(f"error: {visible(str(problem))}")


class CommandParser(argparse.ArgumentParser):
    """A parser of arguments whose errors have the form of all others, without the usage before them."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end with exit code 2."""
        print_error(of_argparse(message, self.prog, self._option_string_actions))
        self.exit(UNANSWERABLE)


def of_argparse(message: str, program: str, known_options: Iterable[str] = ()) -> str:
    """Return an error of argparse, or of pytest through it, in the form of all others."""
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
    """Return the names as a choice: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


# Ctrl-C and SIGTERM: the first of them interrupts, and later ones do not disturb the clean-up.


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread when a signal arrives; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)

    @property
    def exit_code(self) -> int:
        """Return the exit code that a shell reports for a process ended by the signal."""
        return 128 + self.number


def interrupt_once() -> Callable[[], None]:
    """Let the first of the signals raise `Interrupted`, and ignore the others; return the function that undoes this.

    It works in the main thread of a process only; elsewhere nothing happens.
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
