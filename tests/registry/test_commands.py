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
def test_list_filters(workshop, filters, expected):
    workshop.tag("RT-01-01", "runtime/streams/queue")
    code, printed = workshop.run("list", *filters)
    assert code == 0
    assert ids(printed) == expected
    assert printed.endswith(f"{len(expected)} clauses\n")


def test_list_as_json(workshop):
    code, printed = workshop.run("list", "--document", "runtime_abi", "--json")
    first, *rest = json.loads(printed)
    assert code == 0
    assert len(rest) == 2
    assert (first["id"], first["lines"], first["interpretations"]) == ("RT-01-01", [3, 3], [])


def test_show_prints_the_clause_its_interpretation_its_source_and_its_tests(workshop):
    workshop.tag("RT-01-02", "runtime/streams/order")
    code, printed = workshop.run("show", "RT-01-02", "--specs", str(workshop.specs))
    assert code == 0
    for expected in (
        "What line 4 says",
        "The order of submission.",
        "    4 |   Work runs",
        "runtime/streams/order",
        "tests: 1",
    ):
        assert expected in printed


def test_show_prints_an_interpretation(workshop):
    code, printed = workshop.run("show", "AMB-RT-01")
    assert code == 0
    assert "the order of completion" in printed


@pytest.mark.parametrize(
    ("asked", "suggested"), [("RT-01-1", "RT-01-01"), ("rt-01-02", "RT-01-02"), ("AMB-RT-1", "AMB")]
)
def test_show_of_an_unknown_id_suggests(workshop, asked, suggested):
    code, printed = workshop.run("show", asked)
    assert code == 2
    assert f"did you mean {suggested}" in printed


def test_show_without_the_text_says_what_is_missing(workshop):
    (workshop.specs / "runtime_abi.txt").unlink()
    code, printed = workshop.run("show", "RT-01-02", "--specs", str(workshop.specs))
    assert code == 2
    assert "runtime_abi.txt" in printed


def test_a_registry_that_is_not_there(workshop, tmp_path):
    for action in ("list", "check", "lock"):
        code, printed = workshop.run(action, "--registry", str(tmp_path / "nowhere"))
        assert code in (1, 2)
        assert "remedy:" in printed


def test_a_lock_that_cannot_be_written(workshop):
    (workshop.clauses / "clauses.lock").unlink()
    (workshop.clauses / "clauses.lock").symlink_to(workshop.clauses / "no-such-folder" / "clauses.lock")
    code, printed = workshop.run("lock")
    assert code == 2
    assert "clauses.lock: No such file or directory" in printed


def test_locking_twice_changes_nothing(workshop):
    before = (workshop.clauses / "clauses.lock").read_bytes()
    assert workshop.run("lock") == (0, "clauses.lock: 0 change(s), 6 ids\n")
    assert (workshop.clauses / "clauses.lock").read_bytes() == before
