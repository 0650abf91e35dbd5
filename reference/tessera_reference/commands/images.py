"""`tessera-reference compile`, `inspect` and `explain`: module images (runtime spec 8.1, 15, 17).

Functions that need the compiler import it: `inspect` starts without it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..abi.fatbin import Fatbin, KernelEntry, read
from ..abi.fatbin.image import KEY_BYTES, MAGIC
from ..abi.status import is_compatible
from ..ir.operation import Function, Module, Operation
from ..ir.targets import DEFAULT, TARGETS
from .program import (
    BadInput,
    add_extent_option,
    add_schedule_options,
    compile_text,
    extents_given,
    file_command,
    read_bytes,
    read_text,
    schedule_of,
    text_of,
    write_file,
)


def register_compile(subparsers: Any) -> None:
    """Add `compile`."""
    parser = file_command(subparsers, "compile", compile_image, "compile a program to a module image, a fatbin")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where the image goes")
    parser.add_argument(
        "--target",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(TARGETS)}, as often as there are targets; {DEFAULT} unless given",
    )
    parser.add_argument("--at", choices=("dsl", "graph", "tile", "target"), default="dsl", help="what the file is")
    parser.add_argument("--ir-pack", action="store_true", help="IR only, no machine code")
    parser.add_argument("--sign", metavar="KEYFILE", help="an Ed25519 private key: 32 bytes, or 64 hexadecimal digits")
    add_schedule_options(parser)


def compile_image(options: argparse.Namespace) -> int:
    """Write the image of a program or of IR text. Raises `BadInput` and as the compiler does."""
    from ..compilation.images import Extras, compile_module, image_of_graph, targets_named

    text, from_dsl = read_text(options), options.at == "dsl"
    modules = compile_text(text, options).modules if from_dsl else ()
    names = options.target or [DEFAULT]
    key = _key(options.sign) if options.sign else None
    if from_dsl:
        extras = Extras(signing_key=key)
        image = image_of_graph(
            modules, targets_named(names), schedule_of(options), extras, options.ir_pack, options.file
        )
    else:
        image = compile_module(
            text,
            names,
            options=schedule_of(options),
            signing_key=key,
            at=options.at,
            ir_pack=options.ir_pack,
            filename=options.file,
        )
    write_file(options.output, image)
    return 0


def _key(path: str) -> bytes:
    """Return the private key in a file. Raises `BadInput`, which never quotes the file."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(4 * KEY_BYTES)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    if len(data) != KEY_BYTES:
        try:
            data = bytes.fromhex(data.decode("ascii"))
        except ValueError:
            data = b""
    if len(data) != KEY_BYTES:
        raise BadInput(f"{path} holds no Ed25519 private key: 32 bytes, or 64 hexadecimal digits")
    return data


# `tessera-reference inspect`: the contents of a module image (runtime spec 8.1, 17).


def register_inspect(subparsers: Any) -> None:
    """Add `inspect`."""
    file_command(subparsers, "inspect", inspect, "say what a module image holds")


def inspect(options: argparse.Namespace) -> int:
    """Print the description of an image."""
    print(*inspect_image(read_bytes(options)), sep="\n")
    return 0


def inspect_image(image: bytes) -> Iterator[str]:
    """Yield an image's description line by line, of any ABI version. Raises `Failure`."""
    fatbin = read(image, runtime=None)
    major, minor = fatbin.abi_version
    yield f"ABI {major}.{minor}" + ("" if is_compatible(fatbin.abi_version) else ", which this runtime does not load")
    yield f"source IR sha256:{fatbin.ir_hash.hex()}"
    yield f"targets {', '.join(fatbin.targets) or 'none'}"
    for section in fatbin.sections:
        signed = f", by {section.data[:KEY_BYTES].hex()}" if section.kind == "signature" else ""
        yield f"section {section}: {len(section.data)} bytes{signed}"
    policy = fatbin.metadata.policy
    yield f"policy {policy}" if policy else "policy: that of the context"
    for kernel in fatbin.metadata.kernels:
        yield from _kernel_lines(kernel)
    for plan in fatbin.metadata.collective_plans:
        yield f"plan {plan}"


def _kernel_lines(kernel: KernelEntry) -> Iterator[str]:
    block = "x".join(map(str, kernel.block))
    dynamic = " and a dynamic segment" if kernel.dynamic_shared else ""
    yield (
        f"kernel {kernel.name} of module {kernel.module or '(unnamed)'}: {kernel.level}, block {block}, "
        f"{kernel.shared_bytes} bytes of shared memory{dynamic}, parameter buffer of {kernel.layout.size} bytes"
    )
    for parameter, offset in zip(kernel.parameters, kernel.layout.offsets, strict=True):
        shape = "" if parameter.shape is None else f" to {'x'.join(map(str, (*parameter.shape, parameter.dtype)))}"
        yield f"  {offset:#06x} {parameter.name}: {parameter.type}{shape}{', written' if parameter.written else ''}"


# `tessera-reference explain`: the operations of a program, or the decisions about a module image (RT-17).


def register_explain(subparsers: Any) -> None:
    """Add `explain`."""
    parser = file_command(
        subparsers,
        "explain",
        explain_file,
        "say what a program's operations are, or what was decided about a module image",
    )
    parser.add_argument("--json", action="store_true", help="of a module image: as JSON")
    add_extent_option(parser, "of a module image: a dimension that launches give, to see what is decided for it")
    parser.add_argument("--target", metavar="NAME", help="of a module image: the target that --extent is about")


def explain_file(options: argparse.Namespace) -> int:
    """Explain the file, an image or IR text."""
    data = read_bytes(options)
    if data.startswith(MAGIC):
        print(explain_image(data, options), end="")
        return 0
    for module in compile_text(text_of(data, options), options).modules:
        print(*explain(module), sep="\n")
    return 0


def explain(module: Module) -> Iterator[str]:
    """Yield each function with its signature, and each of its operations: count, meaning, effects, clauses, lines."""
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
    """Return a signature such as `name(A: type, ...) -> type`."""
    parameters = ", ".join(f"{value.name}: {value.type}" for value in function.parameters)
    results = ", ".join(map(str, function.results))
    return f"@{function.name}({parameters})" + (f" -> {results}" if results else "")


def summary(operation: type[Operation]) -> str:
    """Return the first sentence of an operation's documentation."""
    return " ".join((operation.__doc__ or "").partition("\n\n")[0].split())


def explain_image(image: bytes, options: argparse.Namespace) -> str:
    """Return the decisions about a module as text or JSON (RT-17-03, -08, -09). Raises `Failure`, `BadInput`."""
    from ..compilation.images import explanation_json, explanation_text

    fatbin = read(image)
    if options.extent:
        return _explained_for(fatbin, options)
    return explanation_json(fatbin.metadata) if options.json else explanation_text(fatbin.metadata)


def _explained_for(fatbin: Fatbin, options: argparse.Namespace) -> str:
    from ..compilation.executables import explain_launch
    from ..compilation.extents import named_dimensions
    from ..compilation.images import kernel_lines

    extents = extents_given(options, least=0)
    known = {name for kernel in fatbin.metadata.kernels for name in named_dimensions(kernel)}
    for name in extents:
        if name not in known:
            raise BadInput(f"--extent {name}: launches give {', '.join(sorted(known)) or 'no dimensions'}")
    target = options.target or (fatbin.targets[0] if fatbin.targets else "")
    if not any(set(names) <= extents.keys() for names in map(named_dimensions, fatbin.metadata.kernels) if names):
        raise BadInput(f"--extent {', '.join(extents)}: no kernel has only these; there are {', '.join(sorted(known))}")
    lines = [f"for {', '.join(f'{name}={extent}' for name, extent in extents.items())} on {target}"]
    for kernel in fatbin.metadata.kernels:
        names = named_dimensions(kernel)
        if names and extents.keys() >= set(names):
            lines += kernel_lines(kernel, explain_launch(fatbin, kernel.name, target, extents))
    return "\n".join(lines) + "\n"
