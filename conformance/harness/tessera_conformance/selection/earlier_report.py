"""Which earlier report says what failed, and where the report of this run goes so that it does not replace that one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tessera_conformance.reports.journal import FILE_NAME
from tessera_conformance.terminal.errors import error_text

USUAL = Path("report")
"""Where a report goes by default."""
PART = "failed"
"""The folder, in that of the report that was read, of a run of what failed in it."""
BEFORE = "before.jsonl"
"""What the report of the last such run is called while it is run again."""


@dataclass(frozen=True)
class Earlier:
    """The folder of this run's report, the report whose failures it runs, and a sentence for the user."""

    folder: Path
    failed: Path | None = None
    note: str = ""


def earlier(folder: Path | None, failed: Path | None, last_failed: bool, keeps: bool = False) -> Earlier:
    """What follows from `--report-dir`, `--failed` and `--lf`; a run that `keeps` all files writes no report.

    Raises:
        ValueError: the report would replace the one that is read.
    """
    if failed is not None:
        return _beside(folder, failed)
    base = folder or USUAL
    if not last_failed:
        return Earlier(base)
    part = next((path for name in (FILE_NAME, BEFORE) if (path := base / PART / name).is_file()), None)
    known = [path for path in (base / FILE_NAME, part) if path is not None and path.is_file()]
    if not known:
        return Earlier(base, note=f"--lf: there is no {base / FILE_NAME} yet: all cases run")
    newest = max(known, key=lambda path: path.stat().st_mtime_ns)
    if newest == base / PART / FILE_NAME and not keeps:
        newest = newest.replace(newest.with_name(BEFORE))
    return Earlier(base / PART, newest)


def _beside(folder: Path | None, failed: Path) -> Earlier:
    read_from = (failed if failed.is_dir() else failed.parent).resolve()
    if folder is None:
        inside = USUAL.resolve() in (read_from, *read_from.parents)
        return Earlier(read_from / PART if inside else USUAL, failed)
    if folder.resolve() == read_from:
        what = f"{folder} holds the report that --failed reads"
        raise ValueError(error_text("--report-dir", what, do="name another folder"))
    return Earlier(folder, failed)
