"""A report in its forms: the summary of a terminal, Markdown, JUnit and rooflines; and the commands that write them."""

from __future__ import annotations

import argparse
import json
import math
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from tessera_conformance.reports import publish as commands
from tessera_conformance.reports.journal import read
from tessera_conformance.reports.publish import RENDERINGS, junit, publish
from tessera_conformance.reports.summary import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    SHOWN,
    TOP,
    WIDTH,
    markdown,
    rooflines,
    terminal_summary,
    text,
)
from tessera_conformance.reports.summary import CHART_WIDTH as DRAWN_WIDTH

# The end of a run in the terminal.


def test_it_says_who_what_how_many_and_why(build, registry, observations):
    text = terminal_summary(build(observations, problems=["deviation 'x' expired"]), registry)
    for part in (
        "acme-runtime 2.1 on acme-x1     profile core, level deterministic     41.2 s",
        "clauses    2 of 10 pass   4 fail   1 known deviation   1 unsupported (declared)   1 inapplicable",
        "cases      3 pass   3 fail   2 crash   1 hang   1 protocol error   1 harness error   1 unsupported",
        "deviations 1 known deviation   1 unexpected pass   1 waived",
        "claim      FAILURE: 7 cases count against it and 1 problem with the run",
        "deviation 'x' expired",
        "1 case: a wrong value, all of clause LANG-15-01: the bits",
        "e.g. ir/matmul/k-tail",
        "element [3, 7]: 0x3f812000, expected 0x3f811fff 1 ULP",
        "crash: because of crash",
        "stderr: Segmentation fault\\x1b[31m at 0x0",
        "unexpected pass",
        "tessera-conformance reproduce ir/matmul/k-tail --impl='rpc:acme --device '\"'\"'x 1'\"'\"'' --profile=core",
    ):
        assert part in text, part


def test_it_is_plain_ascii_and_narrow_whatever_the_reasons_hold(build, registry, observation):
    reason = "\x1b[31m é\u2603 \x00 " + "long " * 300
    lines = [observation(f"ir/{'x' * 150}{number}/a", "fail", ["RT-12-01"], reason=reason) for number in range(12)]
    report = build(lines, problems=["p" * 300] * 12)
    text = terminal_summary(report, registry)
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert "\\x1b[31m \\xe9\\u2603 \\x00" in text
    longer = [line for line in text.split("\n") if len(line) > WIDTH]
    assert [line.split()[0] for line in longer] == [
        "reproduce",
        *(["report"] if len(f"  report     {report.path}") > WIDTH else []),
    ]
    assert "and 2 more" in text


def test_an_endpoint_that_is_not_there_is_to_listen(build, registry, observation):
    report = build([observation("abi/a", "crash")])
    report.header["implementation"] |= {"label": "hostio:unix:io.sock", "fault": "no endpoint listens"}
    text = " ".join(terminal_summary(report, registry).split())
    assert "did not start: no endpoint listens; start it by hand and see that it listens there" in text


def test_a_c_library_whose_devices_nothing_names_is_told_where_to_name_them(build, registry, observation):
    reason = "the implementation does not claim the feature device-list"
    report = build([observation(f"abi/{name}", "unsupported", reason=reason) for name in "abc"])
    assert "remedy" not in terminal_summary(report, registry)
    report.header["implementation"]["label"] = "cabi:libacme.so"
    text = " ".join(terminal_summary(report, registry).split())
    description = "the description of --impl=cabi:libacme.so,description=FILE (docs/cabi.md)"
    assert f"remedy 3 cases need the devices: write [[devices]] in {description}" in text


def test_partial_and_invalid_say_why(build, killed, registry, observation):
    partial = build([observation("abi/a")], complete=False, shard="1/4")
    assert "shard 1/4" in terminal_summary(partial, registry)
    assert "PARTIAL: nothing failed, but part of the suite was left out" in terminal_summary(partial, registry)
    text = terminal_summary(read(killed([observation("abi/a")])), registry)
    assert "INVALID: there is no footer: the run did not end; 1 of 1 planned cases observed" in text
    assert "0.0 s in cases" in text


def test_what_was_chosen_is_shown(build, registry, observation):
    asked = {"cases": ["ir/matmul/*", "abi/a"], "features": ["casts"], "failed": "old.jsonl", "keyword": "bf16"}
    text = terminal_summary(build([observation("abi/a")], complete=False, chosen=asked), registry)
    assert "\n  selection  case ir/matmul/*   case abi/a   feature casts   failures of old.jsonl   -k bf16\n" in text
    assert "\n  selection" not in terminal_summary(build([observation("abi/a")]), registry)
    many = {"cases": [f"abi/{number}" for number in range(1208)]}
    text = terminal_summary(build([observation("abi/a")], complete=False, chosen=many), registry)
    assert "case abi/7   and 1 200 more\n" in text


def test_an_implementation_that_did_not_start_is_named_by_its_label(not_started, registry):
    text = terminal_summary(not_started, registry)
    assert text.startswith("rpc:acme ")
    assert text.count("the implementation did not start: exit code 3") == 1
    assert "stderr: line 4\n" not in text
    assert [f"stderr: line {number}" in text for number in range(5, 15)] == [True] * 10
    assert "abi/0" not in text
    assert "reproduce" not in text


def test_a_report_of_another_registry_is_told(build, registry, observation):
    text = terminal_summary(build([observation("abi/a", clauses=["XX-1"])]), registry)
    assert "made with another clause registry: it cites XX-1" in text


def test_wrong_results_come_first_then_what_went_wrong(build, registry, observations):
    text = terminal_summary(build(observations), registry)
    cases = ["ir/matmul/k-tail", "launch/crash", "launch/hang", "launch/garbled", "launch/harness"]
    places = [text.index(case) for case in cases]
    assert places == sorted(places)


def test_only_the_end_of_standard_error_is_shown_and_for_crash_and_hang_alone(build, registry, observations):
    (crash,) = (line for line in observations if line["case"] == "runtime/launch/crash")
    crash["exchanges"][-1]["run"]["stderr"] = "one\ntwo\n\nthree\nfour\n"
    told = [line.strip() for line in terminal_summary(build([crash]), registry).split("\n") if "stderr: " in line]
    assert told == ["stderr: two", "stderr: three", "stderr: four"]
    assert "stderr: " not in terminal_summary(build([crash | {"verdict": "protocol_error"}]), registry)


def test_cases_that_lack_a_claimed_feature_are_counted_by_feature(build, registry, observation, lacking):
    lines = [lacking(f"ir/l/{number}", "language.lower") for number in range(2)]
    lines += [lacking(f"ir/v/{number}", "language.verify") for number in range(3)]
    text = terminal_summary(build(lines), registry)
    assert text.index("3 cases: language.verify is not") < text.index("2 cases: language.lower is not implemented")
    assert "ir/v/" not in text
    assert "reproduce ir/z" in terminal_summary(build([*lines, observation("ir/z", "hang")]), registry)


def test_a_wrong_result_is_told_even_where_the_last_answer_was_unsupported(build, registry, observations, lacking):
    (failing,) = (line for line in observations if line["case"] == "ir/matmul/k-tail")
    lines = [failing | {"exchanges": lacking("x", "language.verify")["exchanges"]}]
    assert "e.g. ir/matmul/k-tail" in terminal_summary(build(lines), registry)


def test_success_says_what_deviations_excuse_and_what_the_cases_speak_of(build, registry, observation):
    lines = [observation(f"ir/known/{number}", "fail", disposition="known_deviation") for number in range(1463)]
    text = terminal_summary(build([observation("abi/a"), *lines]), registry)
    assert "claim      SUCCESS, with 1 463 cases excused by deviations: no case counts against it" in text
    told = "0 passed, 0 unsupported, 1 untested, 1 known deviation of 2 testable MUST clauses"
    assert f"scope runtime_abi: 1 judged, {told}" in " ".join(text.split())
    assert "excused" not in terminal_summary(build([observation("abi/a")]), registry)


def test_a_weaker_level_says_what_it_leaves_unjudged(build, registry, observation):
    left_out = [observation(f"ir/n/{number}", "inapplicable", levels=["strict"]) for number in range(2)]
    text = terminal_summary(build([observation("abi/a"), *left_out], level="fast"), registry)
    assert "PARTIAL: nothing failed, but 2 cases of numerics are not judged at level fast" in text
    elsewhere = [observation("ir/n", "inapplicable")]
    assert "not judged" not in terminal_summary(build([observation("abi/a"), *elsewhere], level="fast"), registry)


def test_what_only_weaker_levels_judge_is_no_loss(build, registry, observation):
    left_out = [observation("ir/n", "inapplicable", levels=["fast", "deterministic"])]
    text = terminal_summary(build([observation("abi/a"), *left_out], level="strict"), registry)
    assert "claim      SUCCESS: no case counts against it" in text


def test_a_run_that_judged_nothing_says_why(build, registry, observation):
    lines = [observation("collectives/a", "inapplicable", ["COLL-01-01"], reason="collectives are not claimed")]
    text = terminal_summary(build(lines), registry)
    assert "FAILURE: no case was judged: the suite has no cases yet for runtime_abi, language_ir" in text
    lines += [observation("abi/a", "unsupported"), observation("ir/a", "unsupported", ["LANG-05-01"])]
    assert "no case was judged: because of unsupported (2 cases)" in terminal_summary(build(lines), registry)
    assert "this run has no cases for language_ir" in terminal_summary(build(lines[:2], complete=False), registry)


def test_it_says_who_made_the_images_and_what_that_left_unjudged(build, registry, observation):
    implementation = {"label": "cabi:libacme.so", "hello": None, "fault": None, "compiler": "reference"}
    reason = "judges an image, and images are made by the reference's compiler: name the compiler with --compiler"
    lines = [
        observation("abi/a"),
        *(observation(f"abi/image/{number}", "inapplicable", reason=reason) for number in "bc"),
    ]
    text = terminal_summary(build(lines, header={"implementation": implementation}), registry)
    words = " ".join(text.split())
    assert "images made by the reference 2 cases inapplicable: judges an image, and images are made by" in words
    own = implementation | {"compiler": "acmec {input} -o {output}"}
    text = terminal_summary(
        build([observation("abi/a", "fail", reason="no")], header={"implementation": own}), registry
    )
    assert "images     made by acmec {input} -o {output}" in text
    assert "--impl=cabi:libacme.so --compiler='acmec {input} -o {output}'" in text


# The report as Markdown.


def test_it_holds_the_claim_the_tables_and_the_failures(build, registry, observations):
    document = markdown(build(observations, problems=["deviation 'x' expired"]), registry)
    for part in (
        "# Conformance of acme-runtime 2.1 on acme-x1\n",
        "## Claim: FAILURE\n\n7 cases count against it and 1 problem with the run.",
        "- deviation 'x' expired",
        "| protocol error | 1 |",
        "| Language and IR | MUST | 4 |  | 3 | 1 |  |  |  |  |",
        "| **all** |  | 10 | 2 | 4 | 1 |  | 1 | 1 | 1 | 1 |",
        "| ir/matmul/k-tail | ",
        "| ir/known/rounding | known deviation | rounds twice (owner ada, until 2027-01-01) |",
        "| runtime/fp8/cast | RT-12-02 | because of unsupported |",
    ):
        assert part in document, part


def test_nothing_an_implementation_says_becomes_markup(build, registry, observations):
    document = markdown(build(observations), registry)
    assert "<script" not in document.replace("\\<script", "")
    assert "\x00" not in document


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("*x* _y_", "\\*x\\* \\_y\\_"),
        ("<b>", "\\<b\\>"),
        ("a\n# b", "a \\# b"),
        ("\x07", "\\\\x07"),
        ("- 1", "\\- 1"),
        ("12. a", "12\\. a"),
        ("12.", "12\\."),
        ("41.2 s", "41.2 s"),
        ("2026-11-20", "2026-11-20"),
        ("-0.5 and -", "-0.5 and -"),
        ("---", "\\---"),
        ("===", "\\==="),
        ("protocol_error", "protocol_error"),
    ],
)
def test_text_is_escaped(raw, escaped):
    assert text(raw) == escaped


def test_a_long_list_of_failures_is_cut_and_says_so(build, registry, observation):
    lines = [observation(f"abi/{number:03}", "hang") for number in range(SHOWN + 3)]
    document = markdown(build(lines), registry)
    assert document.count("\n| abi/") == SHOWN
    assert "\nAnd 3 more, in `index.html`." in document


def test_wrong_results_come_first_and_what_is_not_implemented_is_counted(build, registry, observations, lacking):
    document = markdown(build([*observations, lacking("ir/a", "language.verify")]), registry)
    _, _, failures = document.partition("## Failures\n\n| case | reason |\n|---|---|\n")
    assert failures.startswith("| ir/matmul/k-tail | ")
    assert "| ir/a |" not in failures.partition("\n\n")[0]
    assert "| 1 case: language.verify is not implemented |" in document


def test_standard_error_of_a_start(registry, not_started):
    document = markdown(not_started, registry)
    fix = "start it by hand and see that it answers session.open"
    told = f"- the implementation did not start: exit code 3; {fix}"
    assert f"{told}\n\nStandard error:\n\n    line 5\n" in document
    assert "abi/0" not in document


def test_the_claim_has_its_scope_and_what_deviations_excuse(build, registry, observation):
    lines = [observation("abi/a"), observation("ir/known/a", "fail", disposition="known_deviation")]
    document = markdown(build(lines), registry)
    assert "## Claim: SUCCESS, with 1 case excused by deviations\n" in document
    told = "0 passed, 0 unsupported, 1 untested, 1 known deviation of 2 testable MUST clauses"
    assert f"- runtime_abi: 1 judged, {told}" in document


# The report as JUnit XML.

EXPECTED = {
    "abi/buffer/padding": None,
    "abi/buffer/size": None,
    "ir/matmul/k-tail": ("failure", "fail"),
    "ir/matmul/nasty": ("failure", "fail"),
    "ir/known/rounding": ("skipped", "known_deviation"),
    "ir/known/waived": ("skipped", "waived"),
    "ir/known/unexpected": ("failure", "unexpected_pass"),
    "runtime/launch/crash": ("error", "crash"),
    "runtime/launch/hang": ("error", "hang"),
    "runtime/launch/garbled": ("error", "protocol_error"),
    "runtime/launch/harness": ("error", "harness_error"),
    "runtime/fp8/cast": ("skipped", "unsupported"),
    "collectives/ring/order": ("skipped", "inapplicable"),
    "abi/never": ("error", "not_run"),
}


@pytest.fixture
def root(build, registry, observations):
    report = build(observations, planned=["abi/never"], problems=["deviation 'x' expired"])
    return ElementTree.fromstring("".join(junit(report, registry)).encode())


def properties(case):
    return [(one.get("name"), one.get("value")) for one in case.iterfind("properties/property")]


def test_every_verdict_has_its_element(root):
    actual = {}
    for case in root.iter("testcase"):
        results = [child for child in case if child.tag in ("failure", "error", "skipped")]
        assert len(results) <= 1
        name = dict(properties(case)).get("case", "problem")
        actual[name] = (results[0].tag, results[0].get("type")) if results else None
    assert actual == EXPECTED | {"problem": ("error", "problem")}


def test_the_structure_is_what_readers_expect(root):
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["abi", "collectives", "ir", "runtime", "report"]
    for element in [root, *root]:
        cases = list(element.iter("testcase"))
        assert element.get("tests") == str(len(cases))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert element.get(attribute) == str(sum(case.find(tag) is not None for case in cases))
    for case in root.iter("testcase"):
        assert set(case.keys()) == {"classname", "name", "time"}
        assert float(case.get("time")) >= 0
        order = ["properties", "skipped", "error", "failure", "system-out", "system-err"]
        tags = [child.tag for child in case]
        assert tags == sorted(tags, key=order.index)


def test_clauses_verdict_and_disposition_are_properties(root):
    case = next(case for case in root.iter("testcase") if case.get("name") == "rounding")
    assert case.get("classname") == "ir.known"
    assert {("clause", "LANG-05-01"), ("verdict", "fail"), ("disposition", "known_deviation")} <= set(properties(case))
    assert "rounds twice (owner ada, until 2027-01-01)" in case.find("skipped").get("message")


def test_what_a_case_judged_is_a_property(build, registry, observation):
    report = build([observation("abi/a", judges=["effect", "refusal"])])
    (case,) = ElementTree.fromstring("".join(junit(report, registry))).iter("testcase")
    assert [value for name, value in properties(case) if name == "judges"] == ["effect", "refusal"]


def test_what_xml_forbids_is_escaped_and_markup_stays_text(root):
    nasty = next(case for case in root.iter("testcase") if case.get("name") == "nasty")
    assert nasty.find("failure").get("message") == "<script>alert(1)</script> ]]> & \\x00\\x1b\ud7ff\\ufffe"
    crash = next(case for case in root.iter("testcase") if case.get("name") == "crash")
    assert crash.find("system-err").text == "Segmentation fault\\x1b[31m at 0x0"


def test_an_invalid_report_is_an_error(killed, registry, observation):
    root = ElementTree.fromstring("".join(junit(read(killed([observation("abi/a")])), registry)))
    assert root.get("errors") == "1"
    assert "did not end" in root.find("testsuite[@name='report']/testcase/error").get("message")


# `report` and `compare` on the command line.


@pytest.fixture
def run(capsys, registry, monkeypatch):
    """Runs a command line against the small registry; gives exit code, output and complaints."""
    monkeypatch.setattr(commands, "load_registry", lambda directory: registry)
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    commands.configure_report(subparsers.add_parser("report"))
    commands.configure_merge(subparsers.add_parser("merge"))
    commands.configure_compare(subparsers.add_parser("compare"))

    def call(*words):
        arguments = parser.parse_args([str(word) for word in words])
        code = arguments.handler(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_the_exit_code_is_the_claim(run, build, killed, observation):
    assert run("report", build([observation("abi/a")], name="good").path)[0] == 0
    assert run("report", build([observation("abi/a")], name="part", complete=False).path)[0] == 0
    assert run("report", build([observation("abi/a", "fail")], name="bad").path)[0] == 1
    code, output, complaint = run("report", killed([observation("abi/a")]))
    assert code == 2
    assert "1 pass" in output
    assert "not a valid report: there is no footer" in complaint


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("terminal", "acme-runtime"),
        ("markdown", "# Conf"),
        ("junit", "<?xml"),
        ("html", "<!doctype html>"),
        ("badge", "<svg"),
    ],
)
def test_each_format_goes_to_the_terminal_or_to_a_file(run, build, tmp_path, observations, form, start):
    path = build(observations).path
    code, output, complaint = run("report", path, "--format", form)
    assert (code, complaint) == (1, "")
    assert output.startswith(start)
    assert run("report", path, "--format", form, "--output", tmp_path / "out") == (1, "", "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == output


def test_several_reports_are_one_page_and_the_worst_claim_is_the_exit_code(run, build, tmp_path, observation):
    good, bad = build([observation("abi/a")], name="good"), build([observation("abi/a", "fail")], name="bad")
    output = tmp_path / "together.html"
    assert run("report", good.path, bad.path, "--format", "html", "--output", output) == (1, "", "")
    assert "</html>" in output.read_text(encoding="utf-8")
    code, printed, complaint = run("report", good.path, bad.path)
    assert (code, printed) == (2, "")
    assert "--format: terminal is of one report, and 2 are given; expected html" in complaint


def test_all_writes_the_pages_beside_the_report_or_elsewhere(run, build, tmp_path, observations):
    report = build(observations)
    assert run("report", report.path.parent, "--format", "all") == (1, "", "")
    assert run("report", report.path, "--format", "all", "--output", tmp_path / "deep" / "er") == (1, "", "")
    for name in RENDERINGS:
        assert (report.path.parent / name).read_bytes() == (tmp_path / "deep" / "er" / name).read_bytes()


def test_publishing_twice_gives_the_same_bytes(build, registry, observations):
    report = build(observations)
    publish(report, registry)
    first = {name: (report.path.parent / name).read_bytes() for name in RENDERINGS}
    publish(report, registry)
    assert first == {name: (report.path.parent / name).read_bytes() for name in RENDERINGS}
    ElementTree.fromstring(first["junit.xml"])


def test_what_cannot_be_read_is_one_clear_line(run, build, tmp_path, observation):
    (tmp_path / "other").write_text("no report\n")
    good = build([observation("abi/a")]).path
    for words in (
        ["report", tmp_path / "missing.jsonl"],
        ["report", tmp_path / "other"],
        ["report", tmp_path],
        ["report", good, "--format", "html", "--output", tmp_path / "no" / "such" / "place"],
        ["compare", good, tmp_path / "missing.jsonl"],
    ):
        code, output, complaint = run(*words)
        assert (code, output) == (2, ""), words
        assert complaint.startswith("error: ")
        assert complaint.count("\n") == 1


def test_compare(run, build, observation):
    before = build([observation("abi/a")], name="before").path
    after = build([observation("abi/a", "fail")], name="after").path
    assert run("compare", before, before)[0] == 0
    code, output, complaint = run("compare", before, after)
    assert (code, complaint) == (1, "")
    assert "abi/a  pass -> fail" in output
    code, output, _ = run("compare", before, after, "--json")
    assert code == 1
    assert json.loads(output)["after"]["claim"] == "failure"
    assert run("compare", after, before)[0] == 0


def test_merge(run, build, observation, tmp_path):
    paths = []
    for number, verdict in ((1, "pass"), (2, "fail")):
        lines = [observation(f"abi/{number}", verdict)]
        name = f"shard-{number}"
        paths.append(build(lines, name=name, shard=f"{number}/2", complete=True, deviations=[]).path)
    code, output, complaint = run("merge", *paths, "--output", tmp_path / "whole")
    assert (code, complaint) == (1, "")
    assert "1 pass   1 fail" in output
    assert {path.name for path in (tmp_path / "whole").iterdir()} == {"report.jsonl", *RENDERINGS}
    assert run("report", tmp_path / "whole")[0] == 1
    assert run("merge", paths[0], "--output", tmp_path / "no") == (2, "", "error: shard 2/2 is missing\n")
    assert run("merge", paths[0], tmp_path / "missing", "--output", tmp_path / "no")[0] == 2


# The picture of the rooflines: where its points are, and that it is safe.

HOSTILE = "</svg><script>alert(1)</script> \u00e4"


def figure(plot: str, line: str, size: int, picoseconds: int) -> dict[str, Any]:
    return {"plot": plot, "line": line, "size": size, "picoseconds": picoseconds}


def kept(observation, case: str, *arguments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A case of the clause that kept these figures."""
    return observation(case, clauses=["COLL-06-02"], run={"seconds": 0.1, "figures": list(arguments)}, **changes)


def both(observation) -> list[dict[str, Any]]:
    """Collectives at 1 kB and 1 MB, at 10**9 and 10**11 bytes a second below a roof of 10**12; a product."""
    roof = {"plot": "communication", "line": "roof", "bytes_per_second": 10**12}
    sent = [figure("communication", "ring", 1000, 10**6), figure("communication", "ring", 10**6, 10**7)]
    return [
        kept(observation, "collectives/rooflines/ring", roof, *sent),
        kept(observation, "collectives/rooflines/products", figure("compute", "product", 2000, 1000)),
    ]


def test_points_lie_at_their_logarithms(build, observation) -> None:
    """Sizes from 10**3 to 10**6, rates from 10**9 to 10**12: a point at each end, and the roof on top."""
    markup = rooflines(build(both(observation)))
    left, right, bottom = LEFT, DRAWN_WIDTH - RIGHT, HEIGHT - BOTTOM
    at_two_thirds = bottom + (TOP - bottom) * (math.log10(10**11) - 9) / 3
    assert f'points="{left:.1f},{bottom:.1f} {right:.1f},{at_two_thirds:.1f}"' in markup
    assert f'class="roof" x1="{left}" y1="{TOP:.1f}"' in markup
    for label in ("1 GB/s", "10 GB/s", "100 GB/s", "1 TB/s", "1 k", "1 M", ">link", ">ring<", ">best measured"):
        assert label in markup
    assert markup.count("<polyline") == 2
    assert rooflines(build([observation("abi/a")])) == ""


def test_names_and_numbers_of_an_implementation_cannot_break_the_page(build, observation) -> None:
    """Names are escaped; sizes and times that are not positive are left out."""
    odd = [figure("compute", HOSTILE, 5, 5), figure("compute", "a", 0, 5), figure("compute", "b", 5, 0)]
    markup = rooflines(build([kept(observation, "collectives/a", *odd)]))
    assert "<script" not in markup
    assert markup.isascii()
    assert markup.count("<polyline") == 1
