"""`tessera-conformance schema`: the form of a TOML file that people edit, as one JSON Schema for their editor."""

from __future__ import annotations

import argparse
from pathlib import Path

from tessera_conformance.reports.publish import EDITED, schema_text, write_schema
from tessera_conformance.terminal import reporting_errors


def configure_schema(parser: argparse.ArgumentParser) -> None:
    """The command `schema`."""
    parser.description = (
        "Print the JSON Schema of a TOML file that people edit; an editor reads the one that `#:schema FILE` names."
    )
    parser.add_argument("kind", metavar="KIND", choices=sorted(EDITED), help=", ".join(sorted(EDITED)))
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="write it into DIR, and print the line that names it"
    )
    parser.set_defaults(handler=reporting_errors(print_schema))


def print_schema(arguments: argparse.Namespace) -> int:
    """Print the schema, or write it and print the line that names it."""
    written = write_schema(arguments.output, arguments.kind) if arguments.output else schema_text(arguments.kind)
    print(written, end="")
    return 0
