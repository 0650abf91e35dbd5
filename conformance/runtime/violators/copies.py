"""Copies that move other bytes, or at another time (runtime specification, 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.runtime.streams import CopyWork

from .changes import BuildsOnce, Call, Given, accepting, answering

H2D, D2H, D2D = 0, 1, 2
KINDS = {H2D: ("RT-04.4-18", "h2d"), D2H: ("RT-04.4-19", "d2h"), D2D: ("RT-04.4-20", "d2d")}
LARGE = 4096
"""The number of bytes above which a copy is a large one."""


def one_less(given: Given) -> Given:
    return {"bytes": given["bytes"] - 1}


def first_mib(given: Given) -> Given:
    return {"bytes": min(given["bytes"], 1 << 20)}


def source_rounded(given: Given) -> Given:
    return {"src": given["src"] // 4 * 4} if given["bytes"] > LARGE else {}


def exchanged(given: Given) -> Given:
    return {"dst": given["src"], "src": given["dst"]}


def longer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**(given | {"bytes": -(-given["bytes"] // 4) * 4}))
    except Refusal:
        return call(**given)


def copying(kind: int, name: str, description: str, change: Callable[[Given], Given]) -> Violation:
    """Return a violation that changes the arguments of non-empty copies of one kind."""
    return accepting(
        KINDS[kind][0],
        name,
        description,
        "tessMemcpyAsync",
        lambda given: given["kind"] == kind and 0 < given["bytes"] < 1 << 32,
        change,
    )


CHANGED = [
    *(
        copying(kind, f"{short}_{name}", f"{description} in copies of kind {short.upper()}", change)
        for kind, (_, short) in KINDS.items()
        for name, description, change in (
            ("one_less", "leaves the last byte out", one_less),
            ("first_mib", "copies at most 1 MiB", first_mib),
            ("large_source_rounded", "rounds the source of a large copy down to a word", source_rounded),
        )
    ),
    *(
        answering(clause, f"{short}_longer", "copies whole words", "tessMemcpyAsync", longer)
        for clause, short in KINDS.values()
    ),
]

EVERY_RANK = replaced("RT-04.4-19", "copies to the host from one rank after the other", BuildsOnce,
                      ("runtime.streams.CopyWork.run", CopyWork._copied), name="every_rank")  # fmt: skip
