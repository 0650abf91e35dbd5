"""Copies that exceed their memory, and are reported as successful (runtime specification, 4.4; AMB-RT-83)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .changes import Call, Given, answering

H2D, D2H, D2D = 0, 1, 2
CLAUSES = {H2D: "RT-04.4-18", D2H: "RT-04.4-19", D2D: "RT-04.4-20"}
NAMES = {H2D: "h2d", D2H: "d2h", D2D: "d2d"}


def room(adapter: Any, pointer: int) -> int:
    """Return the bytes from an address to the end of its allocation; without one, more than any copy has."""
    for allocation in adapter.runtime.machine.memory.live():
        if allocation.address <= pointer < allocation.address + allocation.bytes:
            return int(allocation.address + allocation.bytes - pointer)
    return 1 << 64


def cut(kind: int, ends: tuple[str, ...]) -> Callable[[Any, Call, Given], dict[str, Any]]:
    """Return a call whose copies of a kind move only the bytes that fit."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        if given["kind"] != kind:
            return call(**given)
        fits = min(room(adapter, given[end]) for end in ends)
        return call(**(given | {"bytes": min(given["bytes"], fits)}))

    return answer


CUT = [
    *(
        answering(
            CLAUSES[kind],
            f"{NAMES[kind]}_cut_at_the_{words}",
            f"cuts a copy of kind {NAMES[kind].upper()} at the end of its {words}, and reports success",
            "tessMemcpyAsync",
            cut(kind, (end,)),
        )
        for kind, words, end in (
            (H2D, "target", "dst"),
            (D2D, "target", "dst"),
            (D2H, "source", "src"),
            (D2D, "source", "src"),
        )
    ),
    answering(
        "RT-19.A-01",
        "all_copies_cut",
        "cuts every copy to what fits, and reports success",
        "tessMemcpyAsync",
        lambda adapter, call, given: call(
            **(given | {"bytes": min(given["bytes"], room(adapter, given["dst"]), room(adapter, given["src"]))})
        ),
    ),
    answering("RT-07-02", "sizes_of_32_bits", "takes the lowest 32 bits of a size", "tessMemcpyAsync",
        lambda adapter, call, given: call(**(given | {"bytes": given["bytes"] % (1 << 32)}))),
]  # fmt: skip
