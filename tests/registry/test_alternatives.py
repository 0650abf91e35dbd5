"""Listed alternatives are read as such: what follows one is another reading, and no failure."""

from __future__ import annotations

import re

from tessera_conformance.locations import clauses_directory, suite_directory
from tessera_conformance.registry import load_registry

NAMED = re.compile(r'(?:\.reading\(|Reading\(|varies\(|\()\s*"(AMB-[A-Z]+-\d+)"')


def recognised() -> set[str]:
    """The interpretations of which a case names an alternative, or which a legal variant follows."""
    return {name for path in suite_directory().rglob("*.py") for name in NAMED.findall(path.read_text("utf-8"))}


def test_alternatives_of_what_is_asserted_are_recognised():
    interpretations = load_registry(clauses_directory()).interpretations.values()
    asserted = [row.id for row in interpretations if row.active and row.alternatives and row.asserted == "the decision"]
    missing = sorted({*asserted} - recognised())
    assert missing == [], "say of each what is asserted, or let a case recognise the alternative (docs/clauses.md)"
