"""The enumerations and flags of the C header besides the status codes (runtime spec 4.4, 4.6, 6)."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from .status import Status

__all__ = ["CollOp", "CopyKind", "LaunchFlag", "MemKind", "constants"]


class MemKind(IntEnum):
    """tessMemKind (RT-04.4-01, -02)."""

    TESS_MEM_GLOBAL = 0
    TESS_MEM_PINNED_HOST = 1


class CopyKind(IntEnum):
    """tessCopyKind (RT-04.4-07 to -09)."""

    TESS_COPY_H2D = 0
    TESS_COPY_D2H = 1
    TESS_COPY_D2D = 2


class CollOp(IntEnum):
    """tessCollOp (RT-04.6-01 to -03)."""

    TESS_COLL_SUM = 0
    TESS_COLL_MAX = 1
    TESS_COLL_MIN = 2


class LaunchFlag(IntFlag):
    """The bits of tessLaunchConfig.flags (RT-06-07, -08, -10, -12, -14)."""

    TESS_LAUNCH_DEFAULT = 0
    TESS_LAUNCH_DETERMINISTIC = 1 << 0
    TESS_LAUNCH_CAPTURE = 1 << 1
    TESS_LAUNCH_PERSISTENT = 1 << 2
    TESS_LAUNCH_LOW_LATENCY = 1 << 3


def constants() -> dict[str, int]:
    """The value of every enumerator and flag of the header, by name."""
    every = (Status, MemKind, CopyKind, CollOp, LaunchFlag)
    return {name: int(value) for enumeration in every for name, value in enumeration.__members__.items()}
