"""Feedback to the authors of the specifications: what they leave open, by section, with proposed wordings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tessera_conformance.registry.model import INTERPRETATION_ID, Clause, Document, Gap, Interpretation, Registry

# A sentence for the specification, proposed from the decision of an interpretation.
#
# `wording` of the row is the proposal. A row without it has its decision, where that speaks of the specification
# alone: what it says of this suite, its extensions and the reference is no text for the authors.


_CROSS_REFERENCE = re.compile(rf" \({INTERPRETATION_ID.pattern}\)")
_OURS = re.compile(
    r"\b(assert(s|ed)|suites?|harness|reference|extension|adapters?|feature|judged|tessx\w+|"
    r"fault plan|claim(s|ed)|fixture|untestable|editorial)\b",
    re.IGNORECASE,
)


def proposed_wording(row: Interpretation) -> str | None:
    """The sentences that could be in the section; None where the decision has none for it."""
    decision = _CROSS_REFERENCE.sub("", row.decision)
    ours = _OURS.search(decision) or INTERPRETATION_ID.search(decision)
    return row.wording or (None if ours else decision)


# The sections that leave something open: their interpretations, and their clauses that nothing can decide.


@dataclass(frozen=True)
class OpenPoints:
    """All that a section leaves open: its interpretations, by kind, and its clauses that nothing can decide."""

    document: str
    section: str
    title: str
    rows: tuple[Interpretation, ...]
    untestable: tuple[Clause, ...]

    def of(self, kind: str) -> list[Interpretation]:
        """The interpretations of a kind."""
        return [row for row in self.rows if row.kind == kind]


def open_points(registry: Registry) -> list[OpenPoints]:
    """The sections that leave something open, in the order of the documents, a parent before its parts."""
    rows: dict[tuple[str, str], list[Interpretation]] = {}
    for row in registry.interpretations.values():
        if row.active:
            rows.setdefault(_home_of(row, registry), []).append(row)
    untestable: dict[tuple[str, str], list[Clause]] = {}
    for clause in registry.clauses.values():
        if clause.active and clause.verify == "untestable" and clause.level != "INFO" and not clause.duplicate_of:
            untestable.setdefault((clause.document, clause.section), []).append(clause)
    points = []
    for key, document in registry.documents.items():
        sections = [section for owner, section in {**rows, **untestable} if owner == key]
        for section in sorted(sections, key=_order_in(document, registry)):
            found, undecided = (tuple(table.get((key, section), ())) for table in (rows, untestable))
            points.append(OpenPoints(key, section, document.sections.get(section, ""), found, undecided))
    return points


def _home_of(row: Interpretation, registry: Registry) -> tuple[str, str]:
    """The document and section under which an interpretation is listed: the first of its own document, if any.

    Of a range of sections it is the first.
    """
    keys = {document.prefix: key for key, document in registry.documents.items()}
    named = [name.partition(" ") for name in row.sections]
    places = [(keys[prefix], section.partition("-")[0]) for prefix, _, section in named]
    return next((place for place in places if place[0] == row.document), places[0])


def _order_in(document: Document, registry: Registry) -> Callable[[str], tuple[int, int, str]]:
    """Return a key that sorts the sections of a document by their first lines; those without a clause come last."""
    clauses = [clause for clause in registry.clauses_of(document.key) if clause.active]

    def key(section: str) -> tuple[int, int, str]:
        first = min((clause.lines[0] for clause in clauses if clause.within(section)), default=document.lines)
        return first, section.count("."), section

    return key


# Feedback to the authors of the specifications, as Markdown: what they leave open, by document and section.
#
# Nothing of their text is quoted: sections and lines are named, summaries are those of the registry.


MOST_FILES = 4
"""Files of tests that are named for an interpretation; the rest are counted."""

_HEADINGS: Mapping[Gap, str] = {
    "contradiction": "Contradictions",
    "example": "Samples that do not follow the text",
    "silence": "Silences",
}
_PREFACE = """\
# Feedback on the specifications

By document and section: contradictions, samples that do not follow the text, silences, and clauses that nothing can
decide. Each interpretation has the decision that the reference follows, the other readings, what the suite judges,
the files of tests that name it, the clauses that depend on it with their lines, and a proposed wording, unless the
decision is of this suite alone. The documents are not quoted; summaries are ours.

Made from the clause registry by `tessera-conformance clauses feedback --output reports/spec-feedback.md`.
"""


def feedback(registry: Registry, tests: Mapping[str, Sequence[str]]) -> str:
    """The whole text; `tests` are those that name each interpretation."""
    points = open_points(registry)
    blocks = [_PREFACE, _issue_table(registry, points)]
    for key, document in registry.documents.items():
        of_document = [point for point in points if point.document == key]
        if of_document:
            blocks.append(f"## {document.title}\n")
            blocks += ["\n".join(_section(point, registry, tests)) for point in of_document]
    return "\n".join(blocks)


def _issue_table(registry: Registry, points: Sequence[OpenPoints]) -> str:
    lines = ["| document | contradictions | samples | silences | not testable |", "|---|---|---|---|---|"]
    for key, document in registry.documents.items():
        of_document = [point for point in points if point.document == key]
        kinds = Counter(row.kind for point in of_document for row in point.rows)
        untestable = sum(len(point.untestable) for point in of_document)
        counts = [*(kinds[kind] for kind in _HEADINGS), untestable]
        lines.append(f"| {document.title} | {' | '.join(map(str, counts))} |")
    return "\n".join([*lines, ""])


def _section(points: OpenPoints, registry: Registry, tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    prefix = registry.documents[points.document].prefix
    yield f"### {prefix} {points.section} {points.title}".rstrip() + "\n"
    for kind, heading in _HEADINGS.items():
        rows = points.of(kind)
        if rows:
            yield f"**{heading}**\n"
            for row in rows:
                yield from _row(row, registry, tests.get(row.id, ()))
            yield ""
    if points.untestable:
        yield "**Not testable**\n"
        yield from map(_untestable, points.untestable)
        yield ""


def _row(row: Interpretation, registry: Registry, tests: Sequence[str]) -> Iterator[str]:
    yield f"- **{row.id}** ({', '.join(row.sections)}): {row.issue}"
    yield f"  - Decision: {row.decision} Why: {row.why}"
    if row.alternatives:
        yield f"  - Other readings: {'; '.join(row.alternatives)}."
    if row.excluded:
        yield f"  - Excluded readings: {'; '.join(row.excluded)}."
    yield f"  - The suite judges: {row.asserted}."
    proposed = proposed_wording(row)
    yield "  - Proposed wording: " + (
        "the decision." if proposed == row.decision else proposed or "none, the decision is of this suite."
    )
    if row.affects:
        yield f"  - Clauses: {', '.join(_with_lines(registry.clause(name)) for name in row.affects)}."
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    if files:
        more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
        yield f"  - Tests that name it: {', '.join(f'`{file}`' for file in files[:MOST_FILES])}{more}."


def _untestable(clause: Clause) -> str:
    reason = f": {clause.reason}" if clause.reason else ""
    return f"- **{_with_lines(clause)}** ({clause.level}) {clause.summary}{reason}."


def _with_lines(clause: Clause) -> str:
    first, last = clause.lines
    return f"{clause.id} (line {first})" if first == last else f"{clause.id} (lines {first} to {last})"
