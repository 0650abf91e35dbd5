"""The machine behind an endpoint: PEs, memories, kernels, and the hops whose times add up to latency (D3, D5, D7)."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from itertools import product, starmap
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..mesh.memory import Intervals
from ..mesh.topology import carrying
from .frames import ErrorCode, RequestFailed, argument_mismatch, bytes_of, rounded

# Bytes by address, where only written bytes take space.


PAGE = 1 << 12
"""The bytes of a page: a multiple of every element that a pattern repeats."""
ZEROS = bytes(PAGE)
MAGIC = b"TESSFBIN"
"""The first bytes of an image."""


class SparseMemory:
    """An address space of zeros, by pages; the pages of a fill share their bytes until one is changed."""

    def __init__(self) -> None:
        self._pages: dict[int, bytes | bytearray] = {}
        self._written = Intervals()
        self._images: dict[int, int] = {}

    def read(self, pa: int, nbytes: int) -> bytes:
        """Return the bytes from an address on."""
        parts = [memoryview(self._pages.get(page, ZEROS))[start:stop] for page, start, stop in _pieces(pa, nbytes)]
        return b"".join(parts)

    def write(self, pa: int, data: bytes | memoryview) -> None:
        """Write bytes from an address on."""
        data = memoryview(data)
        self._mark(pa, len(data))
        if data[: len(MAGIC)] == MAGIC:
            self._images[pa] = len(data)
        done = 0
        for page, start, stop in _pieces(pa, len(data)):
            self._own(page)[start:stop] = data[done : done + stop - start]
            done += stop - start

    def fill(self, pa: int, nbytes: int, element: bytes) -> None:
        """Repeat an element whose size divides `nbytes` and a page, from the first byte on (AMB-HIO-35)."""
        first, last = -(-pa // PAGE), (pa + nbytes) // PAGE
        if first >= last:
            self.write(pa, element * (nbytes // len(element)))
            return
        turn = -pa % len(element)
        page = (element[turn:] + element[:turn]) * (PAGE // len(element))
        self.write(pa, page[PAGE - (first * PAGE - pa) :])
        self._pages.update(dict.fromkeys(range(first, last), page))
        self.write(last * PAGE, page[: pa + nbytes - last * PAGE])
        self._mark(pa, nbytes)

    def holds_image(self, pa: int) -> bool:
        """True if an image was written to an address, and nothing has replaced all of it since."""
        return pa in self._images

    def was_written(self, pa: int, nbytes: int) -> bool:
        """True if each of the bytes was written at least once."""
        return self._written.covers(pa, pa + nbytes)

    def _mark(self, pa: int, nbytes: int) -> None:
        """Mark bytes as written; images that lie wholly within them are replaced."""
        self._written.add(pa, pa + nbytes)
        self._images = {first: size for first, size in self._images.items() if first < pa or first + size > pa + nbytes}

    def _own(self, page: int) -> bytearray:
        """Return a page for writing, which no other shares."""
        page_bytes = self._pages.get(page, ZEROS)
        if isinstance(page_bytes, bytes):
            page_bytes = self._pages[page] = bytearray(page_bytes)
        return page_bytes


def _pieces(pa: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the pages of a range, each with the first and the last position within it."""
    end = pa + nbytes
    while pa < end:
        page, start = divmod(pa, PAGE)
        stop = min(PAGE, start + end - pa)
        yield page, start, stop
        pa += stop - start


# Kernels that a launch can name: the built-in ones, and their parameters (D7; AMB-HIO-40, AMB-HIO-57).


MOST_READ = 1 << 28
"""The most bytes that a kernel reads at once."""
Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Buffer:
    """A shard as the kernel sees it: bytes in the memory of its PE."""

    space: SparseMemory
    pa: int
    nbytes: int

    def read(self) -> bytes:
        """Return its bytes."""
        return self.space.read(self.pa, self.nbytes)

    def write(self, data: bytes) -> None:
        """Change its bytes."""
        self.space.write(self.pa, data)

    def floats(self) -> Floats:
        """Return its elements as fp32."""
        return np.frombuffer(self.read(), "<f4")


Given: TypeAlias = Buffer | int | Decimal | bool
"""An argument of one PE: its shard of a tensor, or the value of a scalar."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: `tensor` or the dtype of a scalar for each parameter, and its effect on one PE.

    `parameters` is None where it takes anything. `check` refuses the bytes of shards that do not fit, before any runs;
    `run` raises `RequestFailed` with PE_FAULT.
    """

    parameters: tuple[str, ...] | None
    check: Callable[[Sequence[int]], None]
    run: Callable[[Sequence[Given]], None]


def require_bearable(count: int) -> None:
    """Require a read no larger than this machine can bear. Raises `RequestFailed` with UNSUPPORTED."""
    if count > MOST_READ:
        raise RequestFailed(ErrorCode.UNSUPPORTED, f"{count} bytes to be read at once, expected at most {MOST_READ}")


def _elements(size: int, reads: bool = True) -> Callable[[Sequence[int]], None]:
    """Return a check that related shards have equally many whole elements of a size; `reads` counts them as read."""

    def check(counts: Sequence[int]) -> None:
        require_bearable(sum(counts) if reads else 0)
        if len(set(counts)) > 1:
            raise argument_mismatch(f"shards of {', '.join(map(str, counts))} bytes, expected equal sizes")
        if counts and counts[0] % size:
            raise argument_mismatch(f"a shard of {counts[0]} bytes, expected a multiple of {size}")

    return check


def _nothing(arguments: object) -> None:
    """Do nothing, as a check or as a kernel."""


def _copy(arguments: Sequence[Given]) -> None:
    source, target = arguments
    assert isinstance(source, Buffer) and isinstance(target, Buffer)
    target.write(source.read())


def _fill(arguments: Sequence[Given]) -> None:
    target, value = arguments
    assert isinstance(target, Buffer) and isinstance(value, int)
    target.space.fill(target.pa, target.nbytes, bytes_of(value, "i32"))


def _add(arguments: Sequence[Given]) -> None:
    a, b, total = arguments
    assert isinstance(a, Buffer) and isinstance(b, Buffer) and isinstance(total, Buffer)
    with np.errstate(all="ignore"):
        total.write((a.floats() + b.floats()).astype("<f4").tobytes())


def _scale(arguments: Sequence[Given]) -> None:
    target, factor = arguments
    assert isinstance(target, Buffer) and not isinstance(factor, Buffer)
    with np.errstate(all="ignore"):
        target.write((target.floats() * np.float32(rounded(factor, "fp32"))).astype("<f4").tobytes())


ANY = Kernel(None, _nothing, _nothing)
"""A kernel that computes nothing."""
BUILTINS: Mapping[str, Kernel] = {
    "nop": ANY,
    "copy": Kernel(("tensor", "tensor"), _elements(1), _copy),
    "fill": Kernel(("tensor", "i32"), _elements(4, reads=False), _fill),
    "add_fp32": Kernel(("tensor", "tensor", "tensor"), _elements(4), _add),
    "scale_fp32": Kernel(("tensor", "fp32"), _elements(4), _scale),
}
"""The built-in kernels by name."""

# The machine behind an endpoint: devices, PEs and the memories of each PE (D3, D5; `components.toml`).


MOST_PLACES = 1 << 16
"""The most PEs of a machine that this reference lists."""


class Place(NamedTuple):
    """A PE; places are ordered by SIP, cube and PE."""

    sip: int
    cube: int
    pe: int

    def __str__(self) -> str:
        return f"sip {self.sip} cube {self.cube} pe {self.pe}"

    def members(self, side: str) -> dict[str, Any]:
        """Return the members of a message for this place, such as `dst_sip`."""
        return {f"{side}_{name}": number for name, number in self._asdict().items()}


@dataclass(frozen=True)
class MachineSize:
    """The SIPs, the cubes of each, the PEs of each cube, and the most unanswered requests."""

    sips: int
    cubes: int
    pes: int
    queue_depth: int


@dataclass(frozen=True)
class MemoryRange:
    """A memory of every PE: its kind, HBM or TCM, its first address and its bytes."""

    kind: str
    base: int
    bytes: int


@cache
def described() -> Mapping[str, Any]:
    """Return the tables of `components.toml`."""
    return tomllib.loads(files(__package__).joinpath("components.toml").read_text(encoding="utf-8"))


class Machine:
    """The state of the devices: every PE has its own address space, of zeros at first."""

    def __init__(self, size: MachineSize | None = None) -> None:
        self.size = size or MachineSize(**described()["size"])
        self.memories = tuple(MemoryRange(**row) for row in described()["memory"])
        self.failing: frozenset[Place] = frozenset()
        """The PEs that fail every request."""
        self._spaces: defaultdict[Place, SparseMemory] = defaultdict(SparseMemory)

    def devices(self) -> Mapping[str, int]:
        """Return the SIP of each device, by the name that `target_device` takes."""
        return {f"sip:{sip}": sip for sip in range(self.size.sips)}

    def places(self) -> Iterator[Place]:
        """Yield every PE, in order."""
        yield from starmap(Place, product(range(self.size.sips), range(self.size.cubes), range(self.size.pes)))

    def has(self, place: Place) -> bool:
        """True if the PE exists."""
        return 0 <= place.sip < self.size.sips and 0 <= place.cube < self.size.cubes and 0 <= place.pe < self.size.pes

    def space(self, place: Place) -> SparseMemory:
        """Return the memory of an existing PE, by physical address."""
        return self._spaces[place]

    def require(self, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
        """Require bytes within one memory of the named kind, on an existing PE (AMB-HIO-44, AMB-HIO-46).

        Raises `RequestFailed` with UNKNOWN_PLACE or ADDRESS_OUT_OF_RANGE.
        """
        if not self.has(place):
            size = f"{self.size.sips} SIPs of {self.size.cubes} cubes of {self.size.pes} PEs"
            raise RequestFailed(ErrorCode.UNKNOWN_PLACE, f"no PE {place} among {size}", field)
        for memory in self.memories:
            if memory.base <= pa and pa + nbytes <= memory.base + memory.bytes and kind in ("AUTO", memory.kind):
                return
        within = "one memory" if kind == "AUTO" else kind
        reason = f"{nbytes} bytes from {pa:#x} are not within {within} of PE {place}"
        raise RequestFailed(ErrorCode.ADDRESS_OUT_OF_RANGE, reason, field)

    def failure_of(self, place: Place) -> RequestFailed | None:
        """Return the failure of a PE that fails every request."""
        return RequestFailed(ErrorCode.PE_FAULT, f"PE {place} failed") if place in self.failing else None


# The hops of a request on its way and back, whose times are the whole latency (D5, D7; AMB-HIO-28, -54).
#
# A component takes its fixed time for each message and the time of the bytes at its bandwidth, rounded up to a
# picosecond, and serves every request alone: no other request changes a latency.


CONTROL = 64
"""The bytes of a message without its data, in either direction."""
INWARD = ("host", "pcie_ep", "io_cpu")
"""The components from the host to the endpoint."""
TO_PE = ("noc", "m_cpu", "pe_cpu")
"""The components from the endpoint to a PE."""


@dataclass(frozen=True)
class Component:
    """A component: picoseconds for each message, and bytes a second, or None where bytes take no time."""

    name: str
    fixed: int
    bandwidth: int | None = None

    def takes(self, count: int) -> int:
        """Return the picoseconds that `count` bytes take."""
        return self.fixed + (0 if self.bandwidth is None else carrying(count, self.bandwidth))


class Branch(NamedTuple):
    """The part of a request for one PE: the bytes that pass its memory, None where the PE failed before."""

    place: Place
    memory: int | None


@dataclass(frozen=True)
class Journey:
    """The journey of a request: bytes there and back, branches, and for a launch the fetched binary.

    Without branches, the request ended in the endpoint.
    """

    there: int = CONTROL
    back: int = CONTROL
    branches: tuple[Branch, ...] = ()
    code: Branch | None = None


@dataclass(frozen=True)
class Hop:
    """A message at a component, in picoseconds since the request left the host; `place` is the PE it is for."""

    component: str
    bytes: int
    start: int
    end: int
    place: Place | None


@dataclass(frozen=True)
class Trace:
    """The hops to the component that ended last and back, and those to the other PEs."""

    path: tuple[Hop, ...]
    branches: tuple[Hop, ...]

    @property
    def latency(self) -> int:
        """The picoseconds until the response has reached the host."""
        return self.path[-1].end


Step: TypeAlias = tuple[str, Place | None, int]
"""A component, the PE that a message is for, and its bytes."""


@cache
def components() -> Mapping[str, Component]:
    """Return the components by name."""
    return {row["name"]: Component(**row) for row in described()["component"]}


def traced(journey: Journey) -> Trace:
    """Return the begin and end of each hop of a request; of branches that end together, the first is on the path."""
    steps: list[Step] = [(name, None, journey.there) for name in INWARD]
    if journey.code is not None:  # the endpoint fetches the address of a binary and has it read there
        steps += [("noc", journey.code.place, CONTROL), ("memory", journey.code.place, journey.code.memory or 0)]
    inward = list(_timed(steps, 0))
    ways = [list(_timed(_outward(journey, branch), inward[-1].end)) for branch in journey.branches]
    last = max(ways, key=lambda way: way[-1].end, default=[])
    ahead = inward + last
    back: list[Step] = [(name, last[-1].place, journey.back) for name in reversed(TO_PE)] if last else []
    back += [(name, None, journey.back) for name in reversed(INWARD)]
    path = (*ahead, *_timed(back, ahead[-1].end))
    return Trace(path, tuple(hop for way in ways if way is not last for hop in way))


def _timed(steps: Iterable[Step], start: int) -> Iterator[Hop]:
    """Yield steps one after the other."""
    for component, place, count in steps:
        end = start + components()[component].takes(count)
        yield Hop(component, count, start, end, place)
        start = end


def _outward(journey: Journey, branch: Branch) -> Iterator[Step]:
    """Yield the steps from the endpoint to a PE and its memory; the binary passes the network with it."""
    code = 0 if journey.code is None else journey.code.memory or 0
    for name in TO_PE:
        yield name, branch.place, journey.there + (code if name == "noc" else 0)
    if branch.memory is not None:
        yield "memory", branch.place, branch.memory


# The description of an endpoint, in the answer of `host_io.describe` and in files of `hostio:`.


def description(machine: Machine) -> dict[str, Any]:
    """Return devices, PEs, memories, kernels, and the most unanswered requests."""
    return {
        "devices": [{"name": name, "sip": sip} for name, sip in machine.devices().items()],
        "places": [place._asdict() for place in machine.places()],
        "memories": list(map(asdict, machine.memories)),
        "builtins": [{"name": name, "parameters": list(known.parameters or ())} for name, known in BUILTINS.items()],
        "queue_depth": machine.size.queue_depth,
    }
