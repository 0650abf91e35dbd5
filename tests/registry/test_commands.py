"""The commands that list, show and lock clauses, and the coverage that they count."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tessera_conformance.cli import main
from tessera_conformance.registry import Tally, coverage

# The questions `clauses` answers, and those it cannot.


def ids(printed):
    return [line.split()[0] for line in printed.splitlines()[:-1]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], ["RT-01-01", "RT-01-02", "RT-01-03", "LANG-02-01", "LANG-02-02"]),
        (["--document", "language_ir"], ["LANG-02-01", "LANG-02-02"]),
        (["--area", "ir", "--level", "MUST"], ["LANG-02-01", "LANG-02-02"]),
        (["--section", "1"], ["RT-01-01", "RT-01-02", "RT-01-03"]),
        (["--verify", "static"], []),
        (["LANG-02"], ["LANG-02-01", "LANG-02-02"]),
        (["*-01", "--level", "MUST"], ["RT-01-01", "LANG-02-01"]),
        (["--feature", "graph-replay"], []),
        (["--untested", "--document", "runtime_abi"], ["RT-01-02"]),
    ],
)
def test_list_filters(small_registry, filters, expected):
    small_registry.tag("RT-01-01", "runtime/streams/queue")
    code, printed = small_registry.run("list", *filters)
    assert code == 0
    assert ids(printed) == expected
    assert printed.endswith(f"{len(expected)} clauses\n")


def test_list_as_json(small_registry):
    code, printed = small_registry.run("list", "--document", "runtime_abi", "--json")
    first, *rest = json.loads(printed)
    assert code == 0
    assert len(rest) == 2
    assert (first["id"], first["lines"], first["interpretations"]) == ("RT-01-01", [3, 3], [])


def test_show_prints_the_clause_its_interpretation_its_source_and_its_tests(small_registry):
    small_registry.tag("RT-01-02", "runtime/streams/order")
    code, printed = small_registry.run("show", "RT-01-02", "--specs", str(small_registry.specs))
    assert code == 0
    for expected in (
        "What line 4 says",
        "The order of submission.",
        "    4 |   Work runs",
        "runtime/streams/order",
        "tests: 1",
    ):
        assert expected in printed


def test_show_prints_an_interpretation(small_registry):
    code, printed = small_registry.run("show", "AMB-RT-01")
    assert code == 0
    assert "the order of completion" in printed


def test_show_names_the_vectors_and_violators_of_a_clause(capsys):
    assert main(["clauses", "show", "LANG-15-05"]) == 0
    printed = capsys.readouterr().out
    assert "\n  ir/matmul.jsonl: bf16/k-7\n" in printed
    assert "\nviolators: 1\n  ir/level_fast.bf16_accumulator: " in printed


@pytest.mark.parametrize(
    ("asked", "suggested"), [("RT-01-1", "RT-01-01"), ("rt-01-02", "RT-01-02"), ("AMB-RT-1", "AMB")]
)
def test_show_of_an_unknown_id_suggests(small_registry, asked, suggested):
    code, printed = small_registry.run("show", asked)
    assert code == 2
    assert f"did you mean {suggested}" in printed


def test_show_without_the_text_says_what_is_missing(small_registry):
    (small_registry.specs / "runtime_abi.txt").unlink()
    code, printed = small_registry.run("show", "RT-01-02", "--specs", str(small_registry.specs))
    assert code == 2
    assert "runtime_abi.txt" in printed


def test_a_registry_that_is_not_there(small_registry, tmp_path):
    for action in ("list", "check", "lock"):
        code, printed = small_registry.run(action, "--registry", str(tmp_path / "nowhere"))
        assert code in (1, 2)
        assert "error: " in printed
        assert "; expected " in printed


def test_a_lock_that_cannot_be_written(small_registry):
    (small_registry.clauses / "clauses.lock").unlink()
    (small_registry.clauses / "clauses.lock").symlink_to(small_registry.clauses / "no-such-folder" / "clauses.lock")
    code, printed = small_registry.run("lock")
    assert code == 2
    assert "clauses.lock: No such file or directory" in printed


def test_locking_twice_changes_nothing(small_registry):
    before = (small_registry.clauses / "clauses.lock").read_bytes()
    assert small_registry.run("lock") == (0, "clauses.lock: 0 change(s), 6 ids\n")
    assert (small_registry.clauses / "clauses.lock").read_bytes() == before


# The registry joined with tags: twins, reasons, enforced chapters, wrong ids.

ALL_TAGGED = {"RT-01-01": ["a"], "RT-01-02": ["b", "c"], "LANG-02-01": ["d"], "LANG-02-02": ["d"]}

ENFORCED = '[[enforced]]\ndocument = "runtime_abi"\n'


def test_everything_tagged_leaves_nothing_to_say(small_registry):
    actual = coverage(small_registry.load(), ALL_TAGGED)
    assert actual.errors == actual.warnings == ()
    assert actual.total == Tally(clauses=5, testable=5, tested=5, excused=0, untested=0)


def test_tallies_are_by_document_section_and_level(small_registry):
    actual = coverage(small_registry.load(), {"RT-01-01": ["a"]})
    assert actual.by_document["runtime_abi"] == Tally(3, 3, 1, 0, 2)
    assert actual.by_section["language_ir", "2"] == Tally(2, 2, 0, 0, 2)
    assert actual.by_level == {"MUST": Tally(5, 5, 1, 0, 4)}
    assert "wsp" not in actual.by_document


def test_a_twin_is_covered_by_the_clause_it_repeats(small_registry):
    actual = coverage(small_registry.load(), {"RT-01-02": ["b"]})
    assert actual.cases["RT-01-03"] == ("b",)
    assert "RT-01-03" not in {warning.id for warning in actual.warnings}


def test_a_clause_is_not_covered_by_its_duplicate(small_registry):
    actual = coverage(small_registry.load(), {"RT-01-03": ["b"]})
    assert actual.cases["RT-01-02"] == ()
    assert {warning.id for warning in actual.warnings} == {"RT-01-01", "RT-01-02", "LANG-02-01", "LANG-02-02"}


def test_an_untested_clause_is_a_warning_until_its_chapter_is_enforced(small_registry):
    without = {name: cases for name, cases in ALL_TAGGED.items() if name != "RT-01-01"}
    (warning,) = coverage(small_registry.load(), without).warnings
    assert (warning.id, warning.enforced) == ("RT-01-01", False)
    assert coverage(small_registry.load(), without).errors == ()

    small_registry.append("chapters.toml", ENFORCED)
    actual = coverage(small_registry.load(), without)
    (error,) = actual.errors
    assert (error.kind, error.id, error.enforced) == ("untested clause", "RT-01-01", True)
    assert actual.warnings == ()


@pytest.mark.parametrize(
    ("narrowing", "enforced"),
    [
        ('section = "1"', True),
        ('section = "10"', False),
        ('topics = ["small-registry"]', True),
        ('topics = ["other"]', False),
        ('section = "1"\ntopics = ["other", "small-registry"]', True),
        ('section = "2"\ntopics = ["small-registry"]', False),
    ],
)
def test_a_chapter_is_narrowed_by_section_and_topics(small_registry, narrowing, enforced):
    small_registry.append("chapters.toml", f"{ENFORCED}{narrowing}\n")
    actual = coverage(small_registry.load(), {})
    assert {error.id for error in actual.errors} == ({"RT-01-01", "RT-01-02"} if enforced else set())


@pytest.mark.parametrize(
    ("stands_in", "asked", "inside"),
    [
        ("3.4.1", "3.4.1", True),
        ("3.4.1", "3.4", True),
        ("3.4.1", "3", True),
        ("3.41", "3.4", False),
        ("3", "3.4", False),
    ],
)
def test_a_section_holds_what_is_below_it(small_registry, stands_in, asked, inside):
    clause = dataclasses.replace(small_registry.load().clause("RT-01-01"), section=stands_in)
    assert clause.within(asked) is inside


def test_a_recorded_reason_excuses(small_registry):
    path = small_registry.clauses / "language_ir.toml"
    path.write_text(path.read_text().replace('verify = "test"', 'verify = "test"\nreason = "needs two machines"', 1))
    actual = coverage(small_registry.load(), {})
    assert "LANG-02-01" not in {warning.id for warning in actual.warnings}
    assert actual.by_document["language_ir"] == Tally(2, 2, 0, 1, 1)


def test_a_tag_with_an_unknown_id_is_an_error_that_suggests(small_registry):
    (error,) = coverage(small_registry.load(), {**ALL_TAGGED, "LANG-2-01": ["ir/words/if"]}).errors
    assert error.kind == "unknown clause"
    assert error.suggestions[0] == "LANG-02-01"
    assert error.cited_by == ("ir/words/if",)
    assert "ir/words/if" in error.explain()["where"]


def test_a_tag_with_a_withdrawn_id_is_an_error(small_registry):
    path = small_registry.clauses / "language_ir.toml"
    path.write_text(path.read_text().replace('status = "active"', 'status = "withdrawn"', 1))
    actual = coverage(small_registry.load(), ALL_TAGGED)
    (error,) = actual.errors
    assert (error.kind, error.id) == ("withdrawn clause", "LANG-02-01")
    assert actual.total.clauses == 4


def test_the_command_counts_the_suite(small_registry):
    small_registry.tag("LANG-02-01", "ir/words/if")
    code, printed = small_registry.run("coverage", "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["documents"]["language_ir"]["tested"] == 1
    assert answer["sections"]["language_ir"]["2"]["untested"] == 1
    assert answer["untested"] == ["RT-01-01", "RT-01-02", "LANG-02-02"]


def test_the_command_fails_on_an_unknown_id_and_on_an_enforced_chapter(small_registry):
    small_registry.tag("LANG-02-09", "ir/words/if")
    small_registry.append("chapters.toml", ENFORCED)
    code, printed = small_registry.run("coverage")
    assert code == 1
    assert "there is no clause LANG-02-09" in printed
    assert "ir/words/if" in printed
    assert "RT-01-01 has no test: What line 3 says" in printed
    assert "3 error(s), 2 clause(s) without a test" in printed
