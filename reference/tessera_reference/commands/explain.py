"""`tessera-reference explain`: what a program consists of, or what was decided about a module image (RT-17)."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..abi.fatbin import Fatbin, read
from ..abi.fatbin.image import MAGIC
from ..compilation.executables import explain_launch
from ..compilation.extents import named_dimensions
from ..compilation.images import explanation_json, explanation_text, kernel_lines
from ..ir.module import Function, Module
from ..ir.operation import Operation
from .program import BadInput, compile_text, file_command, read_bytes, text_of

PLACE_IN_HELP = 4


def register(subparsers: Any) -> None:
    """Add `explain`."""
    parser = file_command(
        subparsers, "explain", run, "say what a program's operations are, or what was decided about a module image"
    )
    parser.add_argument("--json", action="store_true", help="of a module image: as JSON")
    parser.add_argument(
        "--extent",
        action="append",
        default=[],
        metavar="NAME=N",
        help="of a module image: a dimension that launches tell, to see what is decided for it",
    )
    parser.add_argument("--target", metavar="NAME", help="of a module image: the target that --extent is about")


def run(options: argparse.Namespace) -> int:
    """Explain the file, whichever of the two it is."""
    data = read_bytes(options)
    if data.startswith(MAGIC):
        print(explain_image(data, options), end="")
        return 0
    for module in compile_text(text_of(data, options), options).modules:
        print(*explain(module), sep="\n")
    return 0


def explain(module: Module) -> Iterator[str]:
    """Each function with its signature, and each operation in it: how often, what it does, effects, clauses, lines."""
    for name, mesh in module.meshes.items():
        yield f"mesh @{name}: {mesh}, {mesh.size} ranks"
    for function in module.functions.values():
        kind = "kernel" if function.kernel else "func"
        yield f"{kind} {signature(function)}"
        instructions = list(function.body.walk())
        counts = Counter(instruction.operation.name for instruction in instructions)
        for operation_name, count in sorted(counts.items()):
            places = [candidate for candidate in instructions if candidate.operation.name == operation_name]
            yield f"  {count:>4} x {operation_name}: {summary(type(places[0].operation))}"
            lines = sorted({place.location.span.line for place in places})
            shown = ", ".join(map(str, lines[:8])) + ", ..." * (len(lines) > 8)
            effects = ", ".join(sorted(places[0].operation.effects)) or "none"
            clauses = ", ".join(places[0].operation.clauses)
            yield f"         effects: {effects}; line {shown}; {clauses}"


def signature(function: Function) -> str:
    """`name(A: type, ...) -> type`."""
    parameters = ", ".join(f"{value.name}: {value.type}" for value in function.parameters)
    results = ", ".join(map(str, function.results))
    return f"@{function.name}({parameters})" + (f" -> {results}" if results else "")


def summary(operation: type[Operation]) -> str:
    """The first sentence of an operation's documentation."""
    return " ".join((operation.__doc__ or "").partition("\n\n")[0].split())


def explain_image(image: bytes, options: argparse.Namespace) -> str:
    """The text, or the JSON, of what was decided about a module (RT-17-03, -08, -09). Raises `Failure`, `BadInput`."""
    fatbin = read(image)
    if options.extent:
        return _explained_for(fatbin, options)
    return explanation_json(fatbin.metadata) if options.json else explanation_text(fatbin.metadata)


def _explained_for(fatbin: Fatbin, options: argparse.Namespace) -> str:
    extents: dict[str, int] = {}
    for text in options.extent:
        name, _, number = text.partition("=")
        if not number.isascii() or not number.isdecimal():
            raise BadInput(f"--extent {text!r} is not of the form NAME=N")
        extents[name] = int(number)
    known: Any = {name for kernel in fatbin.metadata.kernels for name in named_dimensions(kernel)}
    for name in extents:
        if name not in known:
            raise BadInput(f"--extent {name}: launches tell {', '.join(sorted(known)) or 'no dimensions'}")
    target = options.target or (fatbin.targets[0] if fatbin.targets else "")
    if not any(set(names) <= extents.keys() for names in map(named_dimensions, fatbin.metadata.kernels) if names):
        raise BadInput(f"--extent {', '.join(extents)}: no kernel has only these; there are {', '.join(sorted(known))}")
    lines = [f"for {', '.join(f'{name}={extent}' for name, extent in extents.items())} on {target}"]
    for kernel in fatbin.metadata.kernels:
        names = named_dimensions(kernel)
        if names and extents.keys() >= set(names):
            lines += kernel_lines(kernel, explain_launch(fatbin, kernel.name, target, extents))
    return "\n".join(lines) + "\n"
