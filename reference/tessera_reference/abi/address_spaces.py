"""The address spaces (runtime spec 9, RT-09-01 to -05, RT-09-09)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ADDRESS_SPACES", "AddressSpace"]


@dataclass(frozen=True)
class AddressSpace:
    """A row of the table: the number of a space, here and in each backend."""

    number: int
    name: str
    purpose: str
    llvm: int
    nvvm: int
    rocdl: int


ADDRESS_SPACES = (
    AddressSpace(0, "generic", "Generic (ptr casts)", llvm=0, nvvm=0, rocdl=0),
    AddressSpace(1, "global", "Global (HBM)", llvm=1, nvvm=1, rocdl=1),
    AddressSpace(3, "shared", "Shared (SMEM/LDS)", llvm=3, nvvm=3, rocdl=3),
    AddressSpace(4, "constant", "Constant", llvm=4, nvvm=4, rocdl=4),
    AddressSpace(5, "local", "Local (stack spills)", llvm=5, nvvm=5, rocdl=5),
)
"""In the order of the specification's table."""
