"""Two workers of a cluster against one, on this machine; and, as a program, a model of more workers than it has.

`python benchmarks/many_machines.py [FACTOR ...]` computes how long the suite would take on 1 to 64 workers for an
implementation that is so many times as slow as the reference: its units as they would be cut, longest first, each to
the worker that is free first, and beside them what was measured once for everything that costs the same in any run.
"""

from __future__ import annotations

import heapq
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measurement import Measurement, NotMeasured, Outcome, cpu_of_children

from tessera_conformance.executor.engine import Unit, units_of
from tessera_conformance.options import UNIT_SECONDS
from tessera_conformance.reports.journal import read, report_in

HERE = Path(__file__).parent
REPORT = HERE.parent / "reports" / "reference"
COLLECTED, GREETED, STARTED, SEALED = 5.5, 2.0, 2.1, 3.0
"""Seconds: collecting the suite here, greeting the workers, starting the process of a unit, sealing the report."""
WORKERS = (1, 2, 4, 8, 16, 32, 64)


def measure() -> list[Outcome]:
    """Whole commands, from their start to their report, with the processes of the cluster already there.

    A device that waits shows what the spreading does, whatever else the machine is at; the vectors, which compute
    without a pause, show it only on a machine with two processors to spare, and their processor time what it costs.
    """
    try:
        import distributed
    except ImportError:
        return [NotMeasured("2 workers", "pip install '.[dask]'")]
    os.environ["PYTHONPATH"] = str(HERE)
    recompute = ["vectors", "check", "--recompute"]
    with tempfile.TemporaryDirectory() as scratch:
        suite = ["run", "--impl=py:waiting_adapter:Waiting", "--case=ir/matmul/*", f"--report-dir={scratch}"]
        waiting = {workers: _spread(distributed, workers, [*suite, "--unit-seconds=0.1"]) for workers in (1, 2)}
    computing = {workers: _spread(distributed, workers, recompute) for workers in (1, 2)}
    _, cpu = _timed(recompute)
    (waiting_1, _), (waiting_2, _) = waiting[1], waiting[2]
    (wall_1, _), (wall_2, cpu_2) = computing[1], computing[2]
    return [
        Measurement("2 workers, a waiting device", waiting_2, "1 worker", waiting_1, waiting_2, "s", None),
        Measurement("2 workers, vectors", wall_2, "1 worker", wall_1, wall_2, "s", None),
        Measurement("2 workers, vectors, CPU", cpu_2, "one process", cpu, cpu_2, "s", None),
    ]


def _spread(distributed: Any, workers: int, command: list[str]) -> tuple[float, float]:
    """Seconds of a command on so many workers, and of processor time of all, the cluster included."""
    before = cpu_of_children()
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        wall, _ = _timed([*command, f"--executor=dask:{cluster.scheduler_address}"])
    return wall, cpu_of_children() - before


def _timed(command: list[str]) -> tuple[float, float]:
    """Seconds of a command, and of its processor time."""
    started, before = time.perf_counter(), cpu_of_children()
    subprocess.run([sys.executable, "-m", "tessera_conformance", *command], stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started, cpu_of_children() - before


def makespan(units: Sequence[Unit], workers: int) -> float:
    """Seconds until the last of the workers is done."""
    free = [0.0] * workers
    for unit in units:
        heapq.heappush(free, heapq.heappop(free) + STARTED + unit.seconds)
    return max(free)


def model(factor: float) -> list[str]:
    """A row for each number of workers: units, seconds, and how many times as fast as one process."""
    recorded = {line["case"]: line["run"].get("seconds", 0.0) * factor for line in read(report_in(REPORT)).observations}
    total = sum(recorded.values())
    alone = COLLECTED + total + SEALED
    rows = [
        f"{factor:g} times the recorded seconds: {total:,.0f} s in {len(recorded):,} cases, "
        f"{max(recorded.values()):,.0f} s the longest"
    ]
    for workers in WORKERS:
        units = units_of(recorded, workers, UNIT_SECONDS)
        spread = COLLECTED + GREETED + makespan(units, workers) + SEALED
        rows.append(f"{workers:4d} workers {len(units):5d} units {spread:9.1f} s {alone / spread:6.1f}x")
    return rows


if __name__ == "__main__":
    for factor in map(float, sys.argv[1:] or ["1", "10"]):
        print("\n".join(model(factor)))
