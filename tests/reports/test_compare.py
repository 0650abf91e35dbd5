"""Two reports held against each other."""

from __future__ import annotations

import json

import pytest

from tessera_conformance.reports.compare import as_json, as_text, compare
from tessera_conformance.reports.journal import read


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
    assert {name for name, changes in comparison.groups.items() if changes} == ({group} if group else set())
    assert comparison.exit_code == code


def test_other_bits_and_another_reason_are_changes(build, observation, observations):
    (before,) = (line for line in observations if line["case"] == "ir/matmul/k-tail")
    after = json.loads(json.dumps(before))
    after["checks"][1]["difference"]["actual_bits"] = "0x3f812001"
    comparison = compare(build([before], name="before"), build([after], name="after"))
    assert [change.case for change in comparison.groups["changed"]] == ["ir/matmul/k-tail"]
    reason = compare(
        build([observation("abi/a", "hang", reason="then")], name="then"),
        build([observation("abi/a", "hang", reason="now")], name="now"),
    )
    assert len(reason.groups["changed"]) == 1


def test_added_and_removed_cases(build, observation):
    before = build([observation("abi/a"), observation("abi/gone")], name="before")
    after = build([observation("abi/a"), observation("abi/new", "fail")], name="after")
    comparison = compare(before, after)
    assert [change.case for change in comparison.groups["added"]] == ["abi/new"]
    assert [change.case for change in comparison.groups["removed"]] == ["abi/gone"]
    assert comparison.exit_code == 1
    assert compare(before, before).exit_code == 0


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
        assert {name for name, changes in comparison.groups.items() if changes} == groups
        assert comparison.exit_code == code
    text = as_text(whole, part, compare(whole, part))
    assert "  compared: the 1 case that both runs have; 2 others are left out\n" in text
    told = json.loads(as_json(whole, part, compare(whole, part)))
    assert (told["compared"], told["left_out"]) == (1, 2)
    assert "compared:" not in as_text(whole, whole, compare(whole, whole))


def test_an_invalid_side_supports_no_comparison(build, killed, observation):
    whole, cut = build([observation("abi/a")]), read(killed([observation("abi/a")]))
    for sides in ((whole, cut), (cut, whole)):
        comparison = compare(*sides)
        assert comparison.exit_code == 2
        assert "the run did not end" in as_text(*sides, comparison)


def test_text_and_json_tell_the_same(build, observation):
    before = build([observation("abi/a"), observation("abi/gone")], name="before")
    after = build([observation("abi/a", "fail", reason="\x1b[31mred")], name="after")
    comparison = compare(before, after)
    text = as_text(before, after, comparison)
    assert "1 broken   1 removed   0 fixed   0 changed   0 added" in text
    assert "  abi/a  pass -> fail\n    is  \\x1b[31mred" in text
    told = json.loads(as_json(before, after, comparison))
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
    assert len(json.loads(as_json(before, after, comparison))["changed"]) == 413
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
    assert len(json.loads(as_json(before, after, comparison))["warnings"]) == 4
    assert comparison.exit_code == 0
    assert compare(before, before).warnings == []
