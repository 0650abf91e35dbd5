"""A verdict names the rule that accepted or refused, in the records, in the report and in what people are shown."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.check import Check, CheckFailed, Unanswered
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.reports.journal import Report
from tessera_conformance.strength.matrix import level_of
from tessera_conformance.strength.violation import Violation
from tessera_reference.adapter import make

Judged = Callable[[Any, str, str], Check]
LEFT_FOLD, EXP, PRODUCT = (
    "ir/matmul/fp32/left-fold",
    "ir/functions/fp32/exp/counted",
    "ir/elementwise/fp32/multiply/edges",
)

ACCEPTED = [
    ("strict", LEFT_FOLD, "strict: the frozen bits"),
    (
        "deterministic",
        LEFT_FOLD,
        "deterministic: the declared tree fold (products rounded, in fp32, nearest_even), replayed",
    ),
    ("deterministic", LEFT_FOLD, "deterministic: the same bits when asked again"),
    ("deterministic", EXP, "deterministic: exp correctly rounded, as declared"),
    ("deterministic", PRODUCT, "deterministic: one rounding"),
    ("deterministic", "ir/reductions/fp32/max/counted", "deterministic: one right answer"),
    (
        "deterministic",
        "ir/softmax/fp32/n-5",
        "deterministic: within the bound (softmax of 5: differences, exponentials",
    ),
    ("fast", LEFT_FOLD, "fast: within the bound (any order of"),
    ("fast", EXP, "fast: within 0.5 ulp of exp, subnormals kept or flushed"),
    ("fast", PRODUCT, "fast: within the bound (one rounding)"),
    ("fast", "ir/elementwise/fp32/less/edges", "fast: one right answer, subnormals kept or flushed"),
    ("fast", "ir/reductions/int32/sum/wrapping", "fast: one right answer"),
]

REFUSED = [
    (
        "reordered_products",
        "deterministic",
        LEFT_FOLD,
        r"deterministic: the declared tree fold \(.*\), replayed: element",
    ),
    (
        "other_accumulator",
        "deterministic",
        "ir/matmul/bf16/left-fold",
        r"the declared tree fold \(.* in fp32, .*replayed",
    ),
    ("changing_tree", "deterministic", "ir/reductions/fp32/sum/order", "the declared tree pairwise"),
    ("NothingDeclared", "deterministic", LEFT_FOLD, "numerics.declared"),
    ("TreeOfOtherSize", "deterministic", LEFT_FOLD, "the declared order of matmul fits the operands: the tree has"),
    ("RanksDiffer", "deterministic", "collectives/all_reduce/fp32/sum/ranks-7", "the declared tree pairwise"),
    (
        "less_accurate",
        "deterministic",
        EXP,
        r"deterministic: within 1 ulp of exp: expected element \d+: .* found off by",
    ),
    ("special_values", "deterministic", "ir/functions/fp32/exp/edges", "deterministic: special values of exp: element"),
    ("undeclared_flush", "deterministic", PRODUCT, "deterministic: one rounding: element"),
    ("now_and_then", "deterministic", EXP, "deterministic: the same bits when asked again"),
    (
        "tf32",
        "fast",
        LEFT_FOLD,
        r"fast: within the bound \(any order of \d+ products, gamma\(\d+\)\): expected element",
    ),
    ("far_off", "fast", EXP, "fast: within 4 ulp of exp, subnormals kept or flushed: expected element"),
    ("nan_of_a_number", "fast", EXP, "fast: within 4 ulp of exp.* not finite"),
]


def three_times(judged: Judged, adapter: Any, level: str, vector: str) -> None:
    """Some violate on a later call."""
    for _ in range(3):
        judged(adapter, level, vector)


@pytest.mark.slow
@pytest.mark.parametrize(("level", "vector", "rule"), ACCEPTED)
def test_the_rule_that_accepts_is_recorded(judged: Judged, level: str, vector: str, rule: str) -> None:
    said = [record.what for record in judged(make(), level, vector).records if record.passed]
    assert any(what.startswith(rule) for what in said), said


@pytest.mark.slow
@pytest.mark.parametrize(("violator", "level", "vector", "said"), REFUSED)
def test_the_rule_that_refuses_is_named(
    judged: Judged, violators: Mapping[str, Violation], violator: str, level: str, vector: str, said: str
) -> None:
    with violators[violator].broken() as adapter, pytest.raises((CheckFailed, Unanswered), match=said):
        three_times(judged, adapter, level, vector)


def test_every_violator_is_judged_at_the_level_that_it_claims(violators: Mapping[str, Violation]) -> None:
    registry = load_registry(clauses_directory())
    levels = {name: level_of(violation, registry) for name, violation in violators.items()}
    assert set(levels.values()) == {"deterministic", "fast"}
    assert (levels["tf32"], levels["reordered_products"]) == ("fast", "deterministic")


@pytest.mark.slow
def test_report_and_summary_show_the_rule(tmp_path: Path, run_suite: Callable[..., tuple[Report, str]]) -> None:
    """A fast implementation that claims more than it does: which rule refused, and which accepted its neighbour."""
    report, told = run_suite(
        "py:tessera_conformance.chapters.ir.variants.levels:Quick",
        "deterministic",
        tmp_path,
        "-k",
        "test_golden and fp32 and (sum or softmax)",
        "ir/test_reductions.py",
        "ir/test_softmax.py",
        "--evidence=all",
    )
    failed = [line for line in report.observations if line["verdict"] == "fail"]
    passed = [line for line in report.observations if line["verdict"] == "pass"]
    assert failed, told
    for line in failed:
        refused = [each["what"] for each in line["checks"] if not each["passed"]]
        assert line["reason"].startswith(refused[0])
        assert refused[0].startswith("deterministic: ")
    assert any("within the bound" in each["what"] for line in passed for each in line["checks"])
    assert "deterministic: the declared tree (" in " ".join(told.split())
    assert "deterministic: the same bits when asked again" in _details(tmp_path / "index.html")


def _details(page: Path) -> str:
    """What the page of a report shows of its cases."""
    found = re.search(r'id="details">([^<]*)<', page.read_text(encoding="utf-8"))
    assert found is not None
    return "\n".join(gzip.decompress(base64.b64decode(block)).decode() for block in found[1].split("\n"))
