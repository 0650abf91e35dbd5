"""Traces of collectives (runtime spec 17; collectives spec 4).

Chunks on links, and the two queues of every device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..collectives.queues import Collective, Run, Unit
from ..collectives.travel import Transfer
from ..mesh.topology import Link
from ..mesh.trace import LinkCounter, Names, Record, chrome_trace, trace_text

# The chunks of a collective as records of a trace: spans on queues and links, flows between devices, and counters of
# the credits and bytes that are in use on each link, each way (collectives spec 6).


COMM_QUEUE = 0
"""The stream whose row shows the communication queue of a device."""


def chunk_trace(
    operation: str,
    transfers: Sequence[Transfer],
    devices: Sequence[int],
    element_bytes: int,
    chunk: int | None,
    links: Sequence[Link],
) -> str:
    """The trace in the Chrome format, which Perfetto reads: what leaves a device, what it gets, and a flow between.

    A message that was lost is one that left alone. `links` are those of the machine.
    """
    records = []
    for number, transfer in enumerate(transfers):
        sent = transfer.sent
        part = f" chunk {sent.first // chunk}" if chunk else ""
        elements = f"elements {sent.first} to {sent.first + sent.elements}"
        name = f"{operation} {sent.source} to {sent.target}, step {sent.step}{part}, {elements}"
        directions = (
            [("lost send", sent.source)] if transfer.lost else [("send", sent.source), ("receive", sent.target)]
        )
        for direction, rank in directions:
            leaves = direction != "receive"
            records.append(
                Record(
                    kind="collective",
                    name=f"{direction} {name}",
                    stream=COMM_QUEUE,
                    rank=rank,
                    device=devices[rank],
                    enqueued=transfer.start,
                    start=transfer.start,
                    stop=transfer.end,
                    bytes=sent.elements * element_bytes,
                    link=transfer.links[0] if leaves else None,
                    flow_out=number if direction == "send" else None,
                    flow_in=None if leaves else number,
                )
            )
    return trace_text(chrome_trace(records, counters=_counters(transfers, devices, element_bytes, links)))


def _counters(
    transfers: Sequence[Transfer], devices: Sequence[int], element_bytes: int, links: Sequence[Link]
) -> Iterator[LinkCounter]:
    """The credits in use and the bytes in flight on each link each way, at every time at which they change."""
    ends = {link.name: (link.a, link.b) for link in links}
    changes: dict[str, dict[int, tuple[int, int]]] = {}
    for transfer in transfers:
        end, size = devices[transfer.sent.source], transfer.sent.elements * element_bytes
        here: int | str = end
        for link in transfer.links:
            at = changes.setdefault(f"{link} from {here}", {})
            for time, sign in ((transfer.start, 1), (transfer.end, -1)):
                credits, in_flight = at.get(time, (0, 0))
                at[time] = (credits + sign, in_flight + sign * size)
            a, b = ends[link]
            here = b if here == a else a
    for way in sorted(changes):
        credits = in_flight = 0
        for time, (more_credits, more_bytes) in sorted(changes[way].items()):
            credits, in_flight = credits + more_credits, in_flight + more_bytes
            yield LinkCounter(f"credits of {way}", time, "in_use", credits)
            yield LinkCounter(f"bytes of {way}", time, "in_flight", in_flight)


# The two queues of every device as a trace that Perfetto reads: what ran, and which chunks were in flight
# (collectives spec 6, 8).


COMPUTE_QUEUE, COMM_QUEUE_ROW = 0, 1


def queue_trace(run: Run, units: Sequence[Unit]) -> str:
    """The trace in the Chrome format, one row for each queue of a device and for chunks that are in flight beside."""
    units_by_id = {unit.id: unit for unit in units}
    ranks = {device: rank for rank, device in enumerate(run.devices)}
    records = []
    for slot in run.slots:
        unit, computes = units_by_id[slot.id], slot.queue == "compute"
        records.append(
            Record(
                kind="kernel" if computes else "collective",
                name=slot.id if computes else f"{slot.id} chunk {slot.chunk}",
                stream=COMPUTE_QUEUE if computes else COMM_QUEUE_ROW,
                rank=ranks[slot.device],
                device=slot.device,
                enqueued=slot.start,
                start=slot.start,
                stop=slot.end,
                bytes=unit.chunks[slot.chunk] if isinstance(unit, Collective) and slot.chunk is not None else 0,
            )
        )
    return trace_text(chrome_trace(records, Names(streams={COMPUTE_QUEUE: "ComputeQ", COMM_QUEUE_ROW: "CommQ"})))
