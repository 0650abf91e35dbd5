"""The published report of the reference: whole, valid, and as light as a report of the suite may be."""

from __future__ import annotations

from pathlib import Path

from tessera_conformance.reports.journal import content, read, report_in

PUBLISHED = Path(__file__).resolve().parents[2] / "reports" / "reference"
MOST_REPORT, MOST_PAGE = 12_000_000, 5_000_000
"""Bytes of the report file, unpacked, and of its page."""


def test_the_published_report_is_whole_and_light() -> None:
    report = read(report_in(PUBLISHED))
    assert (report.problem, report.claim) == (None, "success")
    assert report.header["selection"]["complete"]
    assert all("evidence" in line for line in report.observations if line["verdict"] == "pass")
    assert len(content(report.path)) <= MOST_REPORT
    assert (PUBLISHED / "index.html").stat().st_size <= MOST_PAGE
