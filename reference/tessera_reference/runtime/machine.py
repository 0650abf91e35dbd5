"""The simulated machine that a runtime drives: devices, their memory, virtual time, and what fails on demand.

The host runs ahead: work that is queued is done when a call waits for it. Each call takes a little of the host's own
virtual time, so that work is never done before it was queued. A machine that is `untimed` lets everything happen at one
instant, where the policy of choices then may put it into every order that streams and events allow (design, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..abi.status import Failure
from ..mesh.choice_policies import Choices
from ..mesh.deadlocks import held_up_by
from ..mesh.engine import Deadlock, Engine, Process, Resource, Signal
from ..mesh.memory import AddressSpaceMemory
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
    """Something waited for that may never come, and what is then to be said; the lower its turn, the sooner."""

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

    def __post_init__(self) -> None:
        self.engine = Engine(self.choices)
        self.memory = AddressSpaceMemory(self.topology)
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
        """Where nothing takes time, let others go first if the policy of choices wants it."""
        if not self.timed:
            await self.engine.turn()

    def lasting(self, duration: int) -> int:
        """How long something takes here."""
        return duration if self.timed else 0

    def settle(self, until: Callable[[], bool], workers: Iterable[Process] = ()) -> None:
        """Go on until a condition holds, which these workers bring about.

        What they wait for and can never come is failed, so that this always ends.
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
        """Fail what is waited for in vain: of the earliest turn, all. Whether there was any.

        Only what holds up these workers is given up; where that cannot be told, everything.
        """
        in_vain = [each for each in self.pending if not each.signal.is_set]
        holding = set(map(id, held_up_by(workers)))
        waited_for = [each for each in in_vain if id(each.signal) in holding] or in_vain
        turn = min((each.turn for each in waited_for), default=0)
        for each in waited_for:
            if each.turn == turn:
                each.signal.fail(each.failure()) if each.failure else each.signal.set()
        return bool(waited_for)
