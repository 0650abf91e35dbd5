"""CPU time of commands that need no more than the index of cases, and of a run of one case, against starting pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measurement import Measurement, cpu_of_children, in_turns

CASE = "ir/matmul/golden/fp32/k-13"
ROUNDS = 5


def measure() -> list[Measurement]:
    """Whole processes, and what they start; the reference takes longer to import than the suite to judge a case."""
    echo = ["reproduce", CASE, "--impl=py:echo_adapter:Echo"]
    return [
        _cpu("clauses show, CPU", ["clauses", "show", "LANG-10-05"], 1),
        _cpu("clauses coverage, CPU", ["clauses", "coverage"], 1),
        _cpu("clauses list --untested, CPU", ["clauses", "list", "--untested"], 1),
        _cpu("one case, CPU", echo, 1),
        _cpu("one case of the reference, CPU", ["reproduce", CASE, "--impl=reference"], None),
    ]


def _cpu(name: str, command: list[str], limit: float | None) -> Measurement:
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

        def run(*arguments: str) -> None:
            subprocess.run([sys.executable, *arguments], cwd=scratch, env=environment, stdout=subprocess.DEVNULL)

        ours, peer = in_turns(
            lambda: run("-m", "tessera_conformance", *command),
            lambda: run("-c", "import pytest, numpy"),
            ROUNDS,
            cpu_of_children,
        )
    return Measurement(name, ours, "import pytest, numpy", peer, ours, "s", limit)
