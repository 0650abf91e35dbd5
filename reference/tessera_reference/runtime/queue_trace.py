"""The two queues of every device as a trace that Perfetto reads: what ran, and which chunks were in flight
(collectives spec 6, 8)."""

from __future__ import annotations

from collections.abc import Sequence

from ..collectives.queues import Run
from ..collectives.work import Collective, Unit
from ..mesh.profiler import Record
from ..mesh.trace import chrome_trace, trace_text
from ..mesh.trace_tracks import Names

__all__ = ["queue_trace"]

COMPUTE_QUEUE, COMM_QUEUE = 0, 1


def queue_trace(run: Run, units: Sequence[Unit]) -> str:
    """The trace in the Chrome format, one row for each queue of a device and for chunks that are in flight beside."""
    known = {unit.id: unit for unit in units}
    ranks = {device: rank for rank, device in enumerate(run.devices)}
    records = []
    for slot in run.slots:
        unit, computes = known[slot.id], slot.queue == "compute"
        records.append(
            Record(
                kind="kernel" if computes else "collective",
                name=slot.id if computes else f"{slot.id} chunk {slot.chunk}",
                stream=COMPUTE_QUEUE if computes else COMM_QUEUE,
                rank=ranks[slot.device],
                device=slot.device,
                enqueued=slot.start,
                start=slot.start,
                stop=slot.end,
                bytes=unit.chunks[slot.chunk] if isinstance(unit, Collective) and slot.chunk is not None else 0,
            )
        )
    return trace_text(chrome_trace(records, Names(streams={COMPUTE_QUEUE: "ComputeQ", COMM_QUEUE: "CommQ"})))
