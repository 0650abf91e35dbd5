"""`tessera-reference plan`: the units of a function with collectives, as a device's queues get them (COLL-08-09)."""

from __future__ import annotations

import argparse
from typing import Any

from ..collectives.planning import Options, plan_function
from .program import BadInput, file_command, modules_of, selected

PLACE_IN_HELP = 8
SIZES = {
    "tile": "bytes of the tiles in which tensors are produced; an element unless given",
    "max-inflight": "chunks under way at a time, of all collectives; any number unless given",
    "depth": "buffers of a collective; one for each chunk unless given",
}


def register(subparsers: Any) -> None:
    """Add `plan`."""
    summary = "print the plan of a function with collectives: a line for each unit of its queues"
    parser = file_command(subparsers, "plan", run, summary, ir=True)
    parser.add_argument("--function", metavar="NAME", help="the function; needed when there are several")
    for name, meaning in SIZES.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=meaning)


def run(options: argparse.Namespace) -> int:
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
