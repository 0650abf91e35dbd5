"""What a pointer argument points to: device or host memory that work uses, and bytes that a call reads (spec 4.4)."""

from __future__ import annotations

from typing import Any

from ..mesh.allocations import Region
from ..mesh.byte_views import byte_view
from ..mesh.memory import AddressSpaceMemory
from ..mesh.pointer_diagnosis import Wanted
from ..numerics.formats import DType
from .arguments import SIZE, integer, invalid
from .streams import Stream

__all__ = ["host_bytes", "region_of", "require_aligned"]


def region_of(
    function: str, argument: str, pointer: Any, bytes: int, space: Wanted, stream: Stream, written: bool = False
) -> Region:
    """The memory of a pointer, for work of a stream: on every device of its mesh (AMB-RT-05). Raises `Failure`."""
    found = stream.mesh.machine.memory.find(pointer, bytes, function, argument, space)
    missing = [each for each in stream.mesh.devices if each not in found.allocation.devices]
    if missing and found.allocation.space == "device":
        given = f"{argument} is memory of devices {list(found.allocation.devices)}, none of device {missing[0]}"
        raise invalid(given, "memory of every device of the stream's mesh")
    if written and found.allocation.read_only:
        raise invalid(f"{argument} is in {found.allocation}, which is read-only", "memory to write")
    return found


def require_aligned(argument: str, pointer: int, dtype: DType) -> None:
    """A pointer to elements of a dtype is a multiple of their size, of 8 at most. Raises `Failure`."""
    step = min(dtype.storage_bytes, 8)
    if pointer % step:
        raise invalid(f"{argument} is {pointer:#x}", f"a multiple of {step}, as {dtype} needs")


def host_bytes(
    memory: AddressSpaceMemory, function: str, argument: str, given: bytes | int, size: int, size_name: str
) -> bytes:
    """The first `size` bytes of host memory, given as they are or by their address. Raises `Failure`."""
    count = integer(size_name, size, SIZE)
    if isinstance(given, int):
        region = memory.find(given, count, function, argument, "host")
        return bytes(memory.read(region, 0, count, function))
    data = byte_view(given, argument)
    if count > len(data):
        raise invalid(f"size {count} of {argument}, which has {len(data)} bytes", f"at most {len(data)}")
    return bytes(data[:count])
