"""`tessera-reference host-io`: messages between host and IO_CPU."""

from __future__ import annotations

from typing import Any

from .host_io_run import register_run

PLACE_IN_HELP = 10


def register(subparsers: Any) -> None:
    """Add `host-io`."""
    parser = subparsers.add_parser("host-io", help="messages between host and IO_CPU")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    register_run(actions.add_parser("run", help="run a function by the runtime and by messages, and compare"))
