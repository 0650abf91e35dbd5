"""`tessera-reference`: check, print and run programs of the language.

Results go to stdout and to files, diagnostics to stderr. Exit codes: 0 done; 2 bad input (a program that is illegal or
fails while running, inputs that do not fit, files that cannot be read); 3 a legal program beyond this reference.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .graph.execution import InputMismatch, UnknownFunction, describe, execute
from .ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct, render
from .ir.module import Function, Module
from .ir.text import print_module
from .ir.types import Type
from .language import CompiledModule, compile_source
from .numerics.array import Array
from .numerics.environment import check_environment
from .numerics.errors import NumericsFailure

BAD_INPUT, UNSUPPORTED = 2, 3

FILES_HELP = """
files:
  Inputs and outputs are .npy files. An input's numbers must be values of the parameter's dtype: fp8 and bf16, which
  numpy lacks, are given as any float array that they represent exactly, and are written as float32. NAME:bits=FILE
  reads or writes storage codes instead, as unsigned integers of the dtype's width.
  With one result, --output may call it anything; several are called r0, r1, ... in order.
  FILE may be - for a program on standard input.
"""


class BadInput(Exception):
    """Something the user gave cannot be used; the message says what."""


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
    run = _command(subparsers, "run", _run, "run a function on .npy files", epilog=FILES_HELP)
    run.add_argument("--function", metavar="NAME", help="the function, or MODULE.NAME; needed when there are several")
    run.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="one parameter's value")
    run.add_argument("--output", action="append", default=[], metavar="NAME=FILE.npy", help="where a result goes")
    run.add_argument(
        "--level",
        choices=("strict", "deterministic", "fast"),
        default="strict",
        help="numerics level; the reference computes the strict bits under each",
    )
    _command(subparsers, "verify", _verify, "check a program and say what is wrong with it")
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
    compiled = _compile(options)
    module, function = _select(compiled, options.function)
    outputs = [_assignment(text) for text in options.output]
    _check_outputs(outputs, function)
    inputs = {name: _load(name, path, bits, function) for name, path, bits in _inputs(options.input)}
    results = execute(module, function.name, inputs)
    for name, path, bits in outputs:
        index = 0 if len(results) == 1 else int(name.removeprefix("r"))
        _save(results[index], path, bits)
    if not outputs:
        for index, array in enumerate(results):
            print(f"r{index} {describe(array)}\n{array.values}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    compiled = _compile(options)
    count = sum(len(module.functions) for module in compiled.modules)
    print(f"{options.file}: ok, {count} function{'s' * (count != 1)}")
    return 0


def _lower(options: argparse.Namespace) -> int:
    for module in _compile(options).modules:
        print(print_module(module, export=options.export), end="")
    return 0


def _serve(options: argparse.Namespace) -> int:
    from tessera_conformance.server import serve  # only this command needs the harness

    from .adapter import make

    return serve(make())


def _compile(options: argparse.Namespace) -> CompiledModule:
    """Read and compile the program; its text is kept for showing diagnostics."""
    try:
        if options.file == "-" and sys.stdin is None:
            raise BadInput("standard input is closed")
        data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        options.source_text = data.decode("utf-8")
    except OSError as error:
        raise BadInput(f"{options.file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{options.file}: not UTF-8 text (byte {error.start})") from error
    compiled = compile_source(options.source_text, options.file)
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


def _assignment(text: str) -> tuple[str, str, bool]:
    """`NAME=FILE` or `NAME:bits=FILE`."""
    name, equals, path = text.partition("=")
    plain = name.removesuffix(":bits")
    if not (plain and equals and path):
        raise BadInput(f"{text!r} is not of the form NAME=FILE.npy")
    return plain, path, plain != name


def _inputs(texts: Sequence[str]) -> list[tuple[str, str, bool]]:
    given = [_assignment(text) for text in texts]
    names = [name for name, _, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"input {name} is given twice")
    return given


def _check_outputs(outputs: Sequence[tuple[str, str, bool]], function: Function) -> None:
    count = len(function.results)
    names = [f"r{index}" for index in range(count)]
    for name, _, bits in outputs:
        if count == 0 or (count > 1 and name not in names):
            raise BadInput(f"output {name}: {function.name} returns {', '.join(names) or 'nothing'}")
        if bits and function.results[0 if count == 1 else names.index(name)].dtype.storage_bytes > 8:
            raise BadInput(f"output {name}: there are no integers as wide as its codes")
    if count == 1 and len(outputs) > 1:
        raise BadInput(f"{function.name} returns one value, and several outputs are asked for")


def _load(name: str, path: str, bits: bool, function: Function) -> Array:
    """An input file as an array of its parameter's dtype."""
    try:
        values = np.load(path, allow_pickle=False)
    except OSError as error:
        raise BadInput(f"input {name}: {path}: {error.strerror or error}") from error
    except MemoryError as error:
        raise BadInput(f"input {name}: {path} does not fit into memory") from error
    except (
        Exception
    ) as error:  # what numpy raises here depends on how the file is broken: zipfile's, tokenize's, its own
        raise BadInput(f"input {name}: {path} is no .npy file of numbers") from error
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biufc":
        raise BadInput(f"input {name}: {path} is no .npy file of numbers")
    parameter = next((parameter for parameter in function.parameters if parameter.name == name), None)
    if parameter is None:
        names = ", ".join(parameter.name for parameter in function.parameters)
        raise BadInput(f"input {name} is not a parameter; {function.name} takes {names or 'none'}")
    return (_from_codes if bits else _from_values)(name, values, parameter.type)


def _from_codes(name: str, values: np.ndarray[Any, Any], expected: Type) -> Array:
    dtype = expected.dtype
    if values.dtype.kind != "u" or values.dtype.itemsize != dtype.storage_bytes:
        wanted = f"codes of {expected} as uint{8 * dtype.storage_bytes}"
        raise BadInput(f"input {name}: expected {wanted}, the file holds {_held(values)}")
    little = values.astype(values.dtype.newbyteorder("<"))
    return Array.from_bits(dtype, values.shape, np.ascontiguousarray(little).tobytes())


def _from_values(name: str, values: np.ndarray[Any, Any], expected: Type) -> Array:
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}
    if kinds[values.dtype.kind] != expected.dtype.kind:
        raise BadInput(f"input {name}: expected {expected}, the file holds {_held(values)}")
    try:
        return Array.checked(expected.dtype, values)
    except NumericsFailure as failure:
        remedy = f"round it first, or give codes with {name}:bits="
        raise BadInput(f"input {name}: {failure}, and the file holds {_held(values)}; {remedy}") from failure


def _held(values: np.ndarray[Any, Any]) -> str:
    return f"{values.dtype} of shape {list(values.shape)}"


def _save(array: Array, path: str, bits: bool) -> None:
    """A result as values that numpy has a dtype for, or as storage codes."""
    if bits:
        codes = np.frombuffer(array.to_bits(), f"<u{array.dtype.storage_bytes}").reshape(array.shape)
        written: np.ndarray[Any, Any] = codes
    else:
        written = array.values.astype(np.float16) if array.dtype.name == "fp16" else array.values
    try:
        with Path(path).open("wb") as file:
            np.save(file, np.ascontiguousarray(written).reshape(array.shape), allow_pickle=False)
    except OSError as error:
        raise BadInput(f"output {path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
