"""The specifications with all that the suite knows of them: clauses, interpretations, tests and verdicts by line.

`annotated` joins the text of a document with the registry and gives its passages, each a run of lines of which the same
clauses speak. `sections_of` and `open_points` need no text: the feedback to the authors is made from them, and quotes
nothing. `annotated_page` and `feedback` show these values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

from tessera_conformance.registry.model import LEVELS, Clause, Document, Interpretation, Level, Registry
from tessera_conformance.registry.source import Specification

Mark = Literal["contradiction", "example", "silence", "untestable"]
MARKS: Mapping[Mark, str] = {
    "contradiction": "contradictory",
    "example": "sample against the text",
    "silence": "silent",
    "untestable": "not testable",
}
"""Each mark of a passage in words, the gravest first."""

_HEADING = re.compile(r"#{1,6} ")
_FENCE = re.compile(r"\s*```")
_RANGE_OF_SECTIONS = re.compile(r"-.*")


@dataclass(frozen=True)
class Run:
    """One report: the outcome of each clause in words, and the verdict of each case."""

    name: str
    outcomes: Mapping[str, str]
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class Knowledge:
    """What is known beside the text: the registry, the cases of each clause, tests that name interpretations, runs."""

    registry: Registry
    cases: Mapping[str, Sequence[str]]
    tests: Mapping[str, Sequence[str]]
    runs: Sequence[Run] = ()

    @cached_property
    def of_clause(self) -> Mapping[str, tuple[Interpretation, ...]]:
        """The active interpretations that each clause depends on."""
        found: dict[str, tuple[Interpretation, ...]] = {}
        for row in self.registry.interpretations.values():
            for clause in row.affects if row.active else ():
                found[clause] = (*found.get(clause, ()), row)
        return found


@dataclass(frozen=True)
class Section:
    """A section that has clauses or interpretations; `first` is its first line with a clause, 0 where it has none."""

    document: str
    id: str
    title: str
    first: int

    @property
    def anchor(self) -> str:
        """The name of its place on the page of its document."""
        return f"section-{self.id}"


@dataclass(frozen=True)
class Passage:
    """Lines of which the same clauses speak, with what is told beside them.

    `clauses` are all that speak of the lines, `begins` those of them that are shown here, at their first line.
    `gaps` are the interpretations shown here: at the first passage of a clause that depends on them, or at the head of
    their section. `sections` begin here.
    """

    first: int
    text: tuple[str, ...]
    sections: tuple[Section, ...]
    clauses: tuple[Clause, ...]
    begins: tuple[Clause, ...]
    gaps: tuple[Interpretation, ...]
    marks: tuple[Mark, ...]

    @property
    def level(self) -> Level | None:
        """The strongest level of the clauses that speak of the lines."""
        return min((clause.level for clause in self.clauses), key=LEVELS.index, default=None)


def annotated(document: Document, text: Specification, known: Knowledge) -> list[Passage]:
    """The passages of a document, which are all of its lines, in order."""
    clauses = [clause for clause in known.registry.clauses_of(document.key) if clause.active]
    heads = _heads(document, text, known.registry)
    speaking: dict[int, list[Clause]] = {}
    for clause in clauses:
        for line in range(clause.lines[0], clause.lines[1] + 1):
            speaking.setdefault(line, []).append(clause)

    def key(line: int) -> tuple[object, ...]:
        return (max((head for head in heads if head <= line), default=0), *(each.id for each in speaking.get(line, ())))

    places = _places_of_gaps(document, known, heads)
    passages: list[Passage] = []
    shown: set[str] = set()
    for lines in _runs(range(1, len(text.lines) + 1), key):
        here = tuple(speaking.get(lines[0], ()))
        begins = tuple(clause for clause in here if clause.id not in shown)
        shown.update(clause.id for clause in begins)
        gaps = tuple(row for row in places if lines[0] <= places[row] <= lines[-1])
        marks = _marks(here, gaps, known)
        sections = tuple(heads[lines[0]]) if lines[0] in heads else ()
        passages.append(Passage(lines[0], tuple(text.span(lines[0], lines[-1])), sections, here, begins, gaps, marks))
    return passages


def _runs(lines: range, key: Callable[[int], object]) -> Iterator[list[int]]:
    for _, run in groupby(lines, key):
        yield list(run)


def _heads(document: Document, text: Specification, registry: Registry) -> dict[int, list[Section]]:
    """The sections of a document by the line of their heading: the last heading before their first clause."""
    headings, fenced = [1], False
    for number, line in enumerate(text.lines, start=1):
        fenced ^= bool(_FENCE.match(line))
        if not fenced and _HEADING.match(line):
            headings.append(number)
    heads: dict[int, list[Section]] = {}
    for section in sections_of(registry)[document.key]:
        if section.first:
            heads.setdefault(max(line for line in headings if line <= section.first), []).append(section)
    return heads


def _places_of_gaps(
    document: Document, known: Knowledge, heads: Mapping[int, Sequence[Section]]
) -> dict[Interpretation, int]:
    """The line beside which each interpretation that concerns a document is shown, in the order of lines.

    It is that of the first clause that depends on it, in a section that it names where there is such a clause; of one
    on which no clause depends, the head of its section.
    """
    lines_of_sections = {section.id: line for line, sections in heads.items() for section in sections}
    places = {}
    for row in known.registry.interpretations.values():
        affected = [known.registry.clauses[name] for name in row.affects if name in known.registry.clauses]
        clauses = [clause for clause in affected if clause.document == document.key]
        named = [clause for clause in clauses if _names_section_of(row, clause, known.registry)]
        sections = [section for key, section in places_of(row, known.registry) if key == document.key]
        if row.active and clauses:
            places[row] = min(clause.lines[0] for clause in named or clauses)
        elif row.active and sections:
            places[row] = min(lines_of_sections.get(section, 1) for section in sections)
    return dict(sorted(places.items(), key=lambda item: item[1]))


def _names_section_of(row: Interpretation, clause: Clause, registry: Registry) -> bool:
    """True if the clause stands in a section that the interpretation names, by itself or as one of several."""
    prefix = registry.documents[clause.document].prefix
    for name in row.sections:
        document, _, section = name.partition(" ")
        first, _, last = section.partition("-")
        if document == prefix and (
            clause.within(first) or (last and _numbers(first) <= _numbers(clause.section) <= _numbers(last))
        ):
            return True
    return False


def _numbers(section: str) -> list[tuple[int, str]]:
    """The parts of a section's name in the order of numbers, 4.10 after 4.9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in section.split(".")]


def _marks(clauses: Sequence[Clause], gaps: Sequence[Interpretation], known: Knowledge) -> tuple[Mark, ...]:
    """What is said of lines: by the interpretations shown here, and by those that name the section of a clause."""
    found = {row.kind for row in gaps}
    for clause in clauses:
        rows = known.of_clause.get(clause.id, ())
        found |= {row.kind for row in rows if _names_section_of(row, clause, known.registry)}
    untestable = any(is_untestable(clause) for clause in clauses)
    return tuple(mark for mark in MARKS if mark in found or (mark == "untestable" and untestable))


def is_untestable(clause: Clause) -> bool:
    """True if a clause demands, recommends or permits something that no case and no reader can decide."""
    return clause.active and clause.verify == "untestable" and clause.level != "INFO"


def sections_of(registry: Registry) -> Mapping[str, Sequence[Section]]:
    """The sections of each document in its order, the parent before its parts."""
    return {key: _sections(document, registry) for key, document in registry.documents.items()}


def _sections(document: Document, registry: Registry) -> list[Section]:
    clauses = [clause for clause in registry.clauses_of(document.key) if clause.active]
    rows = [row for row in registry.interpretations.values() if row.active]
    names = [clause.section for clause in clauses]
    names += [section for row in rows for key, section in places_of(row, registry) if key == document.key]
    found = []
    for name in dict.fromkeys(names):
        lines = [clause.lines[0] for clause in clauses if clause.within(name)]
        found.append(Section(document.key, name, document.sections.get(name, ""), min(lines, default=0)))
    return sorted(found, key=lambda section: (section.first or document.lines, section.id.count("."), section.id))


def places_of(row: Interpretation, registry: Registry) -> list[tuple[str, str]]:
    """The document and the section of each place that an interpretation names; of several sections the first."""
    keys = {document.prefix: key for key, document in registry.documents.items()}
    places = []
    for name in row.sections:
        prefix, _, section = name.partition(" ")
        places.append((keys[prefix], _RANGE_OF_SECTIONS.sub("", section)))
    return places


def home_of(row: Interpretation, registry: Registry) -> tuple[str, str]:
    """The document and section under which an interpretation is listed: the first of its own document, if any."""
    places = places_of(row, registry)
    return next((place for place in places if place[0] == row.document), places[0])


@dataclass(frozen=True)
class OpenPoints:
    """All that a section leaves open: its interpretations, by kind, and its clauses that nothing can decide."""

    section: Section
    rows: tuple[Interpretation, ...]
    untestable: tuple[Clause, ...]

    def of(self, kind: str) -> list[Interpretation]:
        """The interpretations of a kind."""
        return [row for row in self.rows if row.kind == kind]


def open_points(registry: Registry) -> list[OpenPoints]:
    """The sections that leave something open, in the order of the documents."""
    rows: dict[tuple[str, str], list[Interpretation]] = {}
    for row in registry.interpretations.values():
        if row.active:
            rows.setdefault(home_of(row, registry), []).append(row)
    untestable: dict[tuple[str, str], list[Clause]] = {}
    for clause in registry.clauses.values():
        if is_untestable(clause) and clause.duplicate_of is None:
            untestable.setdefault((clause.document, clause.section), []).append(clause)
    found = []
    for key, sections in sections_of(registry).items():
        for section in sections:
            place = (key, section.id)
            points = OpenPoints(section, tuple(rows.get(place, ())), tuple(untestable.get(place, ())))
            if points.rows or points.untestable:
                found.append(points)
    return found
