"""Several reports: compared, merged from shards, and with the known deviations of an earlier one."""

from __future__ import annotations

import copy
import datetime
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.reports.compare import GROUPS, as_text, compare, exit_code
from tessera_conformance.reports.journal import CannotMerge, JournalWriter, Report, merge, read
from tessera_conformance.reports.publish import NoBaseline, baseline, deviations_toml
from tessera_conformance.verdicts import Deviations

# Two reports held against each other.


@pytest.fixture
def against(build, observation):
    """Compares two reports of one case, each given as a verdict and a disposition."""

    def make(before, after):
        sides = []
        for name, (verdict, disposition) in (("before", before), ("after", after)):
            lines = [observation("abi/a", verdict, disposition=disposition), observation("abi/z")]
            sides.append(build(lines, name=name))
        return compare(*sides)

    return make


@pytest.mark.parametrize(
    ("before", "after", "group", "code"),
    [
        (("fail", "none"), ("pass", "none"), "fixed", 0),
        (("unsupported", "none"), ("pass", "none"), "fixed", 0),
        (("fail", "known_deviation"), ("pass", "none"), "fixed", 0),
        (("fail", "none"), ("fail", "known_deviation"), "fixed", 0),
        (("pass", "none"), ("fail", "none"), "broken", 1),
        (("pass", "none"), ("unsupported", "none"), "broken", 1),
        (("pass", "none"), ("inapplicable", "none"), "broken", 1),
        (("pass", "none"), ("pass", "unexpected_pass"), "changed", 0),
        (("fail", "known_deviation"), ("pass", "unexpected_pass"), "fixed", 0),
        (("pass", "unexpected_pass"), ("fail", "known_deviation"), "broken", 1),
        (("unsupported", "none"), ("crash", "none"), "broken", 1),
        (("fail", "none"), ("crash", "none"), "changed", 0),
        (("unsupported", "none"), ("inapplicable", "none"), "changed", 0),
        (("pass", "none"), ("pass", "none"), None, 0),
        (("fail", "none"), ("fail", "none"), None, 0),
    ],
)
def test_a_case_is_fixed_broken_or_changed(against, before, after, group, code):
    comparison = against(before, after)
    assert {name for name in GROUPS if comparison[name]} == ({group} if group else set())
    assert exit_code(comparison) == code


def test_other_bits_and_another_reason_are_changes(build, observation, observations):
    (before,) = (line for line in observations if line["case"] == "ir/matmul/k-tail")
    after = json.loads(json.dumps(before))
    after["checks"][1]["difference"]["actual_bits"] = "0x3f812001"
    comparison = compare(build([before], name="before"), build([after], name="after"))
    assert [change["case"] for change in comparison["changed"]] == ["ir/matmul/k-tail"]
    reason = compare(
        build([observation("abi/a", "hang", reason="then")], name="then"),
        build([observation("abi/a", "hang", reason="now")], name="now"),
    )
    assert len(reason["changed"]) == 1


def test_added_and_removed_cases(build, observation):
    before = build([observation("abi/a"), observation("abi/gone")], name="before")
    after = build([observation("abi/a"), observation("abi/new", "fail")], name="after")
    comparison = compare(before, after)
    assert [change["case"] for change in comparison["added"]] == ["abi/new"]
    assert [change["case"] for change in comparison["removed"]] == ["abi/gone"]
    assert exit_code(comparison) == 1
    assert exit_code(compare(before, before)) == 0


def test_a_part_is_compared_with_the_whole_by_its_own_cases(build, observation):
    """Neither is a case removed that the part was not asked for, nor one added that only the whole has."""
    whole = build([observation("abi/a", "fail"), observation("abi/b"), observation("abi/c")], name="whole")
    part = build([observation("abi/a")], name="part", complete=False)
    shard = build([observation("abi/b", "fail"), observation("abi/a")], name="shard", shard="1/2")
    for before, after, groups, code in (
        (whole, part, {"fixed"}, 0),
        (part, whole, {"broken"}, 1),
        (part, shard, set(), 0),
        (whole, shard, {"fixed", "broken"}, 1),
    ):
        comparison = compare(before, after)
        assert {name for name in GROUPS if comparison[name]} == groups
        assert exit_code(comparison) == code
    text = as_text(whole, part, compare(whole, part))
    assert "  compared: the 1 case that both runs have; 2 others are left out\n" in text
    comparison = compare(whole, part)
    assert (comparison["compared"], comparison["left_out"]) == (1, 2)
    assert "compared:" not in as_text(whole, whole, compare(whole, whole))


def test_an_invalid_side_supports_no_comparison(build, killed, observation):
    whole, cut = build([observation("abi/a")]), read(killed([observation("abi/a")]))
    for sides in ((whole, cut), (cut, whole)):
        comparison = compare(*sides)
        assert exit_code(comparison) == 2
        assert "the run did not end" in as_text(*sides, comparison)


def test_text_and_json_tell_the_same(build, observation):
    before = build([observation("abi/a"), observation("abi/gone")], name="before")
    after = build([observation("abi/a", "fail", reason="\x1b[31mred")], name="after")
    comparison = compare(before, after)
    text = as_text(before, after, comparison)
    assert "1 broken   1 removed   0 fixed   0 changed   0 added" in text
    assert "  abi/a  pass -> fail\n    is  \\x1b[31mred" in text
    told = json.loads(json.dumps(comparison))
    (broken,) = told["broken"]
    assert broken["before"] == {"verdict": "pass", "disposition": "none", "reason": ""}
    assert broken["after"]["verdict"] == "fail"
    assert [entry["case"] for entry in told["removed"]] == ["abi/gone"]


def test_many_cases_that_changed_in_the_same_way_are_told_once(build, observation):
    cases = [f"abi/{number:03}" for number in range(412)]
    then = [observation(case, "fail", reason="reason A") for case in cases]
    now = [observation(case, "fail", reason="reason B") for case in cases]
    then.append(observation("abi/other", "fail", reason="reason A"))
    now.append(observation("abi/other", "fail", reason="reason C"))
    before, after = build(then, name="before"), build(now, name="after")
    comparison = compare(before, after)
    text = as_text(before, after, comparison)
    assert "  412 cases, such as abi/000  fail\n    was reason A\n    is  reason B\n" in text
    assert "  abi/other  fail\n    was reason A\n    is  reason C" in text
    assert "abi/001" not in text
    assert len(comparison["changed"]) == 413
    gone = build([observation("abi/z")], name="gone")
    assert "  412 cases, such as abi/000  fail" in as_text(before, gone, compare(before, gone)).replace("413", "412")


def test_runs_that_were_not_asked_for_the_same_are_told(build, observation):
    before = build([observation("abi/a")], name="before")
    after = build([observation("abi/a")], name="after", level="fast", shard="1/4", complete=False, deviations=[])
    comparison = compare(before, after)
    text = as_text(before, after, comparison)
    for part in (
        "  warning: the runs differ in level: deterministic before, fast after\n",
        "  warning: the runs differ in shard: none before, 1/4 after\n",
        "  warning: the runs differ in complete: true before, false after\n",
        "  warning: the runs differ in their known deviations: 1 before, 0 after\n",
    ):
        assert part in text
    assert len(comparison["warnings"]) == 4
    assert exit_code(comparison) == 0
    assert compare(before, before)["warnings"] == []


# The reports of the shards of one run, joined.


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
    of_two, other = shard(1, [observation("abi/1")]), shard(2, [observation("abi/2")], total=4)
    assert "the shards are of different runs: of 2 (" in refused(of_two, other, one)


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


# Known deviations made from a report: few patterns, which match what fails and nothing else.

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "harness" / "fakes"
DAY = datetime.date(2027, 1, 31)

CASES = {
    "ir/matmul/fp32/k-13": ("fail", ["A", "M"]),
    "ir/matmul/bf16/k-13": ("fail", ["B", "M"]),
    "ir/matmul/bf16/small": ("pass", ["B", "M"]),
    "ir/matmul/fp32/small": ("pass", ["A", "M"]),
    "ir/fft/fp32/small": ("crash", ["F"]),
    "ir/fft/fp32/large": ("crash", ["F"]),
    "ir/fft/fp64/small": ("hang", ["F"]),
    "ir/types/one": ("fail", ["T"]),
    "ir/types/two": ("fail", ["T"]),
    "ir/types/three": ("pass", ["U"]),
    "ir/scopes/inner": ("fail", ["S"]),
    "ir/scopes/outer": ("pass", ["S"]),
    "runtime/later": ("unsupported", ["R"]),
}


def report_of(
    tmp_path: Path, cases: Mapping[str, tuple[str, Sequence[str]]], deviations: Deviations | None = None
) -> Report:
    """A sealed report in which each case came to its verdict."""
    known = deviations or Deviations()
    writer = JournalWriter(tmp_path / "report.jsonl")
    selection = {"profile": "extended", "level": "strict", "shard": None, "complete": True, "today": None}
    told = [{**vars(entry), "expires": entry.expires.isoformat()} for entry in known.entries]
    who: dict[str, Any] = {"label": "py:acme", "hello": None, "fault": None}
    registry = {"clauses": 1, "sha256": ""}
    head = {"harness": "h", "registry": registry, "implementation": who, "run": {}}
    writer.header({**head, "selection": {**selection, "deviations": told}})
    writer.plan(cases)
    for case, (verdict, clauses) in cases.items():
        disposition, _ = known.disposition(case, clauses, verdict)
        line = {"case": case, "title": "", "clauses": clauses, "levels": ["strict"], "verdict": verdict}
        line |= {"disposition": disposition, "reason": f"{verdict} of {case}", "checks": [], "exchanges": [], "run": {}}
        writer.observation(line)
    return writer.finish([], {})


def written(tmp_path: Path, text: str) -> Deviations:
    path = tmp_path / "known.toml"
    path.write_text(text)
    return Deviations.read(path)


def test_what_fails_is_grouped_by_what_its_ids_and_clauses_share(tmp_path: Path) -> None:
    entries = baseline(report_of(tmp_path, CASES), {}, "numerics", DAY)
    assert [(entry.cases, entry.clause) for entry in entries] == [
        ("ir/fft/*", None),
        ("ir/matmul/*/k-13", None),
        ("ir/scopes/inner", None),
        ("ir/types/*", "T"),
    ]
    assert entries[0].reason == "crash: crash of ir/fft/fp32/large (3 cases)"
    assert {(entry.mode, entry.owner, entry.expires) for entry in entries} == {("must_fail", "numerics", DAY)}


def test_the_file_turns_green_and_ratchets(tmp_path: Path) -> None:
    deviations = written(tmp_path, deviations_toml(baseline(report_of(tmp_path, CASES), {}, "numerics", DAY), "acme"))
    assert report_of(tmp_path, CASES, deviations).claim == "success"
    for case, (verdict, clauses) in CASES.items():
        if verdict in ("fail", "crash", "hang"):
            mended = report_of(tmp_path, {**CASES, case: ("pass", clauses)}, deviations)
            assert (mended.claim, [line["case"] for line in mended.failures]) == ("failure", [case])


def test_a_pattern_matches_no_case_that_the_run_left_out(tmp_path: Path) -> None:
    others = {"ir/fft/bf16/small": ["F"], "ir/types/four": ["T"]}
    entries = baseline(report_of(tmp_path, CASES), others, "numerics", DAY)
    assert not [(entry, case) for case, clauses in others.items() for entry in entries if entry.matches(case, clauses)]
    failing = {case: clauses for case, (verdict, clauses) in CASES.items() if verdict in ("fail", "crash", "hang")}
    assert all(any(entry.matches(case, clauses) for entry in entries) for case, clauses in failing.items())


def test_entries_that_still_hold_are_kept_and_others_made_anew(tmp_path: Path) -> None:
    earlier = written(
        tmp_path,
        """
        [[deviation]]
        cases = "ir/fft/*"
        mode = "may_fail"
        reason = "no unit yet"
        owner = "fft team"
        expires = 2027-06-01

        [[deviation]]
        cases = "ir/matmul/*"
        mode = "must_fail"
        reason = "everything is wrong"
        owner = "matmul team"
        expires = 2027-06-01
        """,
    )
    entries = baseline(report_of(tmp_path, CASES, earlier), {}, "numerics", DAY)
    assert [(entry.cases, entry.owner) for entry in entries] == [
        ("ir/fft/*", "fft team"),
        ("ir/matmul/*/k-13", "numerics"),
        ("ir/scopes/inner", "numerics"),
        ("ir/types/*", "numerics"),
    ]


def test_nothing_failing_gives_an_empty_file(tmp_path: Path) -> None:
    text = deviations_toml(baseline(report_of(tmp_path, {"ir/a": ("pass", ["A"])}), {}, "numerics", DAY), "acme")
    assert tomllib.loads(text) == {"deviation": []}
    assert written(tmp_path, text).entries == ()


@pytest.mark.parametrize("verdict", ["not_run", "harness_error"])
def test_what_is_no_fault_of_the_implementation_is_not_excused(tmp_path: Path, verdict: str) -> None:
    with pytest.raises(NoBaseline, match=f"ir/a: {verdict.replace('_', ' ')}"):
        baseline(report_of(tmp_path, {"ir/a": (verdict, ["A"]), "ir/b": ("pass", ["A"])}), {}, "numerics", DAY)


def test_an_edited_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = report_of(tmp_path, CASES).path
    path.write_text(path.read_text().replace('"verdict":"pass"', '"verdict":"fail"', 1))
    assert main(["deviations", "write", str(path), f"--output={tmp_path / 'known.toml'}", "--owner=numerics"]) == 2
    assert "not a valid report" in capsys.readouterr().err
    assert not (tmp_path / "known.toml").exists()


def test_a_run_is_green_until_the_defect_is_mended(
    run_suite: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report of products that are too large, its deviations, the same again, and the same without the defect."""

    def run(implementation: str, *options: str) -> tuple[int, Report]:
        chosen = ("conformance/ir/test_matmul.py", "-k", "golden and fp32", f"--impl={implementation}")
        done = run_suite(*chosen, *options, folders=(FAKES,))
        return done.exit_code, done.report

    code, report = run("py:vendors:CarelessProducts")
    failing = {line["case"] for line in report.failures}
    assert code == 1 and len(failing) > 10
    known = tmp_path / "known.toml"
    assert main(["deviations", "write", str(tmp_path), f"--output={known}", "--owner=me", "--expires=2099-01-01"]) == 0
    assert f"for {len(failing)} cases, until 2099-01-01" in capsys.readouterr().out
    assert len(Deviations.read(known).entries) < len(failing)
    code, report = run("py:vendors:CarelessProducts", f"--deviations={known}")
    assert (code, report.claim, report.failures) == (0, "partial", [])
    code, report = run("reference", f"--deviations={known}")
    assert code == 1
    assert {line["case"] for line in report.failures} == failing
    assert {line["disposition"] for line in report.failures} == {"unexpected_pass"}
