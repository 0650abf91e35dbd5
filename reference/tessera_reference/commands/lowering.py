"""`tessera-reference print`, `lower` and `plan`: a syntax tree, IR of a level, a vendor's text, a plan of queues."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..collectives.planner import Options, plan_function
from ..ir.operation import Module
from ..ir.targets import Target
from ..ir.text import print_module
from ..language import parse, print_tree
from ..levels.emission import TEXTS, emit
from ..levels.execution import LEVELS, Level, lower_from_above
from ..levels.execution import Options as Schedule
from .program import (
    BadInput,
    add_lowering_options,
    add_shape_options,
    file_command,
    lowering_of,
    modules_of,
    read_text,
    selected,
    shaped,
    show_text,
)


def register_print(subparsers: Any) -> None:
    """Add `print`."""
    parser = file_command(subparsers, "print", print_file, "print a program's syntax tree or its IR", ir=True)
    parser.add_argument("--level", choices=("ast", *LEVELS), help="what to print; IR text as it is, or graph")
    add_lowering_options(parser)
    add_shape_options(parser)


def print_file(options: argparse.Namespace) -> int:
    """Print a program at a level."""
    if options.level == "ast":
        show_text(print_tree(parse(read_text(options), options.file)))
    else:
        show_lowered(options.level, options)
    return 0


# `tessera-reference lower`: a program at a level of IR, or as text for a vendor's tools.


SUFFIXES = {"llvm": "ll", "ptx": "ptx", "amdgcn": "s"}
"""The suffixes of files; the reference's IR has `.mlir`."""


def register_lower(subparsers: Any) -> None:
    """Add `lower`."""
    summary = "print a program's IR, or what it becomes for a vendor's tools"
    parser = file_command(subparsers, "lower", lower_file, summary, ir=True)
    parser.add_argument(
        "--to", choices=(*LEVELS, *TEXTS), help="a level, or a kind of text; the file's own unless given"
    )
    parser.add_argument("--export", action="store_true", help="types as mlir-opt takes them, with locations")
    parser.add_argument("--dump-dir", metavar="DIR", help="write a file for every level on the way instead")
    add_lowering_options(parser)
    add_shape_options(parser)


def lower_file(options: argparse.Namespace) -> int:
    """Print a program's IR, or write it with every level above it."""
    show_lowered(options.to, options)
    return 0


def texts_of(
    module: Module, at: Level, to: str, target: Target, schedule: Schedule, export: bool = False
) -> Mapping[str, str]:
    """Return the texts of a module from its level down to another, by level. Raises `Rejection`."""
    first, last = LEVELS.index(at), LEVELS.index(to) if to in LEVELS else len(LEVELS) - 1
    modules = {at: module}
    for level in LEVELS[first + 1 : last + 1]:
        module = modules[level] = lower_from_above(module, level, target, schedule)
    texts: dict[str, str] = {level: print_module(lowered, export=export) for level, lowered in modules.items()}
    if to in TEXTS:
        texts[to] = emit(modules["target"], to, target)
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
    target, schedule = lowering_of(options)
    modules, at = modules_of(options)
    to = to or at
    if to in LEVELS and LEVELS.index(to) < LEVELS.index(at):
        raise BadInput(f"{options.file} is {at.capitalize()} IR, which nothing raises to {to.capitalize()} IR")
    for module in shaped(modules, options):
        texts = texts_of(module, at, to, target, schedule, getattr(options, "export", False))
        if getattr(options, "dump_dir", None):
            dump(module, texts, options.dump_dir)
        else:
            show_text(texts[to])


# `tessera-reference plan`: the units of a function with collectives, for the queues of a device (COLL-08-09).


SIZES = {
    "tile": "bytes of the tiles in which tensors are produced; an element unless given",
    "max-inflight": "chunks under way at a time, of all collectives; any number unless given",
    "depth": "buffers of a collective; one for each chunk unless given",
}


def register_plan(subparsers: Any) -> None:
    """Add `plan`."""
    summary = "print the plan of a function with collectives: a line for each unit of its queues"
    parser = file_command(subparsers, "plan", plan, summary, ir=True)
    parser.add_argument("--function", metavar="NAME", help="the function; needed when there are several")
    for name, meaning in SIZES.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=meaning)


def plan(options: argparse.Namespace) -> int:
    """Print the units. Raises `BadInput`, and `Failure` for a function that has no plan."""
    sizes = {name: getattr(options, name.replace("-", "_")) for name in SIZES}
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise BadInput(f"--{name} is {size}, and at least 1")
    modules, level = modules_of(options)
    if level != "graph":
        raise BadInput(f"{options.file} is {level.capitalize()} IR; plans are made of Graph IR")
    module, function = selected(modules, options.function)
    for unit in plan_function(module, function, Options(*sizes.values())).units:
        print(unit)
    return 0
