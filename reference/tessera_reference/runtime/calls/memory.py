"""Memory and copies (runtime spec 4.4; AMB-RT-05, AMB-RT-06, AMB-RT-40, AMB-RT-53)."""

# ruff: noqa: N802, N803, the names are those of the C API

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...abi.enumerations import CopyKind, MemKind
from ...abi.status import Failure, Status
from ...mesh.pointer_diagnosis import Wanted
from ..arguments import SIZE, integer, invalid, one_of, required
from ..copies import CopyWork
from ..entries import entry
from ..pointers import region_of
from ..state import State
from ..submission import submit

SIDES: Mapping[CopyKind, tuple[Wanted, Wanted]] = {
    CopyKind.TESS_COPY_H2D: ("device", "host"),
    CopyKind.TESS_COPY_D2H: ("host", "device"),
    CopyKind.TESS_COPY_D2D: ("device", "device"),
}
"""Where each kind of copy writes and reads."""


@entry("devPtr")
def tessMalloc(state: State, mesh: Any, bytes: int) -> int:
    """Global memory, as much on every rank under one pointer (RT-04.4-14, AMB-RT-05)."""
    on = state.mesh(mesh)
    size = integer("bytes", bytes, SIZE)
    if on.context.faults.of_allocation():
        given = f"{size} bytes, while a fault plan leaves no memory"
        raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "", given, "memory that is there")
    return state.machine.memory.allocate_device(on.devices, size, owner=mesh)


@entry()
def tessFree(state: State, mesh: Any, devPtr: Any) -> None:
    """Release memory of a mesh once all work is done that could refer to it (RT-04.4-15, AMB-RT-50)."""
    state.mesh(mesh)
    required("devPtr", devPtr)
    state.drain()
    freed = state.machine.memory.free_device(devPtr, owner=mesh)
    state.machine.order.forget(freed.number)


@entry("hostPtr")
def tessHostAlloc(state: State, bytes: int, kind: int) -> int:
    """Pinned memory of the host (RT-04.4-16, AMB-RT-06, AMB-RT-07)."""
    state.require_initialized()
    size = integer("bytes", bytes, SIZE)
    one_of("kind", kind, list(MemKind), "TESS_MEM_PINNED_HOST (1)")
    if kind == MemKind.TESS_MEM_GLOBAL:
        raise invalid("kind is TESS_MEM_GLOBAL", "TESS_MEM_PINNED_HOST (1), since this is host memory")
    return state.machine.memory.allocate_host(size)


@entry()
def tessHostFree(state: State, hostPtr: Any) -> None:
    """Release host memory once all work is done that could refer to it (RT-04.4-17)."""
    required("hostPtr", hostPtr)
    state.drain()
    state.machine.memory.free_host(hostPtr)


@entry()
def tessMemcpyAsync(state: State, dst: Any, src: Any, bytes: int, kind: int, stream: Any) -> None:
    """Queue a copy (RT-04.4-11, RT-04.4-18 to -20); one of nothing succeeds (AMB-RT-40)."""
    on = state.stream(stream)
    size = integer("bytes", bytes, SIZE)
    one_of("kind", kind, list(CopyKind), "TESS_COPY_H2D (0), TESS_COPY_D2H (1) or TESS_COPY_D2D (2)")
    if size == 0:
        return
    direction = CopyKind(kind)
    to, of = SIDES[direction]
    destination = region_of("tessMemcpyAsync", "dst", required("dst", dst), size, to, on, written=True)
    source = region_of("tessMemcpyAsync", "src", required("src", src), size, of, on)
    name = direction.name.removeprefix("TESS_COPY_").lower()
    work = CopyWork(name=name, stream=on, direction=direction, destination=destination, source=source, bytes=size)
    submit(state, work)
