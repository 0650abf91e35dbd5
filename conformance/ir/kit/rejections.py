"""Programs that a front end must refuse, each beside a twin that it must accept: the two differ in one token.

The table is in `ir/rejections` of the suite: `lex.toml`, `parse-statements.toml` and so on, named after their phase. A
program is written once and marks the place where the two differ: `return ⟦a|b⟧;` is legal as `return a;` and illegal as
`return b;`; either side may be empty. Programs of a group share clauses, categories and a frame, in which each program
replaces `…`. A program that an alternative of an interpretation accepts names it: `hangs_on`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera_conformance.cases import suite_directory

PHASES = ("lex", "parse", "type", "shape", "layout", "distributed", "numerics")
"""The phases of the table, in the order of a front end's work."""

CATEGORIES = ("syntax", "types", "shapes", "layouts", "schedule", "tile", "distributed", "numerics")
"""The categories of diagnostics: section 11, with syntax beside it (AMB-LANG-112)."""

PLACE = "…"

_MARK = re.compile(r"⟦([^|⟦⟧]*)\|([^⟦⟧]*)⟧")
_GROUP_KEYS = {"about", "clauses", "categories", "features", "frame", "found", "programs"}
_PROGRAM_KEYS = {"program", "clauses", "categories", "features", "hangs_on"}


class MalformedRejections(Exception):
    """A file of the table cannot be used; has its name and the reason."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One illegal program and its legal twin."""

    id: str
    phase: str
    about: str
    clauses: tuple[str, ...]
    categories: tuple[str, ...]
    features: tuple[str, ...]
    late: bool
    """True if the mistake may remain undetected until the function `f` is executed."""
    marked: str

    @property
    def legal(self) -> str:
        """The program that is accepted."""
        return _MARK.sub(lambda mark: mark[1], self.marked)

    @property
    def illegal(self) -> str:
        """The program that is refused."""
        return _MARK.sub(lambda mark: mark[2], self.marked)


def load(phase: str) -> list[Rejection]:
    """Return the programs of a phase, file by file.

    Raises `MalformedRejections`: there is no file, one cannot be read, or an entry is incomplete or marks no place.
    """
    folder = suite_directory() / "ir" / "rejections"
    paths = sorted(path for path in folder.glob("*.toml") if path.stem.partition("-")[0] == phase)
    if not paths:
        raise MalformedRejections(f"{folder}: no file for phase {phase!r}")
    return [rejection for path in paths for rejection in _read_file(path, phase)]


def _read_file(path: Path, phase: str) -> list[Rejection]:
    try:
        return list(read(path.read_text(encoding="utf-8"), phase))
    except KeyError as error:
        raise MalformedRejections(f"{path}: the key {error} is missing") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise MalformedRejections(f"{path}: {error}") from None


def read(text: str, phase: str) -> Iterator[Rejection]:
    """Return the programs of a file's text.

    Raises `KeyError`: a key is missing; or `ValueError`: the text is not TOML, or an entry is malformed.
    """
    document = tomllib.loads(text)
    if document["phase"] != phase:
        raise ValueError(f"the phase is {document['phase']!r}, expected {phase!r}")
    for group in document["group"]:
        _require_known(group, _GROUP_KEYS, group.get("about", "a group"))
        for name, entry in group["programs"].items():
            yield _rejection(document, group, name, {"program": entry} if isinstance(entry, str) else entry)


def _rejection(document: Mapping[str, Any], group: Mapping[str, Any], name: str, entry: Mapping[str, Any]) -> Rejection:
    _require_known(entry, _PROGRAM_KEYS, name)
    marked = group.get("frame", document.get("frame", PLACE)).replace(PLACE, entry["program"])
    if len(_MARK.findall(marked)) != 1 or marked.count("⟦") != 1:
        raise ValueError(f"{name}: expected one mark ⟦legal|illegal⟧")
    categories = entry.get("categories", group.get("categories", document["categories"]))
    strange = [category for category in categories if category not in CATEGORIES]
    if strange:
        raise ValueError(f"{name}: unknown category {strange[0]!r}: expected one of {', '.join(CATEGORIES)}")
    found = group.get("found", "verify")
    if found not in ("verify", "execute"):
        raise ValueError(f"{name}: found is {found!r}, expected 'verify' or 'execute'")
    return Rejection(
        id=name,
        phase=document["phase"],
        about=group["about"] + (f" ({entry['hangs_on']})" if "hangs_on" in entry else ""),
        clauses=(*entry.get("clauses", ()), *group.get("clauses", ())),
        categories=tuple(categories),
        features=(*group.get("features", ()), *entry.get("features", ())),
        late=found == "execute",
        marked=marked,
    )


def _require_known(table: Mapping[str, Any], known: set[str], name: str) -> None:
    strange = sorted(table.keys() - known)
    if strange:
        raise ValueError(f"{name}: unknown key {strange[0]!r}: expected one of {', '.join(sorted(known))}")
