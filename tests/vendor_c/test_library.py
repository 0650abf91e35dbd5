"""The native runtime as its Makefile builds it: what it exports, and what the suite says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT

LIBRARY = Path("lib") / "libacme_tessera.so"
CHAPTERS = ("conformance/runtime", "conformance/abi")
EVERY = 12
"""So many files of the chapters for one that is run; `reports/vendor_c` is of all."""
PASSES = 45
"""Fewer would mean that cases were left out."""


def test_it_exports_the_interface_and_nothing_else(build: Callable[..., Path]) -> None:
    command = ["nm", "-D", "--defined-only", "-P", str(build() / LIBRARY)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[0] for line in listed.splitlines()}
    assert {"tessInit", "tessProfilerStop", "tessGetApi", "tessxHello"} <= names
    assert {name for name in names if not name.startswith("tess")} == set()


def test_the_headers_stand_beside_it(build: Callable[..., Path]) -> None:
    assert {path.name for path in (build() / "include").iterdir()} == {"tessera.h", "tessera_ext.h"}


@pytest.mark.slow
def test_no_case_of_its_document_counts_against_it(build: Callable[..., Path], tmp_path: Path) -> None:
    """Files of the chapters of the runtime document, at the level that it declares."""
    files = [path for chapter in CHAPTERS for path in sorted((ROOT / chapter).glob("test_*.py"))][::EVERY]
    command = [sys.executable, "-m", "pytest", "-q", *map(str, files), f"--impl=cabi:{build() / LIBRARY}"]
    done = subprocess.run([*command, f"--report-dir={tmp_path}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    lines = (tmp_path / "report.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = Counter(line["verdict"] for line in map(json.loads, lines) if "verdict" in line)
    assert set(verdicts) <= {"pass", "unsupported", "inapplicable"}
    assert verdicts["pass"] >= PASSES
