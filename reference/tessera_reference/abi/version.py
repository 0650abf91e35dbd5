"""The versions of the runtime and of its binary interface (runtime spec 4.1, 16; AMB-RT-32)."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["ABI_VERSION", "RUNTIME_VERSION", "AbiVersion", "is_compatible"]

AbiVersion: TypeAlias = tuple[int, int]
"""(major, minor)."""

ABI_VERSION: AbiVersion = (1, 0)
"""What modules are written for and what the runtime offers (RT-16-01)."""

RUNTIME_VERSION = (*ABI_VERSION, 0)
"""What tessGetVersion answers: the ABI version and a patch number."""


def is_compatible(module: AbiVersion, runtime: AbiVersion = ABI_VERSION) -> bool:
    """Whether a runtime loads a module: of its own major, and of no newer minor than its own (RT-16-02, RT-16-03)."""
    return module[0] == runtime[0] and module[1] <= runtime[1]
