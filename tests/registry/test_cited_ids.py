"""Every clause and interpretation that the code, the pages or the examples name can be looked up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry

ROOT = Path(__file__).resolve().parents[2]
CITED = re.compile(r"\b(?:AMB-[A-Z]+-[0-9]+|(?:RT|LANG|COLL|HIO|WSP)-[0-9A-Z]+(?:\.[0-9A-Z]+)*-[0-9]{2,})\b")
SUFFIXES = {".c", ".h", ".md", ".py", ".toml", ".tsr"}


@pytest.mark.parametrize("folder", ["conformance", "docs", "examples", "reference"])
def test_what_is_cited_is_there(folder: str) -> None:
    registry = load_registry(clauses_directory())
    known = registry.clauses.keys() | registry.interpretations.keys()
    files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    strange = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in CITED.findall(path.read_text(encoding="utf-8"))
        if name not in known
    }
    assert strange == set()
