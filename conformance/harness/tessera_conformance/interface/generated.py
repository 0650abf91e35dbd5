"""The files of a checkout that are made from the interface: the schemas of the messages, the page of the protocol."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from tessera_conformance.interface.declarations import interface
from tessera_conformance.interface.json_schema import schema_text
from tessera_conformance.interface.page import page_with_tables
from tessera_conformance.locations import schemas_directory

__all__ = ["configure_interface", "made_files"]


def made_files(root: Path) -> Mapping[Path, str]:
    """What each file should hold; `root` is the checkout."""
    declared = interface()
    page = root / "docs" / "protocol.md"
    schemas = {
        root / "schemas" / "protocol" / f"{area.name}.schema.json": schema_text(declared, area)
        for area in declared.areas.values()
    }
    return {**schemas, page: page_with_tables(declared, page.read_text(encoding="utf-8"))}


def configure_interface(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments and the handler of the subcommand `interface`."""
    parser.add_argument("--write", action="store_true", help="write the files that are not current")
    parser.set_defaults(handler=_interface)


def _interface(options: argparse.Namespace) -> int:
    root = schemas_directory().parent
    if not (root / "docs" / "protocol.md").is_file():
        print("error: this needs a checkout of the project; the installed suite is as it was made", file=sys.stderr)
        return 2
    stale = [
        (path, text)
        for path, text in made_files(root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        print(f"{path.relative_to(root)}: {'written' if options.write else 'not current'}")
        if options.write:
            path.write_text(text, encoding="utf-8")
    return int(bool(stale) and not options.write)
