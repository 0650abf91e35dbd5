"""The report file: written by hand here, read back, cut off, edited."""

from __future__ import annotations

import json
import random

import pytest

from tessera_conformance.reports.journal import FILE_NAME, UnreadableReport, read
from tessera_conformance.reports.lines import plain
from tessera_conformance.schemas import first_problem


def test_every_line_follows_the_published_schema(build, observations):
    report = build(observations, planned=["abi/never"])
    lines = [json.loads(text) for text in report.path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [line["record"] for line in lines] == ["header", "plan", *["observation"] * 14, "footer"]
    assert [first_problem("tessera:report/lines", line["record"], line) for line in lines] == [None] * len(lines)


def test_the_plan_names_what_cases_share_once(build, observation):
    report = build([observation("abi/a/b")], planned=["abi/a-b/c", "abi/a/c", "abi/a/c/d", "alone"])
    written = json.loads(report.path.read_text(encoding="utf-8").split("\n")[1])
    assert written["cases"] == {"abi/a-b/": ["c"], "abi/a/": ["b", "c"], "abi/a/c/": ["d"], "": ["alone"]}
    planned = ["abi/a-b/c", "abi/a/b", "abi/a/c", "abi/a/c/d", "alone"]
    assert read(report.path).plan["cases"] == report.plan["cases"] == planned


def test_what_was_planned_and_never_ended_is_a_failure(build, observation):
    report = build([observation("abi/a")], planned=["abi/b"])
    assert [(line["case"], line["verdict"]) for line in report.observations] == [
        ("abi/a", "pass"),
        ("abi/b", "not_run"),
    ]
    assert report.claim == "failure"


@pytest.mark.parametrize(
    ("verdict", "disposition", "selection", "claim"),
    [
        ("pass", "none", {}, "success"),
        ("pass", "none", {"complete": False}, "partial"),
        ("pass", "unexpected_pass", {}, "failure"),
        *((verdict, "none", {}, "failure") for verdict in ("fail", "crash", "hang", "protocol_error", "harness_error")),
        ("fail", "known_deviation", {}, "success"),
        ("crash", "waived", {}, "success"),
    ],
)
def test_the_claim_follows_from_verdicts_and_dispositions(build, observation, verdict, disposition, selection, claim):
    lines = [observation("abi/a", verdict, disposition=disposition), observation("abi/b")]
    assert build(lines, **selection).claim == claim


def test_no_observation_and_a_problem_are_failures(build, observation):
    assert build([]).claim == "failure"
    assert build([observation("abi/a")], problems=["a deviation expired"]).claim == "failure"


def test_the_sealed_bytes_do_not_depend_on_the_order_of_arrival(build, observations):
    shuffled = list(observations)
    random.Random(7).shuffle(shuffled)
    first, second = build(observations, name="one"), build(shuffled, name="two")
    assert first.path.read_bytes() == second.path.read_bytes()


def test_the_seal_does_not_depend_on_the_time_taken(build, observation):
    slow = build([observation("abi/a", run={"seconds": 9.0})], name="slow")
    fast = build([observation("abi/a")], name="fast")
    assert slow.footer["sha256"] == fast.footer["sha256"]


def test_a_killed_run_is_readable_and_invalid(killed, observations):
    report = read(killed(observations))
    assert (report.claim, len(report.observations)) == ("invalid", 13)
    assert "did not end" in report.problem


def test_a_line_that_was_cut_off_is_named(killed, observations):
    path = killed(observations)
    path.write_bytes(path.read_bytes()[:-20])
    report = read(path)
    assert (report.claim, len(report.observations)) == ("invalid", 12)
    assert report.problem.startswith("line 15 ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verdict":"crash"', '"verdict":"pass"'),
        ("0x3f812000", "0x3f812001"),
        ('"claim":"failure"', '"claim":"success"'),
    ],
)
def test_an_edited_byte_is_detected(build, observations, old, new):
    path = build(observations).path
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert "edited" in read(path).problem


@pytest.mark.parametrize(
    "text",
    [
        "\x00\x1b\x7f",
        "\r\n\x0b\x0c\x1c",
        "\ufffe\U0010ffff",
        "\x85",
        "\u2028\u2029",
    ],
)
def test_any_text_survives_the_file(build, observation, text):
    report = build([observation("abi/a", "fail", reason=text)])
    assert report.problem is None
    assert report.observations[0]["reason"] == text


def test_a_run_in_which_nothing_passed_is_no_success(build, observation):
    assert build([observation("abi/a", "inapplicable"), observation("abi/b", "unsupported")]).claim == "failure"


def test_a_removed_line_is_detected(build, observations):
    path = build(observations).path
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(lines[:4] + lines[5:]), encoding="utf-8")
    assert "edited" in read(path).problem


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"record":"plan","cases":[]}\n', b"\xff\xfe"])
def test_what_is_no_report_is_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    with pytest.raises(UnreadableReport, match=FILE_NAME):
        read(path)
    with pytest.raises(UnreadableReport, match="No such file"):
        read(tmp_path / "missing.jsonl")


def test_a_set_reads_the_same_in_every_process():
    """The order of a set's items is another one in each process, where they are texts."""
    assert plain({"what": {"b", "a", "c"}, "pairs": {(2, 1), (1, 2)}}) == {
        "what": ["a", "b", "c"],
        "pairs": [[1, 2], [2, 1]],
    }
