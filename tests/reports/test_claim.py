"""What a report claims, of which MUST clauses, and in which words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tessera_conformance.reports.claim import ProductResult, product_results
from tessera_conformance.reports.journal import Report, read
from tessera_conformance.reports.summary import terminal_summary

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
    """Where one case of it needs access to ranks and another one a level, and neither is claimed."""
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
        ({}, False, ProductResult(passed=1)),
        ({"case": "ir/x/1"}, False, ProductResult()),
        ({"case": "runtime/1"}, False, ProductResult()),
        ({"needs": ["a"]}, False, ProductResult(passed=1)),
        ({"needs": ["a", "b"]}, False, ProductResult()),
        ({"methods": ["language.parse", "abi.compile"]}, False, ProductResult()),
        ({"methods": []}, False, ProductResult(passed=1)),
        ({"verdict": "crash"}, False, ProductResult(failed=1)),
        ({"verdict": "fail", "disposition": "other_reading"}, False, ProductResult(excused=1)),
        ({"verdict": "pass", "disposition": "unexpected_pass"}, False, ProductResult(failed=1)),
        ({"verdict": "unsupported", "cause": "feature"}, False, ProductResult(missing=1)),
        ({"verdict": "inapplicable", "cause": "blocked"}, True, ProductResult(missing=1)),
        ({"verdict": "inapplicable", "cause": "level"}, False, ProductResult()),
        (UNMET, False, ProductResult(missing=1)),
        (UNMET, True, ProductResult()),
    ],
)
def test_a_case_counts_for_a_product_by_its_id_its_needs_and_what_it_asked(observation, changes, single_device, result):
    plan = {"products": {"p": PRODUCT | {"single_device": single_device}}}
    line = observation(**{"case": "ir/1", **changes})
    assert product_results(plan, [line]) == {"p": result}


def test_a_product_is_whole_where_something_passed_and_nothing_failed_or_is_missing():
    assert ProductResult(passed=3, excused=1).whole
    for result in (ProductResult(excused=1), ProductResult(passed=3, failed=1), ProductResult(passed=3, missing=1)):
        assert not result.whole


def test_the_end_of_a_run_names_whole_products_and_those_within_reach(build, observation, registry):
    products = {
        "whole": PRODUCT,
        "near": PRODUCT | {"cases": ["ir/", "abi/"]},
        "far": PRODUCT | {"cases": ["abi/"]},
    }
    lines = [observation("ir/1"), observation("ir/2"), observation("abi/1", "fail"), observation("abi/2", "crash")]
    text = told(build(lines, products=products), registry)
    assert "profiles whole: whole (2 cases) near within reach: 2 of 4 cases pass, 2 fail" in text
    assert "far" not in text
    text = told(build(lines, products=products, complete=False), registry)
    assert "profiles whole in this run: 2 of 2 cases pass near in this run: 2 of 4 cases pass, 2 fail" in text
