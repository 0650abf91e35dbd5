"""Other times and another order of what may happen in any: no result depends on them (runtime specification, 6, 17)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.mesh import engine, topology
from tessera_reference.mesh.engine import Choices, Deadlock, Seeded
from tessera_reference.runtime import machine
from tessera_reference.runtime.streams import Stream, Work

from ...ir.variants.features import Without
from .reach import RUNTIME

ENQUEUE = Stream.enqueue

SLOW = altered(
    "RT-06-02",
    "takes a thousand times as long for kernels and copies, does one copy at a time, and has a quick host",
    RUNTIME,
    ReferenceAdapter,
    (topology, "LAUNCH", 1009 * topology.LAUNCH),
    (topology, "QUICK_LAUNCH", 1009 * topology.QUICK_LAUNCH),
    (topology, "WAVE", 997 * topology.WAVE),
    (topology, "COPY", 1013 * topology.COPY),
    (machine, "HOST_CALL", 7),
    (machine, "COPIES_AT_ONCE", 1),
    name="slow_devices",
)

QUICK = altered(
    "RT-06-02",
    "takes no time for a launch or a copy but for its bytes, and has a slow host",
    RUNTIME,
    ReferenceAdapter,
    (topology, "LAUNCH", 3),
    (topology, "QUICK_LAUNCH", 2),
    (topology, "WAVE", 5),
    (topology, "COPY", 1),
    (machine, "HOST_CALL", 10**10),
    (machine, "KERNELS_AT_ONCE", 64),
    name="slow_host",
)


def seeded() -> Choices:
    """Choices by a seed."""
    return Seeded(11)


SEEDED = altered(
    "RT-06-02",
    "takes whichever comes of what may happen next, where nobody sets a schedule",
    RUNTIME,
    ReferenceAdapter,
    (engine, "FirstCome", seeded),
    name="any_schedule",
)


class NoSchedules(Without):
    """A machine whose schedule nobody sets (AMB-RT-140)."""

    absent = frozenset({"schedule-control"})


def at_once(stream: Stream, work: Work) -> Any:
    """Queue work, and do what can be done before the call returns."""
    ENQUEUE(stream, work)
    on = stream.mesh.machine
    try:
        on.engine.run(lambda: not stream.queued)
    except Deadlock:
        return  # it waits for what the host has yet to do
    if on.timed:
        on.host_time = max(on.host_time, on.engine.now)


EAGER = altered(
    "RT-06-02",
    "does work before the call that queues it returns, wherever nothing is still to come",
    RUNTIME,
    NoSchedules,
    (Stream, "enqueue", at_once),
    name="eager",
)
