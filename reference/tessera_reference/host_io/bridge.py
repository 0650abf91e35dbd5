"""A host that expresses the runtime's memory and launch operations by the three messages (D2; AMB-HIO-63 to -66).

Device n of the runtime is the n-th PE of the endpoint. An allocation has one physical address, the same on every PE of
its mesh. A copy to or from a device is a write or a read for each rank. A copy on a device is a read and then a write;
a module is a write of its image. Each operation has its own correlation id, each of its messages a request id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from ..abi.fatbin import KernelEntry
from ..numerics.array import Array
from .endpoint import MOST_SUNK, Endpoint, Pair, ids_of
from .frames import ErrorCode, Request, RequestFailed, read_frame, value_of, write_frame
from .launches import NAMES
from .machine import Place
from .messages import (
    KernelLaunch,
    KernelRef,
    MemoryRead,
    MemoryWrite,
    Pattern,
    ScalarArgument,
    TensorArgument,
    TensorPAMap,
    TensorShard,
)

ALIGNMENT = 256
"""The alignment in bytes of allocations' physical addresses."""
FILLS = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4}
ONE_BLOCK = (1, 1, 1), (0, 0, 0)
"""The grid and the block with which the endpoint runs a kernel that is not a program."""


class Exchange(NamedTuple):
    """A sent frame, and its answer."""

    frame: str
    answer: str


class Held(NamedTuple):
    """An allocation: its physical address on every PE, and its bytes."""

    pa: int
    nbytes: int


class Code(NamedTuple):
    """The addresses at which a module's image was deployed."""

    place: Place
    pa: int
    nbytes: int


@dataclass(frozen=True)
class LaunchArguments:
    """The arguments of a launch by parameter: pointer and bytes of each tensor, each scalar; its grid and block."""

    tensors: Mapping[str, tuple[int, int]]
    scalars: Mapping[str, Array]
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (0, 0, 0)


class Bridge:
    """The host of an endpoint. `exchanges` has the frames it sent and their answers.

    Operations raise `RequestFailed`: with UNSUPPORTED for what messages cannot carry, else as the endpoint answers.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.exchanges: list[Exchange] = []
        self._held: dict[int, Held] = {}
        self._images: list[Held] = []
        self._operation = ""
        self._operations = 0
        self._requests = 0

    def places(self, devices: Sequence[int]) -> list[Place]:
        """Return the PEs of some devices: device n is the n-th by SIP, cube and PE (AMB-HIO-63)."""
        size = self.endpoint.machine.size
        places = list(islice(self.endpoint.machine.places(), max(devices, default=0) + 1))
        if max(devices, default=0) >= len(places):
            raise _gap(f"device {max(devices)} on a machine of {size.sips * size.cubes * size.pes} PEs")
        return [places[device] for device in devices]

    def allocate(self, pointer: int, nbytes: int) -> None:
        """Reserve a range of HBM for a pointer of the runtime, the same on every PE. No message is needed."""
        self._held[pointer] = self._reserved(nbytes)

    def free(self, pointer: int) -> None:
        """Release the memory of a pointer, if it has any, for reuse."""
        self._held.pop(pointer, None)

    def write(self, places: Sequence[Place], pointer: int, data: bytes) -> None:
        """Copy from the host: a write for each rank, as a pattern where one produces these bytes."""
        self._begin("write")
        self._write(places, self._pa(pointer), data)

    def read(self, place: Place, pointer: int, nbytes: int) -> bytes:
        """Copy to the host, from one rank."""
        self._begin("read")
        return self._read(place, self._pa(pointer), nbytes)

    def copy(self, places: Sequence[Place], target: int, source: int, nbytes: int) -> None:
        """Copy on each device through the host, since no message moves bytes within a device (AMB-HIO-66)."""
        self._begin("copy")
        for place in places:
            self._write([place], self._pa(target), self._read(place, self._pa(source), nbytes))

    def load(self, image: bytes) -> Code:
        """Deploy a module, by writing its image to the first PE."""
        self._begin("load")
        image_area = self._reserved(len(image))
        self._images.append(image_area)
        place = self.places([0])[0]
        self._write([place], image_area.pa, image)
        return Code(place, *image_area)

    def launch(self, code: Code, kernel: KernelEntry, places: Sequence[Place], arguments: LaunchArguments) -> None:
        """Launch a kernel of a deployed module: one message for each SIP, with the shards of its ranks."""
        self._begin("launch")
        for reason in _obstacles(kernel, arguments):
            raise _gap(f"kernel {kernel.name}: {reason}")
        ranks: dict[int, list[tuple[int, Place]]] = {}
        for rank, place in enumerate(places):
            ranks.setdefault(place.sip, []).append((rank, place))
        self._send([self._launch(code, kernel, ranks[sip], arguments) for sip in sorted(ranks)])

    def _launch(
        self, code: Code, kernel: KernelEntry, ranks: Sequence[tuple[int, Place]], arguments: LaunchArguments
    ) -> KernelLaunch:
        """Return the message for the ranks of one SIP."""
        args = tuple(
            self._tensor(ranks, *arguments.tensors[parameter.name])
            if parameter.type == "ptr"
            else ScalarArgument(NAMES[parameter.type], _number(arguments.scalars[parameter.name]))  # type: ignore[arg-type]
            for parameter in kernel.parameters
        )
        place = code.place.members("deploy")
        reference = KernelRef(kernel.name, "deployed", **place, nbytes_code=code.nbytes, deploy_pa=code.pa)
        return KernelLaunch(**self._envelope(ranks[0][1]), kernel_ref=reference, args=args)

    def _tensor(self, ranks: Sequence[tuple[int, Place]], pointer: int, nbytes: int) -> TensorArgument:
        """Return some ranks' copies as a tensor: the copies of a mesh's ranks one after the other (AMB-HIO-64)."""
        pa = self._pa(pointer)
        shards = (TensorShard(*place, pa, nbytes, rank * nbytes) for rank, place in ranks)
        return TensorArgument(TensorPAMap(tuple(shards)))

    def _write(self, places: Sequence[Place], pa: int, data: bytes) -> None:
        pattern = pattern_of(data)
        requests = [self._memory_write(place, pa, len(data), pattern) for place in places]
        self._send(requests, {} if pattern else {_pair(request): data for request in requests})

    def _memory_write(self, place: Place, pa: int, nbytes: int, pattern: Pattern | None) -> MemoryWrite:
        kind: Any = "host_buffer_ref" if pattern is None else "pattern"
        source = {"dst_pa": pa, "nbytes": nbytes, "src_kind": kind, "pattern": pattern}
        return MemoryWrite(**self._envelope(place), **place.members("dst"), **source)

    def _read(self, place: Place, pa: int, nbytes: int) -> bytes:
        """Read the bytes in requests no larger than the host's buffer."""
        parts = []
        for done in range(0, nbytes, MOST_SUNK):
            count = min(MOST_SUNK, nbytes - done)
            request = MemoryRead(**self._envelope(place), **place.members("src"), src_pa=pa + done, nbytes=count)
            parts.append(self._send([request])[_pair(request)])
        return b"".join(parts)

    def _send(self, requests: Sequence[Request], buffers: Mapping[Pair, bytes] | None = None) -> Mapping[Pair, bytes]:
        """Send requests, as many at a time as the endpoint keeps, and return the data of reads, by ids."""
        shared = self.endpoint.share(buffers or {})
        depth = self.endpoint.machine.size.queue_depth
        for first in range(0, len(requests), depth):
            frames = {_pair(request): write_frame(value_of(request)) for request in requests[first : first + depth]}
            answers = {ids_of(read_frame(frame)): frame for frame in self.endpoint.exchange(frames.values())}
            self.exchanges += (Exchange(frame, answers[pair]) for pair, frame in frames.items())
            for answer in answers.values():
                completion = read_frame(answer)["completion"]
                if not completion["ok"]:
                    raise RequestFailed(ErrorCode(completion["error_code"]), completion["error_message"])
        return shared

    def _begin(self, operation: str) -> None:
        """Begin the next operation, with a new correlation id."""
        self._operations += 1
        self._operation, self._requests = f"{operation}-{self._operations}", 0

    def _envelope(self, place: Place) -> dict[str, Any]:
        """Return the members that every request for a PE has."""
        self._requests += 1
        ids = {"correlation_id": self._operation, "request_id": str(self._requests)}
        return ids | {"target_device": f"sip:{place.sip}"}

    def _pa(self, pointer: int) -> int:
        """Return the physical address of a pointer into an allocation."""
        for start, region in self._held.items():
            if start <= pointer < start + region.nbytes:
                return region.pa + pointer - start
        raise _gap(f"memory at {pointer:#x}, which tessMalloc did not give")

    def _reserved(self, nbytes: int) -> Held:
        """Return the lowest free range of HBM, of at least a byte."""
        memory = next(candidate for candidate in self.endpoint.machine.memories if candidate.kind == "HBM")
        pa = memory.base
        for image in sorted((*self._held.values(), *self._images)):
            if pa + nbytes <= image.pa:
                break
            pa = -(-(image.pa + image.nbytes) // ALIGNMENT) * ALIGNMENT
        if pa + nbytes > memory.base + memory.bytes:
            raise _gap(f"{nbytes} bytes, of which a PE has none left")
        return Held(pa, max(nbytes, 1))


def pattern_of(data: bytes) -> Pattern | None:
    """Return the pattern that produces these bytes, with the shortest element, or None."""
    if not any(data):
        return Pattern("zero")
    for kind, size in FILLS.items():
        if len(data) % size == 0 and data == data[:size] * (len(data) // size):
            return Pattern(kind, int.from_bytes(data[:size], "little"))  # type: ignore[arg-type]
    return None


def _obstacles(kernel: KernelEntry, arguments: LaunchArguments) -> Iterator[str]:
    """Yield the reasons why messages cannot carry a launch (AMB-HIO-65)."""
    if kernel.level != "program" and (arguments.grid, arguments.block) != ONE_BLOCK:
        yield f"grid {arguments.grid} and block {arguments.block}, which are opaque in a message"
    for name, (_, nbytes) in arguments.tensors.items():
        if nbytes == 0:
            yield f"{name} has no bytes, and a shard has at least one"
    for parameter in kernel.parameters:
        if parameter.type not in NAMES:
            yield f"{parameter.name} is {parameter.type}, which no scalar argument is"
            continue
        scalar = arguments.scalars.get(parameter.name)
        if scalar is not None and scalar.dtype.kind == "float" and not isfinite(float(scalar.values)):
            yield f"{parameter.name} is {scalar.values}, which is no number of JSON"


def _number(scalar: Array) -> int | Decimal | bool:
    """Return the exact value of a scalar; a negative zero has a fraction, as many readers drop its sign otherwise."""
    if scalar.dtype.kind == "float":
        number = Decimal(float(scalar.values))
        return number if number else number.quantize(Decimal("0.0"))
    return bool(scalar.values) if scalar.dtype.kind == "bool" else int(scalar.values)


def _pair(request: Request) -> Pair:
    return request.correlation_id, request.request_id


def _gap(reason: str) -> RequestFailed:
    return RequestFailed(ErrorCode.UNSUPPORTED, f"the messages have no way to express {reason}")
