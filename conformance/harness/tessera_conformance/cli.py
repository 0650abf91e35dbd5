"""The command `tessera-conformance`: run the suite, read its reports, keep clauses and vectors, prove that it bites."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tessera_conformance import __version__
from tessera_conformance.commands import new_adapter as first_steps
from tessera_conformance.commands import run
from tessera_conformance.commands import serve as serve_command
from tessera_conformance.fuzz import commands as fuzz
from tessera_conformance.interface import generated as interface
from tessera_conformance.probe import commands as probe
from tessera_conformance.registry import commands as clauses
from tessera_conformance.reports import commands as reports
from tessera_conformance.strength import commands as strength
from tessera_conformance.vectors import commands as vectors


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; 0 is success, 1 a failed judgement, 2 a request that cannot be met."""
    parser = argparse.ArgumentParser(prog="tessera-conformance", description=__doc__)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run.add_parser(subparsers)
    reports.add_parsers(subparsers)
    clauses.add_parser(subparsers)
    vectors.add_parser(subparsers)
    strength.add_parser(subparsers)
    probe.add_parser(subparsers)
    fuzz.add_parser(subparsers)
    first_steps.add_parser(subparsers)
    serve_command.add_parser(subparsers)
    interface.add_parser(subparsers)
    parsed, rest = parser.parse_known_args(arguments)
    if rest and not getattr(parsed, "takes_rest", False):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    parsed.rest = rest
    try:
        code = int(parsed.handler(parsed))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _forget_output()
        return 141
    except OSError as error:
        _forget_output()
        print(f"error: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _forget_output() -> None:
    """What is still buffered cannot be written, and must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
