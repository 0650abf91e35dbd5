"""What relates the registry's rows to each other and to the headers of their files.

An id starts with its document's prefix and its section; lines lie in the document; every row named exists and may be
named; a clause names an interpretation exactly when that interpretation says that it affects the clause.
"""

from __future__ import annotations

from collections.abc import Iterator

from tessera_conformance.registry.errors import BadReference, Inconsistent, RegistryError
from tessera_conformance.registry.model import Clause, Interpretation, Registry, nearest

INTERPRETATIONS_FILE = "interpretations.toml"


def problems(registry: Registry) -> Iterator[RegistryError]:
    """Every contradiction between rows, in the order of the rows."""
    for key, document in registry.documents.items():
        if document.key != key:
            yield Inconsistent(f"{key}.toml", "[document]", "key", repr(document.key), f'"{key}", the name of its file')
    for clause in registry.clauses.values():
        yield from _problems_of_place(clause, registry)
        yield from _problems_of_twin(clause, registry)
        yield from _problems_of_citations(clause, registry)
    for interpretation in registry.interpretations.values():
        yield from _problems_of_interpretation(interpretation, registry)


def _problems_of_place(clause: Clause, registry: Registry) -> Iterator[RegistryError]:
    document = registry.documents[clause.document]
    stem = f"{document.prefix}-{_section_in_id(clause.section)}-"
    if not clause.id.startswith(stem):
        yield Inconsistent(_file(clause), clause.id, "id", repr(clause.id), f"an id that begins with {stem}")
    first, last = clause.lines
    if not first <= last <= document.lines:
        required = f"first <= last <= {document.lines}, the lines of {document.file}"
        yield Inconsistent(_file(clause), clause.id, "lines", f"[{first}, {last}]", required)


def _section_in_id(section: str) -> str:
    """Chapters have two digits in ids, so that ids sort as the document reads: 5.2 becomes 05.2."""
    chapter, point, rest = section.partition(".")
    return f"{chapter.zfill(2) if chapter.isdigit() else chapter}{point}{rest}"


def _problems_of_twin(clause: Clause, registry: Registry) -> Iterator[RegistryError]:
    if clause.duplicate_of is None:
        return
    twin = registry.clauses.get(clause.duplicate_of)
    problem = None
    if twin is None:
        problem = "does not exist"
    elif twin.id == clause.id:
        problem = "is the clause itself"
    elif clause.active and not twin.active:
        problem = "is withdrawn"
    elif twin.duplicate_of is not None:
        problem = f"is itself a duplicate, of {twin.duplicate_of}"
    if problem:
        suggestions = nearest(clause.duplicate_of, registry.clauses) if twin is None else ()
        required = "an active clause that is no duplicate"
        yield BadReference(
            _file(clause), clause.id, "duplicate_of", clause.duplicate_of, problem, required, suggestions
        )


def _problems_of_citations(clause: Clause, registry: Registry) -> Iterator[RegistryError]:
    required = "an active interpretation whose affects names this clause"
    for cited in clause.interpretations:
        interpretation = registry.interpretations.get(cited)
        if interpretation is None:
            suggestions = nearest(cited, registry.interpretations)
            problem = "does not exist"
            yield BadReference(_file(clause), clause.id, "interpretations", cited, problem, required, suggestions)
        elif clause.active and not interpretation.active:
            yield BadReference(_file(clause), clause.id, "interpretations", cited, "is withdrawn", required)
        elif clause.id not in interpretation.affects:
            problem = "does not say that it affects this clause"
            yield BadReference(_file(clause), clause.id, "interpretations", cited, problem, required)


def _problems_of_interpretation(interpretation: Interpretation, registry: Registry) -> Iterator[RegistryError]:
    document = registry.documents.get(interpretation.document)
    if document and not interpretation.id.startswith(f"AMB-{document.prefix}-"):
        required = f"an id that begins with AMB-{document.prefix}-"
        yield Inconsistent(INTERPRETATIONS_FILE, interpretation.id, "id", repr(interpretation.id), required)
    required = "a clause whose interpretations name this one"
    for affected in interpretation.affects:
        clause = registry.clauses.get(affected)
        suggestions: tuple[str, ...] = ()
        if clause is None:
            problem, suggestions = "does not exist", nearest(affected, registry.clauses)
        elif interpretation.id not in clause.interpretations:
            problem = "does not name this interpretation"
        else:
            continue
        yield BadReference(INTERPRETATIONS_FILE, interpretation.id, "affects", affected, problem, required, suggestions)


def _file(clause: Clause) -> str:
    return f"{clause.document}.toml"
