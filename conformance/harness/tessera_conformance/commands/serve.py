"""`tessera-conformance serve`: any Python adapter, or a C library, as a process that speaks the line protocol."""

from __future__ import annotations

import argparse

from tessera_conformance.server import serve
from tessera_conformance.terminal.errors import print_error
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, PassingAdapter, load_adapter


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """The command `serve`."""
    parser.add_argument("implementation", metavar="IMPL", help="reference, py:module:factory or cabi:/path/lib.so")
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.set_defaults(handler=serve_implementation)


def serve_implementation(arguments: argparse.Namespace) -> int:
    """Serve until the harness closes the session."""
    try:
        adapter = load_adapter(arguments.implementation, arguments.compiler)
    except ImplementationUnavailable as error:
        print_error(error)
        return 2
    try:
        return serve(adapter)
    finally:
        if isinstance(adapter, PassingAdapter):
            adapter.close()
