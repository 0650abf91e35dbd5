"""CPU time of commands that need no more than the index of cases, of one case and of a tiny program."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measurement import Measurement, cpu_of_children, in_turns

CASE = "ir/matmul/golden/fp32/k-13"
TINY = "module m { func f(x: tensor<2xfp32>) -> tensor<2xfp32> { return x + x; } }"
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
        _tiny_program(),
    ]


def _tiny_program() -> Measurement:
    """A sum of two numbers by the command line of the reference."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "tiny.tsr").write_text(TINY, encoding="utf-8")

        def run(*arguments: str) -> None:
            subprocess.run([sys.executable, *arguments], cwd=scratch, check=True, stdout=subprocess.DEVNULL)

        run("-c", "import numpy; numpy.save('x.npy', numpy.ones(2, numpy.float32))")
        ours, peer = in_turns(
            lambda: run("-m", "tessera_reference", "run", "tiny.tsr", "--input", "x=x.npy"),
            lambda: run("-c", "import numpy"),
            ROUNDS,
            cpu_of_children,
        )
    return Measurement("tessera-reference run, CPU", ours, "import numpy", peer, ours, "s", 0.35)


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
