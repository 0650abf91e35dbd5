"""The time that the harness adds to each case in process, beside bare pytest, and how much is computed twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measurement import Measurement, cpu_of_children, in_turns

ROOT = Path(__file__).parents[1]
CASES = 1000
WITH_HARNESS = """
import os
import pytest
from tessera_conformance.marks import clause
from tessera_conformance.tensors import Tensor
ONE = Tensor.from_words("fp32", (1,), [0x3F800000])
@clause("LANG-02-01")
@pytest.mark.parametrize("i", range(int(os.environ["CASES"])))
def test_case(impl, check, i):
    value = check.returns(impl.language.execute(source="", function="f", inputs={"A": ONE}))
    check.bits(value["outputs"][0], ONE)
"""
BARE = """
import os
import pytest
ONE = b"1234"
@pytest.mark.parametrize("i", range(int(os.environ["CASES"])))
def test_case(tmp_path_factory, i):
    assert bytes(ONE) == ONE
"""


def measure() -> Measurement:
    """Whole processes, one case and many, so that start-up and import cancel out."""
    ours_one, peer_one = of_cases(1)
    ours, peer = of_cases(CASES)
    ours, peer = (ours - ours_one) / (CASES - 1), (peer - peer_one) / (CASES - 1)
    return Measurement("harness overhead per case", ours, "bare pytest", peer, (ours - peer) * 1e3, "ms", 1)


def of_cases(number: int, rounds: int = 5) -> tuple[float, float]:
    """Return the seconds of a run of so many cases, and of so many tests of bare pytest."""
    with tempfile.TemporaryDirectory() as scratch:
        checkout, bare = Path(scratch) / "checkout", Path(scratch) / "bare"
        _make_checkout(checkout)
        bare.mkdir()
        (bare / "pytest.ini").write_text("[pytest]\n")
        (bare / "test_bare.py").write_text(BARE)

        def run(directory: Path, *options: str) -> None:
            path = f"conformance/harness:{ROOT / 'benchmarks'}"
            environment = {**os.environ, "PYTHONPATH": path, "CASES": str(number)}
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *options]
            subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)

        return in_turns(lambda: run(checkout, "conformance"), lambda: run(bare), rounds, cpu_of_children)


def measure_recomputation() -> Measurement:
    """The times that a character of the report is encoded; registry and schemas are read once for all cases."""
    with tempfile.TemporaryDirectory() as scratch:
        checkout, counts = Path(scratch) / "checkout", Path(scratch) / "counts.json"
        _make_checkout(checkout)
        path = f"conformance/harness:{ROOT / 'benchmarks'}"
        environment = {**os.environ, "PYTHONPATH": path, "TESSERA_COUNTS": str(counts), "CASES": str(CASES)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "recomputation"]
        command += ["--evidence=all", "conformance"]
        subprocess.run(command, cwd=checkout, env=environment, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(counts.read_text(encoding="utf-8"))
    files = [*(ROOT / "conformance" / "clauses").glob("*.toml"), *(ROOT / "conformance").rglob("interface.toml")]
    assert found["tables"] <= len(files), found
    assert found["schemas"] == 1, found
    encoded = found["encoded"] / found["report"]
    return Measurement("harness encodings of a report", encoded, "a report written once", 1.0, encoded, "times", 2)


def _make_checkout(directory: Path) -> None:
    shutil.copytree(ROOT / "conformance" / "harness", directory / "conformance" / "harness")
    shutil.copytree(ROOT / "conformance" / "clauses", directory / "conformance" / "clauses")
    shutil.copytree(ROOT / "schemas", directory / "schemas")
    shutil.copy(ROOT / "conformance" / "conftest.py", directory / "conformance")
    for table in (ROOT / "conformance").rglob("interface.toml"):
        copy = directory / table.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(table, copy)
    (directory / "conformance" / "ir" / "test_many.py").write_text(WITH_HARNESS)
    options = "--import-mode=importlib --impl=py:echo_adapter:Echo"
    (directory / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")
