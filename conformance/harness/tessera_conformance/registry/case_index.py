"""The cases of each clause, kept in a file between two commands: to collect the suite takes seconds.

The file lies in the user's cache folder and holds the fingerprint of the sources it was made from: path, size and
time of change of every file of the suite, the harness and the vectors. Where one of them differs, the suite is
collected again. Where the cache cannot be written, it is collected each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance import locations


def cases_by_clause() -> Mapping[str, Sequence[str]]:
    """The ids of the cases tagged with each clause.

    Raises:
        SuiteNotCollected: the sources changed, and pytest cannot collect the suite.
    """
    fingerprint, file = _fingerprint(), _cache_file()
    kept = _read(file)
    if kept.get("fingerprint") == fingerprint:
        cases: dict[str, list[str]] = kept["cases"]
        return cases
    from tessera_conformance.collection import CollectedSuite  # with pytest, which the file makes unnecessary

    cases = CollectedSuite().tags()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({"fingerprint": fingerprint, "cases": cases}), encoding="utf-8")
        unfinished.replace(file)
    return cases


def _cache_file() -> Path:
    """One file for each place where a suite lies."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    place = hashlib.sha256(str(locations.suite_directory()).encode()).hexdigest()[:16]
    return base / "tessera-conformance" / f"cases-{place}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _fingerprint() -> str:
    """A digest of all that the cases are made from."""
    digest = hashlib.sha256(f"{sys.version} {importlib.metadata.version('pytest')}".encode())
    for folder in sources():
        for path, status in files(str(folder)):
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\n".encode())
    return digest.hexdigest()


def sources() -> Sequence[Path]:
    """The folders of all that the cases are made from."""
    harness = Path(__file__).parent
    return [locations.suite_directory(), locations.vectors_directory(), locations.schemas_directory(), harness]


def files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, but for those that running it leaves behind."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                if not entry.name.startswith((".", "__pycache__")):
                    yield from files(entry.path)
            else:
                yield entry.path, entry.stat()
