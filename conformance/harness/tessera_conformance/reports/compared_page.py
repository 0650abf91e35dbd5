"""Several reports in one self-contained HTML page: implementations side by side, by document, section and clause.

Reports of one implementation, told by its name and device, are its history in the order in which they are given; the
last one is what stands beside the others. Clauses are those of the registry at hand. The page leaves out what one case
sent and received: the page of each report has it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessera_conformance.registry import Registry
from tessera_conformance.registry.model import LEVELS
from tessera_conformance.reports import wording
from tessera_conformance.reports.badge import badge
from tessera_conformance.reports.claim import OUTCOMES, Line, counts_against
from tessera_conformance.reports.clause_results import OUTCOME_WORDS, ClauseResult, clause_results
from tessera_conformance.reports.compare import compare
from tessera_conformance.reports.html_document import as_json, cut, document, packed
from tessera_conformance.reports.journal import Report

SCRIPTS = ("packed.js", "words.js", "bars.js", "scheme.js", "compared.js")
"""The pieces of the script, which become one."""
LONGEST_REASON = 200


def compared_page(reports: Sequence[Report], registry: Registry) -> Iterator[str]:
    """Yield the HTML document piece by piece."""
    histories = _histories(reports)
    title = f"Tessera conformance: {', '.join(histories)}"
    data = {
        "notes": _notes(reports),
        "levels": LEVELS,
        "outcomes": [[name, OUTCOME_WORDS[name]] for name in OUTCOMES],
        "sections": {key: dict(each.sections) for key, each in registry.documents.items()},
        "documents": [[key, each.title] for key, each in registry.documents.items()],
        "clauses": [_clause(each) for each in clause_results(reports[0], registry).values()],
        "implementations": [{"name": name, "runs": _runs(history, registry)} for name, history in histories.items()],
    }
    places = {
        "TITLE": html.escape(title),
        "DATA": packed(as_json(data)),
        "BADGES": "\n".join(badge(history[-1], registry, attributes="") for history in histories.values()),
    }
    return document("compared.html", ["page.css", "compared.css"], SCRIPTS, places)


def _histories(reports: Sequence[Report]) -> dict[str, list[Report]]:
    """The reports of each implementation by its name, in the order in which they were given."""
    found: dict[str, list[Report]] = {}
    for report in reports:
        found.setdefault(_name(report), []).append(report)
    return found


def _name(report: Report) -> str:
    """Name and device, which stay from one version to the next; the label of one that did not start."""
    implementation = report.header["implementation"]
    identity = (implementation["hello"] or {}).get("implementation", {})
    if not identity:
        return str(implementation["label"])
    return " on ".join(filter(None, [str(identity["name"]), str(identity.get("device") or "")]))


def _notes(reports: Sequence[Report]) -> list[str]:
    """Say where a difference may come of the runs alone."""
    chosen = [report.header["selection"] for report in reports]
    notes = [
        f"{report.path.name} of {_name(report)} is invalid: {report.problem}" for report in reports if report.problem
    ]
    notes += [
        f"The runs differ in {key}: {', '.join(sorted(values))}."
        for key in ("profile", "level")
        if len(values := {str(one[key]) for one in chosen}) > 1
    ]
    if not all(one["complete"] and one["shard"] is None for one in chosen):
        notes.append("Some runs are of a part of the suite: what they left out is untested.")
    if len({report.header["registry"]["sha256"] for report in reports}) > 1:
        notes.append("The reports were made with different clause registries: some clauses had other cases.")
    return notes


def _clause(result: ClauseResult) -> dict[str, Any]:
    shown = ("id", "document", "section", "level", "summary", "verify")
    return {name: getattr(result.clause, name) for name in shown} | {"twin": result.clause.duplicate_of}


def _runs(history: Sequence[Report], registry: Registry) -> list[dict[str, Any]]:
    return [_run(report, before, registry) for before, report in zip([None, *history], history, strict=False)]


def _run(report: Report, before: Report | None, registry: Registry) -> dict[str, Any]:
    """A run: its claim, the outcome of each clause as one digit, and of each that fails its first failing case."""
    results = clause_results(report, registry)
    changes = compare(before, report).groups if before is not None else {}
    lines = {line["case"]: line for line in report.observed}
    return {
        "implementation": wording.implementation_name(report),
        "claim": report.claim,
        "badge": wording.claim_title(report),
        "reason": wording.claim_reason(report, registry),
        "facts": [("--impl", report.header["implementation"]["label"]), *wording.facts(report)],
        "verdicts": wording.verdict_counts(report),
        "outcomes": "".join(str(OUTCOMES.index(result.outcome)) for result in results.values()),
        "failing": {name: _first(result, lines) for name, result in results.items() if result.outcome == "fail"},
        "changes": {name: len(changed) for name, changed in changes.items() if changed},
    }


def _first(result: ClauseResult, lines: Mapping[str, Line]) -> tuple[str, str]:
    """The first case that fails a clause, and why."""
    line = next(lines[case] for case in result.cases if counts_against(lines[case]))
    return line["case"], cut(wording.reason_with_verdict(line), LONGEST_REASON)
