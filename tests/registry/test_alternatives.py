"""Listed alternatives are read as such, or stand on a list that only shrinks."""

from __future__ import annotations

import re
from pathlib import Path

from tessera_conformance.locations import clauses_directory, suite_directory
from tessera_conformance.registry import load_registry

OPEN = Path(__file__).parent / "open_alternatives.txt"
"""The interpretations whose decision is asserted and whose alternatives no case recognises."""
NAMED = re.compile(r'(?:\.reading\(|Reading\(|varies\(|\()\s*"(AMB-[A-Z]+-\d+)"')


def recognised() -> set[str]:
    """The interpretations of which a case names an alternative, or which a legal variant follows."""
    return {name for path in suite_directory().rglob("*.py") for name in NAMED.findall(path.read_text("utf-8"))}


def test_alternatives_of_what_is_asserted_are_recognised_or_listed():
    interpretations = load_registry(clauses_directory()).interpretations.values()
    asserted = [row.id for row in interpretations if row.active and row.alternatives and row.asserted == "the decision"]
    missing = sorted({*asserted} - recognised())
    assert missing == sorted(OPEN.read_text(encoding="utf-8").split())
