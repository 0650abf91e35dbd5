"""Mutants that no case can tell, each with the reason: they stand in files that people wrote."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tessera_conformance.strength.mutants.sites import Mutant

__all__ = ["explained", "read_equivalents", "stale"]


def read_equivalents(path: Path) -> Mapping[str, str]:
    """The reasons, of a file or of every `.toml` file of a folder.

    An entry speaks of one mutant (`name`, and what its place `becomes`), of every mutant of a `function` whose result
    no case may judge, such as a diagnostic's words, or of every mutant of a `module` of which no case can ask.

    Raises:
        ValueError: the file is no TOML, or an entry lacks what it speaks of or its reason.
    """
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    return {about: reason for file in files for about, reason in _entries(file)}


def _entries(file: Path) -> Iterable[tuple[str, str]]:
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8")).get("mutant", [])
    except (OSError, ValueError) as error:
        raise ValueError(f"{file.name}: {error}") from None
    for number, entry in enumerate(entries, 1):
        about = next(([kind] for kind in ("function", "module") if kind in entry), ["name", "becomes"])
        missing = [name for name in (*about, "reason") if not entry.get(name)]
        if missing:
            raise ValueError(f"{file.name}: entry {number} lacks {', '.join(missing)}")
        yield " ".join(entry[name] for name in about), entry["reason"]


def explained(mutant: Mutant, equivalents: Mapping[str, str]) -> bool:
    """Whether an entry speaks of it."""
    return not equivalents.keys().isdisjoint(_known_by(mutant))


def stale(equivalents: Mapping[str, str], mutants: Iterable[Mutant]) -> Sequence[str]:
    """Entries that speak of no mutant: the code has changed since they were written."""
    known = {name for mutant in mutants for name in _known_by(mutant)}
    return [entry for entry in equivalents if entry not in known]


def _known_by(mutant: Mutant) -> tuple[str, str, str]:
    """What entries call it: a place that has become something else since is another mutant."""
    function = mutant.name.partition("/")[0]
    becomes = " ".join(mutant.change.after.split())
    return f"{mutant.name} {becomes}", function, mutant.module.partition(".")[2]
