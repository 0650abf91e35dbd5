"""Everything people look at, made from a report file and written beside it."""

from __future__ import annotations

from pathlib import Path

from tessera_conformance.registry import Registry
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.junit import junit
from tessera_conformance.reports.markdown import markdown
from tessera_conformance.reports.page import page

RENDERINGS = {"summary.md": markdown, "junit.xml": junit, "index.html": page}


def publish(report: Report, registry: Registry, directory: Path | None = None) -> None:
    """Write `summary.md`, `junit.xml` and `index.html` into the report's directory, or another."""
    directory = directory or report.path.parent
    directory.mkdir(parents=True, exist_ok=True)
    for name, render in RENDERINGS.items():
        write_text(directory / name, render(report, registry))


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 with plain line ends; half characters that an implementation sent are written as escapes."""
    path.write_bytes(text.encode("utf-8", errors="backslashreplace"))
