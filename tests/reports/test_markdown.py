"""The report as Markdown."""

from __future__ import annotations

import pytest

from tessera_conformance.reports.journal import read
from tessera_conformance.reports.summary import SHOWN, SHOWN_FAILURES, code, markdown, text


def test_it_holds_the_claim_the_tables_and_the_failures(build, registry, observations):
    document = markdown(build(observations, problems=["deviation 'x' expired"]), registry)
    for part in (
        "# Conformance of acme-runtime 2.1 on acme-x1\n",
        "## Claim: FAILURE\n\n7 cases count against it and 1 problem with the run.",
        "- deviation 'x' expired",
        "| protocol error | 1 |",
        "| Language and IR | MUST | 4 |  | 3 | 1 |  |  |  |  |",
        "| **all** |  | 10 | 2 | 4 | 1 |  | 1 | 1 | 1 | 1 |",
        "### ir/matmul/k-tail",
        "- LANG-15-01: What LANG-15-01 demands",
        "- reproduce: `tessera-conformance reproduce ir/matmul/k-tail ",
        "| ir/known/rounding | known deviation | rounds twice (owner ada, until 2027-01-01) |",
        "| runtime/fp8/cast | RT-12-02 | because of unsupported |",
    ):
        assert part in document, part


def test_nothing_an_implementation_says_becomes_markup(build, registry, observations):
    document = markdown(build(observations), registry)
    assert "<script" not in document.replace("\\<script", "")
    assert "\x00" not in document


def test_an_invalid_report_says_so(killed, registry, observation):
    document = markdown(read(killed([observation("abi/a")])), registry)
    assert "## Claim: INVALID\n\nthere is no footer: the run did not end; 1 of 1 planned cases observed." in document


def test_long_tables_are_cut_and_say_so(build, registry, observation):
    lines = [observation(f"abi/{number:03}", "unsupported") for number in range(SHOWN + 3)]
    assert "\nAnd 3 more, in `index.html`." in markdown(build(lines), registry)


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


def test_code_spans_hold_backticks():
    assert code("a b") == "`a b`"
    assert code("a `b`` c") == "``` a `b`` c ```"


def test_a_long_list_of_failures_is_cut_and_says_so(build, registry, observation):
    lines = [observation(f"abi/{number:03}", "hang") for number in range(SHOWN_FAILURES + 3)]
    document = markdown(build(lines), registry)
    assert document.count("\n### abi/") == SHOWN_FAILURES
    assert "\nAnd 3 more, in `index.html`." in document


def test_wrong_results_come_first_and_what_is_not_implemented_is_counted(build, registry, observations, lacking):
    document = markdown(build([*observations, lacking("ir/a", "language.verify")]), registry)
    told = [line[4:] for line in document.split("\n") if line.startswith("### ")]
    assert told[0] == "ir/matmul/k-tail"
    assert "ir/a" not in told
    assert "| 1 case: language.verify is not implemented |" in document


def test_standard_error_of_a_crash_and_of_a_start(build, registry, observations, not_started):
    document = markdown(build(observations), registry)
    assert "Standard error:\n\n    Segmentation fault\\x1b[31m at 0x0\n" in document
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
