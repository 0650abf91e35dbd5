"""`tessera-reference serve`: the reference as an implementation behind the conformance protocol."""

from __future__ import annotations

import argparse
from typing import Any

PLACE_IN_HELP = 9


def register(subparsers: Any) -> None:
    """Add `serve`."""
    parser = subparsers.add_parser("serve", help="answer the conformance protocol on standard input and output")
    parser.set_defaults(run=run, source_text="")


def run(options: argparse.Namespace) -> int:
    """Answer until standard input ends."""
    from ..adapter import make  # only this command needs the harness

    return answer(make())


def answer(adapter: Any) -> int:
    """Answer for an adapter until standard input ends."""
    from tessera_conformance.server import serve

    return serve(adapter)
