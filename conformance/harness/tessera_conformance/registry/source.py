"""The digest that ties a clause to the lines of the specification it was read from.

The text itself stays with its authors; the registry records only a digest of it. The text is normalised first, so
that re-wrapped indentation, trailing blanks or an inserted empty line do not count as a change, while a changed word
does: each line is stripped, runs of white space become one space, empty lines are dropped, characters are composed
(NFC), and what remains is joined by newlines.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tessera_conformance.registry.errors import (
    DocumentChanged,
    LinesOutOfRange,
    RegistryError,
    SourceChanged,
    SourceMissing,
    SourceMoved,
)
from tessera_conformance.registry.model import Clause, Document, Registry


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
    """What differs between the texts and what the registry recorded of them."""
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
    """Where the recorded text of a clause stands now, as near as possible to where it stood."""
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
