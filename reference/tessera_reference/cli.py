"""`tessera-reference`: check, format, print, explain and run programs of the language.

Results go to stdout and to files, diagnostics to stderr. Exit codes: 0 done; 2 bad input or a tool that is not
installed; 3 a legal program beyond this reference. Bad input is a program that is illegal or fails while running,
inputs that do not fit, or files that cannot be read. `fmt --check` exits with 1 for a file that is not in canonical
form, `compare-levels` with 1 for levels that differ.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from .abi.status import Failure
from .commands import register_all
from .commands.program import BadInput, show
from .graph.execution import UnknownFunction
from .graph.interpreter import InputMismatch
from .ir.diagnostics import MissingTool, Rejection, UnsupportedConstruct, did_you_mean
from .ir.targets import OtherVendor
from .numerics.formats import NumericsFailure

BAD_INPUT, UNSUPPORTED = 2, 3
_CHOICE = re.compile(r"argument (?P<where>[^:]+): invalid choice: '?(?P<value>.*?)'? \(choose from (?P<known>.*)\)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = _Parser(prog="tessera-reference", description=(__doc__ or "").partition("\n\n")[0])
    arguments = sys.argv[1:] if argv is None else argv
    register_all(parser.add_subparsers(dest="command", required=True, metavar="COMMAND"), arguments)
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names that the terminal cannot show must not fail
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except Rejection as rejection:
        show(rejection.diagnostics, options.source_text)
        return BAD_INPUT
    except MissingTool as missing:
        print(f"error: {missing.tool}: not installed; this needs it; {missing.install}", file=sys.stderr)
        return BAD_INPUT
    except UnsupportedConstruct as unsupported:
        print(f"unsupported: {unsupported}", file=sys.stderr)
        return UNSUPPORTED
    except (BadInput, Failure, OtherVendor, InputMismatch, UnknownFunction, NumericsFailure) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _forget_output()
        return 141
    except OSError as error:
        _forget_output()
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    return code


class _Parser(argparse.ArgumentParser):
    """A parser whose errors have the form of all others, and name a choice that is near."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end with exit code 2."""
        wrong = _CHOICE.fullmatch(message)
        if wrong is not None:
            choices = [name.strip("' ") for name in wrong["known"].split(",")]
            where = self.prog if wrong["where"] == "COMMAND" else wrong["where"]
            hint = did_you_mean(wrong["value"], choices) or f"`{self.prog} --help` shows what it takes"
            message = f"{where}: unknown value {wrong['value']}; expected one of {', '.join(choices)}; {hint}"
        else:
            message = f"{self.prog}: {message}; `{self.prog} --help` shows what it takes"
        print(f"error: {message}", file=sys.stderr)
        self.exit(BAD_INPUT)


def _forget_output() -> None:
    """Discard buffered output, which cannot be written and must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
