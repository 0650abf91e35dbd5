"""libtessera, the reference as a C library: its verdicts are the same over the wire, and those of the reference.

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
QUARTER = "--shard=1/4"
"""Of the cases of these files, by the digests of their ids."""
NOT_CLAIMED = {"runtime/policy/with-fast-math-the-result-stays-within-the-bound": "unsupported"}

pytestmark = pytest.mark.slow


def verdicts(folder: Path, implementation: str) -> dict[str, str]:
    """The verdict of every case of the sample."""
    places = [str(ROOT / "conformance" / each) for each in SAMPLE]
    options = ["-q", "-p", "no:cacheprovider", f"--impl={implementation}", f"--report-dir={folder}", QUARTER, *places]
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, capture_output=True, check=False)
    return {line["case"]: line["verdict"] for line in read(folder / "report.jsonl").observations}


def test_the_verdicts_are_those_of_the_reference_through_c_and_over_the_wire(libtessera, tmp_path):
    """In process every case passes but that of fast mathematics, or the tests of the suite fail."""
    library = libtessera / "lib/libtessera.so"
    served = f"rpc:{sys.executable} -m tessera_conformance serve cabi:{library}"
    found = {
        how: verdicts(tmp_path / how, implementation)
        for how, implementation in (("c", f"cabi:{library}"), ("wire", served))
    }
    assert found["wire"] == found["c"]
    assert {case: verdict for case, verdict in found["c"].items() if verdict != "pass"} == NOT_CLAIMED
    assert Counter(found["c"].values())["pass"] > 40
