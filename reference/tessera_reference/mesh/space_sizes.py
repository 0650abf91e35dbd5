"""How large each address space is on a device (runtime spec 9)."""

from __future__ import annotations

from collections.abc import Mapping

from .topology import Device

__all__ = ["CONSTANT_BYTES", "LOCAL_BYTES", "space_sizes"]

CONSTANT_BYTES = 65536
"""Constant memory of a kernel, as CUDA has it for every compute capability."""

LOCAL_BYTES = 524288
"""Local memory of one thread at most, likewise."""


def space_sizes(device: Device) -> Mapping[int, int]:
    """Bytes by number of space: global (1) of the device, shared (3) of a block, constant (4), local (5) of a thread.

    The generic space (0) has none of its own.
    """
    return {1: device.memory_bytes, 3: device.hardware.shared_bytes, 4: CONSTANT_BYTES, 5: LOCAL_BYTES}
