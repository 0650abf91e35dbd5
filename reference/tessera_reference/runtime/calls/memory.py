"""Memory and copies (runtime spec 4.4; AMB-RT-05, AMB-RT-06, AMB-RT-40, AMB-RT-53)."""

from __future__ import annotations

from typing import Any

from ...abi.enumerations import CopyKind, MemKind
from ...abi.status import Failure, Status
from ...mesh.allocations import Region
from ..arguments import SIZE, integer, invalid, one_of, required
from ..copies import CopyWork
from ..state import entry, entry_giving
from ..streams import Stream
from .streams import StreamCalls

__all__ = ["MemoryCalls"]


SIDES = {
    CopyKind.TESS_COPY_H2D: ("device", "host"),
    CopyKind.TESS_COPY_D2H: ("host", "device"),
    CopyKind.TESS_COPY_D2D: ("device", "device"),
}
"""Where each kind of copy writes and reads."""


class MemoryCalls(StreamCalls):
    """tessMalloc, tessFree, tessHostAlloc, tessHostFree, tessMemcpyAsync."""

    @entry_giving("devPtr")
    def tessMalloc(self, mesh: Any, bytes: int) -> int:  # noqa: N802
        """Global memory, as much on every rank under one pointer (RT-04.4-14, AMB-RT-05)."""
        on = self.mesh(mesh, "tessMalloc")
        size = integer("tessMalloc", "bytes", bytes, SIZE)
        if on.context.faults.of_allocation():
            given = f"{size} bytes, while a fault plan leaves no memory"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "tessMalloc", given, "memory that is there")
        return self.machine.memory.allocate_device(on.devices, size, owner=mesh)

    @entry
    def tessFree(self, mesh: Any, devPtr: Any) -> None:  # noqa: N802, N803
        """Release memory of a mesh once all work is done that could refer to it (RT-04.4-15, AMB-RT-50)."""
        self.mesh(mesh, "tessFree")
        required("tessFree", "devPtr", devPtr)
        self.drain()
        freed = self.machine.memory.free_device(devPtr, owner=mesh)
        self.machine.order.forget(freed.number)

    @entry_giving("hostPtr")
    def tessHostAlloc(self, bytes: int, kind: int) -> int:  # noqa: N802
        """Pinned memory of the host (RT-04.4-16, AMB-RT-06, AMB-RT-07)."""
        function = "tessHostAlloc"
        self.require_initialized(function)
        size = integer(function, "bytes", bytes, SIZE)
        one_of(function, "kind", kind, list(MemKind), "TESS_MEM_PINNED_HOST (1)")
        if kind == MemKind.TESS_MEM_GLOBAL:
            raise invalid(function, "kind is TESS_MEM_GLOBAL", "TESS_MEM_PINNED_HOST (1), since this is host memory")
        return self.machine.memory.allocate_host(size)

    @entry
    def tessHostFree(self, hostPtr: Any) -> None:  # noqa: N802, N803
        """Release host memory once all work is done that could refer to it (RT-04.4-17)."""
        required("tessHostFree", "hostPtr", hostPtr)
        self.drain()
        self.machine.memory.free_host(hostPtr)

    @entry
    def tessMemcpyAsync(self, dst: Any, src: Any, bytes: int, kind: int, stream: Any) -> None:  # noqa: N802
        """Queue a copy (RT-04.4-11, RT-04.4-18 to -20); one of nothing succeeds (AMB-RT-40)."""
        function = "tessMemcpyAsync"
        on = self.stream(stream, function)
        size = integer(function, "bytes", bytes, SIZE)
        one_of(function, "kind", kind, list(CopyKind), "TESS_COPY_H2D (0), TESS_COPY_D2H (1) or TESS_COPY_D2D (2)")
        if size == 0:
            return
        direction = CopyKind(kind)
        to, of = SIDES[direction]
        destination = self.region(function, "dst", required(function, "dst", dst), size, to, on, written=True)
        source = self.region(function, "src", required(function, "src", src), size, of, on)
        name = direction.name.removeprefix("TESS_COPY_").lower()
        work = CopyWork(name=name, stream=on, direction=direction, destination=destination, source=source, bytes=size)
        self.submit(work)

    def region(
        self, function: str, argument: str, pointer: Any, bytes: int, space: Any, stream: Stream, written: bool = False
    ) -> Region:
        """Where a pointer points to, for work of a stream. Raises `Failure`."""
        found = self.machine.memory.find(pointer, bytes, function, argument, space)
        missing = [each for each in stream.mesh.devices if each not in found.allocation.devices]
        if missing and found.allocation.space == "device":
            given = f"{argument} is memory of devices {list(found.allocation.devices)}, none of device {missing[0]}"
            raise invalid(function, given, "memory of every device of the stream's mesh")
        if written and found.allocation.read_only:
            raise invalid(function, f"{argument} is in {found.allocation}, which is read-only", "memory to write")
        return found

    def submit(self, work: Any, *, captured: bool = True) -> None:
        """Queue work, or add it to the capture of its stream."""
        self.log.note("trace", f"{work.function}: {work.name} on stream {work.stream.handle}")
        if captured and work.stream.capture is not None:
            work.stream.capture.add(work)
        else:
            work.stream.enqueue(work)
