"""JSON and TOML from foreign files and messages, whose every fault is one error; and TOML files cached as JSON."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

# JSON and TOML from foreign files and messages: every defect, including the size, is one error.


DEEPEST = 100
"""The most levels of nesting; no document of the project has twenty."""
MOST_BYTES, WIDEST = 256 << 20, 4
"""The most bytes of a document or message, and the factor by which a text outside ASCII may have fewer: one wide
character makes every character of the text take so many bytes."""
MOST_TOML, MOST_DOTS = 4 << 20, 200_000
"""The most bytes and dots of a TOML text: its parser takes time by the square of the parts of a dotted key."""
MOST_VALUES = 1_000_000
"""The most values in one document or message; the largest line of a report of the whole suite has 9,000."""


class NoDocument(ValueError):
    """A text that is no document, or larger or more deeply nested than any of the project."""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises `NoDocument`."""
    return _read("JSON", json.loads, text)


def read_toml(text: str | bytes) -> dict[str, Any]:
    """Return the table of a TOML text. Raises `NoDocument`."""
    dot: Any = b"." if isinstance(text, bytes) else "."
    if len(text) > MOST_TOML or text.count(dot) > MOST_DOTS:
        raise NoDocument(f"not TOML of the project: more than {MOST_TOML} bytes or {MOST_DOTS} dots")
    if any(line.count(dot) > DEEPEST for line in text.splitlines()):
        raise NoDocument(f"not TOML of the project: more than {DEEPEST} dots in a line")
    table: dict[str, Any] = _read("TOML", tomllib.loads, text)
    return table


def read_file(path: Path) -> Any:
    """Return the value of a TOML file, or of a JSON file by its ending. Raises `NoDocument`, which names the file."""
    try:
        text = path.read_bytes()
        return read_json(text) if path.suffix == ".json" else read_toml(text)
    except OSError as error:
        raise NoDocument(f"{path}: {error.strerror}") from None
    except NoDocument as error:
        raise NoDocument(f"{path}: {error}") from None


def exceeds(text: str | bytes) -> str:
    """Return the bound that a text exceeds before it is parsed: each value follows a comma, a bracket or "="."""
    if len(text) <= MOST_VALUES:
        return ""
    escape: Any = b"\\u" if isinstance(text, bytes) else "\\u"
    most = MOST_BYTES if text.isascii() and escape not in text else MOST_BYTES // WIDEST
    if len(text) > most:
        return f"more than {most} bytes"
    signs: tuple[Any, ...] = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{", "=")
    return f"more than {MOST_VALUES} values" if sum(map(text.count, signs)) > MOST_VALUES else ""


def _read(kind: str, parse: Callable[[str], Any], text: str | bytes) -> Any:
    if excess := exceeds(text):
        raise NoDocument(f"not {kind} of the project: {excess}")
    try:
        text = text.decode() if isinstance(text, bytes) else text
        value = parse(text)
    except RecursionError:
        raise NoDocument(f"not {kind}: nested too deeply") from None
    except ValueError as error:
        raise NoDocument(f"not {kind}: {error}") from None
    if kind == "JSON" and text.count("[") + text.count("{") <= DEEPEST:
        return value
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        items = [item for node in level for item in (node.values() if isinstance(node, dict) else node)]
        level = [item for item in items if isinstance(item, dict | list)]
        if not level:
            return value
    raise NoDocument(f"not {kind}: nested more than {DEEPEST} levels deep")


# Values in files with the digest of their source: those in the user's cache folder can be made again.


def cache_folder() -> Path:
    """Return the folder of the project, which need not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tessera-conformance"


def cache_file(kind: str, source: Path) -> Path:
    """Return the file for values made from a source: one for each path of such a source."""
    place = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    return cache_folder() / f"{kind}-{place}.json"


def read_kept(file: Path, digest: str | None) -> Any:
    """Return the value in a file; None if it has none, or one of another source. Without a digest, any source does."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return content["value"] if digest in (None, content["source"]) else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def keep(file: Path, digest: str, value: Any) -> None:
    """Write a value with the digest of its source, atomically. Raises `OSError`, and `TypeError` if it has no JSON."""
    text = json.dumps({"source": digest, "value": value}, separators=(",", ":"))
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


# TOML files as JSON in the user's cache folder: each process starts 0.1 s faster by reading the registry from it.
#
# A file there has the digest of its TOML text; if that differs, the text is parsed again. Without a writable folder, it
# is parsed each time.


def table_of(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file. Raises `OSError`, and `ValueError` if it is no TOML."""
    text = path.read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    path_of_cache = cache_file(f"table-{path.stem}", path.resolve())
    table: dict[str, Any] | None = read_kept(path_of_cache, digest)
    if not isinstance(table, dict):
        table = read_toml(text.decode("utf-8"))
        with contextlib.suppress(OSError, TypeError):  # a date has no JSON
            keep(path_of_cache, digest, table)
    return table
