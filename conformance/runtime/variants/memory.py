"""Other memory: where allocations lie, what they hold at first, and what no text says of them (runtime spec 4.4, 9)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.mesh import memory
from tessera_reference.mesh import memory as address_ranges
from tessera_reference.mesh import memory as allocations
from tessera_reference.mesh.memory import Capacity

from .reach import RUNTIME

DEVICE = range(2**61 + 16, 2**61 + 2**52)
REQUIRE = Capacity.require_on_devices
HOST = range(2**60 + 48, 2**60 + 2**52)

ADDRESSES = altered(
    "AMB-RT-103",
    "has memory at multiples of 16 and of no more, beyond what a float holds, the host's below the devices'",
    RUNTIME,
    ReferenceAdapter,
    (address_ranges, "ALIGNMENT", 16),
    (address_ranges, "GUARD", 65536 - 16),
    (memory, "DEVICE", DEVICE),
    (memory, "HOST", HOST),
    name="addresses",
)


@varies(
    "AMB-RT-53", "reads memory of the host when a copy is queued", "runtime/cop*", "runtime/drawn/*", "runtime/stream*"
)
class Snapshots(ReferenceAdapter):
    """Copies what the host has at the call."""

    def runtime_tessMemcpyAsync(self, *, src: Any, kind: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Copy from memory that nobody else has."""
        if kind == 0:
            with suppress(Refusal):
                data = self.runtime_tessxHostRead(hostPtr=src, bytes=arguments["bytes"])
                src = self.runtime_tessxHostMemory(bytes=arguments["bytes"])["hostPtr"]
                self.runtime_tessxHostWrite(hostPtr=src, **data)
        return super().runtime_tessMemcpyAsync(src=src, kind=kind, **arguments)


@varies("AMB-RT-185", "copies memory of a mesh on streams of that mesh alone", "runtime/event*", "runtime/meshes/*")
class OwnMemory(ReferenceAdapter):
    """Memory belongs to the mesh that it was allocated on."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[tuple[range, int]] = []

    def runtime_tessMalloc(self, *, mesh: Any, bytes: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Allocate, and remember the mesh."""
        answer = super().runtime_tessMalloc(mesh=mesh, bytes=bytes, **arguments)
        self.owners.insert(0, (range(answer["devPtr"], answer["devPtr"] + bytes), mesh))
        return answer

    def runtime_tessMemcpyAsync(self, *, dst: Any, src: Any, stream: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Copy within one mesh."""
        own = [handle for handle, mesh in self.runtime.handles.live("mesh") if stream in mesh.streams]
        for pointer in (dst, src):
            owner = next((mesh for place, mesh in self.owners if pointer in place), None)
            if own and owner not in (None, *own):
                raise Refusal("TESS_ERR_INVALID_VALUE", "call", "tessMemcpyAsync: memory of another mesh")
        return super().runtime_tessMemcpyAsync(dst=dst, src=src, stream=stream, **arguments)

    def session_reset(self) -> dict[str, Any]:
        """Forget the owners."""
        self.owners.clear()
        return super().session_reset()


ZEROED = altered(
    "AMB-RT-83",
    "has zeros in memory that nothing was written to",
    RUNTIME,
    ReferenceAdapter,
    (allocations, "NEVER_WRITTEN", 0),
    name="memory_of_zeros",
)


FILLED = altered(
    "AMB-RT-83",
    "has NaN, and the least integers but one, in memory that nothing was written to",
    RUNTIME,
    ReferenceAdapter,
    (allocations, "NEVER_WRITTEN", 0xFF),
    name="memory_of_ones",
)

PAGES = altered(
    "AMB-RT-103",
    "has memory in pages of 2 MiB, far from each other",
    RUNTIME,
    ReferenceAdapter,
    (address_ranges, "ALIGNMENT", 1 << 21),
    (address_ranges, "GUARD", 1 << 30),
    name="pages",
)


def reserved(capacity: Capacity, numbers: Any, size: int) -> None:
    """Keep an eighth of each device for the runtime itself."""
    for number in numbers:
        if capacity.devices[number].in_use + size > capacity.devices[number].total * 7 // 8:
            given = f"{size} bytes of device {number}, of which an eighth is kept"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "tessMalloc", given, "fewer bytes")
    REQUIRE(capacity, numbers, size)


RESERVED = altered(
    "AMB-RT-126",
    "keeps an eighth of each device for itself",
    RUNTIME,
    ReferenceAdapter,
    (Capacity, "require_on_devices", reserved),
    name="reserved_memory",
)


@varies("AMB-RT-40", "gives NULL for memory of no bytes, and frees NULL", *RUNTIME)
class NothingIsNull(ReferenceAdapter):
    """Nothing lies at NULL."""

    def runtime_tessMalloc(self, *, bytes: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Memory of the devices."""
        answer = super().runtime_tessMalloc(bytes=bytes, **arguments)
        return {"devPtr": 0} if bytes == 0 else answer

    def runtime_tessHostAlloc(self, *, bytes: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Memory of the host."""
        answer = super().runtime_tessHostAlloc(bytes=bytes, **arguments)
        return {"hostPtr": 0} if bytes == 0 else answer

    def runtime_tessFree(self, *, devPtr: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Free it."""
        return {} if devPtr == 0 else super().runtime_tessFree(devPtr=devPtr, **arguments)

    def runtime_tessHostFree(self, *, hostPtr: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Free it."""
        return {} if hostPtr == 0 else super().runtime_tessHostFree(hostPtr=hostPtr)


def alone(capacity: Capacity, numbers: Any, size: int) -> None:
    """Compare each allocation with the whole device."""
    if any(size > capacity.devices[number].total for number in numbers):
        raise Refusal("TESS_ERR_OUT_OF_MEMORY", "call", "tessMalloc: no memory")


GIVEN_OUT = altered(
    "AMB-RT-126",
    "compares each allocation with the whole device, and gives out more than there is",
    RUNTIME,
    ReferenceAdapter,
    (Capacity, "require_on_devices", alone),
    name="more_than_there_is",
)
