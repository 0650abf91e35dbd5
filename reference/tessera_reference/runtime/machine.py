"""The simulated machine that a runtime drives: devices, their memory, virtual time, and what fails on demand.

The host runs ahead: work that is queued is done when a call waits for it. Each call takes a little of the host's own
virtual time, so that work is never done before it was queued. A machine that is `untimed` lets everything happen at one
instant, in any order that streams and events allow, as the policy of choices decides (design, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..abi.status import Failure
from ..mesh.choice_policies import Choices
from ..mesh.deadlocks import held_up_by
from ..mesh.engine import Deadlock, Engine, Process, Resource, Signal
from ..mesh.memory import AddressSpaceMemory
from ..mesh.process_memory import ProcessMemory
from ..mesh.topology import Device, Topology
from .happens_before import Order

__all__ = ["Machine", "Pending", "SimulatedDevice"]

HOST_CALL = 1_000_000
"""Picoseconds that a call takes on the host."""

KERNELS_AT_ONCE = 4
"""Kernels that share a device."""

COPIES_AT_ONCE = 2
"""Copies that a device's engines do at the same time."""


@dataclass(eq=False)
class SimulatedDevice:
    """A device of the topology, with what its kernels and copies have to share."""

    description: Device
    kernels: Resource
    copies: Resource


@dataclass(frozen=True, eq=False)
class Pending:
    """A wait that may never end, and the failure that then ends it; the lower its turn, the sooner."""

    signal: Signal
    turn: int
    failure: Callable[[], Failure] | None


@dataclass(eq=False)
class Machine:
    """One machine; every context of a runtime is on it."""

    topology: Topology
    choices: Choices | None = None
    timed: bool = True
    host_time: int = 0
    driver: str = "simulated-1"
    abi_hash: str = "tessera-1.0"
    revision: str = ""
    """Of the architecture of its devices."""
    pending: dict[Pending, None] = field(default_factory=dict)
    process: ProcessMemory | None = None
    """Whose memory is that of the host, where it is not simulated."""

    def __post_init__(self) -> None:
        self.engine = Engine(self.choices)
        self.memory = AddressSpaceMemory(self.topology, self.process)
        self.order = Order(self.memory.findings)
        self.devices = {each.id: self._device(each) for each in self.topology.devices}

    def _device(self, description: Device) -> SimulatedDevice:
        kernels = Resource(self.engine, f"the kernels of device {description.id}", KERNELS_AT_ONCE)
        copies = Resource(self.engine, f"the copies of device {description.id}", COPIES_AT_ONCE)
        return SimulatedDevice(description, kernels, copies)

    def host_call(self) -> None:
        """Let the host spend the time of a call."""
        if self.timed:
            self.host_time += HOST_CALL

    async def turn(self) -> None:
        """On an untimed machine, let the policy of choices decide which process goes on."""
        if not self.timed:
            await self.engine.turn()

    def lasting(self, duration: int) -> int:
        """The time that a duration takes: none on an untimed machine."""
        return duration if self.timed else 0

    def settle(self, until: Callable[[], bool], workers: Iterable[Process] = ()) -> None:
        """Run the engine until a condition holds, which these workers bring about.

        Waits of theirs that can never end are failed, so that this always returns.
        """
        waiting = tuple(workers)
        while not until():
            try:
                self.engine.run(until)
            except Deadlock:
                if not self._give_up(waiting):
                    raise
        if self.timed:
            self.host_time = max(self.host_time, self.engine.now)

    def _give_up(self, workers: Sequence[Process]) -> bool:
        """Fail the waits that nothing can end: all of the lowest turn. Returns whether there was any.

        Only waits that hold up these workers are failed; where none is known to, all are.
        """
        in_vain = [each for each in self.pending if not each.signal.is_set]
        holding = set(map(id, held_up_by(workers)))
        waited_for = [each for each in in_vain if id(each.signal) in holding] or in_vain
        turn = min((each.turn for each in waited_for), default=0)
        for each in waited_for:
            if each.turn == turn:
                each.signal.fail(each.failure()) if each.failure else each.signal.set()
        return bool(waited_for)
