"""The claim of a run, the outcome of clauses, and the causes of failures."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.protocol import Returned
from tessera_conformance.reports.causes import (
    Cause,
    by_document_and_level,
    causes,
    clause_results,
    judgeable,
    tally,
    unknown_clauses,
)
from tessera_conformance.reports.claim import is_whole, product_results
from tessera_conformance.reports.journal import Report, read
from tessera_conformance.reports.lines import _HEX, _TOLD, _TOLD_IN_HEX, traits
from tessera_conformance.reports.summary import terminal_summary
from tessera_conformance.reports.wording import not_judged
from tessera_conformance.session import Exchange
from tessera_conformance.tensors import Tensor

# What a report claims, of which MUST clauses, and in which words.

Claim = Callable[..., Report]


def must(document: str = "language_ir", profile: str = "core", by: str = "effect", **more: str) -> dict[str, str]:
    return {"document": document, "profile": profile, "by": by, **more}


MUSTS = {
    "LANG-05-01": must(),
    "LANG-05-02": must(by="refusal"),
    "LANG-15-01": must(profile="extended"),
    "LANG-15-02": must(**{"as": "LANG-05-01"}),
    "RT-10.1-01": must("runtime_abi"),
    "RT-12-01": must("runtime_abi", excused="no function shows it"),
}
PROFILES = {
    "ranks": {"document": "runtime_abi", "features": ["rank-memory"]},
    "levels": {"document": "language_ir", "features": ["lower-tile", "lower-target"]},
}


@pytest.fixture
def claim(build: Callable[..., Report], observation: Callable[..., dict[str, Any]]) -> Claim:
    """A report in which each of these clauses has a case that judged its main effect, but for what is changed."""

    def make(changes: Mapping[str, Mapping[str, Any]], features: Sequence[str] = (), **selection: Any) -> Report:
        cases: dict[str, dict[str, Any]] = {
            "LANG-05-01": {},
            "LANG-05-02": {"judges": ["refusal"]},
            "LANG-15-01": {},
            "RT-10.1-01": {},
        }
        lines = [
            observation(f"ir/{name}", **{"clauses": [name], **fields, **changes.get(name, {})})
            for name, fields in cases.items()
        ]
        hello = {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "acme", "version": "1"},
            "documents": ["language_ir", "runtime_abi"],
            "capabilities": dict.fromkeys(features, "enforced"),
        }
        header = {"implementation": {"label": "rpc:acme", "hello": hello, "fault": None}}
        return build(lines, header=header, musts=MUSTS, profiles=PROFILES, level="strict", **selection)

    return make


def lacking(*needs: str) -> dict[str, Any]:
    return {"verdict": "unsupported", "judges": [], "needs": [*needs]}


def told(report: Report, registry: Any) -> str:
    """The claim and what it is about, as the end of a run has it, on one line."""
    text = terminal_summary(report, registry)
    return " ".join(text[text.index("claim") : text.index("  report")].split())


def test_success_where_every_core_must_was_judged(claim, registry):
    report = claim({}, features=["rank-memory"])
    assert report.claim == "success"
    assert told(report, registry) == (
        "claim SUCCESS: no case counts against it; profiles core, ranks "
        "scope language_ir: 4 judged, 4 passed, 0 unsupported, 0 untested of 4 testable MUST clauses "
        "runtime_abi: 1 judged, 1 passed, 0 unsupported, 1 untested of 2 testable MUST clauses"
    )
    assert report.footer["musts"] == {"language_ir": {"pass": 4}, "runtime_abi": {"pass": 1, "untested": 1}}


def test_a_core_must_that_is_not_supported_makes_it_partial_and_comes_first(claim, registry):
    """With its twin: two clauses of the profile that is not claimed."""
    report = claim({"LANG-05-01": lacking("lower-tile"), "LANG-15-01": lacking("lower-tile")}, ["rank-memory"])
    assert report.claim == "partial"
    assert told(report, registry).startswith(
        "claim PARTIAL: nothing failed, but 2 core MUST clauses are unsupported (2 of profile levels); profiles core, "
        "ranks scope language_ir: 2 core MUST clauses are unsupported; 1 judged, 1 passed, 3 unsupported, 0 untested "
        "of 4 testable MUST clauses"
    )


def test_a_clause_counts_for_a_profile_of_its_own_document(claim, registry):
    """One case needs access to ranks and another one a level, and neither is claimed."""
    report = claim({"LANG-05-01": lacking("rank-memory", "lower-tile"), "RT-10.1-01": lacking("rank-memory")})
    assert "3 core MUST clauses are unsupported (1 of profile ranks, 2 of profile levels)" in told(report, registry)


def test_what_no_profile_has_is_said_to_be_of_none(claim, registry):
    report = claim({"RT-10.1-01": lacking("other")})
    assert "1 core MUST clause is unsupported (1 of no profile); profiles core scope" in told(report, registry)


def test_an_extended_must_that_is_not_supported_is_no_loss(claim):
    assert claim({"LANG-15-01": lacking("other")}).claim == "success"


def test_a_core_must_of_which_only_refusals_were_judged_is_not_judged(claim, registry):
    report = claim({"RT-10.1-01": {"judges": ["refusal"]}})
    assert report.claim == "partial"
    assert "nothing failed, but 1 core MUST clause is not judged: RT-10.1-01; profiles core" in told(report, registry)


def test_a_refusal_carries_what_is_to_be_refused_and_an_effect_does_not(claim):
    assert claim({}).claim == "success"
    assert claim({"LANG-05-02": {"judges": ["effect"]}}).claim == "partial"


def test_a_part_of_the_suite_names_what_is_unsupported_and_not_what_was_left_out(claim, registry):
    report = claim({"LANG-05-01": {"clauses": []}, "RT-10.1-01": lacking("rank-memory")}, complete=False)
    assert report.claim == "partial"
    assert (
        "nothing failed, but 1 core MUST clause is unsupported (1 of profile ranks) and part of the suite was left out"
        in told(report, registry)
    )
    assert "not judged" not in told(report, registry)


def test_a_failure_stays_one(claim):
    assert claim({"RT-10.1-01": {"verdict": "fail"}, "LANG-05-01": lacking("lower-tile")}).claim == "failure"


def test_an_edited_plan_is_detected(claim):
    path = claim({"LANG-05-01": lacking("lower-tile")}).path
    text = path.read_text(encoding="utf-8")
    core = '"LANG-05-01":{"document":"language_ir","profile":"core"'
    edited = text.replace(core, core.replace("core", "extended"))
    assert edited != text
    path.write_text(edited, encoding="utf-8")
    assert "edited" in (read(path).problem or "")


PRODUCT = {"cases": ["ir/"], "without": ["ir/x"], "features": ["a"], "methods": ["language.*"], "single_device": False}
UNMET = {"verdict": "inapplicable", "cause": "presumption"}


@pytest.mark.parametrize(
    ("changes", "single_device", "result"),
    [
        ({}, False, "passed"),
        ({"case": "ir/x/1"}, False, ""),
        ({"case": "runtime/1"}, False, ""),
        ({"needs": ["a"]}, False, "passed"),
        ({"needs": ["a", "b"]}, False, ""),
        ({"methods": ["language.parse", "abi.compile"]}, False, ""),
        ({"methods": []}, False, "passed"),
        ({"verdict": "crash"}, False, "failed"),
        ({"verdict": "fail", "disposition": "other_reading"}, False, "excused"),
        ({"verdict": "pass", "disposition": "unexpected_pass"}, False, "failed"),
        ({"verdict": "unsupported", "cause": "feature"}, False, "missing"),
        ({"verdict": "inapplicable", "cause": "blocked"}, True, "missing"),
        ({"verdict": "inapplicable", "cause": "level"}, False, ""),
        (UNMET, False, "missing"),
        (UNMET, True, ""),
    ],
)
def test_a_case_counts_for_a_product_by_its_id_its_needs_and_what_it_asked(observation, changes, single_device, result):
    plan = {"products": {"p": PRODUCT | {"single_device": single_device}}}
    line = observation(**{"case": "ir/1", **changes})
    assert product_results(plan, [line]) == {"p": Counter([result] if result else [])}


def test_a_product_is_whole_where_something_passed_and_nothing_failed_or_is_missing():
    assert is_whole(Counter(passed=3, excused=1))
    for result in (Counter(excused=1), Counter(passed=3, failed=1), Counter(passed=3, missing=1)):
        assert not is_whole(result)


def test_the_end_of_a_run_names_whole_products_and_those_within_reach(build, observation, registry):
    products = {"whole": PRODUCT, "near": PRODUCT | {"cases": ["ir/", "abi/"]}, "far": PRODUCT | {"cases": ["abi/"]}}
    lines = [observation("ir/1"), observation("ir/2"), observation("abi/1", "fail"), observation("abi/2", "crash")]
    text = told(build(lines, products=products), registry)
    assert "profiles whole: whole (2 cases) near within reach: 2 of 4 cases pass, 2 fail" in text
    assert "far" not in text
    text = told(build(lines, products=products, complete=False), registry)
    assert "profiles whole in this run: 2 of 2 cases pass near in this run: 2 of 4 cases pass, 2 fail" in text


def test_cases_with_one_presumption_are_one_reason_whatever_they_found(build, observation):
    reasons = enumerate(["presumes a; found 1", "presumes a; found 2", "presumes b; found 3"])
    report = build([observation(f"ir/{place}", **UNMET, reason=reason) for place, reason in reasons])
    assert not_judged(report) == ["2 cases: presumes a", "1 case: presumes b; found 3"]


# Clauses brought to one outcome.


def test_every_active_clause_has_the_outcome_of_its_cases(build, registry, observations):
    results = clause_results(build(observations), registry)
    assert {name: result.outcome for name, result in results.items()} == {
        "RT-10.1-01": "pass",
        "RT-10.1-02": "pass",
        "RT-12-01": "fail",
        "RT-12-02": "unsupported",
        "RT-13-01": "not_testable",
        "LANG-05-01": "deviates",
        "LANG-05-02": "fail",
        "LANG-15-01": "fail",
        "LANG-15-02": "fail",
        "COLL-01-01": "inapplicable",
        "COLL-01-02": "untested",
    }
    assert results["LANG-15-02"].cases == ("ir/matmul/k-tail", "ir/matmul/nasty")


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "unsupported"], "pass"),
        (["pass", "inapplicable"], "pass"),
        (["pass", "fail"], "fail"),
        (["pass", "not_run"], "fail"),
        (["unsupported", "inapplicable"], "unsupported"),
        (["unsupported", "unsupported"], "unsupported"),
        (["inapplicable"], "inapplicable"),
        (["unsupported", "harness_error"], "fail"),
        ([], "untested"),
    ],
)
def test_a_clause_passes_only_where_a_case_ran_and_all_that_ran_passed(build, registry, observation, verdicts, outcome):
    lines = [observation(f"abi/c/{number}", verdict) for number, verdict in enumerate(verdicts)]
    results = clause_results(build([*lines, observation("abi/other", clauses=["RT-12-01"])]), registry)
    assert results["RT-10.1-01"].outcome == outcome


def test_a_case_of_a_twin_judges_both(build, registry, observation):
    results = clause_results(build([observation("ir/t", clauses=["LANG-15-02"])]), registry)
    assert (results["LANG-15-01"].outcome, results["LANG-15-02"].outcome) == ("pass", "pass")


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_the_number_of_testable_clauses_is_that_of_the_registry_in_every_run(build, registry, observation, verdict):
    """A case that also speaks of an inspected clause leaves it apart; where it fails, the run fails."""
    report = build([observation("abi/t", verdict, clauses=["RT-13-01"]), observation("abi/u")])
    results = clause_results(report, registry)
    assert results["RT-13-01"].outcome == "not_testable"
    assert judgeable(tally(results.values())) == 10
    assert report.claim == ("success" if verdict == "pass" else "failure")


@pytest.mark.parametrize(
    ("judges", "carried", "outcome"),
    [
        (["effect"], None, "pass"),
        (["effect", "refusal"], None, "pass"),
        (["refusal"], None, "untested"),
        (["acceptance", "refusal"], None, "untested"),
        ([], None, "untested"),
        (["refusal"], "refusal", "pass"),
        (["effect"], "refusal", "untested"),
        (["acceptance"], "acceptance", "pass"),
        (["effect"], "acceptance", "pass"),
        (["refusal"], "acceptance", "untested"),
    ],
)
def test_a_clause_passes_by_a_case_of_its_main_effect(build, registry, observation, judges, carried, outcome):
    clauses = dict(registry.clauses)
    clauses["RT-10.1-01"] = replace(clauses["RT-10.1-01"], judged_by=carried)
    results = clause_results(build([observation("abi/a", judges=judges)]), replace(registry, clauses=clauses))
    assert results["RT-10.1-01"].outcome == outcome


def test_a_refusal_beside_effects_that_are_not_supported_is_unsupported(build, registry, observation):
    lines = [observation("abi/a", judges=["refusal"]), observation("abi/b", "unsupported")]
    assert clause_results(build(lines), registry)["RT-10.1-01"].outcome == "unsupported"


def test_what_repeats_a_refusal_is_carried_by_refusals(build, registry, observation):
    clauses = dict(registry.clauses)
    clauses["LANG-15-01"] = replace(clauses["LANG-15-01"], judged_by="refusal")
    report = build([observation("ir/a", clauses=["LANG-15-02"], judges=["refusal"])])
    assert clause_results(report, replace(registry, clauses=clauses))["LANG-15-02"].outcome == "pass"


def test_tables_add_up(build, registry, observations):
    results = clause_results(build(observations), registry)
    whole = tally(results.values())
    assert whole.total() == 11
    assert judgeable(whole) == 10
    assert sum(by_document_and_level(results).values(), start=type(whole)()) == whole
    assert by_document_and_level(results)["runtime_abi", "MUST"] == {"pass": 2, "fail": 1}


def test_clauses_of_another_registry_are_named(build, registry, observation):
    assert unknown_clauses(build([observation("abi/t", clauses=["XX-01-01", "RT-12-01"])]), registry) == ["XX-01-01"]


# The causes of failures: few groups, what tells them from the cases that pass, what to mend first.

COPY, LAUNCH, ADD = "runtime.tessMemcpyAsync", "runtime.tessLaunch", "runtime.tessAllReduce"


def calls(*named: str) -> dict[str, Any]:
    """The fields of a line whose case calls these, with these arguments."""
    return {"traits": sorted(named), "methods": sorted({name.partition(" ")[0] for name in named})}


def wrong(what: str = "the bytes", kind: str = "equal", expected: Any = 1, actual: Any = 2) -> dict[str, Any]:
    """The fields of a line whose check failed."""
    record = {"kind": kind, "passed": False, "what": what, "expected": expected, "actual": actual, "difference": None}
    return {"checks": [record], "reason": what}


def sentences(found: list[Cause]) -> list[str]:
    return [cause.sentence() for cause in found]


def test_failures_of_one_way_are_told_by_the_argument_that_those_that_pass_lack(build, observation):
    short, long = calls(COPY, f"{COPY} bytes=8"), calls(COPY, f"{COPY} bytes>=256")
    lines = [observation(f"runtime/copies/a/{number}", "fail", ["RT-04"], **wrong(), **long) for number in range(4)]
    lines += [observation(f"runtime/sums/a/{number}", "fail", ["RT-05"], **wrong("a sum"), **long) for number in "ab"]
    lines += [observation(f"runtime/copies/b/{number}", **short) for number in range(9)]
    lines += [observation("runtime/copies/c", **long)]
    (cause,) = causes(build(lines))
    assert cause.sentence() == "6 cases: a wrong value, all with tessMemcpyAsync and bytes>=256 (1 with it pass)"
    assert cause.mended == ("RT-04", "RT-05")
    assert {line["case"] for line in cause.lines} == {line["case"] for line in lines[:6]}


def test_two_defects_are_two_causes_and_the_larger_stands_first(build, observation):
    copied, added = calls(COPY, f"{COPY} kind=2"), calls(COPY, f"{COPY} kind=0", ADD)
    lines = [observation(f"runtime/sums/a/{number}", "fail", ["RT-05"], **wrong(), **added) for number in range(5)]
    lines += [observation(f"runtime/copies/a/{number}", "fail", ["RT-04"], **wrong(), **copied) for number in range(3)]
    lines += [observation(f"runtime/b/a/{number}", **calls(COPY, f"{COPY} kind=0")) for number in range(60)]
    lines += [observation("runtime/legal-calls/tessallreduce", clauses=["RT-06"])]
    actual = causes(build(lines))
    assert sentences(actual) == [
        "5 cases: a wrong value, all with tessAllReduce (none with it passes): the bytes",
        "3 cases: a wrong value, all with tessMemcpyAsync and kind=2 (none with it passes): the bytes",
    ]
    assert [cause.clauses for cause in actual] == [("RT-06", "RT-05"), ("RT-04",)], "the control case's comes first"


def test_a_few_failures_that_join_a_cause_do_not_share_its_argument(build, observation):
    copied, other = calls(COPY, f"{COPY} kind=2"), calls(COPY, f"{COPY} kind=0")
    lines = [observation(f"runtime/copies/a/{number}", "fail", ["RT-04"], **wrong(), **copied) for number in range(12)]
    lines += [observation("runtime/sums/b", "fail", ["RT-05"], **wrong(), **other)]
    lines += [observation(f"runtime/c/a/{number}", clauses=["RT-06"], **other) for number in range(60)]
    (sentence,) = sentences(causes(build(lines)))
    assert sentence == (
        "13 cases: a wrong value, 12 of them with tessMemcpyAsync and kind=2 (none with it passes): the bytes"
    )


def test_ways_of_going_wrong_are_not_mixed(build, observation, lacking):
    status = wrong(kind="status", expected="TESS_ERR_INVALID_VALUE", actual="returned a result")
    refused = wrong(kind="returns", expected="a result", actual="rejected in phase call with TESS_ERR_INTERNAL: no")
    lines = [lacking(f"ir/l/{number}", "language.lower") for number in range(7)]
    lines += [observation("ir/a/a", "fail", **status), observation("ir/b/a", "fail", **refused)]
    lines += [observation("ir/c/a", "crash", reason="the process ended by SIGSEGV"), observation("ir/d/a", "hang")]
    assert sentences(causes(build(lines))) == [
        "1 case: acceptance where TESS_ERR_INVALID_VALUE is due, all of clause RT-10.1-01",
        "1 case: a legal call or program is refused with TESS_ERR_INTERNAL, all of clause RT-10.1-01",
        "1 case: the implementation ends in execute (SIGSEGV)",
        "1 case: execute does not answer in time",
        "7 cases: language.lower is not implemented",
    ]


def test_a_cause_that_blocks_others_stands_before_one_with_more_failures(build, observation):
    lines = [observation(f"ir/a/{number}", "fail", ["RT-05"], **wrong()) for number in range(3)]
    refused = wrong(kind="returns", expected="a result", actual="rejected in phase call with TESS_ERR_INTERNAL: no")
    lines += [observation("runtime/legal-calls/tesslaunch", "fail", ["RT-04"], **refused)]
    leaning = {"leans": ["runtime/legal-calls/tesslaunch"]}
    lines += [observation(f"runtime/b/{number}", "fail", ["RT-04"], **refused, **leaning) for number in range(5)]
    first, second = causes(build(lines))
    assert first.sentence().startswith("1 case, and 5 blocked by it: a legal call or program is refused with TESS_ERR")
    assert second.sentence().startswith("3 cases: a wrong value")


def test_an_implementation_that_did_not_start_has_no_causes(not_started):
    assert causes(not_started) == []


def test_the_smallest_case_is_the_one_with_the_fewest_calls(build, observation):
    line = observation("ir/b/a", "fail", **wrong())
    lines = [observation("ir/a/a", "fail", **wrong(), exchanges=line["exchanges"] * 3), line]
    (cause,) = causes(build(lines))
    assert cause.smallest["case"] == "ir/b/a"


def test_what_hex_digits_tell_is_found_as_in_any_text():
    draw = random.Random(38)
    for _ in range(2000):
        text = "".join(draw.choices("bfbf0123456789acde", k=draw.randrange(60)))
        assert _HEX.fullmatch(text) and _TOLD_IN_HEX.findall(text) == _TOLD.findall(text)


def test_traits_are_values_thresholds_and_what_a_program_has():
    tensor = Tensor("bf16", (3, 100), bytes(600))
    params = {"bytes": 300, "kind": 2, "stream": 1 << 60, "flags": [1, True], "x": tensor, "name": "ring"}
    source = 'module m { func f(a: tensor<4xfp16>) { dist.all_reduce(op.sum(a)) @{op="max"}; } }'
    exchanges = [Exchange("a.f", params, Returned({}), 0.0), Exchange("a.g", {"source": source}, Returned({}), 0.0)]
    assert traits(exchanges) == [
        "a.f",
        "a.f bytes>=256",
        "a.f bytes>=256, no multiple of 64",
        "a.f bytes>=32",
        "a.f bytes>=32, no multiple of 64",
        "a.f elements of x>=256",
        "a.f elements of x>=256, no multiple of 64",
        "a.f elements of x>=32",
        "a.f elements of x>=32, no multiple of 64",
        "a.f flags=1",
        "a.f flags=true",
        "a.f kind=2",
        "a.f name=ring",
        "a.f number of flags=2",
        "a.f x:bf16",
        "a.g",
        "a.g dist.all_reduce",
        "a.g fp16",
        "a.g op.sum",
    ]


# `clauses coverage --report` counts what a run has judged beside what the tests are tagged with.

Run = Callable[[Sequence[dict[str, Any]]], Any]


@pytest.fixture
def counted(build: Any, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(lines: Sequence[dict[str, Any]]) -> Any:
        assert main(["clauses", "coverage", "--json", "--report", str(build(lines).path.parent)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_a_clause_is_judged_by_its_main_effect_and_by_a_failure(counted: Run, observation: Any) -> None:
    actual = counted(
        [
            observation("runtime/a", clauses=["RT-10.1-01"]),
            observation("runtime/b", clauses=["RT-10.1-02"], judges=["refusal"]),
            observation("runtime/c", "fail", clauses=["RT-10.1-03"]),
            observation("runtime/d", "unsupported", clauses=["RT-10.1-04"]),
            observation("runtime/e", clauses=["LANG-04-01"]),
        ]
    )
    assert actual["sections"]["runtime_abi"]["10.1"]["judged"] == 2
    assert actual["documents"]["language_ir"]["judged"] == 1
    assert (actual["total"]["judged"], actual["levels"]["MUST"]["judged"]) == (3, 3)
    assert actual["total"]["tested"] > 1000


def test_without_a_report_nothing_is_said_of_what_was_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses", "coverage", "--json"]) == 0
    assert "judged" not in json.loads(capsys.readouterr().out)["total"]


def test_a_report_without_its_seal_is_refused(
    killed: Any, observation: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path: Path = killed([observation("runtime/a")])
    assert main(["clauses", "coverage", "--report", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_the_table_has_a_column_of_what_was_judged(
    build: Any, observation: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    report = build([observation("runtime/a", clauses=["RT-10.1-01"])])
    assert main(["clauses", "coverage", "--report", str(report.path)]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[-2:] == ["untested", "judged"]
    assert [row.split()[-1] for row in rows if row.startswith(("runtime_abi", "language_ir", "total"))] == [
        "1",
        "0",
        "1",
    ]
