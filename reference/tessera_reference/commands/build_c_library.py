"""`tessera-reference build-c-library`: the reference as a shared library with the C interface (runtime spec 4)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..c_library.building import CannotBuild, build
from .program import BadInput

PLACE_IN_HELP = 10


def register(subparsers: Any) -> None:
    """Add `build-c-library`."""
    parser = subparsers.add_parser("build-c-library", help="make libtessera, a shared library with the C interface")
    parser.add_argument(
        "--output", default="libtessera", metavar="DIR", help="where it goes; ./libtessera unless given"
    )
    parser.add_argument("--cc", default="gcc", metavar="COMMAND", help="the C compiler; gcc unless given")
    parser.set_defaults(run=run, source_text="")


def run(options: argparse.Namespace) -> int:
    """Build, and say what was made and how it is used. Raises `BadInput`."""
    output = Path(options.output)
    try:
        made = build(output, options.cc)
    except CannotBuild as problem:
        raise BadInput(str(problem)) from None
    for path in made:
        print(path)
    folder = (output / "lib" / "pkgconfig").absolute()
    print(f"use: PKG_CONFIG_PATH={folder} gcc program.c $(pkg-config --cflags --libs tessera)")
    return 0
