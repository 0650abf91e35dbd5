"""Runtimes that read the buffer of a launch by another rule (runtime specification, 9 and 10.1)."""

from collections import namedtuple

from tessera_conformance.adapter import Refusal

from ...ir.violators.changes import wrapped
from ...runtime.violators.changes import BuildsOnce

Slot = namedtuple("Slot", "type size")
"""An argument: its type, and its size in bytes by the rule."""


def aligned(alignment, width=lambda slot: slot.size):
    """Return the rule of consecutive arguments with another alignment or another width."""

    def places(slots):
        found, end = [], 0
        for slot in slots:
            found.append(-(-end // alignment(slot)) * alignment(slot))
            end = found[-1] + width(slot)
        return found

    return places


def natural(slot):
    return min(slot.size, 8)


RIGHT = aligned(natural)


def sorted_by(key):
    def places(slots):
        order = sorted(range(len(slots)), key=lambda place: key(slots[place]))
        return [laid for _, laid in sorted(zip(order, RIGHT([slots[place] for place in order]), strict=True))]

    return places


def reading(clause, name, description, rule):
    def scalars_of(usual, entry, buffer):
        layout = entry.layout
        slots = [Slot(parameter.type, size) for parameter, size in zip(entry.parameters, layout.sizes, strict=True)]
        wide, right = buffer.ljust(4096, b"\0"), bytearray(buffer)
        for at, offset, size in zip(rule(slots), layout.offsets, layout.sizes, strict=True):
            right[offset : offset + size] = wide[at : at + size]
        return usual(entry, bytes(right))

    return wrapped(clause, name, description, "runtime.calls.scalars_of", scalars_of, BuildsOnce)


def sized(clause, name, description, legal):
    """Return a violation that accepts other sizes: `legal` takes a size and the end of the last argument."""

    def argument_bytes(usual, kernel, buffer, size, stream):
        if not legal(size, kernel.entry.layout.end_of_last_argument):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", f"argSize is {size}")
        return usual(kernel, buffer, size, stream)

    return wrapped(clause, name, description, "runtime.calls.argument_bytes", argument_bytes, BuildsOnce)


VIOLATORS = [
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
    sized("RT-10.1-04", "launched_unrounded", "takes no byte behind the last argument", lambda size, end: size == end),
    sized("RT-10.1-04", "launched_by_sixteen", "takes sizes that are multiples of 16 alone",
        lambda size, _: size % 16 == 0),
    sized("RT-10.1-11", "launched_with_a_count", "wants a word behind the arguments",
        lambda size, end: size >= end + 8),
]  # fmt: skip
