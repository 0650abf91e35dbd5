"""Texts that change, move, grow and vanish, and what the registry makes of them."""

from __future__ import annotations

import hashlib

import pytest

from tessera_conformance.registry import source
from tessera_conformance.registry.errors import (
    DocumentChanged,
    LinesOutOfRange,
    SourceChanged,
    SourceMissing,
    SourceMoved,
)


def problems(small_registry):
    registry = small_registry.load()
    specifications, missing = source.read_specifications(registry.documents.values(), small_registry.specs)
    return [*missing, *source.changed_sources(registry, specifications)]


@pytest.mark.parametrize(
    "lines",
    [
        ["  A stream\tis   a queue. ", "", "   ", "Café  au lait"],
        ["A stream is a queue.", "Cafe\u0301 au lait"],
        ["A stream\u00a0is a queue.", "Café au lait\r"],
    ],
)
def test_blanks_empty_lines_and_composition_do_not_count(lines):
    normalised = "A stream is a queue.\nCafé au lait"
    assert source.normalise(lines) == normalised
    assert source.digest(lines) == f"sha256:{hashlib.sha256(normalised.encode()).hexdigest()}"


def test_words_case_and_line_breaks_do_count():
    texts = (["a b"], ["a c"], ["A b"], ["a", "b"], ["ab"], [])
    assert len({source.digest(text) for text in texts}) == 6


def test_lines_end_with_a_newline_and_with_nothing_else(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\u2028still one\x0cand this\ntwo".encode())
    assert source.Specification.read(tmp_path / "a.txt").lines == ("one\u2028still one\x0cand this", "two")


def test_unchanged_texts_have_no_problems(small_registry):
    assert problems(small_registry) == []
    assert small_registry.run("check", "--specs", str(small_registry.specs))[0] == 0


def test_a_changed_word_names_the_clause_the_section_the_lines_and_the_remedy(small_registry):
    small_registry.edit("language_ir.txt", "if is taken", "if is free")
    document, clause = problems(small_registry)
    assert type(document) is DocumentChanged
    assert type(clause) is SourceChanged
    assert (clause.id, clause.section, clause.lines) == ("LANG-02-01", "2", (2, 2))
    code, printed = small_registry.run("check", "--specs", str(small_registry.specs))
    assert code == 1
    assert "the source of LANG-02-01 changed (section 2, line 2)" in printed
    assert "read line 2 again" in printed


def test_a_change_of_blanks_changes_the_edition_and_no_clause(small_registry):
    small_registry.edit("language_ir.txt", "The word if is", "  The word  if is")
    assert [type(problem) for problem in problems(small_registry)] == [DocumentChanged]


def test_an_inserted_line_moves_the_clauses_below_it(small_registry):
    small_registry.edit("language_ir.txt", "# 2. Words\n", "# 2. Words\nA new line.\n")
    document, first, second = problems(small_registry)
    assert type(document) is DocumentChanged
    assert (type(first), first.id, first.now) == (SourceMoved, "LANG-02-01", (3, 3))
    assert (type(second), second.id, second.now) == (SourceMoved, "LANG-02-02", (4, 4))


def test_a_clause_below_the_end_of_a_shortened_text(small_registry):
    small_registry.edit("language_ir.txt", "The word for is taken.\n", "")
    _, clause = problems(small_registry)
    assert (type(clause), clause.id, clause.available) == (LinesOutOfRange, "LANG-02-02", 2)


def test_a_missing_text_is_reported_beside_the_others(small_registry):
    (small_registry.specs / "wsp.txt").unlink()
    (problem,) = problems(small_registry)
    assert (type(problem), problem.document) == (SourceMissing, "wsp")


def test_updating_records_moves_and_changes_and_the_lock_asks_for_review(small_registry):
    small_registry.edit("language_ir.txt", "# 2. Words\nThe word if is", "# 2. Words\nA new line.\nThe word if was")
    code, printed = small_registry.run("check", "--specs", str(small_registry.specs), "--update-sources")
    assert code == 1
    assert "review the diff" in printed
    registry = small_registry.load()
    assert registry.clause("LANG-02-02").lines == (4, 4)
    assert registry.clause("LANG-02-01").source == source.digest(["A new line."]), "lines were not corrected by hand"
    assert problems(small_registry) == []
    assert {(problem.id, problem.field) for problem in small_registry.problems()} == {("LANG-02-01", "source")}


def test_updating_needs_the_texts(small_registry):
    code, printed = small_registry.run("check", "--update-sources")
    assert code == 2
    assert "--specs DIR" in printed
