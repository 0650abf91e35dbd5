"""Clauses brought to one outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tessera_conformance.reports.outcomes import (
    by_document_and_level,
    clause_results,
    judgeable,
    tally,
    unknown_clauses,
)


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
