"""Checks of arguments, handles, and the simulated machine under a runtime (runtime spec 2, 4, 7, 9, 12)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from ..abi.status import Failure, Status, within
from ..mesh.engine import AccessLog, Choices, Deadlock, Engine, Process, Resource, Signal, VectorClock, held_up_by
from ..mesh.memory import AddressSpaceMemory, Findings, ProcessMemory, Region
from ..mesh.topology import Device, Topology
from ..numerics.formats import shown

# Checks of arguments: a value that the prototype does not allow is TESS_ERR_INVALID_VALUE (runtime spec 7).
#
# The failures name no function: the table of functions adds the name of the one that was called.


Given = TypeVar("Given")

INT = (-(1 << 31), (1 << 31) - 1)
UNSIGNED = (0, (1 << 32) - 1)
SIZE = (0, (1 << 64) - 1)


def invalid(subject: str, allowed: str) -> Failure:
    """Return a failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, "", subject, allowed)


@contextmanager
def reported_by(function: str) -> Iterator[None]:
    """Attribute failures that name no function to this one."""
    try:
        yield
    except Failure as failure:
        raise within(failure, function) from None


def integer(name: str, value: Any, bounds: tuple[int, int]) -> int:
    """Return a whole number within these bounds. Raises `Failure`."""
    if type(value) is not int or not bounds[0] <= value <= bounds[1]:
        raise invalid(f"{name} is {shown(value)}", f"a whole number from {bounds[0]} to {bounds[1]}")
    return value


def one_of(name: str, value: Any, allowed: Collection[int], names: str) -> int:
    """Return one of an enumeration's numbers. Raises `Failure`."""
    if type(value) is not int or value not in allowed:
        raise invalid(f"{name} is {shown(value)}", names)
    return value


def named(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return one of these names. Raises `Failure`."""
    if value not in allowed:
        raise invalid(f"{name} is {shown(value)}", " or ".join(allowed))
    return str(value)


def of_type(name: str, value: Any, type_: type[Given]) -> Given:
    """Return a value of one of the API's own types. Raises `Failure`."""
    if not isinstance(value, type_):
        raise invalid(f"{name} is {shown(value)}", f"a {type_.__name__}")
    return value


def required(name: str, value: Any) -> Any:
    """Return a pointer that is not NULL. Raises `Failure`."""
    if value is None or (type(value) is int and value == 0):
        raise invalid(f"{name} is NULL", "a pointer that is not NULL")
    return value


# Handles: the numbers of contexts, meshes, streams and other objects (runtime spec 4; AMB-RT-38).
#
# All kinds share one numbering and no number is reused, so that a handle that is NULL, unknown, of another kind or
# dead is recognised.


Held = TypeVar("Held")

WITHOUT = frozenset({"context", "mesh"})
"""The kinds whose NULL or dead handle is TESS_ERR_NOT_INITIALIZED."""


class Handles:
    """The live objects, by kind and handle, and the kind of every handle ever issued."""

    def __init__(self) -> None:
        self._live: dict[str, dict[int, Any]] = {}
        self._kinds: dict[int, str] = {}

    @property
    def next(self) -> int:
        """The next handle to issue."""
        return len(self._kinds) + 1

    def give(self, kind: str, value: Any) -> int:
        """Issue the next handle for an object."""
        handle = self.next
        self._kinds[handle] = kind
        self._live.setdefault(kind, {})[handle] = value
        return handle

    def end(self, handle: int) -> None:
        """Remove a live handle."""
        del self._live[self._kinds[handle]][handle]

    def find(self, kind: str, of: type[Held], handle: Any) -> Held:
        """Return the object of a handle.

        Raises `Failure`: TESS_ERR_NOT_INITIALIZED for a context or mesh that is NULL or dead, else
        TESS_ERR_INVALID_VALUE.
        """
        live = self._live.get(kind, {})
        if type(handle) is not int or handle not in live:
            raise self._refusal(kind, handle)
        return live[handle]  # type: ignore[no-any-return]  # the kind determines the type

    def _refusal(self, kind: str, handle: Any) -> Failure:
        actual = self._kinds.get(handle) if type(handle) is int else None
        if actual is not None and handle in self._live[actual]:
            return invalid(f"{kind} is {handle}, the handle of a {actual}", f"the handle of a {kind}")
        without = kind in WITHOUT and actual in (None, kind)
        status = Status.TESS_ERR_NOT_INITIALIZED if without else Status.TESS_ERR_INVALID_VALUE
        what = "NULL" if handle == 0 or handle is None else shown(handle)
        was = "" if actual is None else f", the handle of a {actual} that is no more"
        return Failure(status, "", f"{kind} is {what}{was}", f"the handle of a live {kind}")

    def live(self, kind: str) -> list[tuple[int, Any]]:
        """Return the live objects of a kind with their handles, in order of creation."""
        return list(self._live.get(kind, {}).items())


# Detection of accesses to memory that no stream, event or host call orders (runtime spec 12; AMB-RT-83).
#
# The happens-before order follows from the calls alone. So a missing wait is found when work is queued, whatever
# schedule is then executed.


Access: TypeAlias = tuple[Region, int, bool]
"""A number of bytes of memory, and True if they are written."""

HOST = -1
"""The rank of accesses to host memory, which has a single copy."""


class Order:
    """The clock of each stream and of the host, and the last accesses."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._streams: dict[int, VectorClock] = {}
        self._host = VectorClock()
        self._synchronized = 0
        self._seen: dict[int, int] = {}
        """The number of host synchronizations that each stream's clock has been joined with."""
        self._ahead: set[int] = set()
        """The streams whose clocks may be ahead of the host's clock."""
        self._log = AccessLog()

    def note(self, name: str, stream: int, devices: Sequence[int], accesses: Sequence[Access]) -> None:
        """Order queued work after the stream's earlier work and the work that the host waited for; log its accesses."""
        if not accesses:
            return
        clock = self._clock(stream)
        clock.tick(stream)
        self._ahead.add(stream)
        for region, size, write in accesses:
            number, start = region.allocation.number, region.offset
            for place in devices if region.allocation.devices else (HOST,):
                earlier = self._log.note(number, place, start, start + size, write, stream, clock, name)
                if earlier is not None:
                    text = f"{name} on stream {stream} and {earlier}: {region.allocation}, with nothing between them"
                    self._findings.add("unordered_access", text)

    def forget(self, allocation: int) -> None:
        """Forget the accesses to freed memory."""
        self._log.forget(allocation)

    def record(self, stream: int) -> VectorClock:
        """Return the clock of a recording on a stream: the stream's clock."""
        return self._clock(stream).copy()

    def wait(self, recorded: VectorClock, stream: int) -> None:
        """Order the later work of a stream after a recording with this clock."""
        self._clock(stream).join(recorded)
        self._ahead.add(stream)

    def synchronize(self, stream: int) -> None:
        """Order all work queued later after the stream's work, for which the host has waited."""
        if stream in self._ahead:
            self._ahead.remove(stream)
            self._host.join(self._clock(stream))
            self._synchronized += 1

    def _clock(self, stream: int) -> VectorClock:
        """Return the clock of a stream, joined with the work that the host has waited for."""
        clock = self._streams.setdefault(stream, VectorClock())
        if self._seen.get(stream) != self._synchronized:
            self._seen[stream] = self._synchronized
            clock.join(self._host)
        return clock


# The simulated machine under a runtime: devices, their memory, virtual time, and planned faults.
#
# The host runs ahead: queued work is done when a call waits for it. Each call takes a little of the host's own virtual
# time, so that work is never done before it was queued. On an `untimed` machine everything happens at one instant, in
# any order that streams and events allow; the policy of choices selects it (design, section 6).


HOST_CALL = 1_000_000
"""The picoseconds that a call takes on the host."""

KERNELS_AT_ONCE = 4
"""The number of kernels that share a device."""

COPIES_AT_ONCE = 2
"""The number of copies that a device's engines do at the same time."""


@dataclass(eq=False)
class SimulatedDevice:
    """A device of the topology, with the resources that its kernels and copies share."""

    description: Device
    kernels: Resource
    copies: Resource


@dataclass(frozen=True, eq=False)
class Pending:
    """A wait that may never end, and the failure that then ends it; waits of a lower turn fail first."""

    signal: Signal
    turn: int
    failure: Callable[[], Failure] | None


@dataclass(eq=False)
class Machine:
    """The machine that all contexts of a runtime share."""

    topology: Topology
    choices: Choices | None = None
    timed: bool = True
    host_time: int = 0
    driver: str = "simulated-1"
    abi_hash: str = "tessera-1.0"
    revision: str = ""
    """The revision of the devices' architecture."""
    pending: dict[Pending, None] = field(default_factory=dict)
    process: ProcessMemory | None = None
    """The process whose memory is the host's, where host memory is not simulated."""

    def __post_init__(self) -> None:
        self.engine = Engine(self.choices)
        self.memory = AddressSpaceMemory(self.topology, self.process)
        self.order = Order(self.memory.findings)
        self.devices = {device.id: self._device(device) for device in self.topology.devices}

    def _device(self, description: Device) -> SimulatedDevice:
        kernels = Resource(self.engine, f"the kernels of device {description.id}", KERNELS_AT_ONCE)
        copies = Resource(self.engine, f"the copies of device {description.id}", COPIES_AT_ONCE)
        return SimulatedDevice(description, kernels, copies)

    def host_call(self) -> None:
        """Advance the host's time by that of a call."""
        if self.timed:
            self.host_time += HOST_CALL

    async def turn(self) -> None:
        """Let the policy of choices select the next process, on an untimed machine."""
        if not self.timed:
            await self.engine.turn()

    def lasting(self, duration: int) -> int:
        """Return the time that a duration takes: none on an untimed machine."""
        return duration if self.timed else 0

    def settle(self, until: Callable[[], bool], workers: Iterable[Process] = ()) -> None:
        """Run the engine until these workers have brought about a condition.

        Their waits that can never end are failed, so that this always returns.
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
        """Fail the waits of the lowest turn that nothing can end. Return True if there was any.

        Only waits that hold up these workers are failed; if no such wait is known, any wait counts.
        """
        in_vain = [wait for wait in self.pending if not wait.signal.is_set]
        holding = set(map(id, held_up_by(workers)))
        waited_for = [wait for wait in in_vain if id(wait.signal) in holding] or in_vain
        turn = min((wait.turn for wait in waited_for), default=0)
        for wait in waited_for:
            if wait.turn == turn:
                wait.signal.fail(wait.failure()) if wait.failure else wait.signal.set()
        return bool(waited_for)
