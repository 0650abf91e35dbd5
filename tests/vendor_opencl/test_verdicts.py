"""The runtime on OpenCL against the suite, on one device and on four."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.reports.journal import read

from .conftest import ROOT, SOURCES

pytestmark = pytest.mark.slow

FILES = [
    f"conformance/runtime/test_{name}.py" for name in ("copies", "events_of_meshes", "launches", "collective_results")
]
"""A sixteenth of what the report is of: `reports/implementations/pocl.md`."""


@pytest.mark.parametrize(("devices", "passes"), [(1, 90), (4, 200)])
def test_nothing_of_the_files_counts_against_it(
    build: Callable[..., Path], tmp_path: Path, devices: int, passes: int
) -> None:
    implementation = f"cabi:{build()},description={SOURCES / 'description.toml'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES, f"--impl={implementation}"]
    environment = {**os.environ, "POCL_DEVICES": " ".join(["pthread"] * devices), "POCL_CACHE_DIR": str(tmp_path)}
    report = [f"--report-dir={tmp_path / 'report'}"]
    done = subprocess.run([*command, *report], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    verdicts = Counter(line["verdict"] for line in read(tmp_path / "report" / "report.jsonl").observations)
    assert set(verdicts) <= {"pass", "unsupported", "inapplicable"}
    assert verdicts["pass"] >= passes
