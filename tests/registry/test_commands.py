"""The questions `clauses` answers, and those it cannot."""

from __future__ import annotations

import json

import pytest


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
