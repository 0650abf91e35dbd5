"""The badge of a report, one line in SVG for a README: the claim, and how many of the testable clauses pass."""

from __future__ import annotations

import html
from collections.abc import Mapping

from tessera_conformance.registry import Registry
from tessera_conformance.reports.clause_results import clause_results, judgeable, tally
from tessera_conformance.reports.journal import Report

NAME = "Tessera conformance"
COLOURS: Mapping[str, str] = {"success": "#2f7a52", "partial": "#96650f", "failure": "#b8322a", "invalid": "#5b6570"}
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg" '
CHARACTER, PADDING, HEIGHT = 6.4, 7, 20
"""The width that a character is given, the space beside a text, and the height of the badge, in pixels."""


def badge(report: Report, registry: Registry, attributes: str = NAMESPACE) -> str:
    """Return the badge; inside of an HTML document it needs no namespace."""
    counts = tally(clause_results(report, registry).values())
    said = f"{report.claim}: {counts['pass']} of {judgeable(counts)} clauses"
    text = html.escape(said if report.claim != "invalid" else "invalid report")
    left, right = _width(NAME), _width(text)
    size = f'width="{left + right}" height="{HEIGHT}" viewBox="0 0 {left + right} {HEIGHT}"'
    return (
        f'<svg {attributes}class="badge" {size} role="img" aria-label="{NAME}: {text}">'
        f'<rect width="{left}" height="{HEIGHT}" fill="#3b444c"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{COLOURS[report.claim]}"/>'
        '<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">'
        f"{_text(NAME, 0, left)}{_text(text, left, right)}</g></svg>"
    )


def _width(text: str) -> int:
    return round(len(text) * CHARACTER) + 2 * PADDING


def _text(text: str, begins: int, width: int) -> str:
    return f'<text x="{begins + PADDING}" y="14" textLength="{width - 2 * PADDING}">{text}</text>'
