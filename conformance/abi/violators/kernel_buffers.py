"""Runtimes that read the buffer of a launch by another rule (runtime specification, 9 and 10.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import KernelEntry
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import calls

from ...runtime.violators.changes import BuildsOnce

SCALARS, ARGUMENTS = calls.scalars_of, calls.argument_bytes
Found = tuple[Mapping[str, int], Mapping[str, Array]]
LONGEST = 4096


class Slot(NamedTuple):
    """An argument: its type, and its size in bytes by the rule."""

    type: str
    size: int


Rule = Callable[[Sequence[Slot]], Sequence[int]]
"""The offsets at which a kernel reads its arguments."""


def aligned(alignment: Callable[[Slot], int], width: Callable[[Slot], int] = lambda slot: slot.size) -> Rule:
    """Return the rule of consecutive arguments with another alignment or another width."""

    def places(slots: Sequence[Slot]) -> list[int]:
        found, end = [], 0
        for slot in slots:
            found.append(-(-end // alignment(slot)) * alignment(slot))
            end = found[-1] + width(slot)
        return found

    return places


def natural(slot: Slot) -> int:
    """Return the alignment of the specification's rule."""
    return min(slot.size, 8)


RIGHT = aligned(natural)


def sorted_by(key: Callable[[Slot], Any]) -> Rule:
    def places(slots: Sequence[Slot]) -> list[int]:
        order = sorted(range(len(slots)), key=lambda place: key(slots[place]))
        laid = dict(zip(order, RIGHT([slots[place] for place in order]), strict=True))
        return [laid[place] for place in range(len(slots))]

    return places


def reading(clause: str, name: str, description: str, rule: Rule) -> Violation:
    """Return a violation that reads arguments at other offsets."""

    def scalars_of(entry: KernelEntry, buffer: bytes) -> Found:
        layout = entry.layout
        slots = [Slot(parameter.type, size) for parameter, size in zip(entry.parameters, layout.sizes, strict=True)]
        wide, right = buffer.ljust(LONGEST, b"\0"), bytearray(buffer)
        for at, offset, size in zip(rule(slots), layout.offsets, layout.sizes, strict=True):
            right[offset : offset + size] = wide[at : at + size]
        return SCALARS(entry, bytes(right))

    return replaced(clause, description, BuildsOnce, ("runtime.calls.scalars_of", scalars_of), name=name)


def sized(clause: str, name: str, description: str, legal: Callable[[int, int], bool]) -> Violation:
    """Return a violation that accepts other sizes: `legal` takes a size and the end of the last argument."""

    def argument_bytes(kernel: Any, buffer: Any, size: int, stream: Any) -> bytes:
        if not legal(size, kernel.entry.layout.end_of_last_argument):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", f"argSize is {size}")
        return ARGUMENTS(kernel, buffer, size, stream)

    return replaced(clause, description, BuildsOnce, ("runtime.calls.argument_bytes", argument_bytes), name=name)


PLACES = [
    reading("RT-10.1-03", "read_as_words", "looks for every argument at a multiple of 8", aligned(lambda slot: 8)),
    reading("RT-10.1-03", "read_at_four", "looks for 8 bytes at multiples of 4",
        aligned(lambda slot: min(slot.size, 4))),
    reading("RT-09-06", "read_narrow_at_four", "looks for narrow scalars at multiples of 4",
        aligned(lambda slot: min(max(slot.size, 4), 8))),
    reading("RT-09-06", "read_at_two", "looks for scalars at multiples of 2 at most",
        aligned(lambda slot: min(slot.size, 2))),
    reading("RT-10.1-05", "read_wide_pointers", "leaves 16 bytes for a pointer",
        aligned(natural, lambda slot: 16 if slot.type == "ptr" else slot.size)),
    reading("RT-10.1-06", "read_wide_ints", "leaves 8 bytes for an int",
        aligned(natural, lambda slot: 8 if slot.type == "int32" else slot.size)),
    reading("RT-10.1-07", "read_wide_floats", "leaves 8 bytes for a float",
        aligned(natural, lambda slot: 8 if slot.type == "fp32" else slot.size)),
]  # fmt: skip

BYTES = [
    sized("RT-10.1-04", "launched_unrounded", "takes no byte behind the last argument", lambda size, end: size == end),
    sized("RT-10.1-04", "launched_by_sixteen", "takes sizes that are multiples of 16 alone",
        lambda size, _: size % 16 == 0),
    sized("RT-10.1-11", "launched_with_a_count", "wants a word behind the arguments",
        lambda size, end: size >= end + 8),
]  # fmt: skip
