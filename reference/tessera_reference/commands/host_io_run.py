"""`tessera-reference host-io run`: a function run by the runtime and by messages, with the frames and a comparison."""

from __future__ import annotations

import argparse
from typing import Any

from ..host_io.endpoint import Endpoint
from ..ir.dimensions import own_dims
from ..mesh.topology import default
from ..numerics.environment import check_environment
from ..runtime.bridged_programs import LENGTH, RANKS, Comparison, counted, image_of, run_kernel
from .array_files import BadInput
from .lowering_options import selected
from .program import compile_file

__all__ = ["register_run"]


def register_run(parser: Any) -> None:
    """Add the options of `host-io run`."""
    parser.add_argument("file", metavar="FILE", help="a program of the language")
    parser.add_argument("--function", metavar="NAME", help="the function; needed when there are several")
    parser.add_argument("--ranks", type=int, default=RANKS, metavar="N", help="ranks, each a PE (default: %(default)s)")
    parser.add_argument(
        "--extent",
        action="append",
        default=[],
        metavar="NAME=N",
        help=f"the extent of an open dimension; {LENGTH} unless given",
    )
    parser.set_defaults(run=run, source_text="")


def run(options: argparse.Namespace) -> int:
    """Print each frame with its answer, then whether outputs are equal; 1 where they are not. Raises `BadInput`."""
    check_environment()
    module, function = selected(compile_file(options).modules, options.function)
    most = min(len(list(Endpoint().machine.places())), len(default().devices))
    if not 1 <= options.ranks <= most:
        raise BadInput(f"--ranks is {options.ranks}, expected 1 to {most}")
    extents = dict.fromkeys(own_dims(each.type for each in function.parameters), LENGTH) | _extents(options.extent)
    inputs = [counted(function, extents, rank) for rank in range(options.ranks)]
    shapes = {name: each.shape for name, each in inputs[0].items() if each.shape}
    comparison = run_kernel(Endpoint(), image_of(module, function, shapes), function.name, inputs)
    _show(comparison)
    return 0 if comparison.equal else 1


def _extents(given: list[str]) -> dict[str, int]:
    found = {}
    for each in given:
        name, _, number = each.partition("=")
        if not number.isascii() or not number.isdecimal() or not 1 <= int(number[:9]) == int(number):
            raise BadInput(f"--extent {each!r} is not of the form NAME=N, N at least 1")
        found[name] = int(number)
    return found


def _show(comparison: Comparison) -> None:
    for frame, answer in comparison.exchanges:
        print(f"> {frame}\n< {answer}")
    for each in comparison.outputs:
        verdict = "equal" if each.own == each.by_messages else "DIFFERENT"
        print(f"{each.name}: {len(each.own)} bytes, {verdict} by the runtime and by messages")
    for gap in comparison.gaps:
        print(f"not expressed: {gap}")
