"""The chunks of a collective as records of a trace: spans on queues and links, flows between devices (collectives
spec 6)."""

from __future__ import annotations

from collections.abc import Sequence

from ..collectives.travel import Transfer
from ..mesh.profiler import Record
from ..mesh.trace import chrome_trace, trace_text

__all__ = ["chunk_trace"]

COMM_QUEUE = 0
"""The stream whose row shows the communication queue of a device."""


def chunk_trace(
    operation: str, transfers: Sequence[Transfer], devices: Sequence[int], element_bytes: int, chunk: int | None
) -> str:
    """The trace in the Chrome format, which Perfetto reads: what leaves a device, what it gets, and a flow between.

    A message that was lost is one that left alone.
    """
    records = []
    for number, each in enumerate(transfers):
        sent = each.sent
        part = f" chunk {sent.first // chunk}" if chunk else ""
        elements = f"elements {sent.first} to {sent.first + sent.count}"
        name = f"{operation} {sent.source} to {sent.target}, step {sent.step}{part}, {elements}"
        directions = [("lost send", sent.source)] if each.lost else [("send", sent.source), ("receive", sent.target)]
        for direction, rank in directions:
            leaves = direction != "receive"
            records.append(
                Record(
                    kind="collective",
                    name=f"{direction} {name}",
                    stream=COMM_QUEUE,
                    rank=rank,
                    device=devices[rank],
                    enqueued=each.start,
                    start=each.start,
                    stop=each.end,
                    bytes=sent.count * element_bytes,
                    link=each.links[0] if leaves else None,
                    flow_out=number if direction == "send" else None,
                    flow_in=None if leaves else number,
                )
            )
    return trace_text(chrome_trace(records))
