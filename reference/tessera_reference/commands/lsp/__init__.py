"""`tessera-reference lsp`: a language server, which an editor starts."""

from __future__ import annotations

import argparse
from typing import Any

from ...ir.diagnostics import MissingTool
from ...ir.targets import DEFAULT
from ..program import target_named

PLACE_IN_HELP = 12
INSTALL = "pip install 'tessera-conformance[lsp]'"


def register(subparsers: Any) -> None:
    """Add `lsp`."""
    parser = subparsers.add_parser("lsp", help="serve an editor: diagnostics, hover, formatting")
    parser.add_argument(
        "--target", default=DEFAULT, metavar="NAME", help=f"what kernels and schedules are for; {DEFAULT} unless given"
    )
    parser.set_defaults(run=run, source_text="")


def run(options: argparse.Namespace) -> int:
    """Serve until the editor ends the session. Raises `MissingTool` and `BadInput`."""
    target = target_named(options.target)
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError:
        raise MissingTool("pygls", INSTALL) from None
    from .server import serve

    serve(target)
    return 0
