"""The annotated specifications as HTML: a page for each document and a first page, static, without script or network.

A content policy allows the one style by its hash. Notes that fold are `details`; the choice of passages is made by the
style alone. The first page counts clauses and open points; the page of a document has its lines on the left, coloured
by the strongest level of their clauses, and all that is known of them on the right.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from tessera_conformance.registry.annotate import MARKS, Knowledge, Passage, Run, Section, is_untestable, places_of
from tessera_conformance.registry.model import LEVELS, Clause, Document, Interpretation, Registry
from tessera_conformance.registry.wording import proposed_wording

MOST_CASES = 12
"""Cases and tests that a note lists; the rest are counted."""

_STYLE = Path(__file__).with_name("annotated_page.css")


def first_page(documents: Mapping[str, Sequence[Passage]], known: Knowledge) -> str:
    """The page that leads to the documents, with what each has."""
    registry = known.registry
    heads = ["document", "lines", *LEVELS, "contradictions", "samples", "silences", "not testable"]
    heads += [run.name for run in known.runs]
    rows = [_row_of_document(registry.documents[key], passages, known) for key, passages in documents.items()]
    table = _table(heads, rows)
    return _page(
        "The specifications, annotated",
        f"<header><h1>The specifications, annotated</h1>{_legend()}</header><main>{table}"
        '<p><a href="spec-feedback.md">Feedback to the authors</a>: contradictions, samples, silences with the '
        "decision taken and a proposed wording, and clauses that nothing can decide, by section.</p></main>",
    )


def _row_of_document(document: Document, passages: Sequence[Passage], known: Knowledge) -> list[str]:
    clauses = [clause for passage in passages for clause in passage.begins]
    levels = Counter(clause.level for clause in clauses)
    kinds = Counter(row.kind for passage in passages for row in passage.gaps)
    cells = [f'<a href="{document.key}.html">{escape(document.title)}</a>', str(document.lines)]
    cells += [str(levels[level]) for level in LEVELS]
    cells += [str(kinds[kind]) for kind in ("contradiction", "example", "silence")]
    cells += [str(sum(is_untestable(clause) for clause in clauses))]
    for run in known.runs:
        outcomes = Counter(run.outcomes.get(clause.id, "") for clause in clauses)
        cells.append(", ".join(f"{count} {escape(word)}" for word, count in outcomes.most_common() if word))
    return cells


def document_page(document: Document, passages: Sequence[Passage], known: Knowledge) -> Iterator[str]:
    """The page of one document, piece by piece."""
    sections = [section for passage in passages for section in passage.sections]
    links = "".join(f"<li>{_link_to_section(section)}</li>" for section in sections)
    yield _beginning(document.title)
    yield (
        f'<header><p><a href="index.html">All documents</a></p><h1>{escape(document.title)}</h1>{_legend()}'
        f"<details><summary>{len(sections)} sections</summary><ul class=contents>{links}</ul></details>"
        "<label><input type=checkbox id=open-only> only what is contradictory, silent or not testable</label>"
        "</header><main>"
    )
    for passage in passages:
        yield _passage(document, passage, known)
    yield "</main></body></html>\n"


def _passage(document: Document, passage: Passage, known: Knowledge) -> str:
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
    notes += [_clause(clause, known) for clause in passage.begins]
    notes += [_gap(document, row, known) for row in passage.gaps]
    return f'<section class="{names}"><pre>{anchors}{lines}</pre><div class=notes>{"".join(notes)}</div></section>\n'


def _clause(clause: Clause, known: Knowledge) -> str:
    badges = "".join(_badge(run, run.outcomes[clause.id]) for run in known.runs if clause.id in run.outcomes)
    facts = [clause.verify] + ([clause.feature] if clause.feature != "core" else [])
    parts = [
        f'<p><a class="chip {clause.level}" href="#{clause.id}">{clause.id}</a> <b>{clause.level}</b> '
        f"<small>{escape(', '.join(facts))}</small> {badges}</p><p>{escape(clause.summary)}</p>"
    ]
    if clause.reason:
        parts.append(f"<p><small>Not tested: {escape(clause.reason)}</small></p>")
    if clause.duplicate_of:
        parts.append(f"<p><small>Says what {_link_to_clause(clause.duplicate_of, known.registry)} says</small></p>")
    gaps = known.of_clause.get(clause.id, ())
    if gaps:
        parts.append(
            f"<p><small>Depends on {', '.join(_link_to_gap(row, clause.document) for row in gaps)}</small></p>"
        )
    parts.append(_cases(known.cases.get(clause.id, ()), known.runs))
    return f'<article class="clause {clause.level}" id="{clause.id}">{"".join(parts)}</article>'


def _badge(run: Run, outcome: str) -> str:
    kind = outcome.partition(" ")[0]
    return f'<span class="badge {escape(kind)}">{escape(run.name)}: {escape(outcome)}</span>'


def _cases(cases: Sequence[str], runs: Sequence[Run]) -> str:
    """The cases of a clause, those first that did not pass in some run."""
    if not cases:
        return ""
    told = {
        case: [f"{run.name}: {run.verdicts[case]}" for run in runs if run.verdicts.get(case, "pass") != "pass"]
        for case in cases
    }
    ordered = sorted(cases, key=lambda case: (not told[case], case))
    items = [f"<code>{escape(case)}</code> <small>{escape('; '.join(told[case]))}</small>" for case in ordered]
    return _folded(f"{len(cases)} case{'' if len(cases) == 1 else 's'}", items)


def _folded(title: str, items: Sequence[str]) -> str:
    shown = "".join(f"<li>{item}</li>" for item in items[:MOST_CASES])
    more = f"<li>and {len(items) - MOST_CASES} more</li>" if len(items) > MOST_CASES else ""
    return f"<details><summary>{title}</summary><ul>{shown}{more}</ul></details>"


def _gap(document: Document, row: Interpretation, known: Knowledge) -> str:
    registry = known.registry
    fields = [
        ("decision", escape(row.decision)),
        ("why", escape(row.why)),
        ("other readings", "; ".join(map(escape, row.alternatives))),
        ("the suite judges", escape(row.asserted)),
        ("proposed wording", escape(proposed_wording(row) or "")),
        ("places", ", ".join(_links_to_places(row, registry))),
        ("clauses", ", ".join(_link_to_clause(name, registry) for name in row.affects)),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in fields if value)
    tests = [f"<code>{escape(test)}</code>" for test in known.tests.get(row.id, ())]
    named = _folded(f"named by {len(tests)} test{'' if len(tests) == 1 else 's'}", tests) if tests else ""
    return (
        f'<details class="gap {row.kind}" id="{row.id}"><summary><b>{MARKS[row.kind]}</b> {row.id}: '
        f"{escape(row.issue)}</summary><dl>{listed}</dl>{named}</details>"
    )


def _links_to_places(row: Interpretation, registry: Registry) -> Iterator[str]:
    for name, (key, section) in zip(row.sections, places_of(row, registry), strict=True):
        yield f'<a href="{key}.html#{escape(Section(key, section, "", 0).anchor)}">{escape(name)}</a>'


def _link_to_clause(name: str, registry: Registry) -> str:
    return f'<a href="{registry.clause(name).document}.html#{name}">{name}</a>'


def _link_to_gap(row: Interpretation, document: str) -> str:
    return f'<a href="{document}.html#{row.id}">{row.id}</a>'


def _link_to_section(section: Section) -> str:
    return f'<a href="#{escape(section.anchor)}">{escape(f"{section.id} {section.title}".strip())}</a>'


def _legend() -> str:
    levels = "".join(f'<li class="chip {level}">{level}</li>' for level in LEVELS)
    marks = "".join(f"<li class={mark}>{words}</li>" for mark, words in MARKS.items())
    return f"<ul class=marks>{levels}{marks}</ul>"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _page(title: str, body: str) -> str:
    return f"{_beginning(title)}{body}</body></html>\n"


def _beginning(title: str) -> str:
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f'<meta http-equiv=Content-Security-Policy content="{policy}"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body>"
    )
