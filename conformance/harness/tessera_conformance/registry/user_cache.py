"""Files in the user's cache folder, where the project keeps what can be made again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["cache_file", "cache_folder", "write_whole"]


def cache_folder() -> Path:
    """The folder of the project, which need not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tessera-conformance"


def cache_file(kind: str, source: Path) -> Path:
    """The file of what is made from a source: one for each place where such a source lies."""
    place = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    return cache_folder() / f"{kind}-{place}.json"


def write_whole(file: Path, text: str) -> None:
    """Write a file, of which nobody sees half, and its folder. Raises `OSError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)
