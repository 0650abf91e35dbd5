"""The program, arrays and lowering options that most subcommands take (sections 6 to 8)."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.diagnostics import Diagnostic, render
from ..ir.operation import Function, Module
from ..ir.targets import DEFAULT, TARGETS, Target, UnknownTarget, target_of
from ..ir.types import Numeric, Scalar, Tensor, Type
from ..language import CompiledModule, compile_source, decode
from ..levels.execution import LEVELS, Level, Options, for_shapes
from ..numerics.array import Array
from ..numerics.formats import NumericsFailure

MOST_BYTES, MOST_TEXT = 256 << 20, 2 << 20
"""The most bytes of a file, and of a text, for which a parser needs up to two hundred times as much memory."""

# Arrays in .npy files: values of numpy's dtypes, or storage codes as unsigned integers.


class BadInput(Exception):
    """An option or a file of the user cannot be used; the message gives the reason."""


@dataclass(frozen=True)
class Assignment:
    """`NAME=FILE`, `NAME@RANK=FILE`, and each with `:bits` after the name."""

    name: str
    rank: int | None
    bits: bool
    path: str

    @classmethod
    def read(cls, text: str) -> Assignment:
        """Return the assignment in an option. Raises `BadInput`."""
        match = re.fullmatch(r"([^=@:]+)(?:@([0-9]{1,9}))?(:bits)?=(.+)", text)
        if match is None:
            raise BadInput(f"{text!r} is not of the form NAME=FILE.npy")
        return cls(match[1], None if match[2] is None else int(match[2]), match[3] is not None, match[4])

    @property
    def subject(self) -> str:
        """The left side as the user wrote it."""
        return self.name if self.rank is None else f"{self.name}@{self.rank}"


def load_input(assignment: Assignment, function: Function) -> Array:
    """Return an input file as an array of its parameter's dtype. Raises `BadInput`."""
    name = assignment.name
    parameter = next((parameter for parameter in function.parameters if parameter.name == name), None)
    if parameter is None:
        names = ", ".join(parameter.name for parameter in function.parameters)
        raise BadInput(f"input {name} is not a parameter; {function.name} takes {names or 'none'}")
    return load(f"input {name}", assignment, parameter.type)


def load(subject: str, assignment: Assignment, expected: Type) -> Array:
    """Return a file as an array of the dtype of a type. Raises `BadInput`, which names the subject."""
    path = assignment.path
    try:
        with open(path, "rb") as file:  # numpy leaves open a file that it takes for an archive by mistake
            values = np.load(file, allow_pickle=False)
    except OSError as error:
        raise BadInput(f"{subject}: {path}: {error.strerror or error}") from error
    except MemoryError as error:
        raise BadInput(f"{subject}: {path} does not fit into memory") from error
    except Exception as error:  # numpy's exception depends on the fault: from zipfile, tokenize or numpy
        raise BadInput(f"{subject}: {path} is no .npy file of numbers") from error
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biufc":
        raise BadInput(f"{subject}: {path} is no .npy file of numbers")
    if not isinstance(expected, Tensor | Scalar):
        raise BadInput(f"{subject}: no file holds a {expected}")
    if assignment.bits:
        return _from_codes(subject, values, expected)
    return _from_values(subject, assignment.name, values, expected)


def _from_codes(subject: str, values: np.ndarray[Any, Any], expected: Numeric) -> Array:
    dtype = expected.dtype
    if values.dtype.kind != "u" or values.dtype.itemsize != dtype.storage_bytes:
        expected_codes = f"codes of {expected} as uint{8 * dtype.storage_bytes}"
        raise BadInput(f"{subject}: expected {expected_codes}, the file holds {_held(values)}")
    little = values.astype(values.dtype.newbyteorder("<"))
    return Array.from_bits(dtype, values.shape, np.ascontiguousarray(little).tobytes())


def _from_values(subject: str, name: str, values: np.ndarray[Any, Any], expected: Numeric) -> Array:
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}
    if kinds[values.dtype.kind] != expected.dtype.kind:
        raise BadInput(f"{subject}: expected {expected}, the file holds {_held(values)}")
    try:
        return Array.checked(expected.dtype, values)
    except NumericsFailure as failure:
        remedy = f"round it first, or give codes with {name}:bits="
        raise BadInput(f"{subject}: {failure}, and the file holds {_held(values)}; {remedy}") from failure


def _held(values: np.ndarray[Any, Any]) -> str:
    return f"{values.dtype} of shape {list(values.shape)}"


def save(array: Array, path: str, bits: bool) -> None:
    """Save a result as values of numpy's dtypes, or as storage codes."""
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


# The FILE that most subcommands read: its parser, its text, and the program compiled from it.


Run = Callable[[argparse.Namespace], int]


def file_command(
    subparsers: Any, name: str, run: Run, summary: str, epilog: str = "", ir: bool = False
) -> argparse.ArgumentParser:
    """Return the parser of a command that reads a FILE: a program or, with `ir`, also IR text."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help=f"a program of the language{', or IR text' if ir else ''}")
    if ir:
        parser.add_argument(
            "--ir", choices=LEVELS, metavar="LEVEL", help="FILE is IR of this level; a .mlir file is IR"
        )
    parser.set_defaults(run=run, source_text="")
    return parser


def read_bytes(options: argparse.Namespace) -> bytes:
    """Read the file. Raise `BadInput` if it cannot be read or is too large."""
    try:
        if options.file == "-" and sys.stdin is None:
            raise BadInput("standard input is closed")
        with nullcontext(sys.stdin.buffer) if options.file == "-" else Path(options.file).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{options.file}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise BadInput(f"{options.file}: has more than {MOST_BYTES} bytes")
    return data


def write_file(path: str, data: str | bytes) -> None:
    """Write a file. Raise `BadInput` if that fails."""
    try:
        Path(path).write_bytes(data.encode() if isinstance(data, str) else data)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def read_text(options: argparse.Namespace) -> str:
    """Read the program."""
    return text_of(read_bytes(options), options)


def text_of(data: bytes, options: argparse.Namespace) -> str:
    """Return the text of the file, which diagnostics quote later. Raise `BadInput` if it is too long."""
    if len(data) > MOST_TEXT:
        raise BadInput(f"{options.file}: is a text of more than {MOST_TEXT} bytes")
    options.source_text = data.decode("utf-8", errors="replace")
    return decode(data, options.file)


def compile_file(options: argparse.Namespace) -> CompiledModule:
    """Read and compile the program, and show its warnings."""
    return compile_text(read_text(options), options)


def level_given(options: argparse.Namespace, text: str) -> Level | None:
    """Return the IR level of a file: that of `--ir`, or of the text of a `.mlir` file; None for a program."""
    level: Level | None = options.ir
    if level is None and options.file.endswith(".mlir"):
        from ..levels.texts import level_of  # imports all levels

        return level_of(text)
    return level


def modules_of(options: argparse.Namespace) -> tuple[Sequence[Module], Level]:
    """Return the modules of the file, and their level: Graph IR for a program. Raises `Rejection`, `BadInput`."""
    text = read_text(options)
    level = level_given(options, text)
    if level is None:
        return compile_text(text, options).modules, "graph"
    from ..levels.texts import read_at, require_names

    modules = read_at(level, text, target_named(getattr(options, "target", DEFAULT)), options.file)
    require_names(modules)
    return modules, level


def show_text(text: str) -> None:
    """Print a program or IR text in UTF-8, like its files, since a terminal's escapes would change the program."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    print(text, end="")


def compile_text(text: str, options: argparse.Namespace) -> CompiledModule:
    """Compile the text of the file, and show its warnings."""
    compiled = compile_source(text, options.file)
    show(compiled.warnings, options.source_text)
    return compiled


def show(diagnostics: Sequence[Diagnostic], source: str) -> None:
    """Write diagnostics to stderr."""
    for diagnostic in diagnostics:
        print(render(diagnostic, source), file=sys.stderr)


# Options that name a target, a schedule, a function and its shapes (sections 6 to 8).


def add_lowering_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `lowering_of` reads."""
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"one of {', '.join(TARGETS)}; {DEFAULT} unless given"
    )
    add_schedule_options(parser)


def add_schedule_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `schedule_of` reads."""
    parser.add_argument("--tile", metavar="MxNxK", help="tiles, where the program does not say")
    parser.add_argument("--depth", type=int, metavar="N", help="of pipelines, where the program does not say")
    parser.add_argument(
        "--prefetch", choices=("shared", "global", "none"), default="shared", help="where tiles are staged"
    )
    parser.add_argument("--no-fuse", action="store_true", help="a nest for each operation")


def add_shape_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `shaped` reads."""
    parser.add_argument("--function", metavar="NAME", help="the function that --shape is about")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=2x3",
        help="the shape of a parameter whose dimensions the program leaves open",
    )


def lowering_of(options: argparse.Namespace) -> tuple[Target, Options]:
    """Return the target, and the schedule of what the program leaves open. Raises `BadInput`."""
    return target_named(options.target), schedule_of(options)


def schedule_of(options: argparse.Namespace) -> Options:
    """Return the schedule that the options request. Raises `BadInput`."""
    if options.depth is not None and options.depth < 1:
        raise BadInput(f"--depth is {options.depth}, and at least 1")
    tile = None
    if options.tile is not None:
        m, n, k = _extents("--tile", options.tile, 3)
        tile = (m, n, k)
    return Options(tile, options.depth, options.prefetch, not options.no_fuse)


def target_named(name: str) -> Target:
    """Return the target of a name. Raises `BadInput`."""
    try:
        return target_of(name)
    except UnknownTarget as unknown:
        raise BadInput(str(unknown)) from unknown


def _extents(option: str, text: str, count: int | None = None) -> tuple[int, ...]:
    match = re.fullmatch(r"[0-9]{1,9}(?:x[0-9]{1,9})*", text)
    extents = tuple(map(int, text.split("x"))) if match else ()
    if not extents or (count is not None and (len(extents) != count or 0 in extents)):
        example = "2x3" if count is None else "x".join(["16"] * count)
        raise BadInput(f"{option} is {text!r}, not numbers such as {example}")
    return extents


def add_extent_option(parser: argparse.ArgumentParser, summary: str) -> None:
    """Add the option that `extents_given` reads."""
    parser.add_argument("--extent", action="append", default=[], metavar="NAME=N", help=summary)


def extents_given(options: argparse.Namespace, least: int) -> dict[str, int]:
    """Return the extents of the options `--extent NAME=N`. Raises `BadInput`."""
    extents = {}
    for text in options.extent:
        name, _, number = text.partition("=")
        if not re.fullmatch("[0-9]{1,9}", number) or int(number) < least:
            raise BadInput(f"--extent {text!r} is not of the form NAME=N, N from {least} to 999999999")
        extents[name] = int(number)
    return extents


def shaped(modules: Sequence[Module], options: argparse.Namespace) -> tuple[Module, ...]:
    """Return the modules with the options' function specialized for their shapes. Raises `BadInput`."""
    if not options.shape:
        return tuple(modules)
    shapes: dict[str, tuple[int, ...]] = {}
    for text in options.shape:
        name, parameter, extents = text.partition("=")
        if not parameter:
            raise BadInput(f"--shape {text!r} is not of the form NAME=2x3")
        shapes[name] = _extents(f"--shape {name}", extents)
    module, function = selected(modules, options.function)
    names = [value.name for value in function.parameters]
    for name in shapes:
        if name not in names:
            raise BadInput(f"--shape {name}: {function.name} takes {', '.join(names) or 'nothing'}")
    return (for_shapes(module, function, shapes),)


def selected(modules: Sequence[Module], name: str | None) -> tuple[Module, Function]:
    """Return the requested function of the host, or the only one, with its module. Raises `BadInput`."""
    declared = ((module, function) for module in modules for function in module.functions.values())
    functions = [(module, function) for module, function in declared if not function.device]
    matching = [(m, f) for m, f in functions if name in (None, f.name, f"{m.name}.{f.name}")]
    if len(matching) != 1:
        names = ", ".join(f"{module.name}.{function.name}" for module, function in functions) or "none"
        problem = f"no function {name!r}" if name and not matching else "which function? use --function"
        raise BadInput(f"{problem}; there is {names}")
    return matching[0]
