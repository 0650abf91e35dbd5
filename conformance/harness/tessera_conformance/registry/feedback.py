"""Feedback to the authors of the specifications, as Markdown: what they leave open, by document and section.

Nothing of their text is quoted: sections and lines are named, summaries are those of the registry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tessera_conformance.registry.annotate import OpenPoints, open_points
from tessera_conformance.registry.model import Clause, Gap, Interpretation, Registry
from tessera_conformance.registry.wording import proposed_wording

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
    blocks = [_PREFACE, _table(registry, points)]
    for key, document in registry.documents.items():
        of_document = [each for each in points if each.section.document == key]
        if of_document:
            blocks.append(f"## {document.title}\n")
            blocks += ["\n".join(_section(each, registry, tests)) for each in of_document]
    return "\n".join(blocks)


def _table(registry: Registry, points: Sequence[OpenPoints]) -> str:
    lines = ["| document | contradictions | samples | silences | not testable |", "|---|---|---|---|---|"]
    for key, document in registry.documents.items():
        of_document = [each for each in points if each.section.document == key]
        kinds = Counter(row.kind for each in of_document for row in each.rows)
        untestable = sum(len(each.untestable) for each in of_document)
        counts = [*(kinds[kind] for kind in _HEADINGS), untestable]
        lines.append(f"| {document.title} | {' | '.join(map(str, counts))} |")
    return "\n".join([*lines, ""])


def _section(points: OpenPoints, registry: Registry, tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    section = points.section
    prefix = registry.documents[section.document].prefix
    yield f"### {prefix} {section.id} {section.title}".rstrip() + "\n"
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
