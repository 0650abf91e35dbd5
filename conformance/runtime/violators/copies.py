"""Copies that move other bytes, or at another time (runtime specification, 4.4)."""

from tessera_conformance.adapter import Refusal
from tessera_reference.runtime.streams import CopyWork

from .changes import accepting, answering, broken

KINDS = {0: ("RT-04.4-18", "h2d"), 1: ("RT-04.4-19", "d2h"), 2: ("RT-04.4-20", "d2d")}
"""For each kind of copies its clause and its name."""
LARGE = 4096
"""The number of bytes above which a copy is a large one."""


def longer(adapter, call, given):
    try:
        return call(**(given | {"bytes": -(-given["bytes"] // 4) * 4}))
    except Refusal:
        return call(**given)


CHANGES = (
    ("one_less", "leaves the last byte out", lambda given: {"bytes": given["bytes"] - 1}),
    ("first_mib", "copies at most 1 MiB", lambda given: {"bytes": min(given["bytes"], 1 << 20)}),
    ("large_source_rounded", "rounds the source of a large copy down to a word",
        lambda given: {"src": given["src"] // 4 * 4} if given["bytes"] > LARGE else {}),
)  # fmt: skip

CHANGED = [
    *(accepting(clause, f"{short}_{name}", f"{description} in copies of kind {short.upper()}", "tessMemcpyAsync",
        lambda given, kind=kind: given["kind"] == kind and 0 < given["bytes"] < 1 << 32, change)
        for kind, (clause, short) in KINDS.items() for name, description, change in CHANGES),
    *(answering(clause, f"{short}_longer", "copies whole words", "tessMemcpyAsync", longer)
        for clause, short in KINDS.values()),
    broken("RT-04.4-19", "every_rank", "copies to the host from one rank after the other",
        "runtime.streams.CopyWork.run", CopyWork._copied),
]  # fmt: skip
