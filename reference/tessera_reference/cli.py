"""`tessera-reference`: check, format, print, explain and run programs of the language.

Results go to stdout and to files, diagnostics to stderr. Exit codes: 0 done; 2 bad input (a program that is illegal or
fails while running, inputs that do not fit, files that cannot be read); 3 a legal program beyond this reference; of
`fmt --check` 1 for a file that is not in canonical form, of `compare-levels` 1 for levels that differ.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .abi.fatbin.container import MAGIC
from .abi.status import Failure
from .commands.array_files import BadInput
from .commands.explain import event_tracer, explain, tracer
from .commands.fatbin import add_compile_options, add_explain_options, compile_image, explain_image, inspect_image
from .commands.levels import (
    add_lowering_options,
    add_shape_options,
    compare,
    lowering_of,
    selected,
    show_lowered,
    target_named,
)
from .commands.run import How, run
from .graph.execution import InputMismatch, UnknownFunction
from .ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct, render
from .ir.targets import DEFAULT
from .language import CompiledModule, compile_source, decode, format_program, parse, print_tree
from .levels.emission import TEXTS, OtherVendor
from .levels.execution import EXECUTIONS, LEVELS, MissingTool
from .levels.texts import read_at
from .numerics.environment import check_environment
from .numerics.errors import NumericsFailure

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
    except (UnsupportedConstruct, MissingTool) as unsupported:
        print(f"unsupported: {unsupported}", file=sys.stderr)
        return UNSUPPORTED
    except (BadInput, Failure, OtherVendor, InputMismatch, UnknownFunction, NumericsFailure) as problem:
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
        "--at", choices=EXECUTIONS, default="graph", help="the level of IR that is executed, or machine code"
    )
    add_lowering_options(execute)
    execute.add_argument(
        "--trace",
        action="store_true",
        help="print each operation as it is executed, with a digest of its bits; at schedule what is done to each tile",
    )
    verify = _command(subparsers, "verify", _verify, "check a program, or IR text, and say what is wrong with it")
    verify.add_argument("--ir", choices=LEVELS, metavar="LEVEL", help="the file is IR of this level")
    verify.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"what kernels are for; {DEFAULT} unless given"
    )
    fmt = _command(subparsers, "fmt", _fmt, "print a program in canonical form")
    fmt.add_argument(
        "--check", action="store_true", help="print nothing; exit with 1 if the file is not in canonical form"
    )
    fmt.add_argument("--write", action="store_true", help="change the file in place")
    show = _command(subparsers, "print", _print, "print a program's syntax tree or its IR")
    show.add_argument("--level", choices=("ast", *LEVELS), default="graph", help="what to print")
    add_lowering_options(show)
    add_shape_options(show)
    told = _command(
        subparsers, "explain", _explain, "say what a program's operations are, or what was decided about a module image"
    )
    add_explain_options(told)
    _add_image_commands(subparsers)
    lower = _command(subparsers, "lower", _lower, "print a program's IR, or what it becomes for a vendor's tools")
    lower.add_argument("--to", choices=(*LEVELS, *TEXTS), default="graph", help="the level, or the kind of text")
    lower.add_argument("--export", action="store_true", help="types as mlir-opt takes them, with locations")
    lower.add_argument("--dump-dir", metavar="DIR", help="write a file for every level on the way instead")
    add_lowering_options(lower)
    add_shape_options(lower)
    levels = _command(
        subparsers, "compare-levels", _compare, "run a function at every level, and find where they differ"
    )
    levels.add_argument("function", metavar="FUNCTION", help="NAME or MODULE.NAME")
    levels.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="one parameter's value")
    levels.add_argument("--native", action="store_true", help="the machine code of this machine too")
    add_lowering_options(levels)

    serve = subparsers.add_parser("serve", help="answer the conformance protocol on standard input and output")
    serve.set_defaults(run=_serve, source_text="")


def _add_image_commands(subparsers: Any) -> None:
    compile_ = _command(subparsers, "compile", _compile_image, "compile a program to a module image, a fatbin")
    add_compile_options(compile_)
    _command(subparsers, "inspect", _inspect, "say what a module image holds")


def _command(subparsers: Any, name: str, run: Any, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="a program of the language")
    parser.set_defaults(run=run, source_text="")
    return parser


def _run(options: argparse.Namespace) -> int:
    check_environment()
    lowering = lowering_of(options)
    module, function = selected(_compile(options).modules, options.function)
    trace = event_tracer if options.at == "schedule" else tracer
    how = How(options.at, lowering.target, lowering.options, trace(print) if options.trace else None)
    run(module, function, options.input, options.output, how)
    return 0


def _verify(options: argparse.Namespace) -> int:
    if options.ir is not None:
        modules = read_at(options.ir, _read(options), target_named(options.target), options.file)
        _show_count(options.file, sum(len(module.functions) for module in modules))
        return 0
    compiled = _compile(options)
    _show_count(options.file, sum(len(module.functions) for module in compiled.modules))
    return 0


def _show_count(file: str, count: int) -> None:
    print(f"{file}: ok, {count} function{'s' * (count != 1)}")


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
    show_lowered(_compile(options).modules, options.level, options)
    return 0


def _explain(options: argparse.Namespace) -> int:
    data = _bytes(options)
    if data.startswith(MAGIC):
        print(explain_image(data, options), end="")
        return 0
    for module in _compiled(decode(data, options.file), options).modules:
        print(*explain(module), sep="\n")
    return 0


def _compile_image(options: argparse.Namespace) -> int:
    text = _read(options)
    compile_image(text, _compiled(text, options) if options.at == "dsl" else None, options)
    return 0


def _inspect(options: argparse.Namespace) -> int:
    print(*inspect_image(_bytes(options)), sep="\n")
    return 0


def _lower(options: argparse.Namespace) -> int:
    show_lowered(_compile(options).modules, options.to, options)
    return 0


def _compare(options: argparse.Namespace) -> int:
    check_environment()
    return compare(_compile(options).modules, options)


def _serve(options: argparse.Namespace) -> int:
    from tessera_conformance.server import serve  # only this command needs the harness

    from .adapter import make

    return serve(make())


def _read(options: argparse.Namespace) -> str:
    """Read the program."""
    return decode(_bytes(options), options.file)


def _bytes(options: argparse.Namespace) -> bytes:
    """Read the file; its text is kept for showing diagnostics."""
    try:
        if options.file == "-" and sys.stdin is None:
            raise BadInput("standard input is closed")
        data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise BadInput(f"{options.file}: {error.strerror}") from error
    options.source_text = data.decode("utf-8", errors="replace")
    return data


def _compile(options: argparse.Namespace) -> CompiledModule:
    """Read and compile the program, and show what it is warned about."""
    return _compiled(_read(options), options)


def _compiled(text: str, options: argparse.Namespace) -> CompiledModule:
    compiled = compile_source(text, options.file)
    _show(compiled.warnings, options.source_text)
    return compiled


def _show(diagnostics: Sequence[Diagnostic], source: str) -> None:
    for diagnostic in diagnostics:
        print(render(diagnostic, source), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
