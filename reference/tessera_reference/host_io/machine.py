"""The machine behind an endpoint: devices, PEs and the memories that each PE has (D3, D5; `components.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from .errors import ErrorCode, RequestFailed
from .memory import SparseMemory

__all__ = ["MOST_PLACES", "Machine", "MachineSize", "MemoryRange", "Place", "described"]

MOST_PLACES = 1 << 16
"""The PEs of a machine that this reference is ready to list."""


class Place(NamedTuple):
    """A PE; places are ordered by SIP, cube and PE."""

    sip: int
    cube: int
    pe: int


@dataclass(frozen=True)
class MachineSize:
    """SIPs, cubes of each, PEs of each cube, and how many requests may be unanswered."""

    sips: int
    cubes: int
    pes: int
    queue_depth: int


@dataclass(frozen=True)
class MemoryRange:
    """A memory of every PE: its kind, HBM or TCM, its first address and its bytes."""

    kind: str
    base: int
    bytes: int


@cache
def described() -> Mapping[str, Any]:
    """The tables of `components.toml`."""
    return tomllib.loads(files(__package__).joinpath("components.toml").read_text(encoding="utf-8"))


class Machine:
    """The state of the devices: every PE has an address space of its own, of zeros at first."""

    def __init__(self, size: MachineSize | None = None) -> None:
        self.size = size or MachineSize(**described()["size"])
        self.memories = tuple(MemoryRange(**each) for each in described()["memory"])
        self.failing: frozenset[Place] = frozenset()
        """The PEs that fail whatever they are given."""
        self._spaces: dict[Place, SparseMemory] = {}

    def devices(self) -> Mapping[str, int]:
        """The SIP of each device, by the name that `target_device` takes."""
        return {f"sip:{sip}": sip for sip in range(self.size.sips)}

    def places(self) -> Iterator[Place]:
        """Every PE, in order."""
        size = self.size
        for sip in range(size.sips):
            for cube in range(size.cubes):
                yield from (Place(sip, cube, pe) for pe in range(size.pes))

    def has(self, place: Place) -> bool:
        """Whether there is such a PE."""
        return 0 <= place.sip < self.size.sips and 0 <= place.cube < self.size.cubes and 0 <= place.pe < self.size.pes

    def space(self, place: Place) -> SparseMemory:
        """The memory of a PE that exists, by physical address."""
        found = self._spaces.get(place)
        if found is None:
            found = self._spaces[place] = SparseMemory()
        return found

    def require(self, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
        """The bytes lie within one memory of a PE that exists, of the kind named (AMB-HIO-44, AMB-HIO-46).

        Raises `RequestFailed` with UNKNOWN_PLACE or ADDRESS_OUT_OF_RANGE.
        """
        if not self.has(place):
            size = f"{self.size.sips} SIPs of {self.size.cubes} cubes of {self.size.pes} PEs"
            raise RequestFailed(ErrorCode.UNKNOWN_PLACE, f"no PE {_told(place)} among {size}", field)
        for each in self.memories:
            if each.base <= pa and pa + nbytes <= each.base + each.bytes and kind in ("AUTO", each.kind):
                return
        within = "one memory" if kind == "AUTO" else kind
        reason = f"{nbytes} bytes from {pa:#x} are not within {within} of PE {_told(place)}"
        raise RequestFailed(ErrorCode.ADDRESS_OUT_OF_RANGE, reason, field)

    def require_working(self, place: Place) -> None:
        """A PE does what it is given. Raises `RequestFailed` with PE_FAULT."""
        if place in self.failing:
            raise RequestFailed(ErrorCode.PE_FAULT, f"PE {_told(place)} failed")


def _told(place: Place) -> str:
    return f"sip {place.sip} cube {place.cube} pe {place.pe}"
