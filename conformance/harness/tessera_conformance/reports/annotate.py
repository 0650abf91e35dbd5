"""The specifications annotated with clauses, interpretations and results, as HTML; and feedback to their authors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Literal

from tessera_conformance.registry import model
from tessera_conformance.registry.load import Specification
from tessera_conformance.registry.model import LEVELS, Clause, Document, Gap, Interpretation, Level, Registry
from tessera_conformance.reports.page import head

# A sentence for the specification, proposed from the decision of an interpretation.
#
# `wording` of the row is the proposal. A row without it proposes its decision, if that is about the specification
# alone: statements about this suite, its extensions and the reference are no text for the authors.


_CROSS_REFERENCE = re.compile(rf" \({model.INTERPRETATION_ID.pattern}\)")
_OURS = re.compile(
    r"\b(assert(s|ed)|suites?|harness|reference|extension|adapters?|feature|judged|tessx\w+|"
    r"fault plan|claim(s|ed)|fixture|untestable|editorial)\b",
    re.IGNORECASE,
)


def proposed_wording(row: Interpretation) -> str | None:
    """Return sentences for the section; None if the decision has none for it."""
    decision = _CROSS_REFERENCE.sub("", row.decision)
    ours = _OURS.search(decision) or model.INTERPRETATION_ID.search(decision)
    return row.wording or (None if ours else decision)


# The specifications with everything that the suite knows about them: clauses, interpretations, tests, verdicts by line.
#
# `annotated` joins the text of a document with the registry and gives its passages: runs of lines with the same
# clauses. `sections_of` needs no text: the feedback to the authors is made from it, and quotes nothing. `document_page`
# and `feedback` show these values.


Mark = Literal["contradiction", "example", "silence", "untestable"]
MARKS: Mapping[Mark, str] = {
    "contradiction": "contradictory",
    "example": "sample against the text",
    "silence": "silent",
    "untestable": "not testable",
}
"""The words for each mark of a passage, the gravest mark first."""

_HEADING = re.compile(r"#{1,6} ")
_FENCE = re.compile(r"\s*```")


@dataclass(frozen=True)
class Run:
    """One report: the outcome of each clause in words, and the verdict of each case."""

    name: str
    outcomes: Mapping[str, str]
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class Knowledge:
    """Facts beside the text: the registry, cases of each clause, tests that name each interpretation, and runs."""

    registry: Registry
    cases: Mapping[str, Sequence[str]]
    tests: Mapping[str, Sequence[str]]
    runs: Sequence[Run] = ()

    def gaps_of(self, clause: Clause) -> Sequence[Interpretation]:
        """Return the active interpretations that a clause depends on."""
        return [row for row in self.registry.interpretations.values() if row.active and clause.id in row.affects]


@dataclass(frozen=True)
class Section:
    """A section that has clauses or interpretations; `first` is its first line with a clause, 0 where it has none.

    It leaves open `rows`, the interpretations about it, and `untestable`, its clauses that nothing can decide.
    """

    id: str
    title: str
    first: int
    rows: tuple[Interpretation, ...]
    untestable: tuple[Clause, ...]

    @property
    def anchor(self) -> str:
        """The id of its heading on the page of its document."""
        return f"section-{self.id}"


@dataclass(frozen=True)
class Passage:
    """Lines with the same clauses, with notes beside them.

    `clauses` are all clauses of the lines; `begins` are those shown here, at their first line. `gaps` are the
    interpretations shown here: at the first passage of a clause that depends on them, or at the head of their section.
    `sections` begin here.
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
        """The strongest level of the clauses of the lines."""
        return min((clause.level for clause in self.clauses), key=LEVELS.index, default=None)


def annotated(document: Document, text: Specification, knowledge: Knowledge) -> list[Passage]:
    """Return the passages of a document, which together are all of its lines, in order."""
    clauses = [clause for clause in knowledge.registry.clauses_of(document.key) if clause.active]
    heads = _heads(document, text, knowledge.registry)
    speaking: dict[int, list[Clause]] = {}
    for clause in clauses:
        for line in range(clause.lines[0], clause.lines[1] + 1):
            speaking.setdefault(line, []).append(clause)

    def key(line: int) -> tuple[object, ...]:
        return (
            max((head for head in heads if head <= line), default=0),
            *(clause.id for clause in speaking.get(line, ())),
        )

    places = _places_of_gaps(document, knowledge, heads)
    passages: list[Passage] = []
    shown: set[str] = set()
    for lines in ([*run] for _, run in groupby(range(1, len(text.lines) + 1), key)):
        here = tuple(speaking.get(lines[0], ()))
        begins = tuple(clause for clause in here if clause.id not in shown)
        shown.update(clause.id for clause in begins)
        gaps = tuple(row for row in places if lines[0] <= places[row] <= lines[-1])
        kinds = {*(row.kind for row in gaps), *("untestable" for clause in here if is_untestable(clause))}
        marks = tuple(mark for mark in MARKS if mark in kinds)
        sections = tuple(heads[lines[0]]) if lines[0] in heads else ()
        passages.append(Passage(lines[0], tuple(text.span(lines[0], lines[-1])), sections, here, begins, gaps, marks))
    return passages


def _heads(document: Document, text: Specification, registry: Registry) -> dict[int, list[Section]]:
    """Return the sections of a document by the line of their heading: the last heading before their first clause."""
    headings, fenced = [1], False
    for number, line in enumerate(text.lines, start=1):
        fenced ^= bool(_FENCE.match(line))
        if not fenced and _HEADING.match(line):
            headings.append(number)
    heads: dict[int, list[Section]] = {}
    for section in sections_of(document, registry):
        if section.first:
            heads.setdefault(max(line for line in headings if line <= section.first), []).append(section)
    return heads


def _places_of_gaps(
    document: Document, knowledge: Knowledge, heads: Mapping[int, Sequence[Section]]
) -> dict[Interpretation, int]:
    """Return the line beside which each interpretation of a document is shown, in the order of lines.

    It is the first line of a dependent clause. Without such a clause it is the head of its section.
    """
    registry = knowledge.registry
    lines_of_sections = {section.id: line for line, sections in heads.items() for section in sections}
    places = {}
    for row in registry.interpretations.values():
        affected = [registry.clauses[name] for name in row.affects if name in registry.clauses]
        lines = [clause.lines[0] for clause in affected if clause.document == document.key]
        heads_of_row = [lines_of_sections.get(name, 1) for key, name in places_of(row, registry) if key == document.key]
        if row.active and (lines or heads_of_row):
            places[row] = min(lines or heads_of_row)
    return dict(sorted(places.items(), key=lambda item: item[1]))


def is_untestable(clause: Clause) -> bool:
    """True if a clause demands, recommends or permits something that no case and no reader can decide."""
    return clause.active and clause.verify == "untestable" and clause.level != "INFO"


def sections_of(document: Document, registry: Registry) -> list[Section]:
    """Return the sections of a document in its order, each before its subsections."""
    clauses = [clause for clause in registry.clauses_of(document.key) if clause.active]
    names = [clause.section for clause in clauses]
    at_home: dict[str, list[Interpretation]] = {}
    for row in registry.interpretations.values():
        if row.active:
            places = places_of(row, registry)
            names += [first for key, first in places if key == document.key]
            key, section = next((place for place in places if place[0] == row.document), places[0])
            if key == document.key:
                at_home.setdefault(section, []).append(row)
    sections = []
    for name in dict.fromkeys(names):
        first = min((clause.lines[0] for clause in clauses if clause.within(name)), default=0)
        own = [clause for clause in clauses if clause.section == name and clause.duplicate_of is None]
        untestable = tuple(clause for clause in own if is_untestable(clause))
        sections.append(Section(name, document.sections.get(name, ""), first, tuple(at_home.get(name, ())), untestable))
    return sorted(sections, key=lambda section: (section.first or document.lines, section.id.count("."), section.id))


def places_of(row: Interpretation, registry: Registry) -> list[tuple[str, str]]:
    """Return the places that an interpretation names: a document and a section, the first one of a range."""
    keys = {document.prefix: key for key, document in registry.documents.items()}
    names = (name.partition(" ") for name in row.sections)
    return [(keys[prefix], sections.partition("-")[0]) for prefix, _, sections in names]


# The annotated specifications as HTML: a page for each document and a first page, static, without script or network.
#
# A content security policy allows the one style by its hash. Notes that fold are `details`; the style alone selects
# passages. The page of a document shows its lines on the left, coloured by the strongest level of their clauses. The
# notes are on the right.


MOST_CASES = 12
"""Cases and tests that a note lists; the rest are counted."""
STYLES = ("annotated.css",)


def first_page(documents: Iterable[Document]) -> str:
    """Return the page that links the documents and the feedback."""
    links = "".join(f'<li><a href="{one.key}.html">{escape(one.title)}</a></li>' for one in documents)
    title = "The specifications, annotated"
    return (
        f"{head(title, STYLES)}<header><h1>{title}</h1>{_legend()}</header><main><ul>{links}</ul>"
        '<p><a href="spec-feedback.md">Feedback to the authors</a>: contradictions, samples, silences with the '
        "decision taken and a proposed wording, and clauses that nothing can decide, by section.</p></main></body>"
        "</html>\n"
    )


def document_page(document: Document, passages: Sequence[Passage], knowledge: Knowledge) -> Iterator[str]:
    """Yield the page of one document, piece by piece."""
    sections = [section for passage in passages for section in passage.sections]
    names = [(section.anchor, f"{section.id} {section.title}".strip()) for section in sections]
    links = "".join(f'<li><a href="#{escape(anchor)}">{escape(name)}</a></li>' for anchor, name in names)
    yield head(document.title, STYLES)
    yield (
        f'<header><p><a href="index.html">All documents</a></p><h1>{escape(document.title)}</h1>{_legend()}'
        f"<details><summary>{len(sections)} sections</summary><ul class=contents>{links}</ul></details>"
        "<label><input type=checkbox id=open-only> only what is contradictory, silent or not testable</label>"
        "</header><main>"
    )
    for passage in passages:
        yield _passage(document, passage, knowledge)
    yield "</main></body></html>\n"


def _passage(document: Document, passage: Passage, knowledge: Knowledge) -> str:
    names = " ".join(["passage", passage.level or "plain", *(f"has-{mark}" for mark in passage.marks)])
    anchors = "".join(f'<a id="{escape(section.anchor)}"></a>' for section in passage.sections)
    lines = "".join(
        f"<span class=line id=L{number}><i>{number}</i><span>{escape(line)}</span></span>"
        for number, line in enumerate(passage.text, start=passage.first)
    )
    marks = "".join(f"<li class={mark}>{MARKS[mark]}</li>" for mark in passage.marks)
    begun = {clause.id for clause in passage.begins}
    earlier = "".join(
        f'<a class="chip {clause.level}" href="#{clause.id}">{clause.id}</a>'
        for clause in passage.clauses
        if clause.id not in begun
    )
    notes = [f"<ul class=marks>{marks}</ul>"] if marks else []
    notes += [f"<p class=earlier>{earlier}</p>"] if earlier else []
    notes += [_clause(clause, knowledge) for clause in passage.begins]
    notes += [_gap(document, row, knowledge) for row in passage.gaps]
    return f'<section class="{names}"><pre>{anchors}{lines}</pre><div class=notes>{"".join(notes)}</div></section>\n'


def _clause(clause: Clause, knowledge: Knowledge) -> str:
    badges = "".join(
        f'<span class="badge {escape(outcome.partition(" ")[0])}">{escape(run.name)}: {escape(outcome)}</span>'
        for run in knowledge.runs
        if (outcome := run.outcomes.get(clause.id)) is not None
    )
    facts = [clause.verify] + ([clause.feature] if clause.feature != "core" else [])
    parts = [
        f'<p><a class="chip {clause.level}" href="#{clause.id}">{clause.id}</a> <b>{clause.level}</b> '
        f"<small>{escape(', '.join(facts))}</small> {badges}</p><p>{escape(clause.summary)}</p>"
    ]
    if clause.reason:
        parts.append(f"<p><small>Not tested: {escape(clause.reason)}</small></p>")
    if clause.duplicate_of:
        parts.append(f"<p><small>Says what {_link_to_clause(clause.duplicate_of, knowledge.registry)} says</small></p>")
    if gaps := knowledge.gaps_of(clause):
        links = ", ".join(f'<a href="{clause.document}.html#{row.id}">{row.id}</a>' for row in gaps)
        parts.append(f"<p><small>Depends on {links}</small></p>")
    parts.append(_cases(knowledge.cases.get(clause.id, ()), knowledge.runs))
    return f'<article class="clause {clause.level}" id="{clause.id}">{"".join(parts)}</article>'


def _cases(cases: Sequence[str], runs: Sequence[Run]) -> str:
    """Return the cases of a clause, first those that did not pass in some run."""
    if not cases:
        return ""
    outcomes = {
        case: [f"{run.name}: {run.verdicts[case]}" for run in runs if run.verdicts.get(case, "pass") != "pass"]
        for case in cases
    }
    ordered = sorted(cases, key=lambda case: (not outcomes[case], case))
    items = [f"<code>{escape(case)}</code> <small>{escape('; '.join(outcomes[case]))}</small>" for case in ordered]
    return _folded(f"{len(cases)} case{'' if len(cases) == 1 else 's'}", items)


def _folded(title: str, items: Sequence[str]) -> str:
    shown = "".join(f"<li>{item}</li>" for item in items[:MOST_CASES])
    more = f"<li>and {len(items) - MOST_CASES} more</li>" if len(items) > MOST_CASES else ""
    return f"<details><summary>{title}</summary><ul>{shown}{more}</ul></details>"


def _gap(document: Document, row: Interpretation, knowledge: Knowledge) -> str:
    registry = knowledge.registry
    places = [
        f'<a href="{key}.html#section-{escape(section)}">{escape(name)}</a>'
        for name, (key, section) in zip(row.sections, places_of(row, registry), strict=True)
    ]
    fields = [
        ("decision", escape(row.decision)),
        ("why", escape(row.why)),
        ("other readings", "; ".join(map(escape, row.alternatives))),
        ("excluded readings", "; ".join(map(escape, row.excluded))),
        ("the suite judges", escape(row.asserted)),
        ("proposed wording", escape(proposed_wording(row) or "")),
        ("places", ", ".join(places)),
        ("clauses", ", ".join(_link_to_clause(name, registry) for name in row.affects)),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in fields if value)
    tests = [f"<code>{escape(test)}</code>" for test in knowledge.tests.get(row.id, ())]
    named = _folded(f"named by {len(tests)} test{'' if len(tests) == 1 else 's'}", tests) if tests else ""
    return (
        f'<details class="gap {row.kind}" id="{row.id}"><summary><b>{MARKS[row.kind]}</b> {row.id}: '
        f"{escape(row.issue)}</summary><dl>{rows}</dl>{named}</details>"
    )


def _link_to_clause(name: str, registry: Registry) -> str:
    return f'<a href="{registry.clause(name).document}.html#{name}">{name}</a>'


def _legend() -> str:
    levels = "".join(f'<li class="chip {level}">{level}</li>' for level in LEVELS)
    marks = "".join(f"<li class={mark}>{words}</li>" for mark, words in MARKS.items())
    return f"<ul class=marks>{levels}{marks}</ul>"


# Feedback to the authors of the specifications, as Markdown: open points by document and section.
#
# It quotes nothing of their text: it names sections and lines, and summaries are those of the registry.


MOST_FILES = 4
"""The most test files that are named for an interpretation; the rest are counted."""

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
    """Return the whole text; `tests` are those that name each interpretation."""
    sections = {key: sections_of(document, registry) for key, document in registry.documents.items()}
    table = ["| document | contradictions | samples | silences | not testable |", "|---|---|---|---|---|"]
    blocks: list[str] = []
    for key, document in registry.documents.items():
        kinds = Counter(row.kind for section in sections[key] for row in section.rows)
        counts = [*(kinds[kind] for kind in _HEADINGS), sum(len(section.untestable) for section in sections[key])]
        table.append(f"| {document.title} | {' | '.join(map(str, counts))} |")
        points = [section for section in sections[key] if section.rows or section.untestable]
        blocks += [f"## {document.title}\n"] if points else []
        blocks += ["\n".join(_section(document, section, registry, tests)) for section in points]
    return "\n".join([_PREFACE, *table, "", *blocks])


def _section(
    document: Document, section: Section, registry: Registry, tests: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield f"### {document.prefix} {section.id} {section.title}".rstrip() + "\n"
    for kind, heading in _HEADINGS.items():
        rows = [row for row in section.rows if row.kind == kind]
        if rows:
            yield f"**{heading}**\n"
            for row in rows:
                yield from _row(row, registry, tests.get(row.id, ()))
            yield ""
    if section.untestable:
        yield "**Not testable**\n"
        for clause in section.untestable:
            reason = f": {clause.reason}" if clause.reason else ""
            yield f"- **{_with_lines(clause)}** ({clause.level}) {clause.summary}{reason}."
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


def _with_lines(clause: Clause) -> str:
    first, last = clause.lines
    return f"{clause.id} (line {first})" if first == last else f"{clause.id} (lines {first} to {last})"
