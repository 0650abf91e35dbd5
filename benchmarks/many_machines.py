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

from measurement import Measurement, NotMeasured, Outcome

from tessera_conformance.executor.units import Unit, units_of
from tessera_conformance.options import UNIT_SECONDS
from tessera_conformance.reports.journal import read, report_in

HERE = Path(__file__).parent
REPORT = HERE.parent / "reports" / "reference"
COLLECTED, GREETED, STARTED, SEALED = 5.5, 2.0, 2.1, 3.0
"""Seconds: collecting the suite here, greeting the workers, starting the process of a unit, sealing the report."""
WORKERS = (1, 2, 4, 8, 16, 32, 64)


def measure() -> list[Outcome]:
    """Whole commands, from their start to their report, with the processes of the cluster already there."""
    try:
        from distributed import LocalCluster
    except ImportError:
        return [NotMeasured("2 workers", "pip install '.[dask]'")]
    suite = ["run", "--impl=py:waiting_adapter:Waiting", "--case=ir/matmul/*", "--unit-seconds=0.1"]
    seconds: dict[str, list[float]] = {"a waiting device": [], "vectors, recomputed": []}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PYTHONPATH"] = str(HERE)
        for workers in (1, 2):
            with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
                spread = f"--executor=dask:{cluster.scheduler_address}"
                seconds["a waiting device"].append(_seconds([*suite, f"--report-dir={scratch}", spread]))
                seconds["vectors, recomputed"].append(_seconds(["vectors", "check", "--recompute", spread]))
    return [
        Measurement(f"2 workers, {name}", two, "1 worker", one, two, "s", None) for name, (one, two) in seconds.items()
    ]


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tessera_conformance", *command], stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


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
        units = units_of(list(recorded), recorded.__getitem__, workers, UNIT_SECONDS)
        spread = COLLECTED + GREETED + makespan(units, workers) + SEALED
        rows.append(f"{workers:4d} workers {len(units):5d} units {spread:9.1f} s {alone / spread:6.1f}x")
    return rows


if __name__ == "__main__":
    for factor in map(float, sys.argv[1:] or ["1", "10"]):
        print("\n".join(model(factor)))
