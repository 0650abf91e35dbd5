"""One verdict through every door: `pytest conformance` in a checkout and `tessera-conformance run` report the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tessera_conformance.reports.journal import Report, read, without_run

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).parent / "fakes"
DOORS = {
    "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    "run": [sys.executable, "-m", "tessera_conformance", "run"],
}
PLACES = [f"conformance/ir/test_{name}.py" for name in ("softmax", "grammar", "fuzz")]
CASES = "(test_softmax and (fp32 or bf16)) or (test_grammar and value) or (test_fuzz and (mistake or text) and 10)"
NOT_IMPLEMENTED = "claimed, but the implementation answered that it does not support language.execute"


def reported(door: str, implementation: str, directory: Path) -> Report:
    paths = [ROOT / "conformance" / "harness", ROOT / "reference", FAKES]
    options = [f"--impl=py:doors:{implementation}", f"--report-dir={directory}", "-k", CASES, *PLACES]
    done = subprocess.run(
        [*DOORS[door], *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (directory / "report.jsonl").exists(), done.stdout + done.stderr
    return read(directory / "report.jsonl")


@pytest.mark.parametrize(
    ("implementation", "verdicts"),
    [
        ("Warns", {"pass"}),
        pytest.param("Untidy", {"pass"}, marks=pytest.mark.slow),
        pytest.param("Partial", {"pass", "fail"}, marks=pytest.mark.slow),
        pytest.param("Wrong", {"pass", "fail", "crash"}, marks=pytest.mark.slow),
    ],
)
def test_both_doors_report_the_same(implementation: str, verdicts: set[str], tmp_path: Path) -> None:
    """A case that an answer is missing for says so, and names no property that the answers lack."""
    reports = {door: reported(door, implementation, tmp_path / door) for door in DOORS}
    found = [[json.dumps(without_run(line)) for line in report.observations] for report in reports.values()]
    assert len(found[0]) > 40
    assert found[0] == found[1]
    assert len({report.claim for report in reports.values()}) == 1
    counted = Counter(line["verdict"] for line in reports["run"].observations)
    assert set(counted) == verdicts, counted
    reasons = {line["reason"] for line in reports["run"].observations if line["verdict"] == "fail"}
    assert (reasons == {NOT_IMPLEMENTED}) == (implementation == "Partial"), reasons
