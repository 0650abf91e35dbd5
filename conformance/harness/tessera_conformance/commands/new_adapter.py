"""`tessera-conformance new-adapter`: from nothing to an adapter that the harness understands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

TEMPLATE = Path(__file__).with_name("adapter_template.py")


def configure_new_adapter(parser: argparse.ArgumentParser) -> None:
    """The command `new-adapter`."""
    parser.add_argument("path", nargs="?", type=Path, default=Path("my_adapter.py"), help="default: my_adapter.py")
    parser.set_defaults(handler=new_adapter)


def new_adapter(arguments: argparse.Namespace) -> int:
    """Write the skeleton; never over a file that exists."""
    try:
        with arguments.path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.read_text(encoding="utf-8"))
    except OSError as error:
        print(f"{arguments.path}: {error.strerror}: name a new file in a folder that can be written", file=sys.stderr)
        return 2
    print(f"{arguments.path} is written; now try: tessera-conformance smoke py:{arguments.path.stem}:make")
    return 0
