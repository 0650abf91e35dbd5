"""A report as text: the last lines of a run in plain ASCII, and Markdown for a repository or a pull request."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tessera_conformance.registry import Registry
from tessera_conformance.registry.model import LEVELS
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import Cause, causes
from tessera_conformance.reports.claim import OUTCOMES, Line
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.outcomes import (
    OUTCOME_WORDS,
    ClauseResult,
    Tally,
    by_document_and_level,
    clause_results,
    failures,
    judgeable,
    last_stderr,
    tail,
    tally,
)
from tessera_conformance.reports.wording import printable
from tessera_conformance.terminal.errors import HIDDEN, escaped

# The end of a run in a few lines of text: plain ASCII, at most 110 columns, made from the report alone.


WIDTH = 110
SHOWN_CAUSES = 8
SHOWN_PROBLEMS = 10
REASON_LINES = 4
STDERR_LINES = 3
START_LINES = 10

_LABEL = 13


def terminal_summary(report: Report, registry: Registry) -> str:
    """Return the end of a run: name, outcomes of clauses and cases, the claim, the causes, and a command."""
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


# The report as Markdown, for reading in a repository or a pull request.


SHOWN = 200
"""Rows of one table; the page and the report file have all of them."""

SHOWN_FAILURES = 50
"""Failures shown one by one."""

_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_BLOCK = re.compile(r"^(\d*)([-+.)](?=\s|$)|[-=](?=[-=\s]*$))")
"""Beginnings of lines that make a list, and lines that make a rule."""

_CONTROL = re.compile(f"[\t\n{HIDDEN}]")


def markdown(report: Report, registry: Registry) -> str:
    """The whole document."""
    results = clause_results(report, registry)
    parts = [
        _header(report),
        _claim(report, registry),
        _cases(report),
        _coverage(results, registry),
        _markdown_causes(report, registry),
        _failures(report, results),
        _markdown_readings(report),
        _deviations(report),
        _unsupported(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(report: Report) -> str:
    run = report.header["run"]
    rows = [
        ("implementation", wording.implementation_name(report)),
        ("named on the command line", report.header["implementation"]["label"]),
        ("images made by", report.header["implementation"].get("compiler", "")),
        ("selection", wording.selection(report)),
        ("time", wording.duration(report)),
        ("started", run.get("started", "")),
        ("harness", report.header["harness"]),
        ("clause registry", f"{report.header['registry']['clauses']} clauses, {report.header['registry']['sha256']}"),
    ]
    return f"# Conformance of {text(wording.implementation_name(report))}\n\n" + table(
        ("", ""), [(key, text(str(value))) for key, value in rows if value]
    )


def _claim(report: Report, registry: Registry) -> str:
    lines = [f"## Claim: {wording.claim_title(report)}", f"{text(wording.claim_reason(report, registry))}."]
    scope = [*wording.scope(report), *wording.products(report)]
    if scope:
        lines.append("\n".join(f"- {text(one)}" for one in scope))
    problems = wording.problems_of(report, registry)
    if problems:
        lines += ["### Problems", "\n".join(f"- {text(problem)}" for problem in problems)]
    lines += _stderr(tail(wording.start_stderr(report), START_LINES))
    return "\n\n".join(lines)


def _cases(report: Report) -> str:
    lines = report.observed
    rows = wording.verdict_counts(report)
    dispositions = Counter(line["disposition"] for line in lines)
    rows += [(f"of these {key.replace('_', ' ')}", str(dispositions[key])) for key in dispositions if key != "none"]
    counts = table(("verdict", "cases"), [*rows, ("all", wording.count(len(lines)))])
    reasons = "\n".join(f"- not judged: {text(reason)}" for reason in wording.not_judged(report))
    return "\n\n".join(["## Cases", counts, *([reasons] if reasons else [])])


def _coverage(results: Mapping[str, ClauseResult], registry: Registry) -> str:
    cells = by_document_and_level(results)
    rows = []
    for key, document in registry.documents.items():
        for level in LEVELS:
            if cells.get((key, level)):
                rows.append((text(document.title), level, *_numbers(cells[key, level])))
    rows.append(("**all**", "", *_numbers(tally(results.values()))))
    note = "A clause passes where a case that judges its main effect ran and passed, and all that ran passed."
    head = ("document", "level", "testable", *(OUTCOME_WORDS[name] for name in OUTCOMES))
    return f"## Clauses\n\n{note}\n\n{table(head, rows)}"


def _numbers(counts: Tally) -> Iterator[str]:
    yield str(judgeable(counts))
    for name in OUTCOMES:
        yield str(counts[name] or "")


def _markdown_causes(report: Report, registry: Registry) -> str:
    """A table of the causes, what to mend first on top."""
    rows = [
        (
            text(cause.sentence()),
            text("; ".join(wording.mended(cause, registry))),
            code(wording.reproduce_command(report, cause.smallest["case"])),
        )
        for cause in causes(report)
    ]
    return _listing("Causes", ("cause", "clause", "its smallest case again"), rows)


def _failures(report: Report, results: Mapping[str, ClauseResult]) -> str:
    found = failures(report)
    parts = [_failure(report, line, results) for line in found[:SHOWN_FAILURES]]
    parts += _more(len(found), SHOWN_FAILURES)
    return "\n\n".join(["## Failures", *parts]) if parts else ""


def _failure(report: Report, observation: Line, results: Mapping[str, ClauseResult]) -> str:
    lines = [f"### {text(observation['case'])}", text(observation["title"])]
    lines.append(f"- {text(wording.reason_with_verdict(observation))}")
    for name in observation["clauses"]:
        summary = results[name].clause.summary if name in results else "not in this registry"
        lines.append(f"- {text(name)}: {text(summary)}")
    lines.append(f"- reproduce: {code(wording.reproduce_command(report, observation['case']))}")
    stderr = _stderr(tail(last_stderr(observation), STDERR_LINES))
    return "\n\n".join([*lines[:2], "\n".join(lines[2:]), *stderr])


def _stderr(lines: Sequence[str]) -> list[str]:
    return ["Standard error:\n\n" + "\n".join(f"    {_escaped(line)}" for line in lines)] if lines else []


def _markdown_readings(report: Report) -> str:
    rows = [
        (text(name), text(alternative), str(number)) for name, alternative, number in wording.other_readings(report)
    ]
    return _listing("Other readings", ("interpretation", "the alternative that is followed", "cases"), rows)


def _deviations(report: Report) -> str:
    lines = [line for line in report.observed if line["disposition"] in ("known_deviation", "waived")]
    rows = [
        (text(line["case"]), line["disposition"].replace("_", " "), text(wording.deviation_reason(report, line)))
        for line in lines
    ]
    return _listing("Known deviations", ("case", "", "reason"), rows)


def _unsupported(report: Report) -> str:
    lines = [line for line in report.observed if line["verdict"] == "unsupported"]
    rows = [(text(line["case"]), text(", ".join(line["clauses"])), text(line["reason"])) for line in lines]
    return _listing("Unsupported", ("case", "clauses", "reason"), rows)


def _listing(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    return "\n\n".join([f"## {title}", table(head, rows[:SHOWN]), *_more(len(rows), SHOWN)])


def _more(number: int, shown: int) -> list[str]:
    return [f"And {wording.count(number - shown)} more, in `index.html`."] if number > shown else []


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(value: str) -> str:
    """Any text as one line of Markdown that shows just these characters."""
    return _BLOCK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", _one_line(value)))


def code(value: str) -> str:
    """Any text as a Markdown code span."""
    value = _one_line(value)
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {value} {fence}" if longest else f"`{value}`"


def _one_line(value: str) -> str:
    return _escaped(" ".join(value.split()))


def _escaped(value: str) -> str:
    return escaped(_CONTROL, value)
