"""The command `tessera-conformance diagnose`, and the page with the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.commands import diagnose as command
from tessera_conformance.commands.diagnose import catalogue_table
from tessera_conformance.diagnosis.catalogue import catalogue
from tessera_conformance.locations import clauses_directory
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.registry import load_registry
from tessera_conformance.reports.journal import Report
from tessera_conformance.vectors import Vector

ROOT = Path(__file__).parents[2]


def test_a_report_is_diagnosed(
    vendor: Callable[..., ModuleType],
    chosen: Callable[..., list[Vector]],
    judged: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = vendor("summed", "total(rows)", "fold(rows)")
    vectors = [each for each in chosen("sum", "ir/reductions") if each.name.startswith("fp32/sum/n-")]
    report = Report(Path("report.jsonl"), {}, {}, judged(library, vectors), None, None)
    monkeypatch.setattr(command, "read", lambda path: report)
    assert main(["diagnose", "report.jsonl", "--cases"]) == 0
    first, *cases = capsys.readouterr().out.splitlines()
    assert first.endswith(" (LANG-10-06)") and "sum cases: bits equal a left fold of the sum in fp32" in first
    assert cases == sorted(cases) and cases[0].startswith("  ir/reductions/golden/fp32/sum/n-")


def test_a_file_that_is_no_report_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_the_page_has_the_catalogue() -> None:
    """Written by `tessera-conformance diagnose --catalogue`."""
    page = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    assert page.endswith("\n".join(catalogue_table()) + "\n")


def test_every_hypothesis_names_operations_and_a_clause_that_exist() -> None:
    clauses = load_registry(clauses_directory()).clauses
    for each in catalogue():
        assert each.clause in clauses, each.name
        assert {f"oracle.{name}" for name in each.operations} <= FUNCTIONS.keys(), each.name
        assert each.departure.changed, each.name


def test_two_hypotheses_of_an_operation_differ() -> None:
    told = [(operation, each.departure) for each in catalogue() for operation in each.operations]
    assert len(told) == len(set(told))
