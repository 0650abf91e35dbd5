"""The registry as shipped: its size, its form, its speed, and its agreement with the specifications."""

from __future__ import annotations

import collections
import os
import re
from pathlib import Path

import pytest

from tessera_conformance import locations
from tessera_conformance.registry import UnknownClause, emit, load_registry, lock, source
from tessera_conformance.registry.examine import examine

DIRECTORY = locations.clauses_directory()
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def registry():
    return load_registry(DIRECTORY)


@pytest.fixture(scope="module")
def specifications(registry):
    directory = Path(os.environ.get("TESSERA_SPECS") or CHECKOUT.parent / "shared" / "specs")
    if not directory.is_dir():
        pytest.skip("needs the texts of the specifications: set TESSERA_SPECS to their folder")
    found, missing = source.read_specifications(registry.documents.values(), directory)
    assert missing == []
    return found


def test_every_row_is_there(registry):
    documents = collections.Counter(clause.document for clause in registry.clauses.values())
    assert documents == {"runtime_abi": 299, "language_ir": 361, "host_io": 141, "collectives": 128, "wsp": 187}
    assert len(registry.clauses) == 1116
    assert len(registry.interpretations) >= 251 + 35


def test_the_testable_musts(registry):
    testable = [
        clause
        for clause in registry.clauses.values()
        if clause.level == "MUST" and clause.testable and clause.duplicate_of is None
    ]
    core = [clause for clause in testable if clause.profile == "core"]
    assert (len(testable), len(core)) == (768, 686)


def test_it_has_no_problems():
    assert examine(DIRECTORY)[1] == []


def test_the_files_are_as_the_formatter_writes_them(registry, tmp_path):
    emit.write(registry, tmp_path)
    lock.write(registry, tmp_path)
    for written in tmp_path.iterdir():
        assert written.read_text() == (DIRECTORY / written.name).read_text(), written.name


def test_the_files_name_no_place_on_a_machine():
    for file in DIRECTORY.iterdir():
        assert not re.search(r"/(work|home|tmp|root|usr)/", file.read_text()), file.name


def test_ids_are_met_with_their_clause_or_with_the_nearest(registry):
    assert registry.clause("RT-10.1-04").topic == "parameter-buffer"
    with pytest.raises(UnknownClause, match=r"did you mean RT-10\.1-04"):
        registry.clause("RT-10.1-4")


def test_it_fits_the_specifications(registry, specifications):
    assert list(source.changed_sources(registry, specifications)) == []


def test_it_quotes_no_sentence_of_the_specifications(registry, specifications):
    length = 8
    quotable = {run for text in specifications.values() for run in _runs(" ".join(text.lines), length)}
    rows = [(clause.id, clause.summary) for clause in registry.clauses.values()]
    rows += [(row.id, f"{row.issue} | {row.decision} | {row.why}") for row in registry.interpretations.values()]
    assert [name for name, text in rows if quotable & set(_runs(text, length))] == []


def _runs(text, length):
    words = re.findall(r"[a-z0-9_]+", text.lower())
    return [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]


def test_every_section_with_clauses_has_the_title_of_its_document(registry):
    """But for those whose name is their title."""
    named = {"preamble", "Context", "Links", "Status"}
    untitled = {
        (clause.document, clause.section)
        for clause in registry.clauses.values()
        if clause.section not in {*registry.documents[clause.document].sections, *named}
    }
    assert untitled == set()
    assert registry.documents["runtime_abi"].sections["10.1"] == "Parameter Buffer Layout"
