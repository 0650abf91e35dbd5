"""Files made from a report, and TOML files that people edit with the schema beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tessera_conformance.registry import Registry
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.junit import junit
from tessera_conformance.reports.page import page
from tessera_conformance.reports.summary import markdown
from tessera_conformance.schemas import complete_schema

# Everything people look at, made from a report file and written beside it.


Rendering = Callable[[Report, Registry], str | Iterable[str]]

RENDERINGS: dict[str, Rendering] = {"summary.md": markdown, "junit.xml": junit, "index.html": page}


def publish(report: Report, registry: Registry, directory: Path | None = None) -> None:
    """Write `summary.md`, `junit.xml` and `index.html` into the report's directory, or another."""
    directory = directory or report.path.parent
    directory.mkdir(parents=True, exist_ok=True)
    for name, render in RENDERINGS.items():
        write_text(directory / name, render(report, registry))


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write UTF-8 with plain line ends; half characters that an implementation sent are written as escapes."""
    with path.open("wb") as file:
        for piece in [text] if isinstance(text, str) else text:
            file.write(piece.encode("utf-8", errors="backslashreplace"))


# TOML files that people edit, written with the line that names their schema to an editor, and the schema beside them.
#
# Editors with a TOML language server (Even Better TOML, taplo, tombi) read the schema that a first line names,
# `#:schema ./tessera-deviations.schema.json`, and complete and check by it. A schema there refers to no other file.


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
