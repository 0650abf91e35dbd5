"""Tables of the outcomes of clauses, and the cases that count against a claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tessera_conformance.registry import Clause, Registry
from tessera_conformance.reports.claim import Line, Outcome, counts_against, outcome
from tessera_conformance.reports.journal import Report

# What a report says of each clause: the cases tagged with it, brought to one outcome, and tables of such outcomes.
#
# A clause passes only where a case that judges its main effect ran and all that ran passed. A clause that says what
# another says shares its cases and so its outcome. Clauses of the registry that no test can judge are set apart,
# whatever cases speak of them, so that the numbers of testable clauses are those of the registry in every run.


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
            verdict = outcome(registry.carried_by(clause), list(cases.values())) if clause.testable else "not_testable"
            results[clause.id] = ClauseResult(clause, verdict, tuple(cases))
    return results


def unknown_clauses(report: Report, registry: Registry) -> list[str]:
    """Clause ids that the report cites and the registry does not have: it was made with another registry."""
    cited = {name for line in report.observations for name in line["clauses"]}
    return sorted(cited - registry.clauses.keys())


def tally(results: Iterable[ClauseResult]) -> Tally:
    """Return the number of clauses with each outcome."""
    return Counter(result.outcome for result in results)


def judgeable(counts: Tally) -> int:
    """Return the number of the counted clauses that a test can judge, by a call or statically."""
    return counts.total() - counts["not_testable"]


def by_document_and_level(results: Mapping[str, ClauseResult]) -> dict[tuple[str, str], Tally]:
    """Outcomes of each document's clauses of each level."""
    table: dict[tuple[str, str], Tally] = {}
    for result in results.values():
        table.setdefault((result.clause.document, result.clause.level), Counter())[result.outcome] += 1
    return table


# Which cases count against the claim, in the order in which people want to read them.
#
# Wrong results come first, then crashes, hangs and what else went wrong. Cases that failed only because something
# claimed was answered as unsupported say nothing one by one: the causes count them by feature.


_AFTER_FAILURES = ("pass", "crash", "hang", "protocol_error", "harness_error", "not_run")
"""A pass that counts is an unexpected one."""


def failures(report: Report) -> list[Line]:
    """The cases to show one by one; none of an implementation that did not even start, and none of what it lacks."""
    if did_not_start(report):
        return []
    return [line for line in in_order(report.observed) if counts_against(line) and missing_feature(line) is None]


def did_not_start(report: Report) -> bool:
    """True if every failure has one cause: no implementation answered at all."""
    return report.header["implementation"]["fault"] is not None


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Cases that count against the claim first and by their weight, each part in the report's own order."""
    return sorted(lines, key=_rank)


def missing_feature(observation: Line) -> str | None:
    """The feature whose lack alone failed the case: it was claimed, and answered as unsupported."""
    if observation["verdict"] != "fail" or _wrong(observation):
        return None  # asked of every case: the exchanges of one that passed are not to be parsed for it
    exchanges = observation["exchanges"]
    if not exchanges:
        return None
    lacking = exchanges[-1]["observation"].get("unsupported")
    return None if lacking is None else str(lacking["feature"])


def last_stderr(observation: Line) -> str:
    """The standard error that the last exchange of a case that crashed or hung left behind."""
    exchanges = observation["exchanges"] if observation["verdict"] in ("crash", "hang") else ()
    return str(exchanges[-1]["run"].get("stderr", "")) if exchanges else ""


def tail(text: str, most: int) -> list[str]:
    """The last lines that say something."""
    return [line for line in text.splitlines() if line.strip()][-most:]


def _wrong(observation: Line) -> bool:
    return any(not check["passed"] for check in observation["checks"])


def _rank(observation: Line) -> int:
    if not counts_against(observation):
        return len(_AFTER_FAILURES) + 3
    if observation["verdict"] != "fail":
        return 2 + _AFTER_FAILURES.index(observation["verdict"])
    if missing_feature(observation) is not None:
        return len(_AFTER_FAILURES) + 2
    return 0 if _wrong(observation) else 1
