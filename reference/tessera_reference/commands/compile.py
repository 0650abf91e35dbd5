"""`tessera-reference compile`: a program as a module image (runtime spec 8.1, 15)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..abi.fatbin.image import KEY_BYTES
from ..compilation.images import Extras, compile_module, image_of_graph, targets_named
from ..ir.targets import DEFAULT, TARGETS
from .program import BadInput, add_schedule_options, compile_text, file_command, read_text, schedule_of

PLACE_IN_HELP = 5


def register(subparsers: Any) -> None:
    """Add `compile`."""
    parser = file_command(subparsers, "compile", run, "compile a program to a module image, a fatbin")
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


def run(options: argparse.Namespace) -> int:
    """Write the image of a program or of IR text. Raises `BadInput` and as the compiler."""
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
    try:
        Path(options.output).write_bytes(image)
    except OSError as error:
        raise BadInput(f"{options.output}: {error.strerror}") from error
    return 0


def _key(path: str) -> bytes:
    """The private key in a file. Raises `BadInput`, which never quotes the file."""
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
