"""TOML files that people edit, written with the line that names their schema to an editor, and the schema beside them.

Editors with a TOML language server (Even Better TOML, taplo, tombi) read the schema that a first line names,
`#:schema ./tessera-deviations.schema.json`, and complete and check by it. A schema there refers to no other file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tessera_conformance.reports.publish import write_text
from tessera_conformance.schemas import complete_schema

EDITED: Mapping[str, tuple[str, str]] = {
    "cabi-description": ("tessera:cabi-description", "description"),
    "declared": ("tessera:declared", "file"),
    "deviations": ("tessera:deviations", "file"),
}
"""The kinds of files, with the schema and the definition in it that they obey."""


def write_toml(path: Path, text: str, kind: str) -> None:
    """Write a TOML file of one of the kinds, with the line that names its schema, and the schema beside it."""
    write_text(path, write_schema(path.parent, kind) + text)


def write_schema(directory: Path, kind: str) -> str:
    """Write the schema of a kind of file into a folder, and return the line by which a file there names it."""
    file = f"tessera-{kind}.schema.json"
    write_text(directory / file, schema_text(kind))
    return f"#:schema ./{file}\n"


def schema_text(kind: str) -> str:
    """Return the JSON text of the schema of a kind of file."""
    return json.dumps(complete_schema(*EDITED[kind]), indent=2, ensure_ascii=False) + "\n"
