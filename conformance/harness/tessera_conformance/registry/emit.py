"""Writing the registry's files, always in the same form, so that a change of one field is a diff of one line.

`clauses check --update-sources` writes through here, and a test holds every committed file equal to what this module
makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from tessera_conformance.registry.model import INTERPRETATIONS, Clause, Document, Interpretation, Registry

Value = str | int | tuple[str, ...] | tuple[int, int]

WIDTH = 120

CLAUSES_HEADING = """\
# The clauses of one document, in its order. Summaries are ours; the text stays with its authors and is named by
# section, lines and the digest of those lines (registry/source.py). Ids are final: a dropped clause keeps its row with
# status "withdrawn". Form: schemas/registry/clauses.schema.json; check: tessera-conformance clauses check.
"""

INTERPRETATIONS_HEADING = """\
# Where the documents are silent or contradict each other: what was decided, why, and how much of it a test may judge
# (asserted). Form: schemas/registry/interpretations.schema.json; check: tessera-conformance clauses check.
"""


def clauses(document: Document, rows: Iterable[Clause]) -> str:
    """The registry file of one document."""
    tables = [_table("[document]", document, leave_out=("sections",))]
    tables += [_titles(document)] if document.sections else []
    tables += [_table("[[clause]]", row, leave_out=("document",)) for row in rows]
    return "\n".join([f"{CLAUSES_HEADING}\nformat = 1\n", *tables])


def interpretations(rows: Iterable[Interpretation]) -> str:
    """The file of interpretations."""
    tables = [_table("[[interpretation]]", row, first=("id", "document")) for row in rows]
    return "\n".join([f"{INTERPRETATIONS_HEADING}\nformat = 1\n", *tables])


def write(registry: Registry, directory: Path) -> None:
    """Write every file of clauses and the interpretations."""
    for key, document in registry.documents.items():
        (directory / f"{key}.toml").write_text(
            clauses(document, registry.clauses_of(key)), encoding="utf-8", newline="\n"
        )
    text = interpretations(registry.interpretations.values())
    (directory / INTERPRETATIONS).write_text(text, encoding="utf-8", newline="\n")


def _table(
    heading: str,
    row: Document | Clause | Interpretation,
    first: tuple[str, ...] = (),
    leave_out: tuple[str, ...] = (),
) -> str:
    names = [field.name for field in fields(row) if field.name not in (*first, *leave_out)]
    return "\n".join([heading, *_assignments(row, [*first, *names]), ""])


def _titles(document: Document) -> str:
    lines = [f"{_scalar(section)} = {_scalar(title)}" for section, title in document.sections.items()]
    return "\n".join(["[document.sections]", *lines, ""])


def _assignments(row: Document | Clause | Interpretation, names: Iterable[str]) -> Iterator[str]:
    """The fields of a row; one at its default is left out."""
    defaults = {field.name: field.default for field in fields(row)}
    for name in names:
        value = getattr(row, name)
        if value != defaults[name]:
            yield f"{name} = {_value(value, WIDTH - len(name) - 3)}"


def _value(value: Value, width: int) -> str:
    if not isinstance(value, tuple):
        return _scalar(value)
    items = [_scalar(item) for item in value]
    on_one_line = f"[{', '.join(items)}]"
    if len(on_one_line) <= width:
        return on_one_line
    return "\n".join(["[", *(f"  {item}," for item in items), "]"])


def _scalar(value: str | int) -> str:
    """A TOML integer or basic string; JSON's escapes are TOML's, but for DEL, which has none in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
