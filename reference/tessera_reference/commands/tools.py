"""`tessera-reference serve`, `completion`, `build-c-library` and `lsp`: the reference for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..c_library.building import CannotBuild, build
from ..ir.diagnostics import MissingTool
from ..ir.targets import DEFAULT
from .program import BadInput, target_named


def register_serve(subparsers: Any) -> None:
    """Add `serve`."""
    parser = subparsers.add_parser("serve", help="answer the conformance protocol on standard input and output")
    parser.set_defaults(run=serve, source_text="")


def serve(options: argparse.Namespace) -> int:
    """Answer until standard input ends."""
    from ..adapter import make  # only this command needs the harness

    return answer(make())


def answer(adapter: Any) -> int:
    """Answer for an adapter until standard input ends."""
    from tessera_conformance.server import serve

    return serve(adapter)


# `tessera-reference completion`: commands and options completed by a shell.


SHTAB = "pip install 'tessera-conformance[completion]'"


def register_completion(subparsers: Any) -> None:
    """Add `completion`."""
    parser = subparsers.add_parser("completion", help="print the completions of a shell")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell that reads the script")
    parser.set_defaults(run=complete, source_text="")


def complete(options: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise MissingTool("shtab", SHTAB) from None
    from . import register_all

    parser = argparse.ArgumentParser(prog="tessera-reference")
    commands = parser.add_subparsers(metavar="COMMAND")
    register_all(commands, [])
    for command in commands.choices.values():
        for action in command._actions:
            if action.dest == "file":
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's
    print(shtab.complete(parser, options.shell))
    return 0


# `tessera-reference build-c-library`: the reference as a shared library with the C interface (runtime spec 4).


def register_build_c_library(subparsers: Any) -> None:
    """Add `build-c-library`."""
    parser = subparsers.add_parser("build-c-library", help="make libtessera, a shared library with the C interface")
    parser.add_argument(
        "--output", default="libtessera", metavar="DIR", help="where it goes; ./libtessera unless given"
    )
    parser.add_argument("--cc", default="gcc", metavar="COMMAND", help="the C compiler; gcc unless given")
    parser.set_defaults(run=build_library, source_text="")


def build_library(options: argparse.Namespace) -> int:
    """Build the library, and print its files and their use. Raises `BadInput`."""
    output = Path(options.output)
    try:
        files = build(output, options.cc)
    except CannotBuild as problem:
        raise BadInput(str(problem)) from None
    for path in files:
        print(path)
    folder = (output / "lib" / "pkgconfig").absolute()
    print(f"use: PKG_CONFIG_PATH={folder} gcc program.c $(pkg-config --cflags --libs tessera)")
    return 0


# `tessera-reference lsp`: a language server, which an editor starts.


PYGLS = "pip install 'tessera-conformance[lsp]'"


def register_lsp(subparsers: Any) -> None:
    """Add `lsp`."""
    parser = subparsers.add_parser("lsp", help="serve an editor: diagnostics, hover, formatting")
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"what kernels and schedules are for; {DEFAULT} unless given"
    )
    parser.set_defaults(run=serve_editor, source_text="")


def serve_editor(options: argparse.Namespace) -> int:
    """Serve until the editor ends the session. Raises `MissingTool` and `BadInput`."""
    target = target_named(options.target)
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError:
        raise MissingTool("pygls", PYGLS) from None
    from .language_server import serve

    serve(target)
    return 0
