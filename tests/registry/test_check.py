"""A registry spoilt in one way has one problem, which names the place and the remedy; so have changed texts."""

from __future__ import annotations

import hashlib
import json

import pytest

from tessera_conformance.registry import load
from tessera_conformance.registry.errors import RegistryError

# Every fault that `clauses check` knows, injected into a sound registry.


def test_a_sound_registry_has_no_problems(small_registry):
    assert small_registry.problems() == []
    assert small_registry.run("check") == (0, "5 clauses, 1 interpretations: 0 problem(s)\n")


def test_a_file_that_is_missing(small_registry, only):
    (small_registry.clauses / "wsp.toml").unlink()
    assert only("unreadable file").file == "wsp.toml"


def test_a_file_that_is_not_toml(small_registry, only):
    small_registry.append("wsp.toml", "key = = 1\n")
    assert "line" in str(only("unreadable file").error)


def test_a_duplicate_id(small_registry, only):
    small_registry.edit("language_ir.toml", 'id = "LANG-02-02"', 'id = "LANG-02-01"')
    problem = only("duplicate id")
    assert (problem.id, problem.file) == ("LANG-02-01", "language_ir.toml")


def test_a_field_of_the_wrong_form_is_named_with_its_row_and_file(small_registry, only):
    small_registry.edit("language_ir.toml", "lines = [2, 2]", 'lines = "2"')
    problem = only("schema violation")
    assert (problem.file, problem.row, problem.field) == ("language_ir.toml", "LANG-02-01", "lines")
    code, printed = small_registry.run("check")
    assert code == 1
    assert "LANG-02-01" in printed
    assert "First and last source line, counted from one ('2' is not of type 'array')" in printed


def test_an_untestable_clause_needs_a_reason(small_registry, only):
    path = small_registry.clauses / "language_ir.toml"
    path.write_text(path.read_text().replace('verify = "test"', 'verify = "untestable"', 1))
    problem = only("schema violation")
    assert (problem.row, problem.field, problem.found) == ("LANG-02-01", "reason", "missing")


def test_an_id_that_vanished_without_a_tombstone(small_registry, only):
    path = small_registry.clauses / "language_ir.toml"
    path.write_text(path.read_text().rpartition("\n[[clause]]")[0])
    problem = only("vanished id")
    assert (problem.id, problem.file) == ("LANG-02-02", "language_ir.toml")
    assert small_registry.run("lock")[0] == 1, "the lock must not forget the id either"
    assert only("vanished id").id == "LANG-02-02"


def _withdraw_the_last_row(small_registry):
    path = small_registry.clauses / "language_ir.toml"
    head, active, tail = path.read_text().rpartition('status = "active"')
    assert active
    path.write_text(f'{head}status = "withdrawn"{tail}')
    assert small_registry.run("lock")[0] == 0


def test_a_tombstone_is_no_problem(small_registry):
    _withdraw_the_last_row(small_registry)
    assert small_registry.problems() == []


@pytest.mark.parametrize("status", ["active", "withdrawn"])
def test_a_withdrawn_id_with_another_meaning_is_a_reuse(small_registry, only, status):
    _withdraw_the_last_row(small_registry)
    small_registry.edit("language_ir.toml", 'status = "withdrawn"', f'status = "{status}"')
    small_registry.edit("language_ir.toml", "What line 3 says", "Something else")
    assert only("reused id").id == "LANG-02-02"
    code, printed = small_registry.run("lock")
    assert code == 1
    assert "clauses.lock is unchanged" in printed
    assert only("reused id").id == "LANG-02-02"


def test_a_withdrawn_id_may_come_back_as_it_was(small_registry, only):
    _withdraw_the_last_row(small_registry)
    small_registry.edit("language_ir.toml", 'status = "withdrawn"', 'status = "active"')
    assert only("lock out of date").field == "status"
    assert small_registry.run("lock")[0] == 0
    assert small_registry.problems() == []


def test_a_new_id_wants_a_new_lock(small_registry, only):
    path = small_registry.clauses / "language_ir.toml"
    row = path.read_text().rpartition("\n[[clause]]")[2].replace("LANG-02-02", "LANG-02-03")
    small_registry.append("language_ir.toml", f"\n[[clause]]{row}")
    problem = only("lock out of date")
    assert (problem.id, problem.field) == ("LANG-02-03", "id")
    assert small_registry.run("lock")[1].startswith("LANG-02-03: new")
    assert small_registry.problems() == []


def test_a_changed_statement_wants_a_new_lock(small_registry, only):
    small_registry.edit("language_ir.toml", "What line 3 says", "Something else")
    assert only("lock out of date").field == "statement"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("not json", "unreadable file"),
        ("[]", "schema violation"),
        ('{"format": 2, "ids": {}}', "schema violation"),
        ('{"format": 1, "ids": {"RT-01-01": {"status": "active"}}}', "schema violation"),
        ('{"format": 1, "ids": {"RT-01-01": {"status": "odd", "statement": "", "source": ""}}}', "schema violation"),
        ('{"format": 1, "ids": {"RT-01-01": {"status": "active", "statement": 1}}}', "schema violation"),
    ],
)
def test_a_spoilt_lock(small_registry, text, kind):
    (small_registry.clauses / "clauses.lock").write_text(text)
    problems = small_registry.problems()
    assert problems
    assert all(problem.kind == kind for problem in problems)
    assert small_registry.run("lock")[0] == 2, "a lock that cannot be read must not be overwritten"


def test_a_lock_that_only_the_schema_refuses(small_registry, only):
    path = small_registry.clauses / "clauses.lock"
    content = json.loads(path.read_text())
    del content["ids"]["RT-01-01"]["source"]
    path.write_text(json.dumps(content))
    assert only("schema violation").row == "ids, RT-01-01"


def test_a_missing_lock_is_a_problem(small_registry, only):
    (small_registry.clauses / "clauses.lock").unlink()
    assert only("unreadable file").file == "clauses.lock"


@pytest.mark.parametrize(("target", "problem"), [("RT-01-09", "does not exist"), ("RT-01-03", "is the clause itself")])
def test_a_twin_that_cannot_be_one(small_registry, only, target, problem):
    small_registry.edit("runtime_abi.toml", 'duplicate_of = "RT-01-02"', f'duplicate_of = "{target}"')
    reported = only("bad reference")
    assert (reported.id, reported.field, reported.problem) == ("RT-01-03", "duplicate_of", problem)


def test_a_twin_that_is_itself_a_duplicate(small_registry, only):
    small_registry.edit(
        "runtime_abi.toml",
        'interpretations = ["AMB-RT-01"]',
        'duplicate_of = "RT-01-01"\ninterpretations = ["AMB-RT-01"]',
    )
    assert only("bad reference").problem == "is itself a duplicate, of RT-01-01"


def test_a_twin_that_is_withdrawn(small_registry, only):
    path = small_registry.clauses / "runtime_abi.toml"
    first, second, third = path.read_text().split('status = "active"')[:3]
    rest = path.read_text().split('status = "active"', 2)[2]
    path.write_text(f'{first}status = "active"{second}status = "withdrawn"{rest}')
    assert third
    assert only("bad reference").problem == "is withdrawn"


def test_an_unknown_interpretation_is_met_with_the_nearest(small_registry):
    small_registry.edit("runtime_abi.toml", '["AMB-RT-01"]', '["AMB-RT-02"]')
    cited, affects = small_registry.problems()
    assert (cited.id, cited.target, cited.suggestions) == ("RT-01-02", "AMB-RT-02", ("AMB-RT-01",))
    assert (affects.id, affects.target) == ("AMB-RT-01", "RT-01-02")


def test_an_interpretation_that_affects_an_unknown_clause(small_registry, only):
    small_registry.edit("interpretations.toml", 'affects = ["RT-01-02"]', 'affects = ["RT-01-02", "RT-01-20"]')
    reported = only("bad reference")
    assert (reported.id, reported.field, reported.target) == ("AMB-RT-01", "affects", "RT-01-20")


def test_a_reference_that_only_one_side_knows(small_registry):
    small_registry.edit("interpretations.toml", 'affects = ["RT-01-02"]', 'affects = ["RT-01-01"]')
    assert [(problem.id, problem.target) for problem in small_registry.problems()] == [
        ("RT-01-02", "AMB-RT-01"),
        ("AMB-RT-01", "RT-01-01"),
    ]


def test_an_active_clause_that_depends_on_a_withdrawn_interpretation(small_registry, only):
    small_registry.edit("interpretations.toml", 'status = "active"', 'status = "withdrawn"')
    assert only("bad reference").problem == "is withdrawn"


@pytest.mark.parametrize(
    ("file", "old", "new", "field"),
    [
        ("language_ir.toml", "lines = [2, 2]", "lines = [3, 2]", "lines"),
        ("language_ir.toml", "lines = [2, 2]", "lines = [2, 4]", "lines"),
        ("interpretations.toml", 'document = "runtime_abi"', 'document = "wsp"', "id"),
        ("wsp.toml", 'key = "wsp"', 'key = "host_io"', "key"),
    ],
)
def test_fields_that_contradict_each_other(small_registry, only, file, old, new, field):
    small_registry.edit(file, old, new)
    assert only("inconsistent").field == field


@pytest.mark.parametrize("wrong", ["RT-01-01", "LANG-03-01"])
def test_an_id_of_another_document_or_section(small_registry, wrong):
    small_registry.edit("language_ir.toml", 'id = "LANG-02-01"', f'id = "{wrong}"')
    kinds = {problem.kind for problem in small_registry.problems()}
    assert kinds in ({"inconsistent"}, {"duplicate id"})


def test_loading_refuses_what_check_reports(small_registry):
    small_registry.edit("runtime_abi.toml", 'duplicate_of = "RT-01-02"', 'duplicate_of = "RT-01-09"')
    with pytest.raises(RegistryError, match="RT-01-09, which does not exist") as raised:
        small_registry.load()
    assert len(raised.value.problems) == 1
    code, printed = small_registry.run("list")
    assert code == 2
    assert "clauses check` lists every problem" in printed


# Texts that change, move, grow and vanish, and what the registry makes of them.


def problems(small_registry):
    registry = small_registry.load()
    specifications, missing = load.read_specifications(registry.documents.values(), small_registry.specs)
    return [*missing, *load.changed_sources(registry, specifications)]


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
    assert load.normalise(lines) == normalised
    assert load.digest(lines) == f"sha256:{hashlib.sha256(normalised.encode()).hexdigest()}"


def test_words_case_and_line_breaks_do_count():
    texts = (["a b"], ["a c"], ["A b"], ["a", "b"], ["ab"], [])
    assert len({load.digest(text) for text in texts}) == 6


def test_lines_end_with_a_newline_and_with_nothing_else(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\u2028still one\x0cand this\ntwo".encode())
    assert load.Specification.read(tmp_path / "a.txt").lines == ("one\u2028still one\x0cand this", "two")


def test_unchanged_texts_have_no_problems(small_registry):
    assert problems(small_registry) == []
    assert small_registry.run("check", "--specs", str(small_registry.specs))[0] == 0


def test_a_changed_word_names_the_clause_the_section_the_lines_and_the_remedy(small_registry):
    small_registry.edit("language_ir.txt", "if is taken", "if is free")
    document, clause = problems(small_registry)
    assert document.kind == "document changed"
    assert clause.kind == "source changed"
    assert (clause.id, clause.section, clause.lines) == ("LANG-02-01", "2", (2, 2))
    code, printed = small_registry.run("check", "--specs", str(small_registry.specs))
    assert code == 1
    assert "the source of LANG-02-01 changed (section 2, line 2)" in printed
    assert "read line 2 again" in printed


def test_a_change_of_blanks_changes_the_edition_and_no_clause(small_registry):
    small_registry.edit("language_ir.txt", "The word if is", "  The word  if is")
    assert [problem.kind for problem in problems(small_registry)] == ["document changed"]


def test_an_inserted_line_moves_the_clauses_below_it(small_registry):
    small_registry.edit("language_ir.txt", "# 2. Words\n", "# 2. Words\nA new line.\n")
    document, first, second = problems(small_registry)
    assert document.kind == "document changed"
    assert (first.kind, first.id, first.now) == ("source moved", "LANG-02-01", (3, 3))
    assert (second.kind, second.id, second.now) == ("source moved", "LANG-02-02", (4, 4))
    _, printed = small_registry.run("check", "--specs", str(small_registry.specs))
    assert "language_ir.toml: and 1 more clause moved with the text, up to LANG-02-02" in printed


def test_a_clause_below_the_end_of_a_shortened_text(small_registry):
    small_registry.edit("language_ir.txt", "The word for is taken.\n", "")
    _, clause = problems(small_registry)
    assert (clause.kind, clause.id, clause.available) == ("lines out of range", "LANG-02-02", 2)


def test_a_missing_text_is_reported_beside_the_others(small_registry):
    (small_registry.specs / "wsp.txt").unlink()
    (problem,) = problems(small_registry)
    assert (problem.kind, problem.document) == ("source missing", "wsp")


def test_updating_records_moves_and_changes_and_the_lock_asks_for_review(small_registry):
    small_registry.edit("language_ir.txt", "# 2. Words\nThe word if is", "# 2. Words\nA new line.\nThe word if was")
    code, printed = small_registry.run("check", "--specs", str(small_registry.specs), "--update-sources")
    assert code == 1
    assert "review the diff" in printed
    registry = small_registry.load()
    assert registry.clause("LANG-02-02").lines == (4, 4)
    assert registry.clause("LANG-02-01").source == load.digest(["A new line."]), "lines were not corrected by hand"
    assert problems(small_registry) == []
    assert {(problem.id, problem.field) for problem in small_registry.problems()} == {("LANG-02-01", "source")}


def test_updating_needs_the_texts(small_registry):
    code, printed = small_registry.run("check", "--update-sources")
    assert code == 2
    assert "--specs DIR" in printed
