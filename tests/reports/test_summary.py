"""The end of a run in the terminal."""

from __future__ import annotations

from tessera_conformance.reports.journal import read
from tessera_conformance.reports.summary import WIDTH, terminal_summary


def test_it_says_who_what_how_many_and_why(build, registry, observations):
    text = terminal_summary(build(observations, problems=["deviation 'x' expired"]), registry)
    for part in (
        "acme-runtime 2.1 on acme-x1     profile core, level deterministic     41.2 s",
        "clauses    2 of 10 pass   4 fail   1 known deviation   1 unsupported (declared)   1 inapplicable",
        "cases      3 pass   3 fail   2 crash   1 hang   1 protocol error   1 harness error   1 unsupported",
        "deviations 1 known deviation   1 unexpected pass   1 waived",
        "claim      FAILURE: 7 cases count against it and 1 problem with the run",
        "deviation 'x' expired",
        "LANG-15-01  ir/matmul/k-tail",
        "element [3, 7]: 0x3f812000, expected 0x3f811fff 1 ULP",
        "crash: because of crash",
        "unexpected pass",
        "tessera-conformance reproduce ir/known/unexpected --impl='rpc:acme --device '\"'\"'x 1'\"'\"'' --profile=core",
    ):
        assert part in text, part


def test_it_is_plain_ascii_and_narrow_whatever_the_reasons_hold(build, registry, observation):
    reason = "\x1b[31m é\u2603 \x00 " + "long " * 300
    lines = [observation(f"ir/{'x' * 150}/{number}", "fail", reason=reason) for number in range(12)]
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


def test_success_lists_nothing(build, registry, observation):
    text = terminal_summary(build([observation("abi/a")]), registry)
    assert "claim      SUCCESS" in text
    assert "\n  failures" not in text
    assert "reproduce" not in text


def test_partial_and_invalid_say_why(build, killed, registry, observation):
    partial = build([observation("abi/a")], complete=False, shard="1/4")
    assert "shard 1/4" in terminal_summary(partial, registry)
    assert "PARTIAL: nothing failed, but part of the suite was left out" in terminal_summary(partial, registry)
    text = terminal_summary(read(killed([observation("abi/a")])), registry)
    assert "INVALID: there is no footer: the run did not end; 1 of 1 planned cases observed" in text
    assert "0.0 s in cases" in text


def test_an_implementation_that_did_not_start_is_named_by_its_label(build, registry, observation):
    header = {"implementation": {"label": "rpc:acme", "hello": None, "fault": "at start: exit code 3"}}
    text = terminal_summary(build([observation("abi/a", "crash")], header=header), registry)
    assert text.startswith("rpc:acme ")
    assert "the implementation did not start: at start: exit code 3" in text


def test_a_report_of_another_registry_is_told(build, registry, observation):
    text = terminal_summary(build([observation("abi/a", clauses=["XX-1"])]), registry)
    assert "made with another clause registry: it cites XX-1" in text
