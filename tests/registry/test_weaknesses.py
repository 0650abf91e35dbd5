"""The rules that mark clauses as weakly judged, and the committed reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry.cases import case_index
from tessera_conformance.registry.load import load_registry
from tessera_conformance.reports.journal import UnreadableReport
from tessera_conformance.reports.weaknesses import Reasons, facts_of, facts_of_index, weaknesses

REGISTRY = load_registry(clauses_directory())


def tensor(dtype: str, *shape: int) -> Mapping[str, Any]:
    return {"$tensor": {"dtype": dtype, "shape": list(shape)}}


def case(clause: str, *params: Any, kind: str = "bits", needs: Sequence[str] = (), method: str = "abi.pack") -> Any:
    exchanges = [{"method": method, "params": {"inputs": list(params)}}]
    return {
        "record": "observation",
        "verdict": "pass",
        "case": "a/case",
        "clauses": [clause],
        "needs": list(needs),
        "checks": [{"kind": kind}],
        "exchanges": exchanges,
    }


def marks(tmp_path: Path, *lines: Any) -> set[str]:
    path = tmp_path / "report.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return {weakness.rule for weakness in weaknesses(REGISTRY, facts_of(REGISTRY, [path]), Reasons(()))}


PRODUCT = "RT-04.7-05"
WIDE = case(PRODUCT, tensor("fp32", 40, 60), tensor("bf16", 3))


@pytest.mark.parametrize(
    ("rule", "weak", "strong"),
    [
        ("square", case(PRODUCT, tensor("fp32", 50, 50), tensor("bf16", 9)), WIDE),
        ("small", case(PRODUCT, tensor("fp32", 9, 7), tensor("bf16", 9)), WIDE),
        ("small", case(PRODUCT, "let A: tensor<9x7xfp32>", tensor("bf16", 9)), WIDE),
        ("one-member", case(PRODUCT, tensor("fp32", 40, 60)), WIDE),
        ("acceptance", case(PRODUCT, kind="accepts"), WIDE),
        ("feature", case(PRODUCT, kind="accepts", needs=["casts"]), case(PRODUCT)),
        (
            "one-member",
            case("RT-07-08", method="runtime.tessAllReduce"),
            case("RT-07-08", method="runtime.tessAllGather"),
        ),
    ],
)
def test_a_rule_marks_a_clause_until_a_case_asks_more(tmp_path: Path, rule: str, weak: Any, strong: Any) -> None:
    assert rule in marks(tmp_path, weak)
    assert rule not in marks(tmp_path, weak, strong)


def test_what_did_not_pass_does_not_count(tmp_path: Path) -> None:
    assert marks(tmp_path, WIDE | {"verdict": "fail"}) == set()


def test_a_report_of_digests_has_no_facts(tmp_path: Path) -> None:
    digests = {name: value for name, value in WIDE.items() if name != "exchanges"}
    with pytest.raises(UnreadableReport, match="--evidence=all"):
        marks(tmp_path, digests)


def test_every_reason_is_for_a_clause() -> None:
    reasons = Reasons.read(clauses_directory())
    patterns = [pattern for row in reasons.rows for pattern in row["clauses"]]
    assert [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in REGISTRY.clauses)] == []


def test_every_core_clause_has_a_case_without_a_feature_or_a_reason() -> None:
    reasons = Reasons.read(clauses_directory())
    actual = list(weaknesses(REGISTRY, facts_of_index(REGISTRY, case_index()), reasons))
    assert [weakness.clause for weakness in actual if not weakness.reason] == []
    assert reasons.idle(actual, ("feature",)) == []
