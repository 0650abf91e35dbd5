"""The specifications' texts, and writing the registry's files in one form."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tessera_conformance.registry.errors import (
    DocumentChanged,
    LinesOutOfRange,
    RegistryError,
    SourceChanged,
    SourceMissing,
    SourceMoved,
)
from tessera_conformance.registry.model import INTERPRETATIONS, Clause, Document, Interpretation, Registry

# The digest that ties a clause to the lines of the specification it was read from.
#
# The text itself stays with its authors; the registry records only a digest of it. The text is normalised first, so
# that re-wrapped indentation, trailing blanks or an inserted empty line do not count as a change, while a changed
# word does: each line is stripped, runs of white space become one space, empty lines are dropped, characters are
# composed (NFC), and what remains is joined by newlines.


@dataclass(frozen=True)
class Specification:
    """The text of one document, as its lines and the digest of its bytes."""

    lines: tuple[str, ...]
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Specification:
        """Read a document; its lines end with a newline and with nothing else."""
        content = path.read_bytes()
        lines = content.decode("utf-8").removesuffix("\n").split("\n")
        return cls(tuple(lines), hashlib.sha256(content).hexdigest())

    def span(self, first: int, last: int) -> Sequence[str]:
        """The lines from `first` to `last`, both counted from one and included."""
        return self.lines[first - 1 : last]


def normalise(lines: Sequence[str]) -> str:
    """The part of some lines that counts: their words, in order, line by line."""
    words = (" ".join(unicodedata.normalize("NFC", line).split()) for line in lines)
    return "\n".join(line for line in words if line)


def digest(lines: Sequence[str]) -> str:
    """The digest of the normalised lines, in the registry's spelling."""
    return "sha256:" + hashlib.sha256(normalise(lines).encode("utf-8")).hexdigest()


def read_specifications(
    documents: Iterable[Document], directory: Path
) -> tuple[dict[str, Specification], list[RegistryError]]:
    """The texts found in a directory, by document key, and an error for each one that is not there."""
    found: dict[str, Specification] = {}
    missing: list[RegistryError] = []
    for document in documents:
        path = directory / document.file
        try:
            found[document.key] = Specification.read(path)
        except (OSError, UnicodeDecodeError) as error:
            missing.append(SourceMissing(document.key, str(path), error))
    return found, missing


def changed_sources(registry: Registry, specifications: Mapping[str, Specification]) -> Iterator[RegistryError]:
    """Yield the differences between the texts and the registry's record of them."""
    for key, specification in specifications.items():
        document = registry.documents[key]
        if specification.sha256 != document.sha256:
            yield DocumentChanged(key, document.file, document.lines, len(specification.lines))
        for clause in registry.clauses_of(key):
            yield from _changes_of(clause, specification)


def _changes_of(clause: Clause, specification: Specification) -> Iterator[RegistryError]:
    first, last = clause.lines
    if not clause.active or digest(specification.span(first, last)) == clause.source:
        return
    place = (clause.document, clause.id, clause.section, clause.lines)
    elsewhere = _find(clause, specification)
    if elsewhere is not None:
        yield SourceMoved(*place, elsewhere)
    elif last > len(specification.lines):
        yield LinesOutOfRange(*place, len(specification.lines))
    else:
        yield SourceChanged(*place)


def _find(clause: Clause, specification: Specification) -> tuple[int, int] | None:
    """Return the place of a clause's recorded text now, as near as possible to its old place."""
    first, last = clause.lines
    height = last - first
    starts = sorted(range(1, len(specification.lines) - height + 1), key=lambda start: abs(start - first))
    for start in starts:
        if digest(specification.span(start, start + height)) == clause.source:
            return start, start + height
    return None


def updated(registry: Registry, specifications: Mapping[str, Specification]) -> Registry:
    """The registry with its digests, and the lines of texts that only moved, taken from the documents as they are."""
    documents = {
        key: replace(document, lines=len(specifications[key].lines), sha256=specifications[key].sha256)
        if key in specifications
        else document
        for key, document in registry.documents.items()
    }
    clauses = {
        clause.id: _updated(clause, specifications[clause.document])
        if clause.active and clause.document in specifications
        else clause
        for clause in registry.clauses.values()
    }
    return replace(registry, documents=documents, clauses=clauses)


def _updated(clause: Clause, specification: Specification) -> Clause:
    lines = _find(clause, specification) or clause.lines
    return replace(clause, lines=lines, source=digest(specification.span(*lines)))


# Writing the registry's files, always in the same form, so that a change of one field is a diff of one line.
#
# `clauses check --update-sources` writes through here, and a test holds every committed file equal to what this
# module makes of it.


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
