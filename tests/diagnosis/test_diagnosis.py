"""The diagnosis of failing arithmetic: the hypothesis whose bits are the observed ones; command and catalogue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.diagnosis import diagnose, search
from tessera_conformance.diagnosis.catalogue import catalogue
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.registry import load_registry
from tessera_conformance.reports import journal
from tessera_conformance.reports.journal import Report
from tessera_conformance.vectors import Vector

Lines = list[dict[str, Any]]
Vendor = Callable[..., ModuleType]
Chosen = Callable[..., list[Vector]]
Judged = Callable[..., Lines]


def test_a_left_fold_of_softmax_is_named_with_the_clause_that_it_breaks(
    vendor: Vendor, chosen: Chosen, judged: Judged
) -> None:
    library = vendor("softmax", "denominator = total(powers)", "denominator = fold(powers)")
    lines = judged(library, [vector for vector in chosen("softmax", "ir/softmax") if "fp32" in vector.name])
    failing = [line["case"] for line in lines if line["verdict"] == "fail"]
    (actual,) = diagnose(lines)
    assert (actual.operation, actual.hypothesis, actual.clauses[0]) == ("softmax", "fold", "LANG-10-06")
    assert list(actual.cases) == sorted(failing)
    assert actual.sentence == (
        f"{len(failing)} of {len(failing)} softmax cases: bits equal a left fold of the sum in fp32; add pairwise, or "
        "claim the level deterministic and declare this order (LANG-10-06)"
    )


def test_what_is_right_has_no_diagnosis(vendor: Vendor, chosen: Chosen, judged: Judged) -> None:
    lines = judged(vendor(), chosen("softmax", "ir/softmax"))
    assert {line["verdict"] for line in lines} == {"pass", "unsupported"}
    assert diagnose(lines) == []


def test_a_hypothesis_that_few_bits_tell_from_the_right_answer_is_not_told(
    vendor: Vendor, chosen: Chosen, judged: Judged
) -> None:
    library = vendor("softmax", "denominator = total(powers)", "denominator = fold(powers)")
    lines = judged(library, [vector for vector in chosen("softmax", "ir/softmax") if vector.name == "fp32/axis--1"])
    (actual,) = diagnose(lines)
    assert (actual.hypothesis, actual.evidence) == ("", 0)
    assert actual.sentence.startswith("1 of 1 softmax case: too few elements differ to name a cause (what fits: fold")


def test_where_nothing_fits_the_distances_and_places_are_told(vendor: Vendor, chosen: Chosen, judged: Judged) -> None:
    library = vendor("matmul", "fold([start, *products])", "fold([start, *products]) * left.dtype.type(1.25)")
    lines = judged(library, [vector for vector in chosen("matmul", "ir/matmul") if vector.name == "fp32/small"])
    (actual,) = diagnose(lines)
    assert actual.hypothesis == ""
    assert actual.sentence == (
        "1 of 1 matmul case: nothing in the catalogue has all these bits; elements off by ULP: 3 by more; "
        "3 of 4 elements differ; smallest operands [2, 3] and [3, 2] fp32"
    )


@pytest.mark.parametrize("via", ["operations", "programs"])
def test_a_program_is_known_by_its_golden_vector(via: str, vendor: Vendor, chosen: Chosen, judged: Judged) -> None:
    library = vendor("summed", "total(rows)", "fold(rows[::-1])")
    vectors = [
        candidate
        for candidate in chosen("sum", "ir/reductions")
        if "fp32/sum/n-" in candidate.name or "order" in candidate.name
    ]
    lines = judged(library, vectors)
    if via == "programs":
        for line, vector in zip(lines, vectors, strict=True):
            inputs = {name: x.to_message() for name, x in vector.call.inputs.items()}
            params = dict(vector.call.params) | {"inputs": inputs}
            line["exchanges"][0].update(method="language.execute", params=params)
    (actual,) = diagnose(lines)
    assert (actual.operation, actual.hypothesis) == ("sum", "backwards")


def test_a_cause_gives_up_after_so_many_steps_and_says_so(
    vendor: Vendor, chosen: Chosen, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_STEPS", 500)
    library = vendor("summed", "total(rows)", "fold(rows[::-1])")
    lines = judged(library, [vector for vector in chosen("sum", "ir/reductions") if "fp32/sum/n-" in vector.name])
    (actual,) = diagnose(lines)
    assert actual.hypothesis == ""
    assert actual.says.endswith("; the diagnosis gave up after 500 steps")


def test_questions_that_are_all_large_count_once(
    vendor: Vendor, chosen: Chosen, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = vendor("summed", "total(rows)", "fold(rows[::-1])")
    lines = judged(library, [vector for vector in chosen("sum", "ir/reductions") if "fp32/sum/n-" in vector.name])
    small = diagnose(lines)
    monkeypatch.setattr(search, "MOST_WORK", 0)
    assert diagnose(lines) == small


@pytest.mark.parametrize(
    "broken", [{"params": {}}, {"observation": {"returned": {}}}, {"observation": {"returned": 3}}]
)
def test_exchanges_that_no_run_writes_are_left_out(
    broken: dict[str, Any], vendor: Vendor, chosen: Chosen, judged: Judged
) -> None:
    library = vendor("summed", "total(rows)", "fold(rows[::-1])")
    lines = judged(library, [vector for vector in chosen("sum", "ir/reductions") if vector.name == "fp32/sum/order"])
    lines[0]["exchanges"][0].update(broken)
    assert diagnose(lines) == []


def test_a_report_is_diagnosed(
    vendor: Callable[..., ModuleType],
    chosen: Callable[..., list[Vector]],
    judged: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = vendor("summed", "total(rows)", "fold(rows)")
    vectors = [vector for vector in chosen("sum", "ir/reductions") if vector.name.startswith("fp32/sum/n-")]
    report = Report(Path("report.jsonl"), {}, {}, judged(library, vectors), None, None)
    monkeypatch.setattr(journal, "read", lambda path: report)
    assert main(["diagnose", "report.jsonl", "--cases"]) == 0
    first, *cases = capsys.readouterr().out.splitlines()
    assert first.endswith(" (LANG-10-06)") and "sum cases: bits equal a left fold of the sum in fp32" in first
    assert cases == sorted(cases) and cases[0].startswith("  ir/reductions/golden/fp32/sum/n-")


def test_a_file_that_is_no_report_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_every_hypothesis_names_operations_and_a_clause_that_exist() -> None:
    clauses = load_registry(clauses_directory()).clauses
    for hypothesis in catalogue():
        assert hypothesis.clause in clauses, hypothesis.name
        assert {f"oracle.{name}" for name in hypothesis.operations} <= FUNCTIONS.keys(), hypothesis.name
        assert hypothesis.departure.changed, hypothesis.name


def test_two_hypotheses_of_an_operation_differ() -> None:
    told = [(operation, hypothesis.departure) for hypothesis in catalogue() for operation in hypothesis.operations]
    assert len(told) == len(set(told))
