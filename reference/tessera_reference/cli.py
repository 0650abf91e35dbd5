"""`tessera-reference`: check, format, print, explain and run programs of the language.

Results go to stdout and to files, diagnostics to stderr. Exit codes: 0 done; 2 bad input (a program that is illegal or
fails while running, inputs that do not fit, files that cannot be read); 3 a legal program beyond this reference; of
`fmt --check` 1 for a file that is not in canonical form.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .array_files import BadInput
from .explain import explain, tracer
from .graph.execution import InputMismatch, UnknownFunction
from .ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct, render
from .ir.module import Function, Module
from .ir.text import print_module
from .language import CompiledModule, compile_source, decode, format_program, parse, print_tree
from .numerics.environment import check_environment
from .numerics.errors import NumericsFailure
from .run_files import run

BAD_INPUT, UNSUPPORTED = 2, 3

FILES_HELP = """
files:
  Inputs and outputs are .npy files. An input's numbers must be values of the parameter's dtype: fp8 and bf16, which
  numpy lacks, are given as any float array that they represent exactly, and are written as float32. NAME:bits=FILE
  reads or writes storage codes instead, as unsigned integers of the dtype's width.
  With one result, --output may call it anything; several are called r0, r1, ... in order, those of a kernel by the
  names of its tensor parameters.
  On a mesh, NAME@RANK=FILE is the input or output of one rank, counted row-major; an input without a rank is that of
  all others, an output without one is rank 0's.
  FILE may be - for a program on standard input.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = argparse.ArgumentParser(prog="tessera-reference", description=(__doc__ or "").partition("\n\n")[0])
    add_commands(parser.add_subparsers(dest="command", required=True, metavar="COMMAND"))
    options = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names that the terminal cannot show are no failure
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except Rejection as rejection:
        _show(rejection.diagnostics, options.source_text)
        return BAD_INPUT
    except UnsupportedConstruct as unsupported:
        print(f"unsupported: {unsupported}", file=sys.stderr)
        return UNSUPPORTED
    except (BadInput, InputMismatch, UnknownFunction, NumericsFailure) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _forget_output()
        return 141
    except OSError as error:
        _forget_output()
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    return code


def _forget_output() -> None:
    """What is still buffered cannot be written, and must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def add_commands(subparsers: Any) -> None:
    """Register the commands; each sets `run`, a function of the parsed options that returns the exit code."""
    execute = _command(subparsers, "run", _run, "run a function on .npy files", epilog=FILES_HELP)
    execute.add_argument(
        "--function", metavar="NAME", help="the function, or MODULE.NAME; needed when there are several"
    )
    execute.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="one parameter's value")
    execute.add_argument("--output", action="append", default=[], metavar="NAME=FILE.npy", help="where a result goes")
    execute.add_argument(
        "--level",
        choices=("strict", "deterministic", "fast"),
        default="strict",
        help="numerics level; the reference computes the strict bits under each",
    )
    execute.add_argument(
        "--trace", action="store_true", help="print each operation as it is executed, with a digest of its bits"
    )
    _command(subparsers, "verify", _verify, "check a program and say what is wrong with it")
    fmt = _command(subparsers, "fmt", _fmt, "print a program in canonical form")
    fmt.add_argument(
        "--check", action="store_true", help="print nothing; exit with 1 if the file is not in canonical form"
    )
    fmt.add_argument("--write", action="store_true", help="change the file in place")
    show = _command(subparsers, "print", _print, "print a program's syntax tree or its IR")
    show.add_argument("--level", choices=("ast", "graph"), default="graph", help="what to print")
    _command(subparsers, "explain", _explain, "say what a program's operations are")
    lower = _command(subparsers, "lower", _lower, "print a program's IR")
    lower.add_argument("--to", choices=("graph",), default="graph", help="the IR level")
    lower.add_argument("--export", action="store_true", help="types as mlir-opt takes them, with locations")

    serve = subparsers.add_parser("serve", help="answer the conformance protocol on standard input and output")
    serve.set_defaults(run=_serve, source_text="")


def _command(subparsers: Any, name: str, run: Any, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="a program of the language")
    parser.set_defaults(run=run, source_text="")
    return parser


def _run(options: argparse.Namespace) -> int:
    check_environment()
    module, function = _select(_compile(options), options.function)
    run(module, function, options.input, options.output, tracer(print) if options.trace else None)
    return 0


def _verify(options: argparse.Namespace) -> int:
    compiled = _compile(options)
    count = sum(len(module.functions) for module in compiled.modules)
    print(f"{options.file}: ok, {count} function{'s' * (count != 1)}")
    return 0


def _fmt(options: argparse.Namespace) -> int:
    formatted, text = format_program(_read(options), options.file), options.source_text
    if options.check:
        return 0 if formatted == text else 1
    if not options.write:
        print(formatted, end="")
        return 0
    if options.file == "-":
        raise BadInput("--write needs a file, not standard input")
    try:
        Path(options.file).write_text(formatted, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{options.file}: {error.strerror}") from error
    return 0


def _print(options: argparse.Namespace) -> int:
    if options.level == "ast":
        print(print_tree(parse(_read(options), options.file)), end="")
        return 0
    for module in _compile(options).modules:
        print(print_module(module), end="")
    return 0


def _explain(options: argparse.Namespace) -> int:
    for module in _compile(options).modules:
        print(*explain(module), sep="\n")
    return 0


def _lower(options: argparse.Namespace) -> int:
    for module in _compile(options).modules:
        print(print_module(module, export=options.export), end="")
    return 0


def _serve(options: argparse.Namespace) -> int:
    from tessera_conformance.server import serve  # only this command needs the harness

    from .adapter import make

    return serve(make())


def _read(options: argparse.Namespace) -> str:
    """Read the program; its text is kept for showing diagnostics."""
    try:
        if options.file == "-" and sys.stdin is None:
            raise BadInput("standard input is closed")
        data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise BadInput(f"{options.file}: {error.strerror}") from error
    options.source_text = data.decode("utf-8", errors="replace")
    return decode(data, options.file)


def _compile(options: argparse.Namespace) -> CompiledModule:
    """Read and compile the program, and show what it is warned about."""
    compiled = compile_source(_read(options), options.file)
    _show(compiled.warnings, options.source_text)
    return compiled


def _show(diagnostics: Sequence[Diagnostic], source: str) -> None:
    for diagnostic in diagnostics:
        print(render(diagnostic, source), file=sys.stderr)


def _select(compiled: CompiledModule, name: str | None) -> tuple[Module, Function]:
    """The function asked for, or the only one."""
    found = [(module, function) for module in compiled.modules for function in module.functions.values()]
    wanted = [(m, f) for m, f in found if name in (None, f.name, f"{m.name}.{f.name}")]
    if len(wanted) != 1:
        names = ", ".join(f"{module.name}.{function.name}" for module, function in found) or "none"
        problem = f"no function {name!r}" if name and not wanted else "which function? use --function"
        raise BadInput(f"{problem}; there is {names}")
    return wanted[0]


if __name__ == "__main__":
    sys.exit(main())
