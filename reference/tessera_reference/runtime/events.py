"""Events: recorded on one stream, waited for on others (runtime spec 4.3, 12; AMB-RT-45, AMB-RT-49)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..mesh.clocks import VectorClock
from ..mesh.engine import Signal
from .capture import Capture
from .meshes import Mesh
from .streams import Stream
from .work import Work

__all__ = ["Event", "RecordWork", "Recording", "WaitWork", "recording_on"]


@dataclass(eq=False)
class Recording:
    """One recording of an event: reached when all earlier work is done on every rank of the stream."""

    number: int
    mesh: Mesh
    reached: Signal
    missing: int
    captured_by: Capture | None = None
    clock: VectorClock = field(default_factory=VectorClock)


@dataclass(eq=False)
class Event:
    """An event: its last recording, which a wait refers to; a new one replaces it (AMB-RT-49)."""

    handle: int
    last: Recording | None = None


@dataclass(eq=False, kw_only=True)
class RecordWork(Work):
    """Marks a place in the order of a stream."""

    kind = "record"
    function = "tessEventRecord"

    recording: Recording

    async def run(self, rank: int) -> None:
        """Count one more rank that has reached it."""
        self.recording.missing -= 1
        if self.recording.missing == 0:
            self.recording.reached.set()
        self.profile(rank, self.stream.mesh.machine.engine.now, flow_out=self.recording.number)


@dataclass(eq=False, kw_only=True)
class WaitWork(Work):
    """Keeps the stream from going on before a recording is reached (RT-12-03, RT-12-04)."""

    kind = "wait"
    function = "tessStreamWaitEvent"

    recording: Recording

    async def run(self, rank: int) -> None:
        """Wait on one rank."""
        start = self.stream.mesh.machine.engine.now
        await self.recording.reached
        self.profile(rank, start, flow_in=self.recording.number)


def recording_on(stream: Stream, number: int, capture: Capture | None) -> Recording:
    """A recording on a stream, which none of its ranks has reached."""
    name = f"recording {number} on stream {stream.handle}"
    reached = Signal(stream.mesh.machine.engine, name, stream.workers)
    return Recording(number, stream.mesh, reached, len(stream.mesh.devices), capture)
