"""Defects of the native runtime show as few causes, each with what it is about."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.reports.causes import causes
from tessera_conformance.reports.journal import read

from .conftest import ROOT

DEFECTS = {
    "copy_tail_lost": "tessMemcpyAsync and bytes>=256, no multiple of 64",
    "broadcast_from_rank_0": "tessBroadcast",
    "damaged_images_mismatch": "TESS_ERR_ABI_VERSION_MISMATCH where TESS_ERR_INVALID_VALUE is due",
    "negative_priority_refused": "refused with TESS_ERR_INVALID_VALUE",
}
"""Some of `defects.toml`, and what their cause says."""
FILES = ("copies", "memory", "collective_movement", "modules", "streams", "stream_order", "module_versions")


@pytest.mark.slow
def test_defects_fall_into_at_most_twice_as_many_causes(build: Callable[..., Path], tmp_path: Path) -> None:
    library = build() / "lib" / "libacme_tessera.so"
    files = [str(ROOT / "conformance" / "runtime" / f"test_{name}.py") for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", *files, f"--impl=cabi:{library}", f"--report-dir={tmp_path}"]
    environment = {**os.environ, "ACME_DEFECT": ",".join(DEFECTS)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = [cause.sentence() for cause in causes(read(tmp_path / "report.jsonl"))]
    assert found, done.stdout[-2000:]
    assert len(found) <= 2 * len(DEFECTS), "\n".join(found)
    for defect, words in DEFECTS.items():
        assert any(words in sentence for sentence in found), "\n".join([defect, *found])
