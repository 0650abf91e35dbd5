"""The table of defects names what the sources switch, and nothing else."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry

from .conftest import SOURCES

SWITCH = re.compile(r'defect(?:_once_in)?\("([a-z0-9_]+)"')
ROWS = tomllib.loads((SOURCES / "defects.toml").read_text(encoding="utf-8"))["defect"]


def sources() -> list[Path]:
    return sorted((SOURCES / "src").glob("*.c"))


def test_every_defect_of_the_sources_stands_in_the_table_once() -> None:
    switched = {name for path in sources() for name in SWITCH.findall(path.read_text(encoding="utf-8"))}
    listed = Counter(row["name"] for row in ROWS)
    assert set(listed) == switched
    assert max(listed.values()) == 1
    assert len(listed) >= 40


def test_every_defect_breaks_a_clause_that_there_is() -> None:
    known = load_registry(clauses_directory())
    for row in ROWS:
        assert known.clause(row["clause"]).level in ("MUST", "INFO"), row["name"]
        assert row["what"], row["name"]


def test_the_sources_are_independent_of_python() -> None:
    for path in sources():
        assert "Python.h" not in path.read_text(encoding="utf-8"), path.name
