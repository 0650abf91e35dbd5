"""Everything people look at, made from a report file and written beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tessera_conformance.registry import Registry
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.junit import junit
from tessera_conformance.reports.markdown import markdown
from tessera_conformance.reports.page import page

Rendering = Callable[[Report, Registry], str | Iterable[str]]

RENDERINGS: dict[str, Rendering] = {"summary.md": markdown, "junit.xml": junit, "index.html": page}


def publish(report: Report, registry: Registry, directory: Path | None = None) -> None:
    """Write `summary.md`, `junit.xml` and `index.html` into the report's directory, or another."""
    directory = directory or report.path.parent
    directory.mkdir(parents=True, exist_ok=True)
    for name, render in RENDERINGS.items():
        write_text(directory / name, render(report, registry))


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write UTF-8 with plain line ends; half characters that an implementation sent are written as escapes."""
    with path.open("wb") as file:
        for piece in [text] if isinstance(text, str) else text:
            file.write(piece.encode("utf-8", errors="backslashreplace"))
