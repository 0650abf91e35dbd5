"""The FILE that most subcommands are about: its parser, its text, and the program compiled from it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..ir.diagnostics import Diagnostic, render
from ..language import CompiledModule, compile_source, decode
from .array_files import BadInput

Run = Callable[[argparse.Namespace], int]


def file_command(subparsers: Any, name: str, run: Run, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a command that reads a FILE."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="a program of the language")
    parser.set_defaults(run=run, source_text="")
    return parser


def read_bytes(options: argparse.Namespace) -> bytes:
    """Read the file; its text is kept for showing diagnostics."""
    try:
        if options.file == "-" and sys.stdin is None:
            raise BadInput("standard input is closed")
        data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise BadInput(f"{options.file}: {error.strerror}") from error
    options.source_text = data.decode("utf-8", errors="replace")
    return data


def read_text(options: argparse.Namespace) -> str:
    """Read the program."""
    return decode(read_bytes(options), options.file)


def compile_file(options: argparse.Namespace) -> CompiledModule:
    """Read and compile the program, and show what it is warned about."""
    return compile_text(read_text(options), options)


def compile_text(text: str, options: argparse.Namespace) -> CompiledModule:
    """Compile the text of the file, and show what it is warned about."""
    compiled = compile_source(text, options.file)
    show(compiled.warnings, options.source_text)
    return compiled


def show(diagnostics: Sequence[Diagnostic], source: str) -> None:
    """Write diagnostics to stderr."""
    for diagnostic in diagnostics:
        print(render(diagnostic, source), file=sys.stderr)
