"""What relates the registry's rows to each other and to the headers of their files.

An id starts with its document's prefix and its section; lines lie in the document; every row named exists and may be
named; a clause names an interpretation exactly when that interpretation says that it affects the clause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tessera_conformance.registry.errors import BadReference, Inconsistent, RegistryError
from tessera_conformance.registry.model import Clause, Interpretation, NamedProfile, Registry, nearest

MISSING = "does not exist"

REQUIRED = {
    "duplicate_of": "an active clause that is no duplicate",
    "interpretations": "an active interpretation whose affects names this clause",
    "affects": "a clause whose interpretations name this one",
    "clauses": "an active testable core MUST clause of the profile's document",
}
"""What each field that names another row must name."""


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
    for profile in registry.profiles:
        yield from _problems_of_profile(profile, registry)


def _problems_of_place(clause: Clause, registry: Registry) -> Iterator[RegistryError]:
    document = registry.documents[clause.document]
    stem = f"{document.prefix}-{_section_in_id(clause.section)}-"
    if not clause.id.startswith(stem):
        yield Inconsistent(clause.file, clause.id, "id", repr(clause.id), f"an id that begins with {stem}")
    first, last = clause.lines
    if not first <= last <= document.lines:
        required = f"first <= last <= {document.lines}, the lines of {document.file}"
        yield Inconsistent(clause.file, clause.id, "lines", f"[{first}, {last}]", required)


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
        problem = MISSING
    elif twin.id == clause.id:
        problem = "is the clause itself"
    elif clause.active and not twin.active:
        problem = "is withdrawn"
    elif twin.duplicate_of is not None:
        problem = f"is itself a duplicate, of {twin.duplicate_of}"
    yield from _bad_reference(clause, "duplicate_of", clause.duplicate_of, problem, registry.clauses)


def _problems_of_citations(clause: Clause, registry: Registry) -> Iterator[RegistryError]:
    for cited in clause.interpretations:
        interpretation = registry.interpretations.get(cited)
        problem = None
        if interpretation is None:
            problem = MISSING
        elif clause.active and not interpretation.active:
            problem = "is withdrawn"
        elif clause.id not in interpretation.affects:
            problem = "does not say that it affects this clause"
        yield from _bad_reference(clause, "interpretations", cited, problem, registry.interpretations)


def _problems_of_interpretation(interpretation: Interpretation, registry: Registry) -> Iterator[RegistryError]:
    document = registry.documents.get(interpretation.document)
    if document and not interpretation.id.startswith(f"AMB-{document.prefix}-"):
        required = f"an id that begins with AMB-{document.prefix}-"
        yield Inconsistent(interpretation.file, interpretation.id, "id", repr(interpretation.id), required)
    for affected in interpretation.affects:
        clause = registry.clauses.get(affected)
        problem = None
        if clause is None:
            problem = MISSING
        elif interpretation.id not in clause.interpretations:
            problem = "does not name this interpretation"
        yield from _bad_reference(interpretation, "affects", affected, problem, registry.clauses)


def _problems_of_profile(profile: NamedProfile, registry: Registry) -> Iterator[RegistryError]:
    others = {name for other in registry.profiles if other is not profile for name in other.features}
    for feature in profile.features:
        if feature not in registry.features:
            yield Inconsistent(profile.file, profile.id, "features", repr(feature), "features of the registry")
        elif feature in others:
            yield Inconsistent(profile.file, profile.id, "features", repr(feature), "features of no other profile")
    for name in profile.clauses:
        clause, problem = registry.clauses.get(name), None
        if clause is None:
            problem = MISSING
        elif not (clause.active and clause.testable) or (clause.level, clause.profile) != ("MUST", "core"):
            problem = "is no testable core MUST"
        elif clause.document != profile.document:
            problem = f"is of {clause.document}"
        yield from _bad_reference(profile, "clauses", name, problem, registry.clauses)


def _bad_reference(
    row: Clause | Interpretation | NamedProfile,
    field: str,
    target: str,
    problem: str | None,
    known: Mapping[str, object],
) -> Iterator[BadReference]:
    if problem is not None:
        suggestions = nearest(target, known) if problem == MISSING else ()
        yield BadReference(row.file, row.id, field, target, problem, REQUIRED[field], suggestions)
