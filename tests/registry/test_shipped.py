"""The registry as shipped: its size, its form, its speed, and its agreement with the specifications."""

from __future__ import annotations

import collections
import re

import pytest

from tessera_conformance import locations
from tessera_conformance.registry import UnknownClause, lock, source
from tessera_conformance.registry import source as emit
from tessera_conformance.registry.lock import examine

DIRECTORY = locations.clauses_directory()


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


def test_it_quotes_no_sentence_of_the_specifications(registry, quotations):
    rows = [(clause.id, clause.summary) for clause in registry.clauses.values()]
    rows += [
        (row.id, f"{row.issue} | {row.decision} | {row.why} | {row.wording}")
        for row in registry.interpretations.values()
    ]
    assert [name for name, text in rows if quotations(text)] == []


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
