"""What must be the same on every machine of a run, so that it makes no difference where a case is judged."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from tessera_conformance import __version__
from tessera_conformance.locations import clauses_directory, rooms
from tessera_conformance.registry.case_index import digest_of_contents

VERSION = "tessera-conformance"
REFERENCE = "tessera_reference"
DIGITS = 12


def own_identity() -> dict[str, str]:
    """The version of this installation, and digests of what it is made of, by name."""
    interfaces = [path for _, path in sorted(rooms("interface.toml").items())]
    return {
        VERSION: __version__,
        "clause registry (clauses.lock)": _digest([clauses_directory() / "clauses.lock"]),
        "interface (interface.toml)": _digest(interfaces),
        "suite, vectors and harness": digest_of_contents()[:DIGITS],
        "reference": _digest(_reference()),
    }


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """The first thing that another machine has otherwise, as a sentence of it; empty where there is none."""
    for name, ours in here.items():
        theirs = there.get(name, "none")
        if theirs != ours:
            return f"has {name} {theirs}, where this machine has {ours}: install the same on every machine"
    return ""


def _reference() -> list[Path]:
    """The modules of the reference, which need not be installed and is not imported."""
    found = importlib.util.find_spec(REFERENCE)
    folders = [] if found is None else map(Path, found.submodule_search_locations or ())
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:DIGITS]
