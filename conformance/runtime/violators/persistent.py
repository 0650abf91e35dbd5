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

from .changes import INVALID, refusing

QUEUE, STAY, END = calls.queue_launch, LaunchWork._stay, Stream.end_residents
PERSISTENT = LaunchFlag.TESS_LAUNCH_PERSISTENT


async def does_not_stay(self: LaunchWork) -> None:
    """Ends like any other kernel."""


async def stays_unnamed(self: LaunchWork) -> None:
    """Holds its stream, but is not listed as resident while it does."""
    listed = self.stream.mesh.resident
    if self.name not in listed:
        return await STAY(self)
    listed.remove(self.name)
    try:
        await STAY(self)
    finally:
        listed.append(self.name)


async def blocks_others(self: LaunchWork) -> None:
    """Fails the work of other streams while it is resident."""
    for stream in self.stream.mesh.streams.values():
        if stream is not self.stream:
            stream.fail(self._failed(0, "another kernel is resident"), 0, 0)
    await STAY(self)


async def one_at_a_time(self: LaunchWork) -> None:
    """A second persistent kernel does not stay."""
    if len(self.stream.mesh.resident) < 2:
        await STAY(self)


def ends_all(self: Stream) -> None:
    """The kernels of every stream end."""
    for stream in self.mesh.streams.values():
        END(stream)


def forgets_to_end(self: Stream) -> None:
    """Keeps ended kernels in the list of resident ones."""
    kept = list(self.mesh.resident)
    END(self)
    self.mesh.machine.settle(lambda: not self.queued)
    self.mesh.resident.extend(each for each in kept if each not in self.mesh.resident)


def persistent_always(state: State, work: LaunchWork) -> None:
    """Every kernel stays."""
    work.flags |= PERSISTENT
    QUEUE(state, work)


def persistent_quick(state: State, work: LaunchWork) -> None:
    """Low-latency kernels stay."""
    if work.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY:
        work.flags |= PERSISTENT
    QUEUE(state, work)


_persistent: set[tuple[int, str]] = set()


def persistent_since(state: State, work: LaunchWork) -> None:
    """A kernel that was persistent once always is."""
    known = (id(work.stream.mesh), work.name)
    if work.flags & PERSISTENT:
        _persistent.add(known)
    if known in _persistent:
        work.flags |= PERSISTENT
    QUEUE(state, work)


def staying(name: str, description: str, value: Any) -> Any:
    """A persistent kernel that stays otherwise."""
    return replaced("RT-06-13", description, make, (LaunchWork, "_stay", value), name=name)


def launched(name: str, description: str, value: Any) -> Any:
    """Launches that become persistent otherwise."""
    return replaced("RT-15-04", description, make, (calls, "queue_launch", value), name=name)


OTHERWISE = [
    refusing("RT-06-13", "FlagRefused", "refuses persistent kernels as an invalid value", "tessLaunch",
             lambda given: bool(given["cfg"]["flags"] & PERSISTENT), INVALID),
    staying("does_not_stay", "ends persistent kernels like others", does_not_stay),
    staying("stays_unnamed", "tells of a persistent kernel once it has ended", stays_unnamed),
    staying("blocks_others", "fails what runs beside a persistent kernel", blocks_others),
    staying("one_at_a_time", "keeps one persistent kernel at a time", one_at_a_time),
    replaced("RT-06-13", "ends the persistent kernels of all streams with one", make,
             (Stream, "end_residents", ends_all), name="ends_all"),
    replaced("RT-06-13", "tells of persistent kernels that have ended", make,
             (Stream, "end_residents", forgets_to_end), name="forgets_to_end"),
    replaced("RT-06-13", "takes more persistent kernels than a device can hold beside other work", make,
             (calls, "require_place", lambda *of: None), name="no_room_left"),
    launched("persistent_always", "keeps every kernel resident", persistent_always),
    launched("persistent_quick", "keeps kernels resident that ask for low latency", persistent_quick),
    launched("persistent_since", "keeps a kernel resident that was persistent before", persistent_since),
]  # fmt: skip
