"""`clauses coverage --report` counts what a run has judged beside what the tests are tagged with."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main

Run = Callable[[Sequence[dict[str, Any]]], Any]


@pytest.fixture
def counted(build: Any, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(lines: Sequence[dict[str, Any]]) -> Any:
        assert main(["clauses", "coverage", "--json", "--report", str(build(lines).path.parent)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_a_clause_is_judged_by_its_main_effect_and_by_a_failure(counted: Run, observation: Any) -> None:
    found = counted(
        [
            observation("runtime/a", clauses=["RT-10.1-01"]),
            observation("runtime/b", clauses=["RT-10.1-02"], judges=["refusal"]),
            observation("runtime/c", "fail", clauses=["RT-10.1-03"]),
            observation("runtime/d", "unsupported", clauses=["RT-10.1-04"]),
            observation("runtime/e", clauses=["LANG-04-01"]),
        ]
    )
    assert found["sections"]["runtime_abi"]["10.1"]["judged"] == 2
    assert found["documents"]["language_ir"]["judged"] == 1
    assert (found["total"]["judged"], found["levels"]["MUST"]["judged"]) == (3, 3)
    assert found["total"]["tested"] > 1000


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
