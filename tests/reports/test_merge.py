"""The reports of the shards of one run, joined."""

from __future__ import annotations

import copy

import pytest

from tessera_conformance.reports.journal import CannotMerge, merge, read


@pytest.fixture
def shard(build):
    """Builds the report of a shard of the given lines."""

    def make(number, lines, total=2, **changes):
        selection = {"shard": f"{number}/{total}", "complete": True} | changes.pop("selection", {})
        return build(lines, name=f"{number}-of-{total}", **changes, **selection)

    return make


@pytest.fixture
def parts(shard, observation):
    """Both shards of a run of two cases, one of them under the known deviation."""
    known = observation("ir/known/a", "fail", disposition="known_deviation")
    return [shard(1, [observation("abi/b")]), shard(2, [observation("abi/a"), known])]


def test_the_joined_report_is_that_of_the_whole_run(parts, build, tmp_path):
    joined = merge(parts[::-1], tmp_path / "whole")
    assert joined.path == tmp_path / "whole" / "report.jsonl"
    again = read(joined.path)
    assert (again.problem, again.claim) == (None, "success")
    whole = build([line for part in parts for line in part.observations], name="one-run")
    assert again.plan == whole.plan
    assert again.plan["cases"] == ["abi/a", "abi/b", "ir/known/a"]
    assert again.header == whole.header
    assert again.observations == whole.observations
    assert again.footer["sha256"] == whole.footer["sha256"]


def test_problems_are_united_and_a_deviation_without_a_case_is_one(shard, observation, tmp_path):
    problems = ["deviation 'x' expired"]
    parts = [shard(number, [observation(f"abi/{number}")], problems=problems) for number in (1, 2)]
    joined = merge(parts, tmp_path / "whole")
    assert joined.footer["problems"] == [
        "deviation 'x' expired",
        "deviation 'ir/known/*' matches no case: remove or correct it",
    ]
    assert joined.claim == "failure"


def test_a_missing_a_repeated_and_a_foreign_shard_are_named(shard, observation, tmp_path):
    def refused(*reports):
        with pytest.raises(CannotMerge) as error:
            merge(reports, tmp_path / "whole")
        assert not (tmp_path / "whole").exists()
        return str(error.value)

    one, three = (shard(number, [observation(f"abi/{number}")], total=4) for number in (1, 3))
    assert refused(one, three) == "shard 2/4, 4/4 is missing"
    assert refused(one, three, one).startswith("shard 1/4 is there twice: ")
    assert "the shards are of different runs: of 2 (" in refused(one, shard(2, [observation("abi/2")]))


def test_reports_of_different_runs_are_refused(shard, observation, parts, tmp_path):
    def refused(other):
        with pytest.raises(CannotMerge) as error:
            merge([parts[0], other], tmp_path / "whole")
        return str(error.value)

    lines = [observation("abi/c")]
    other = refused(shard(2, lines, selection={"level": "fast"}))
    assert other.startswith("the headers differ in selection.level: 'deterministic' in ")
    acme = copy.deepcopy(parts[0].header["implementation"])
    acme["hello"]["implementation"]["version"] = "2.2"
    other = refused(shard(2, lines, header={"implementation": acme}))
    assert other.startswith("the headers differ in implementation.hello.implementation.version: '2.1' in ")
    assert refused(shard(2, [observation("abi/b")])).startswith("abi/b is both in ")


def test_whole_and_invalid_reports_and_the_place_of_a_part_are_refused(build, killed, parts, observation, tmp_path):
    for report, told in (
        (build([observation("abi/a")]), "is not the report of a shard"),
        (read(killed([observation("abi/a")])), "is not a valid report: there is no footer"),
    ):
        with pytest.raises(CannotMerge, match=told):
            merge([parts[0], report], tmp_path / "whole")
    kept = parts[0].path.read_bytes()
    with pytest.raises(CannotMerge, match="is one of the reports to join"):
        merge(parts, parts[0].path.parent)
    assert parts[0].path.read_bytes() == kept


def test_shards_that_left_out_more_do_not_make_a_whole(build, tmp_path, observation):
    """Shards of a run narrowed by -k join into the report of that narrowed run, and no more."""
    parts = [build([observation(f"abi/{n}")], name=f"p{n}", shard=f"{n}/2", complete=False) for n in (1, 2)]
    assert merge(parts, tmp_path / "joined").claim == "partial"
