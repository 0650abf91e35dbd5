"""Options that name a target, a schedule, a function and its shapes (sections 6 to 8)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.module import Function, Module
from ..ir.targets import DEFAULT, TARGETS, Target, UnknownTarget, target_of
from ..levels.execution import Options, for_shapes
from .array_files import BadInput


@dataclass(frozen=True)
class Lowering:
    """For which target, and how what the program leaves open is scheduled."""

    target: Target
    options: Options


def add_lowering_options(parser: argparse.ArgumentParser) -> None:
    """Options that `lowering_of` reads."""
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"one of {', '.join(TARGETS)}; {DEFAULT} unless given"
    )
    add_schedule_options(parser)


def add_schedule_options(parser: argparse.ArgumentParser) -> None:
    """Options that `schedule_of` reads."""
    parser.add_argument("--tile", metavar="MxNxK", help="tiles, where the program does not say")
    parser.add_argument("--depth", type=int, metavar="N", help="of pipelines, where the program does not say")
    parser.add_argument(
        "--prefetch", choices=("shared", "global", "none"), default="shared", help="where tiles are staged"
    )
    parser.add_argument("--no-fuse", action="store_true", help="a nest for each operation")


def add_shape_options(parser: argparse.ArgumentParser) -> None:
    """Options that `shaped` reads."""
    parser.add_argument("--function", metavar="NAME", help="the function that --shape is about")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=2x3",
        help="the shape of a parameter whose dimensions the program leaves open",
    )


def lowering_of(options: argparse.Namespace) -> Lowering:
    """What the options say. Raises `BadInput`."""
    return Lowering(target_named(options.target), schedule_of(options))


def schedule_of(options: argparse.Namespace) -> Options:
    """What the options say of the schedule. Raises `BadInput`."""
    if options.depth is not None and options.depth < 1:
        raise BadInput(f"--depth is {options.depth}, and at least 1")
    tile = None
    if options.tile is not None:
        m, n, k = _extents("--tile", options.tile, 3)
        tile = (m, n, k)
    return Options(tile, options.depth, options.prefetch, not options.no_fuse)


def target_named(name: str) -> Target:
    """The target of a name. Raises `BadInput`."""
    try:
        return target_of(name)
    except UnknownTarget as unknown:
        raise BadInput(str(unknown)) from unknown


def _extents(option: str, text: str, count: int | None = None) -> tuple[int, ...]:
    found = re.fullmatch(r"[0-9]{1,9}(?:x[0-9]{1,9})*", text)
    extents = tuple(map(int, text.split("x"))) if found else ()
    if not extents or (count is not None and (len(extents) != count or 0 in extents)):
        wanted = "2x3" if count is None else "x".join(["16"] * count)
        raise BadInput(f"{option} is {text!r}, not numbers such as {wanted}")
    return extents


def shaped(modules: Sequence[Module], options: argparse.Namespace) -> tuple[Module, ...]:
    """The modules with the function of the options for the shapes that they give. Raises `BadInput`."""
    if not options.shape:
        return tuple(modules)
    shapes: dict[str, tuple[int, ...]] = {}
    for given in options.shape:
        name, found, extents = given.partition("=")
        if not found:
            raise BadInput(f"--shape {given!r} is not of the form NAME=2x3")
        shapes[name] = _extents(f"--shape {name}", extents)
    module, function = selected(modules, options.function)
    names = [value.name for value in function.parameters]
    for name in shapes:
        if name not in names:
            raise BadInput(f"--shape {name}: {function.name} takes {', '.join(names) or 'nothing'}")
    return (for_shapes(module, function, shapes),)


def selected(modules: Sequence[Module], name: str | None) -> tuple[Module, Function]:
    """The function asked for, or the only one. Raises `BadInput`."""
    found = [(module, function) for module in modules for function in module.functions.values()]
    wanted = [(m, f) for m, f in found if name in (None, f.name, f"{m.name}.{f.name}")]
    if len(wanted) != 1:
        names = ", ".join(f"{module.name}.{function.name}" for module, function in found) or "none"
        problem = f"no function {name!r}" if name and not wanted else "which function? use --function"
        raise BadInput(f"{problem}; there is {names}")
    return wanted[0]
