"""libtessera, the reference as a C library: its verdicts are those of the reference in process and over the wire.

A sample of the chapters `runtime` and `abi`; the whole is `reports/libtessera`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tessera_conformance.reports.journal import read

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = (
    "abi/test_kernel_convention.py",
    "runtime/test_contexts.py",
    "runtime/test_graphs.py",
    "runtime/test_last_error.py",
    "runtime/test_policy.py",
)
HALF = "--shard=1/2"
"""Of the cases of these files, by the digests of their ids."""

pytestmark = pytest.mark.slow


def verdicts(folder: Path, implementation: str) -> dict[str, str]:
    """The verdict of every case of the sample."""
    places = [str(ROOT / "conformance" / each) for each in SAMPLE]
    options = ["-q", "-p", "no:cacheprovider", f"--impl={implementation}", f"--report-dir={folder}", HALF, *places]
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, capture_output=True, check=False)
    return {line["case"]: line["verdict"] for line in read(folder / "report.jsonl").observations}


def test_the_verdicts_are_the_same_in_process_through_c_and_over_the_wire(libtessera, tmp_path):
    """Every case passes in all three."""
    library = libtessera / "lib/libtessera.so"
    served = f"rpc:{sys.executable} -m tessera_conformance serve cabi:{library}"
    found = {
        how: verdicts(tmp_path / how, implementation)
        for how, implementation in (("process", "reference"), ("c", f"cabi:{library}"), ("wire", served))
    }
    assert found["c"] == found["process"]
    assert found["wire"] == found["process"]
    assert Counter(found["process"].values())["pass"] > 50
