"""Writes a trace that https://ui.perfetto.dev opens: `python examples/collectives/perfetto.py step.trace.json`.

Two layers of a data-parallel step on two devices: the compute queue of each, and the chunks that its communication
queue has in flight (collectives specification, 6 and 8). `step.trace.json` beside this file is what it writes.
"""

import sys
from pathlib import Path

from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.queues import data_parallel, queue_trace, simulate


def trace() -> str:
    """The trace, one event a line."""
    units = data_parallel(2, 4 << 20, 30_000_000, range(2))
    return queue_trace(simulate(units, topology_of("eight-sm90"), [0, 1], max_inflight=4), units)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "step.trace.json").write_text(trace(), encoding="ascii", newline="\n")
