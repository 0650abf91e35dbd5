"""The answered requests as a trace in the Chrome format (`schemas/trace.schema.json`; Verification).

Requests share no time, so that they are drawn one after the other, in the order in which they were answered. A PE is a
process, as is the host with what stands before the PEs; a component is a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..mesh.profiler import Record, RecordKind
from ..mesh.trace import chrome_trace, trace_text
from ..mesh.trace_tracks import Names
from .journal import Answered
from .latency import Hop, components, traced
from .machine import Machine, Place
from .messages import KernelLaunch

__all__ = ["timeline"]


def timeline(machine: Machine, answered: Iterable[Answered]) -> str:
    """The text of the trace."""
    devices = {place: number for number, place in enumerate(machine.places())}
    names = Names(
        {number: f"sip {each.sip} cube {each.cube} pe {each.pe}" for each, number in devices.items()},
        dict(enumerate(components())),
    )
    return trace_text(chrome_trace(_records(answered, devices), names))


def _records(answered: Iterable[Answered], devices: Mapping[Place, int]) -> Iterator[Record]:
    """A record for each hop."""
    rows = {name: number for number, name in enumerate(components())}
    now = 0
    for each in answered:
        trace = traced(each.journey)
        kind: RecordKind = "kernel" if isinstance(each.request, KernelLaunch) else "copy"
        name = f"{each.request.msg_type} {each.request.correlation_id} {each.request.request_id}"
        for hop in (*trace.path, *trace.branches):
            yield _record(hop, name, kind, rows[hop.component], devices, now)
        now += trace.latency


def _record(hop: Hop, name: str, kind: RecordKind, row: int, devices: Mapping[Place, int], now: int) -> Record:
    device = 0 if hop.place is None else devices[hop.place]
    return Record(
        "host" if hop.place is None else kind,
        name,
        row,
        device,
        device,
        now,
        now + hop.start,
        now + hop.end,
        hop.bytes,
    )
