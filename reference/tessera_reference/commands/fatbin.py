"""`tessera-reference compile`, `inspect`, and `explain` of a module image (runtime spec 8.1, 15, 17)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..abi.fatbin import Fatbin, KernelEntry, read
from ..abi.version import is_compatible
from ..compilation import (
    Extras,
    compile_module,
    explain_launch,
    explanation_json,
    explanation_text,
    image_of_graph,
    targets_named,
)
from ..compilation.explanation import told
from ..compilation.extents import named_dimensions
from ..ir.module import Module
from ..ir.targets import DEFAULT, TARGETS
from ..language import CompiledModule
from .array_files import BadInput
from .levels import add_schedule_options, schedule_of

__all__ = ["add_compile_options", "add_explain_options", "compile_image", "explain_image", "inspect_image"]

KEY_BYTES = 32


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Options that `compile_image` reads."""
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


def add_explain_options(parser: argparse.ArgumentParser) -> None:
    """Options that `explain_image` reads."""
    parser.add_argument("--json", action="store_true", help="of a module image: as JSON")
    parser.add_argument(
        "--extent",
        action="append",
        default=[],
        metavar="NAME=N",
        help="of a module image: a dimension that launches tell, to see what is decided for it",
    )
    parser.add_argument("--target", metavar="NAME", help="of a module image: the target that --extent is about")


def compile_image(text: str, compiled: CompiledModule | None, options: argparse.Namespace) -> None:
    """Write the image of a program, which is compiled already, or of IR text. Raises `BadInput` and as the compiler."""
    names = options.target or [DEFAULT]
    key = _key(options.sign) if options.sign else None
    if compiled is not None:
        targets, extras = targets_named(names), Extras(signing_key=key)
        modules: tuple[Module, ...] = compiled.modules
        image = image_of_graph(modules, targets, schedule_of(options), extras, options.ir_pack, options.file)
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
    try:
        Path(options.output).write_bytes(image)
    except OSError as error:
        raise BadInput(f"{options.output}: {error.strerror}") from error


def _key(path: str) -> bytes:
    """The private key in a file. Raises `BadInput`, which never quotes the file."""
    try:
        data = Path(path).read_bytes()
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


def inspect_image(image: bytes) -> Iterator[str]:
    """What an image says about itself, line by line, whatever ABI version it is of. Raises `Failure`."""
    fatbin = read(image, runtime=None)
    major, minor = fatbin.abi_version
    yield f"ABI {major}.{minor}" + ("" if is_compatible(fatbin.abi_version) else ", which this runtime does not load")
    yield f"source IR sha256:{fatbin.ir_hash.hex()}"
    yield f"targets {', '.join(fatbin.targets) or 'none'}"
    for section in fatbin.sections:
        signed = f", by {section.data[:KEY_BYTES].hex()}" if section.kind == "signature" else ""
        of_target = f" {section.target}" if section.target else ""
        yield f"section {section.kind}{of_target}: {len(section.data)} bytes{signed}"
    policy = fatbin.metadata.policy
    yield f"policy {policy}" if policy else "policy: that of the context"
    for kernel in fatbin.metadata.kernels:
        yield from _kernel_lines(kernel)
    for plan in fatbin.metadata.collective_plans:
        yield f"plan {plan.collective} {f'along {plan.axis}' if plan.axis else 'everywhere'}: {plan.algorithm}"


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


def explain_image(image: bytes, options: argparse.Namespace) -> str:
    """The text, or the JSON, of what was decided about a module (RT-17-03, -08, -09). Raises `Failure`, `BadInput`."""
    fatbin = read(image)
    if options.extent:
        return _explained_for(fatbin, options)
    return explanation_json(fatbin.metadata) if options.json else explanation_text(fatbin.metadata)


def _explained_for(fatbin: Fatbin, options: argparse.Namespace) -> str:
    extents: dict[str, int] = {}
    for given in options.extent:
        name, _, number = given.partition("=")
        if not number.isascii() or not number.isdecimal():
            raise BadInput(f"--extent {given!r} is not of the form NAME=N")
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
            lines += told(kernel, explain_launch(fatbin, kernel.name, target, extents))
    return "\n".join(lines) + "\n"
