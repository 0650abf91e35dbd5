"""Persistent kernels that do not stay, do not end, or stay without the flag (runtime spec 6, 15; AMB-RT-65)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import replaced
from tessera_reference.abi.status import LaunchFlag
from tessera_reference.adapter import make
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.state import State
from tessera_reference.runtime.streams import Stream

QUEUE, STAY, END = calls.queue_launch, LaunchWork._stay, Stream.end_residents
PERSISTENT = LaunchFlag.TESS_LAUNCH_PERSISTENT


async def does_not_stay(self: LaunchWork) -> None:
    """Ends like any other kernel."""


async def blocks_others(self: LaunchWork) -> None:
    for stream in self.stream.mesh.streams.values():
        if stream is not self.stream:
            stream.fail(self._failed(0, "another kernel is resident"), 0, 0)
    await STAY(self)


async def one_at_a_time(self: LaunchWork) -> None:
    if len(self.stream.mesh.resident) < 2:
        await STAY(self)


def forgets_to_end(self: Stream) -> None:
    kept = list(self.mesh.resident)
    END(self)
    self.mesh.machine.settle(lambda: not self.queued)
    self.mesh.resident.extend(kernel for kernel in kept if kernel not in self.mesh.resident)


def persistent_quick(state: State, work: LaunchWork) -> None:
    if work.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY:
        work.flags |= PERSISTENT
    QUEUE(state, work)


_persistent: set[tuple[int, str]] = set()


def persistent_since(state: State, work: LaunchWork) -> None:
    known = (id(work.stream.mesh), work.name)
    if work.flags & PERSISTENT:
        _persistent.add(known)
    if known in _persistent:
        work.flags |= PERSISTENT
    QUEUE(state, work)


def launched(name: str, description: str, value: Any) -> Any:
    """Return a violation whose launches become persistent differently."""
    return replaced("RT-15-04", description, make, ("runtime.calls.queue_launch", value), name=name)


OTHERWISE = [
    replaced("RT-06-13", "tells of persistent kernels that have ended", make,
             ("runtime.streams.Stream.end_residents", forgets_to_end), name="forgets_to_end"),
    replaced("RT-06-13", "takes more persistent kernels than a device can hold beside other work", make,
             ("runtime.calls.require_place", lambda *of: None), name="no_room_left"),
    launched("persistent_quick", "keeps kernels resident that ask for low latency", persistent_quick),
    launched("persistent_since", "keeps a kernel resident that was persistent before", persistent_since),
]  # fmt: skip
