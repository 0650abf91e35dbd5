"""The golden vectors whose answers are computed again, spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.executor.engine import Engine, Lost, units_of
from tessera_conformance.vectors.files import digest, path_of
from tessera_conformance.vectors.model import Disagreement, Unanswerable, VectorFile, VectorProblem

MODULE = "tessera_conformance.vectors.unit_process"
LEAST_SECONDS = 2.0
"""Of a unit: its process starts and reads the files."""
SECONDS = {
    "ir/functions": 13.0,
    "ir/activations": 10.0,
    "ir/elementwise": 2.2,
    "ir/casts": 1.9,
    "ir/matmul": 1.3,
    "ir/fused_attention": 0.8,
    "ir/fourier": 0.5,
}
"""About how long a whole file takes, of those that take long."""
OTHERS = 0.05


def settings_of(folder: Path | None, default: Path, files: Sequence[VectorFile]) -> dict[str, Any]:
    """Return the folder of the files, one for all machines or of each installation, and digests of their bytes."""
    paths = [path_of(file.topic) for file in files]
    place = folder or default
    return {
        "folder": None if folder is None else str(folder.resolve()),
        "digests": {path: digest((place / path).read_bytes()) for path in paths},
    }


def recompute_on_workers(engine: Engine, files: Sequence[VectorFile], least: float) -> Iterator[VectorProblem]:
    """Vectors whose independent check no longer gives the frozen answer, in the order of the files.

    Raises:
        ExecutorUnavailable: a worker that came later is not like this machine.
        ExecutorLost: the scheduler went away, or all workers did.
    """
    seconds = {
        vector.id: SECONDS.get(file.topic, OTHERS) / len(file.vectors) for file in files for vector in file.vectors
    }
    found = dict(engine.results(units_of(list(seconds), seconds.__getitem__, engine.slots, least)))
    for name in seconds:
        rows = found[name]
        if isinstance(rows, Lost):
            reason = "the process that computed it died" if rows.by_task else rows.reason
            yield Unanswerable(f"it was not computed again: {reason}", name, "run it again, without --executor")
        else:
            yield from (Disagreement(*row) for row in rows)
