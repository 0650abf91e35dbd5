"""Random connections, for a few seconds; `fuzz_server.py` goes on for as long as it is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_endpoint_is_without_findings() -> None:
    script = Path(__file__).parent / "fuzz_server.py"
    command = [sys.executable, str(script), "--seed=1", "--sessions=6", "--seconds=60"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.endswith("\n0 findings\n")
