"""Copies that exceed their memory, and are reported as successful (runtime specification, 4.4; AMB-RT-83)."""

from .changes import answering
from .copies import KINDS


def room(adapter, pointer):
    """Return the bytes from an address to the end of its allocation; without one, more than any copy has."""
    for allocation in adapter.runtime.machine.memory.live():
        if allocation.address <= pointer < allocation.address + allocation.bytes:
            return int(allocation.address + allocation.bytes - pointer)
    return 1 << 64


def cutting(clause, name, description, ends, kinds=(0, 1, 2)):
    """Return a violation whose copies of some kinds move only the bytes that fit, and are successful."""

    def answer(adapter, call, given):
        fits = min(room(adapter, given[end]) for end in ends)
        return call(**(given | {"bytes": min(given["bytes"], fits)} if given["kind"] in kinds else given))

    return answering(clause, name, f"cuts {description}, and reports success", "tessMemcpyAsync", answer)


CUT = [
    *(cutting(clause, f"{short}_cut_at_the_{words}", f"a copy of kind {short.upper()} at the end of its {words}", [end],
        [kind])
        for kind, words, end in ((0, "target", "dst"), (2, "target", "dst"), (1, "source", "src"), (2, "source", "src"))
        for clause, short in [KINDS[kind]]),
    cutting("RT-19.A-01", "all_copies_cut", "every copy to what fits", ["dst", "src"]),
    answering("RT-07-02", "sizes_of_32_bits", "takes the lowest 32 bits of a size", "tessMemcpyAsync",
        lambda adapter, call, given: call(**(given | {"bytes": given["bytes"] % (1 << 32)}))),
]  # fmt: skip
