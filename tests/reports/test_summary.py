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


def test_success_lists_nothing(build, registry, observation):
    text = terminal_summary(build([observation("abi/a")]), registry)
    assert "claim      SUCCESS" in text
    assert "fix" not in text
    assert "reproduce" not in text


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
