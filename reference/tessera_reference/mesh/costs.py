"""How long kernels and copies take on the simulated machine, in whole picoseconds (runtime spec 6, 17; RT-17-01).

A kernel takes the time of its launch and one time for each wave of blocks; a copy the latency of its route and the
time of its bytes over the narrowest link. The numbers are of the size of a real machine's, and no more.
What is computed never depends on them (design, section 6). What collectives take follows from their messages
(`collectives.travel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..numerics.errors import shown
from .routes import Link
from .topology import Device, Topology

__all__ = ["COPIES", "carrying", "copy_duration", "kernel_duration", "occupancy", "resident_blocks"]

LAUNCH = 4_000_000
"""Launching a kernel."""
QUICK_LAUNCH = 2_000_000
"""The same under TESS_LAUNCH_LOW_LATENCY."""
WAVE = 2_000_000
"""One block from its start to its end, and so a wave of them that run side by side."""
COPY = 1_500_000
"""Starting a copy."""

THREADS = 2048
"""Threads that a multiprocessor holds, on each of the targets."""
BLOCKS = 32
"""Blocks that a multiprocessor holds at most."""

PICOSECONDS = 10**12
"""Of one second."""

COPIES = ("TESS_COPY_H2D", "TESS_COPY_D2H", "TESS_COPY_D2D")


def resident_blocks(device: Device, block: Sequence[int], shared_bytes: int = 0) -> int:
    """How many blocks one multiprocessor holds at a time: as its threads and shared memory allow, and at least one."""
    by_shared = device.hardware.shared_bytes // shared_bytes if shared_bytes else BLOCKS
    return max(1, min(BLOCKS, THREADS // _threads(device, block), by_shared))


def occupancy(device: Device, grid: Sequence[int], block: Sequence[int], shared_bytes: int = 0) -> float:
    """The part of the device's lanes that the first wave of a kernel takes, above 0 and at most 1 (RT-17-01)."""
    holds = resident_blocks(device, block, shared_bytes) * device.multiprocessors
    taken = min(prod(grid), holds) * _threads(device, block)
    return min(1.0, taken / (THREADS * device.multiprocessors))


def kernel_duration(
    device: Device, grid: Sequence[int], block: Sequence[int], quick: bool = False, shared_bytes: int = 0
) -> int:
    """The launch, at low latency if `quick`, and as many waves as it takes until every block has had its turn."""
    at_once = resident_blocks(device, block, shared_bytes) * device.multiprocessors
    return (QUICK_LAUNCH if quick else LAUNCH) + -(-prod(grid) // at_once) * WAVE


def copy_duration(
    topology: Topology, device: Device, kind: str, bytes: int, pinned: bool = True, down: frozenset[str] = frozenset()
) -> int:
    """A copy of one of the `COPIES` on one device, to or from the application's host, or within its memory.

    Within a device every byte is read and written. Memory of the host that is not pinned passes a buffer that is, and
    so is moved twice. Raises `Failure`: TESS_ERR_INVALID_VALUE for another kind, TESS_ERR_LAUNCH_FAILED where the host
    cannot reach the device over links that are not down.
    """
    if kind not in COPIES:
        hint = did_you_mean(kind, COPIES)
        allowed = ", ".join(COPIES) + (f": {hint}" if hint else "")
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessMemcpyAsync", f"kind {shown(kind)}", allowed)
    if kind == "TESS_COPY_D2D":
        return COPY + carrying(2 * bytes, device.memory_bandwidth)
    way = topology.route(topology.host.name, device.id, down)
    if way is None:
        given = f"no way between {topology.host.name} and device {device.id}"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "tessMemcpyAsync", given, "links that are not down")
    return COPY + _over(way, bytes if pinned else 2 * bytes)


def _over(way: Sequence[Link], bytes: int) -> int:
    return sum(link.latency for link in way) + carrying(bytes, min(link.bandwidth for link in way))


def carrying(bytes: int, bandwidth: int) -> int:
    """The picoseconds that bytes take at a bandwidth in bytes a second, rounded up."""
    return -(-bytes * PICOSECONDS // bandwidth)


def _threads(device: Device, block: Sequence[int]) -> int:
    """The lanes that a block takes: whole warps, in a dimension that is left open (0) one thread."""
    warp = device.hardware.warp
    return -(-prod(size or 1 for size in block) // warp) * warp
