"""The end of a run in a few lines of text: plain ASCII, at most 110 columns, made from the report alone."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tessera_conformance.registry import Registry
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import Cause, causes
from tessera_conformance.reports.claim import OUTCOMES
from tessera_conformance.reports.clause_results import (
    OUTCOME_WORDS,
    clause_results,
    judgeable,
    tally,
)
from tessera_conformance.reports.failures import last_stderr, tail
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.wording import printable

WIDTH = 110
SHOWN_CAUSES = 8
SHOWN_PROBLEMS = 10
REASON_LINES = 4
STDERR_LINES = 3
START_LINES = 10

_LABEL = 13


def terminal_summary(report: Report, registry: Registry) -> str:
    """Who was judged, clauses and cases by outcome, the claim, the causes and how to see one again."""
    found = causes(report)
    lines = [
        _title(report),
        *_row("clauses", _clause_counts(report, registry)),
        *_row("cases", _case_counts(report)),
        *_row("not judged", wording.not_judged(report)),
        *_row("remedy", wording.remedies(report)),
        *_row("readings", _readings(report)),
        *_row("deviations", _disposition_counts(report)),
        *_row("claim", [f"{wording.claim_title(report)}: {wording.claim_reason(report, registry)}"]),
        *_row("profiles", wording.products(report)),
        *_row("selection", wording.chosen_parts(report)),
        *_row("scope", wording.scope(report)),
        *_row("images", wording.images(report)),
        *_problems(report, registry),
        *_stderr_of_the_start(report),
        *_causes(found, registry),
        *_pointers(report, found),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _title(report: Report) -> str:
    parts = [wording.implementation_name(report), wording.selection(report), wording.duration(report)]
    return _cut("     ".join(map(printable, parts)))


def _row(label: str, items: Sequence[str]) -> Iterator[str]:
    """A label and its items, three blanks apart; an item moves to the next line whole where it can."""
    line = f"  {label:<{_LABEL - 2}}"
    for item in (printable(item) for item in items):
        for piece in textwrap.wrap(item, WIDTH - _LABEL) or [""]:
            gap = "" if len(line) == _LABEL else "   "
            if len(line) + len(gap) + len(piece) > WIDTH:
                yield line
                line, gap = " " * _LABEL, ""
            line += gap + piece
    if items:
        yield line


def _clause_counts(report: Report, registry: Registry) -> list[str]:
    counts = tally(clause_results(report, registry).values())
    first = f"{wording.count(counts['pass'])} of {wording.count(judgeable(counts))} pass"
    rest = [name for name in OUTCOMES if name not in ("pass", "not_testable") and counts[name]]
    return [first, *(f"{wording.count(counts[name])} {OUTCOME_WORDS[name]}" for name in rest)]


def _case_counts(report: Report) -> list[str]:
    return [f"{number} {verdict}" for verdict, number in wording.verdict_counts(report)] or ["none"]


def _disposition_counts(report: Report) -> list[str]:
    counts = Counter(line["disposition"] for line in report.observed)
    left_out = ("none", "other_reading")
    return [f"{counts[name]} {name.replace('_', ' ')}" for name in sorted(counts) if name not in left_out]


def _readings(report: Report) -> list[str]:
    """Return the number of cases that follow another reading, and their interpretations."""
    readings = wording.other_readings(report)
    total = sum(number for _, _, number in readings)
    names = dict.fromkeys(name for name, _, _ in readings)
    return [f"{wording.cases(total)} of another reading: {', '.join(names)}"] if readings else []


def _problems(report: Report, registry: Registry) -> Iterator[str]:
    problems = wording.problems_of(report, registry)
    if problems:
        yield "  problems"
    for problem in problems[:SHOWN_PROBLEMS]:
        yield from _indented(problem, 4, REASON_LINES)
    if len(problems) > SHOWN_PROBLEMS:
        yield f"    and {len(problems) - SHOWN_PROBLEMS} more"


def _stderr_of_the_start(report: Report) -> Iterator[str]:
    for line in tail(wording.start_stderr(report), START_LINES):
        yield from _indented(f"stderr: {line}", 6, REASON_LINES)


def _causes(found: Sequence[Cause], registry: Registry) -> Iterator[str]:
    """Each cause with its smallest case: what to mend first stands first."""
    if found:
        yield "  fix first" if len(found) > 1 else "  to fix"
    for cause in found[:SHOWN_CAUSES]:
        yield from _indented(cause.sentence(), 4, REASON_LINES)
        for line in wording.mended(cause, registry):
            yield from _indented(line, 6, REASON_LINES)
        if cause.form[0] != "missing":
            yield _cut(f"      e.g. {printable(cause.smallest['case'])}")
            yield from _indented(wording.reason_with_verdict(cause.smallest), 8, REASON_LINES)
        for written in tail(last_stderr(cause.smallest), STDERR_LINES):
            yield from _indented(f"stderr: {written}", 8, REASON_LINES)
    further = found[SHOWN_CAUSES:]
    if further:
        number = wording.cases(sum(len(cause.lines) for cause in further))
        yield f"    and {wording.count(len(further))} more cause{'' if len(further) == 1 else 's'} of {number}"


def _indented(text: str, indent: int, most: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        max_lines=most,
        placeholder=" ...",
    )


def _pointers(report: Report, found: Sequence[Cause]) -> Iterator[str]:
    """The commands and paths one copies: never cut, even where they are longer than a line."""
    first = next((cause.smallest for cause in found if cause.form[0] != "missing"), None)
    if first is not None:
        yield f"  {'reproduce':<{_LABEL - 2}}{printable(wording.reproduce_command(report, first['case']))}"
    page = report.path.parent / "index.html"
    yield f"  {'report':<{_LABEL - 2}}{printable(str(_near(page if page.exists() else report.path)))}"


def _near(path: Path) -> Path:
    """The path as seen from here, where it lies below."""
    absolute = path.resolve()
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."
