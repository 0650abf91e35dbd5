"""A limiter of credits and a packer of wires, neither made from the reference: each is judged for what it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.reports.journal import read

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = Path(__file__).parent / "foreign"


def observed(implementation: str, folder: Path, *files: str) -> list[dict[str, Any]]:
    """The verdicts of the chapter on an implementation in `foreign/`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"conformance/collectives/{file}" for file in files or ("",)]
    command += [f"--impl=py:{implementation}", f"--report-dir={folder}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOREIGN), *sys.path])}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return list(read(folder / "report.jsonl").observed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("piece", "prefix"), [("credit_limiter:Limiter", "credits"), ("wire_packer:Packer", "packing")]
)
def test_nothing_counts_against_a_piece(piece, prefix, tmp_path):
    lines = observed(piece, tmp_path)
    assert {line["verdict"] for line in lines} == {"pass", "unsupported", "inapplicable"}
    own = {line["case"] for line in lines if line["case"].startswith(f"collectives/{prefix}/")}
    assert own
    assert own == {line["case"] for line in lines if line["verdict"] == "pass"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("piece", "clauses"),
    [
        ("defects:Exceeds", {"COLL-04.2-03"}),
        ("defects:Stubborn", {"COLL-04.2-04"}),
        ("defects:Wide", {"COLL-02.4-05"}),
        ("defects:Swapped", {"COLL-02.4-01"}),
    ],
)
def test_a_defect_fails_its_clause_alone(piece, clauses, tmp_path):
    lines = observed(piece, tmp_path, "test_credits.py", "test_packing.py")
    failed = [line for line in lines if line["verdict"] == "fail"]
    assert failed
    assert {clause for line in failed for clause in line["clauses"]} == clauses
