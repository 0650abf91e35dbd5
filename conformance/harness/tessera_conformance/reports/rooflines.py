"""The rooflines of communication and of computation, side by side, as one picture for the page (collectives spec 6).

Rates over sizes, both axes logarithmic, from the figures that cases of `COLL-06-02` kept: they are what the
implementation's traces tell of its own times, and nothing is judged by them. A size is the bytes of a collective's
buffer, or the operations of a kernel.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tessera_conformance.reports.journal import Report

CLAUSE = "COLL-06-02"
PICOSECONDS = 10**12

Point = tuple[float, float]


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

WIDTH, HEIGHT, GAP = 560, 330, 40
LEFT, RIGHT, TOP, BOTTOM = 74, 128, 34, 46
LABEL = 15
"""The least distance of two labels."""

PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def rooflines(report: Report) -> str:
    """The section's markup, in ASCII: the picture, and for a roofline without figures why it has none."""
    given = figures(report)
    drawn = [plot for plot in PLOTS if _lines(given, plot)]
    said = [f"<p>{_text(f'{plot.title}: {_why_not(report)}')}</p>" for plot in PLOTS if plot not in drawn]
    return "\n".join([*([_picture(given, drawn)] if drawn else []), *said])


def figures(report: Report) -> list[Mapping[str, Any]]:
    """Return the figures that the cases of a report kept for plots."""
    return [each for line in report.observed for each in line["run"].get("figures", ())]


def _lines(given: Sequence[Mapping[str, Any]], plot: Plot) -> dict[str, list[Point]]:
    """The points of every line of a plot, by size: what a size took, and so its rate."""
    found: dict[str, list[Point]] = {}
    for each in given:
        if each["plot"] == plot.name and each.get("size", 0) > 0 and each.get("picoseconds", 0) > 0:
            point = each["size"], each["size"] * PICOSECONDS / each["picoseconds"]
            found.setdefault(each["line"], []).append(point)
    return {line: sorted(points) for line, points in sorted(found.items())}


def _why_not(report: Report) -> str:
    """Why a roofline has no figures, as the cases that would have given them tell."""
    asked = [line for line in report.observed if CLAUSE in line["clauses"] and not line["run"].get("figures")]
    if not asked:
        return "not asked; no case of this run measures it."
    line = asked[0]
    return f"{line['verdict'].replace('_', ' ')}; {line['reason'] or 'no case gave a figure'}."


def _picture(given: Sequence[Mapping[str, Any]], drawn: Sequence[Plot]) -> str:
    width = len(drawn) * (WIDTH + GAP) - GAP
    names = " and ".join(plot.title for plot in drawn)
    parts = [f'<svg viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{_text(f"Rooflines. {names}")}">']
    for number, plot in enumerate(drawn):
        parts.append(f'<g transform="translate({number * (WIDTH + GAP)} 0)">')
        parts += _panel(plot, _lines(given, plot), _roof(given, plot))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"])


def _roof(given: Sequence[Mapping[str, Any]], plot: Plot) -> float | None:
    """The rate that no point can be above, where a case knows it."""
    known = [each["bytes_per_second"] for each in given if each["plot"] == plot.name and each.get("bytes_per_second")]
    return max(known, default=None)


@dataclass(frozen=True)
class _Scale:
    """Powers of ten that an axis spans, and where on the picture it begins and ends."""

    least: int
    most: int
    begins: float
    ends: float

    @classmethod
    def over(cls, values: Sequence[float], begins: float, ends: float) -> _Scale:
        """An axis that holds all values."""
        least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(least, max(most, least + 1), begins, ends)

    def at(self, value: float) -> float:
        """The place of a value."""
        part = (math.log10(value) - self.least) / (self.most - self.least)
        return self.begins + part * (self.ends - self.begins)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Every power of ten with its place and its label; of many powers each second or third."""
        for power in range(self.least, self.most + 1, 1 + (self.most - self.least) // 8):
            yield self.at(10.0**power), _power(power)


def _panel(plot: Plot, lines: Mapping[str, Sequence[Point]], roof: float | None) -> Iterator[str]:
    points = [point for line in lines.values() for point in line]
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x = _Scale.over([size for size, _ in points], LEFT, right)
    y = _Scale.over([rate for _, rate in points] + ([roof] if roof else []), bottom, TOP)
    yield f'<text class="title" x="{LEFT}" y="16">{_text(plot.title)}</text>'
    for place, label in x.ticks():
        yield f'<line class="grid" x1="{place:.1f}" y1="{TOP}" x2="{place:.1f}" y2="{bottom}"/>'
        yield f'<text x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{label}</text>'
    for place, label in y.ticks():
        yield f'<line class="grid" x1="{LEFT}" y1="{place:.1f}" x2="{right}" y2="{place:.1f}"/>'
        yield f'<text x="{LEFT - 7}" y="{place + 4:.1f}" text-anchor="end">{label}{plot.of_rate}</text>'
    yield f'<text x="{(LEFT + right) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{_text(plot.of_size)}</text>'
    best = max(rate for _, rate in points)
    height, label = y.at(roof or best), "link" if roof else "best measured"
    yield f'<line class="roof" x1="{LEFT}" y1="{height:.1f}" x2="{right}" y2="{height:.1f}"/>'
    ends = {name: y.at(line[-1][1]) for name, line in lines.items()}
    places = _apart({"": height, **ends})
    yield f'<text class="label" x="{right + 8}" y="{places[""] + 4:.1f}">{label}</text>'
    for number, (name, line) in enumerate(lines.items()):
        drawn = " ".join(f"{x.at(size):.1f},{y.at(rate):.1f}" for size, rate in line)
        yield f'<g class="line-{number % 6}"><title>{_text(_told(name, line, plot))}</title>'
        yield f'<polyline points="{drawn}"/>'
        yield from (f'<circle cx="{x.at(size):.1f}" cy="{y.at(rate):.1f}" r="3"/>' for size, rate in line)
        yield f'<text class="label" x="{right + 8}" y="{places[name] + 4:.1f}">{_text(name.replace("_", " "))}</text>'
        yield "</g>"


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """The heights of labels, each moved down as far as the one above it needs, all up where they leave the plot."""
    names = sorted(wanted, key=lambda name: wanted[name])
    heights = [wanted[name] for name in names]
    for above, below in pairwise(range(len(heights))):
        heights[below] = max(heights[below], heights[above] + LABEL)
    excess = max(heights[-1] - (HEIGHT - BOTTOM), 0)
    return {name: height - excess for name, height in zip(names, heights, strict=True)}


def _told(name: str, line: Sequence[Point], plot: Plot) -> str:
    """The points in words, for a pointer that rests on the line."""
    return f"{name}: " + ", ".join(f"{size:g} at {rate:.3g} {plot.of_rate}" for size, rate in line)


def _power(power: int) -> str:
    """A power of ten with a prefix, as 10 k; the unit follows."""
    prefix = min(max(power, 0) // 3, len(PREFIXES) - 1)
    return f"{10.0 ** (power - 3 * prefix):g} {PREFIXES[prefix]}"


def _text(text: str) -> str:
    return html.escape(text).encode("ascii", "xmlcharrefreplace").decode()
