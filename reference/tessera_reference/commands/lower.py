"""`tessera-reference lower`: a program at a level of IR, or as text of a vendor's tools."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..ir.module import Module
from ..ir.text import print_module
from ..levels.emission import TEXTS, emit
from ..levels.execution import LEVELS, lower
from .program import (
    BadInput,
    Lowering,
    add_lowering_options,
    add_shape_options,
    compile_file,
    file_command,
    lowering_of,
    shaped,
)

PLACE_IN_HELP = 7

SUFFIXES = {"llvm": "ll", "ptx": "ptx", "amdgcn": "s"}
"""Of files; IR of our own is `.mlir`."""


def register(subparsers: Any) -> None:
    """Add `lower`."""
    parser = file_command(subparsers, "lower", run, "print a program's IR, or what it becomes for a vendor's tools")
    parser.add_argument("--to", choices=(*LEVELS, *TEXTS), default="graph", help="the level, or the kind of text")
    parser.add_argument("--export", action="store_true", help="types as mlir-opt takes them, with locations")
    parser.add_argument("--dump-dir", metavar="DIR", help="write a file for every level on the way instead")
    add_lowering_options(parser)
    add_shape_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print a program's IR, or write it with every level above it."""
    show_lowered(compile_file(options).modules, options.to, options)
    return 0


def texts_of(module: Module, to: str, lowering: Lowering, export: bool = False) -> Mapping[str, str]:
    """The texts of a module down to a level, by level. Raises `Rejection`."""
    levels = LEVELS[: LEVELS.index(to) + 1 if to in LEVELS else None]
    modules = {level: lower(module, level, lowering.target, lowering.options) for level in levels}
    texts: dict[str, str] = {level: print_module(lowered, export=export) for level, lowered in modules.items()}
    if to in TEXTS:
        texts[to] = emit(modules["target"], to, lowering.target)
    return texts


def dump(module: Module, texts: Mapping[str, str], directory: str) -> None:
    """Write a file for each level, `MODULE.LEVEL.mlir`. Raises `BadInput`."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        for level, text in texts.items():
            name = f"{module.name}.{level}.mlir" if level in LEVELS else f"{module.name}.{SUFFIXES[level]}"
            (Path(directory) / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{directory}: {error.strerror}") from error


def show_lowered(modules: Sequence[Module], to: str, options: argparse.Namespace) -> None:
    """Print the modules at a level, or write them with every level above into a directory."""
    lowering = lowering_of(options)
    for module in shaped(modules, options):
        texts = texts_of(module, to, lowering, getattr(options, "export", False))
        if getattr(options, "dump_dir", None):
            dump(module, texts, options.dump_dir)
        else:
            print(texts[to], end="")
