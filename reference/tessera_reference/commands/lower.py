"""`tessera-reference lower`: a program at a level of IR, or as text of a vendor's tools."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..ir.module import Module
from ..ir.text import print_module
from ..levels.emission import TEXTS, emit
from ..levels.execution import LEVELS, Level, lower_from_above
from .program import (
    BadInput,
    Lowering,
    add_lowering_options,
    add_shape_options,
    file_command,
    lowering_of,
    modules_of,
    shaped,
    show_text,
)

PLACE_IN_HELP = 7

SUFFIXES = {"llvm": "ll", "ptx": "ptx", "amdgcn": "s"}
"""The suffixes of files; IR of our own has `.mlir`."""


def register(subparsers: Any) -> None:
    """Add `lower`."""
    summary = "print a program's IR, or what it becomes for a vendor's tools"
    parser = file_command(subparsers, "lower", run, summary, ir=True)
    parser.add_argument(
        "--to", choices=(*LEVELS, *TEXTS), help="a level, or a kind of text; the file's own unless given"
    )
    parser.add_argument("--export", action="store_true", help="types as mlir-opt takes them, with locations")
    parser.add_argument("--dump-dir", metavar="DIR", help="write a file for every level on the way instead")
    add_lowering_options(parser)
    add_shape_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print a program's IR, or write it with every level above it."""
    show_lowered(options.to, options)
    return 0


def texts_of(module: Module, at: Level, to: str, lowering: Lowering, export: bool = False) -> Mapping[str, str]:
    """The texts of a module from its level down to another, by level. Raises `Rejection`."""
    first, last = LEVELS.index(at), LEVELS.index(to) if to in LEVELS else len(LEVELS) - 1
    modules = {at: module}
    for level in LEVELS[first + 1 : last + 1]:
        module = modules[level] = lower_from_above(module, level, lowering.target, lowering.options)
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


def show_lowered(to: str | None, options: argparse.Namespace) -> None:
    """Print the modules of the file at a level, or write them with every level above into a directory."""
    lowering = lowering_of(options)
    modules, at = modules_of(options)
    to = to or at
    if to in LEVELS and LEVELS.index(to) < LEVELS.index(at):
        raise BadInput(f"{options.file} is {at.capitalize()} IR, which nothing raises to {to.capitalize()} IR")
    for module in shaped(modules, options):
        texts = texts_of(module, at, to, lowering, getattr(options, "export", False))
        if getattr(options, "dump_dir", None):
            dump(module, texts, options.dump_dir)
        else:
            show_text(texts[to])
