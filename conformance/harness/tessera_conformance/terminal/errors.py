"""Foreseen errors of a command: one sentence on standard error and exit code 2, with near names; safe text."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeAlias

# Known names near one that is unknown: what may have been meant.


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean A or B?` where a known name is near; the second where it is about as near."""
    names = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    ratios = [difflib.SequenceMatcher(None, each, name).ratio() for each in names]
    nearest = [each for each, ratio in zip(names, ratios, strict=True) if ratio > ratios[0] - 0.05]
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
    line = next((each for each in message.splitlines() if ": error: " in each), message.strip())
    found = _OF_ARGPARSE.fullmatch(line)
    where, what = (found["where"] or program, found["what"]) if found else (program, line)
    remedy = f"`{program} --help` shows what it takes"
    if choice := _CHOICE.fullmatch(what):
        known = [each.strip("'") for each in choice["known"].split(", ")]
        place = program if where in ("COMMAND", "ACTION") else where
        hint = meant(choice["value"], known).removeprefix("; ")
        return error_text(place, f"unknown {where.lower().strip('-')} {choice['value']}", either(known), hint or remedy)
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
