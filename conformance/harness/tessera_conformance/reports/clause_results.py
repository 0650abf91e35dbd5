"""What a report says of each clause: the cases tagged with it, brought to one outcome, and tables of such outcomes.

A clause passes only where a case that judges its main effect ran and all that ran passed. A clause that says what
another says shares its cases and so its outcome. Clauses of the registry that no test can judge are set apart, whatever
cases speak of them, so that the numbers of testable clauses are those of the registry in every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tessera_conformance.registry import Clause, Registry
from tessera_conformance.reports.claim import Line, Outcome, outcome
from tessera_conformance.reports.journal import Report

Tally = Counter[Outcome]

OUTCOME_WORDS: Mapping[Outcome, str] = {
    "pass": "pass",
    "fail": "fail",
    "deviates": "known deviation",
    "other_reading": "other reading",
    "unsupported": "unsupported (declared)",
    "inapplicable": "inapplicable",
    "untested": "untested",
    "not_testable": "not testable",
}


@dataclass(frozen=True)
class ClauseResult:
    """A clause, its outcome, and the ids of the cases that led to it."""

    clause: Clause
    outcome: Outcome
    cases: tuple[str, ...]


def clause_results(report: Report, registry: Registry) -> dict[str, ClauseResult]:
    """Every active clause of the registry with its outcome, in the order of the documents."""
    by_clause: dict[str, dict[str, Line]] = {}
    for observation in report.observed:
        for name in observation["clauses"]:
            twin = registry.clauses[name].duplicate_of if name in registry.clauses else None
            by_clause.setdefault(twin or name, {})[observation["case"]] = observation
    results = {}
    for clause in registry.clauses.values():
        if clause.active:
            cases = by_clause.get(clause.duplicate_of or clause.id, {})
            found = outcome(registry.carried_by(clause), list(cases.values())) if clause.testable else "not_testable"
            results[clause.id] = ClauseResult(clause, found, tuple(cases))
    return results


def unknown_clauses(report: Report, registry: Registry) -> list[str]:
    """Clause ids that the report cites and the registry does not have: it was made with another registry."""
    cited = {name for line in report.observations for name in line["clauses"]}
    return sorted(cited - registry.clauses.keys())


def tally(results: Iterable[ClauseResult]) -> Tally:
    """How many clauses have each outcome."""
    return Counter(result.outcome for result in results)


def judgeable(counts: Tally) -> int:
    """How many of the counted clauses a test can judge, by a call or statically."""
    return counts.total() - counts["not_testable"]


def by_document_and_level(results: Mapping[str, ClauseResult]) -> dict[tuple[str, str], Tally]:
    """Outcomes of each document's clauses of each level."""
    table: dict[tuple[str, str], Tally] = {}
    for result in results.values():
        table.setdefault((result.clause.document, result.clause.level), Counter())[result.outcome] += 1
    return table
