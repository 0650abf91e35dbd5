"""`tessera-conformance serve`: any Python adapter as a process that speaks the line protocol."""

from __future__ import annotations

import argparse
import sys

from tessera_conformance.server import serve
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import load_adapter


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """The command `serve`."""
    parser.add_argument("implementation", metavar="IMPL", help="reference or py:module:factory")
    parser.set_defaults(handler=serve_implementation)


def serve_implementation(arguments: argparse.Namespace) -> int:
    """Serve until the harness closes the session."""
    try:
        return serve(load_adapter(arguments.implementation))
    except ImplementationUnavailable as error:
        print(error, file=sys.stderr)
        return 2
