"""Why a pointer is refused, in words (AMB-RT-38; the kinds are those of `findings`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..ir.spelling import counted
from ..numerics.errors import shown
from .address_ranges import GUARD, AddressRange
from .allocations import Allocation
from .findings import FindingKind

__all__ = ["Diagnosis", "Wanted", "diagnose", "diagnose_free"]

Wanted = Literal["device", "host", "any"]

_LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with a pointer, and of which kind of finding it is, if of any."""

    text: str
    kind: FindingKind | None = None


def diagnose(address: object, bytes: object, wanted: Wanted, ranges: tuple[AddressRange, ...]) -> Diagnosis:
    """Why `bytes` bytes at an address cannot be used."""
    if type(address) is not int or not 0 <= address <= _LARGEST:
        return Diagnosis(f"{shown(address)}, which is no address")
    if type(bytes) is not int or bytes < 0:
        return Diagnosis(f"{address:#x} for {shown(bytes)} bytes, which is no size")
    if address == 0:
        return Diagnosis("NULL")
    for each in ranges:
        found = _in_range(address, bytes, wanted, each)
        if found:
            return found
    return Diagnosis(f"{address:#x}, where nothing is allocated")


def _in_range(address: int, bytes: int, wanted: Wanted, held: AddressRange) -> Diagnosis | None:
    at = held.at(address)
    if at is not None and (address < at.stop or address == at.address):
        return _inside(address, bytes, wanted, at)
    return _beside(address, at, held.after(address))


def _inside(address: int, bytes: int, wanted: Wanted, at: Allocation) -> Diagnosis:
    place = f"{address:#x}, offset {address - at.address} of {at}"
    if at.freed:
        return Diagnosis(f"{place}, which was freed", "use_after_free")
    if wanted not in ("any", at.space):
        return Diagnosis(f"{place}, a {at.space} pointer where a {wanted} pointer is wanted", "host_device_mixup")
    past = address + bytes - at.stop
    return Diagnosis(f"{place}, from where {counted(bytes, 'byte')} go {past} past its end", "overrun")


def _beside(address: int, at: Allocation | None, after: Allocation | None) -> Diagnosis | None:
    """In the zone around an allocation, of which the nearer one is named."""
    past = address - at.stop if at is not None else GUARD
    before = after.address - address if after is not None else GUARD
    if at is not None and past < GUARD and past <= before:
        return Diagnosis(f"{address:#x}, {counted(past, 'byte')} past the end of {_named(at)}", "overrun")
    if after is not None and before < GUARD:
        return Diagnosis(f"{address:#x}, {counted(before, 'byte')} before {_named(after)}", "overrun")
    return None


def _named(allocation: Allocation) -> str:
    return f"{allocation}, which was freed" if allocation.freed else str(allocation)


def diagnose_free(address: object, wanted: Wanted, ranges: tuple[AddressRange, ...]) -> Diagnosis:
    """Why an address cannot be freed."""
    at = _holding(address, ranges)
    if at is None:
        return Diagnosis(diagnose(address, 0, wanted, ranges).text)
    if at.freed:
        return Diagnosis(f"{at}, which was freed before", "double_free")
    if at.space != wanted:
        return Diagnosis(f"{at}, a {at.space} pointer where a {wanted} pointer is wanted", "host_device_mixup")
    if address != at.address:
        return Diagnosis(f"{address:#x}, inside {at} and not its start")
    return Diagnosis(f"{at}, which belongs to another mesh")


def _holding(address: object, ranges: tuple[AddressRange, ...]) -> Allocation | None:
    """The allocation, live or freed, that an address is in, or is the start of."""
    if type(address) is not int:
        return None
    found = (held.at(address) for held in ranges)
    return next((each for each in found if each and (address < each.stop or address == each.address)), None)
