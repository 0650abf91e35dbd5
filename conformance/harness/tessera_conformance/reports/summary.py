"""A report as text: the last lines of a run in plain ASCII, a Markdown page, and the chart of rooflines."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera_conformance.registry import Registry
from tessera_conformance.registry.model import LEVELS
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import (
    OUTCOME_WORDS,
    Cause,
    Tally,
    by_document_and_level,
    causes,
    clause_results,
    failures,
    judgeable,
    last_stderr,
    tail,
    tally,
)
from tessera_conformance.reports.claim import OUTCOMES
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.wording import printable
from tessera_conformance.terminal import HIDDEN, escaped

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
    title = [wording.implementation_name(report), wording.selection(report), wording.duration(report)]
    dispositions = Counter(line["disposition"] for line in report.observed)
    excused = [name for name in sorted(dispositions) if name not in ("none", "other_reading")]
    rows = {
        "clauses": _clause_counts(report, registry),
        "cases": [f"{number} {verdict}" for verdict, number in wording.verdict_counts(report)] or ["none"],
        "not judged": wording.not_judged(report),
        "remedy": wording.remedies(report),
        "readings": _readings(report),
        "deviations": [f"{dispositions[name]} {name.replace('_', ' ')}" for name in excused],
        "claim": [f"{wording.claim_title(report)}: {wording.claim_reason(report, registry)}"],
        "profiles": wording.products(report),
        "selection": wording.chosen_parts(report),
        "scope": wording.scope(report),
        "images": wording.images(report),
    }
    lines = [_cut("     ".join(map(printable, title)))]
    lines += [line for label, items in rows.items() for line in _row(label, items)]
    lines += [*_problems(report, registry), *_causes(causes(report), registry), *_pointers(report)]
    return "\n".join(line.rstrip() for line in lines)


def _row(label: str, items: Sequence[str]) -> Iterator[str]:
    """Yield lines of a label and its items, three blanks apart; an item moves whole to the next line where it fits."""
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
    for line in tail(wording.start_stderr(report), START_LINES):
        yield from _indented(f"stderr: {line}", 6, REASON_LINES)


def _causes(causes: Sequence[Cause], registry: Registry) -> Iterator[str]:
    """Yield each cause with its smallest case, in the order in which to correct them."""
    if causes:
        yield "  fix first" if len(causes) > 1 else "  to fix"
    for cause in causes[:SHOWN_CAUSES]:
        yield from _indented(cause.sentence(), 4, REASON_LINES)
        for line in wording.mended(cause, registry):
            yield from _indented(line, 6, REASON_LINES)
        if cause.form[0] != "missing":
            yield _cut(f"      e.g. {printable(cause.smallest['case'])}")
            yield from _indented(wording.reason_with_verdict(cause.smallest), 8, REASON_LINES)
        for written in tail(last_stderr(cause.smallest), STDERR_LINES):
            yield from _indented(f"stderr: {written}", 8, REASON_LINES)
    further = causes[SHOWN_CAUSES:]
    if further:
        number = wording.cases(sum(len(cause.lines) for cause in further))
        yield f"    and {wording.count(len(further))} more cause{'' if len(further) == 1 else 's'} of {number}"


def _indented(text: str, indent: int, most: int) -> list[str]:
    lines = textwrap.wrap(printable(text), WIDTH - indent, max_lines=most, placeholder=" ...")
    return [" " * indent + line for line in lines]


def _pointers(report: Report) -> Iterator[str]:
    """Yield the commands and paths that people copy: never cut, even if they are longer than a line."""
    first = next((cause.smallest for cause in causes(report) if cause.form[0] != "missing"), None)
    if first is not None:
        yield f"  {'reproduce':<{_LABEL - 2}}{printable(wording.reproduce_command(report, first['case']))}"
    page = report.path.parent / "index.html"
    path, here = (page if page.exists() else report.path).resolve(), Path.cwd()
    path = path.relative_to(here) if path.is_relative_to(here) else path
    yield f"  {'report':<{_LABEL - 2}}{printable(str(path))}"


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."


# The report as Markdown, for reading in a repository or a pull request.


SHOWN = 200
"""Rows of one table; the page and the report file have all of them."""

_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_BLOCK = re.compile(r"^(\d*)([-+.)](?=\s|$)|[-=](?=[-=\s]*$))")
"""Beginnings of lines that make a list, and lines that make a rule."""

_CONTROL = re.compile(f"[\t\n{HIDDEN}]")


def markdown(report: Report, registry: Registry) -> str:
    """Return the whole document."""
    parts = [_header(report), _claim(report, registry), _cases(report), _coverage(report, registry)]
    parts += [_markdown_causes(report, registry), *_lists(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(report: Report) -> str:
    registry = report.header["registry"]
    rows = [*wording.facts(report), ("clause registry", f"{registry['clauses']} clauses, {registry['sha256']}")]
    shown = table(("", ""), [(key, text(value)) for key, value in rows])
    return f"# Conformance of {text(wording.implementation_name(report))}\n\n{shown}"


def _claim(report: Report, registry: Registry) -> str:
    lines = [f"## Claim: {wording.claim_title(report)}", f"{text(wording.claim_reason(report, registry))}."]
    scope = [*wording.scope(report), *wording.products(report)]
    if scope:
        lines.append("\n".join(f"- {text(one)}" for one in scope))
    problems = wording.problems_of(report, registry)
    if problems:
        lines += ["### Problems", "\n".join(f"- {text(problem)}" for problem in problems)]
    written = tail(wording.start_stderr(report), START_LINES)
    if written:
        lines += ["Standard error:", "\n".join(f"    {_escaped(line)}" for line in written)]
    return "\n\n".join(lines)


def _cases(report: Report) -> str:
    lines = report.observed
    rows = wording.verdict_counts(report)
    dispositions = Counter(line["disposition"] for line in lines)
    excused = [name for name in dispositions if name not in ("none", "other_reading")]
    rows += [(f"of these {name.replace('_', ' ')}", str(dispositions[name])) for name in excused]
    counts = table(("verdict", "cases"), [*rows, ("all", wording.count(len(lines)))])
    reasons = "\n".join(f"- not judged: {text(reason)}" for reason in wording.not_judged(report))
    return "\n\n".join(["## Cases", counts, *([reasons] if reasons else [])])


def _coverage(report: Report, registry: Registry) -> str:
    results = clause_results(report, registry)
    cells = by_document_and_level(results)
    rows = [
        (text(document.title), level, *_numbers(cells[key, level]))
        for key, document in registry.documents.items()
        for level in LEVELS
        if (key, level) in cells
    ]
    rows.append(("**all**", "", *_numbers(tally(results.values()))))
    note = "A clause passes where a case that judges its main effect ran and passed, and all that ran passed."
    head = ("document", "level", "testable", *(OUTCOME_WORDS[name] for name in OUTCOMES))
    return f"## Clauses\n\n{note}\n\n{table(head, rows)}"


def _numbers(counts: Tally) -> list[str]:
    return [str(judgeable(counts)), *(str(counts[name] or "") for name in OUTCOMES)]


def _markdown_causes(report: Report, registry: Registry) -> str:
    """Return a table of the causes, in the order in which to correct them."""
    rows = [
        (
            text(cause.sentence()),
            text("; ".join(wording.mended(cause, registry))),
            code(wording.reproduce_command(report, cause.smallest["case"])),
        )
        for cause in causes(report)
    ]
    return _listing("Causes", ("cause", "clause", "its smallest case again"), rows)


def _lists(report: Report) -> Iterator[str]:
    """Yield tables of the failures, and of readings, deviations and features that do not count against the claim."""
    failed = [map(text, (line["case"], wording.reason_with_verdict(line))) for line in failures(report)]
    yield _listing("Failures", ("case", "reason"), failed)
    readings = [map(text, map(str, row)) for row in wording.other_readings(report)]
    yield _listing("Other readings", ("interpretation", "the alternative that is followed", "cases"), readings)
    deviations = [
        (text(line["case"]), line["disposition"].replace("_", " "), text(wording.deviation_reason(report, line)))
        for line in report.observed
        if line["disposition"] in ("known_deviation", "waived")
    ]
    yield _listing("Known deviations", ("case", "", "reason"), deviations)
    lines = [line for line in report.observed if line["verdict"] == "unsupported"]
    unsupported = [map(text, (line["case"], ", ".join(line["clauses"]), line["reason"])) for line in lines]
    yield _listing("Unsupported", ("case", "clauses", "reason"), unsupported)


def _listing(title: str, head: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    if not rows:
        return ""
    more = [f"And {wording.count(len(rows) - SHOWN)} more, in `index.html`."] if len(rows) > SHOWN else []
    return "\n\n".join([f"## {title}", table(head, rows[:SHOWN]), *more])


def table(head: Sequence[str], rows: Iterable[Iterable[str]], *, numbers: bool = False) -> str:
    """A Markdown table of cells that are Markdown already; `numbers` aligns every column but the first to the right."""
    marks = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    lines = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(marks)}|", *lines])


def text(value: str) -> str:
    """Return a text as one line of Markdown that shows just these characters."""
    return _BLOCK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", _one_line(value)))


def code(value: str) -> str:
    """Return a text as a Markdown code span."""
    value = _one_line(value)
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {value} {fence}" if longest else f"`{value}`"


def _one_line(value: str) -> str:
    return _escaped(" ".join(value.split()))


def _escaped(value: str) -> str:
    return escaped(_CONTROL, value)


# The rooflines of communication and of computation, side by side, as one picture for the page (collectives spec 6).
#
# Rates over sizes, both axes logarithmic, from figures that cases of `COLL-06-02` recorded: the times that an
# implementation's traces report. No case judges them. A size is the bytes of a collective's buffer, or the operations
# of a kernel.


PICOSECONDS = 10**12

Point = tuple[float, float]
Tick = tuple[float, str]


@dataclass(frozen=True)
class Plot:
    """A roofline: the name of its figures, its title, and its units."""

    name: str
    title: str
    of_size: str
    of_rate: str


PLOTS = (
    Plot("communication", "Communication: all-reduce", "bytes of the buffer", "B/s"),
    Plot("compute", "Computation: kernels", "operations", "FLOP/s"),
)

CHART_WIDTH, HEIGHT, GAP = 560, 330, 40
LEFT, RIGHT, TOP, BOTTOM = 74, 128, 34, 46
LABEL = 15
"""The distance of two rows of the legend."""

PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def rooflines(report: Report) -> str:
    """Return the picture of the rooflines that have figures, in ASCII; "" if none has any."""
    figures = [figure for line in report.observed for figure in line["run"].get("figures", ())]
    plots = {plot: lines for plot in PLOTS if (lines := _lines(figures, plot))}
    if not plots:
        return ""
    width = len(plots) * (CHART_WIDTH + GAP) - GAP
    names = " and ".join(plot.title for plot in plots)
    parts = [f'<svg viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{_text(f"Rooflines. {names}")}">']
    for number, (plot, lines) in enumerate(plots.items()):
        possible = (figure.get("bytes_per_second") for figure in figures if figure["plot"] == plot.name)
        roof = max(filter(None, possible), default=None)  # the greatest possible rate, if a case recorded it
        parts.append(f'<g transform="translate({number * (CHART_WIDTH + GAP)} 0)">')
        parts += [*_panel(plot, lines, roof), "</g>"]
    return "\n".join([*parts, "</svg>"])


def _lines(figures: Iterable[Mapping[str, Any]], plot: Plot) -> dict[str, list[Point]]:
    """Return the points of every line of a plot, by size: the rate follows from the time that a size took."""
    lines: dict[str, list[Point]] = {}
    for figure in figures:
        if figure["plot"] == plot.name and figure.get("size", 0) > 0 and figure.get("picoseconds", 0) > 0:
            point = figure["size"], figure["size"] * PICOSECONDS / figure["picoseconds"]
            lines.setdefault(figure["line"], []).append(point)
    return {line: sorted(points) for line, points in sorted(lines.items())}


def _scale(values: Sequence[float], begins: float, ends: float) -> tuple[Callable[[float], float], list[Tick]]:
    """Return the function from a value to its coordinate on an axis that spans all values, and the axis's ticks."""
    least = math.floor(math.log10(min(values)))
    most = max(math.ceil(math.log10(max(values))), least + 1)

    def at(value: float) -> float:
        part = (math.log10(value) - least) / (most - least)
        return begins + part * (ends - begins)

    powers = range(least, most + 1, 1 + (most - least) // 8)  # of many each second or third
    return at, [(at(10.0**power), _power(power)) for power in powers]


def _panel(plot: Plot, lines: Mapping[str, Sequence[Point]], roof: float | None) -> Iterator[str]:
    points = [point for line in lines.values() for point in line]
    right, bottom = CHART_WIDTH - RIGHT, HEIGHT - BOTTOM
    x, sizes = _scale([size for size, _ in points], LEFT, right)
    y, rates = _scale([rate for _, rate in points] + ([roof] if roof else []), bottom, TOP)
    yield f'<text class="title" x="{LEFT}" y="16">{_text(plot.title)}</text>'
    for place, label in sizes:
        yield f'<line class="grid" x1="{place:.1f}" y1="{TOP}" x2="{place:.1f}" y2="{bottom}"/>'
        yield f'<text x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{label}</text>'
    for place, label in rates:
        yield f'<line class="grid" x1="{LEFT}" y1="{place:.1f}" x2="{right}" y2="{place:.1f}"/>'
        yield f'<text x="{LEFT - 7}" y="{place + 4:.1f}" text-anchor="end">{label}{plot.of_rate}</text>'
    yield f'<text x="{(LEFT + right) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{_text(plot.of_size)}</text>'
    height = y(roof or max(rate for _, rate in points))
    yield f'<line class="roof" x1="{LEFT}" y1="{height:.1f}" x2="{right}" y2="{height:.1f}"/>'
    yield f'<text class="label" x="{right + 8}" y="{TOP}">{"link" if roof else "best measured"} (dashed)</text>'
    for number, (name, line) in enumerate(lines.items()):
        coordinates = " ".join(f"{x(size):.1f},{y(rate):.1f}" for size, rate in line)
        beside = f'x="{right + 8}" y="{TOP + LABEL * (number + 1)}"'
        yield f'<g class="line-{number % 6}"><polyline points="{coordinates}"/>'
        yield f'<text class="label" {beside}>{_text(name.replace("_", " "))}</text>'
        yield from (f'<circle cx="{x(size):.1f}" cy="{y(rate):.1f}" r="3"/>' for size, rate in line)
        yield "</g>"


def _power(power: int) -> str:
    """Return a power of ten with a prefix, as 10 k; the unit follows."""
    prefix = min(max(power, 0) // 3, len(PREFIXES) - 1)
    return f"{10.0 ** (power - 3 * prefix):g} {PREFIXES[prefix]}"


def _text(text: str) -> str:
    return html.escape(text).encode("ascii", "xmlcharrefreplace").decode()
