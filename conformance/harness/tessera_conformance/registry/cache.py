"""Files in the user's cache folder: what can be made again, and TOML files as JSON."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tessera_conformance.documents import read_toml

# Files in the user's cache folder, where the project keeps what can be made again.


def cache_folder() -> Path:
    """The folder of the project, which need not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tessera-conformance"


def cache_file(kind: str, source: Path) -> Path:
    """The file of what is made from a source: one for each place of such a source."""
    place = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    return cache_folder() / f"{kind}-{place}.json"


def write_whole(file: Path, text: str) -> None:
    """Write a file atomically, and its folder. Raises `OSError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


# TOML files as JSON in the user's cache folder: the registry is read 0.1 s faster, at the start of each process.
#
# A file there has the digest of the TOML text that it was made from; where that differs the text is read again. Where
# the folder cannot be written, each time.


def table_of(path: Path) -> dict[str, Any]:
    """The table of a TOML file. Raises `OSError`, and `ValueError` where it is none."""
    text = path.read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    path_of_cache = cache_file(f"table-{path.stem}", path.resolve())
    table = _kept(path_of_cache, digest)
    if table is None:
        table = read_toml(text.decode("utf-8"))
        with contextlib.suppress(OSError, TypeError):  # a date has no JSON
            write_whole(path_of_cache, json.dumps({"sha256": digest, "table": table}, separators=(",", ":")))
    return table


def _kept(file: Path, digest: str) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        table = content["table"] if content["sha256"] == digest else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return table if isinstance(table, dict) else None
