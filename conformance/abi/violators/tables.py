"""Constants and address spaces that are wrong in one place (runtime specification, 4.1, 4.4, 4.6, 6, 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.abi.status import constants
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import changed

CONSTANTS = constants()
CLAUSES = {
    **dict(zip(CONSTANTS, (f"RT-04.1-{number:02}" for number in range(3, 15)), strict=False)),
    "TESS_MEM_GLOBAL": "RT-04.4-01",
    "TESS_MEM_PINNED_HOST": "RT-04.4-02",
    "TESS_COPY_H2D": "RT-04.4-07",
    "TESS_COPY_D2H": "RT-04.4-08",
    "TESS_COPY_D2D": "RT-04.4-09",
    "TESS_COLL_SUM": "RT-04.6-01",
    "TESS_COLL_MAX": "RT-04.6-02",
    "TESS_COLL_MIN": "RT-04.6-03",
    "TESS_LAUNCH_DEFAULT": "RT-06-07",
    "TESS_LAUNCH_DETERMINISTIC": "RT-06-08",
    "TESS_LAUNCH_CAPTURE": "RT-06-10",
    "TESS_LAUNCH_PERSISTENT": "RT-06-12",
    "TESS_LAUNCH_LOW_LATENCY": "RT-06-14",
}


def constant(name: str, slug: str, description: str, **changes: int | None) -> Violation:
    """Return a violation with other values of constants, or without those whose value is None."""
    table = {constant: value for constant, value in (CONSTANTS | changes).items() if value is not None}

    def answer(self: ReferenceAdapter) -> dict[str, Any]:
        return {"constants": table}

    return changed(CLAUSES[name], slug, description, ("adapter.ReferenceAdapter.abi_constants", answer))


ELSEWHERE = [
    constant(name, f"{name.lower()}_elsewhere", f"gives {name} the value {value + 64}", **{name: value + 64})
    for name, value in CONSTANTS.items()
]

MISSING = [
    constant(name, f"no_{name.lower()}", f"leaves {name} out", **{name: None})
    for name in ("TESS_COPY_D2D", "TESS_LAUNCH_LOW_LATENCY")
]


Row = dict[str, Any]


def spaces(clause: str, name: str, description: str, change: Callable[[list[Row]], list[Row]]) -> Violation:
    """Return a violation that changes the table of address spaces."""
    original = ReferenceAdapter.abi_address_spaces

    def answer(self: ReferenceAdapter) -> dict[str, Any]:
        return {"spaces": change(original(self)["spaces"])}

    return changed(clause, name, description, ("adapter.ReferenceAdapter.abi_address_spaces", answer))


def renumbered(clause: str, purpose: str, number: int) -> Violation:
    """Return a violation with another number of a space, in every column."""

    def change(rows: list[Row]) -> list[Row]:
        numbers = dict.fromkeys(("number", "llvm", "nvvm", "rocdl"), number)
        return [row | numbers if row["purpose"] == purpose else row for row in rows]

    return spaces(clause, f"{purpose}_is_{number}", f"puts {purpose} memory into space {number}", change)


def in_backend(clause: str, purpose: str, backend: str, number: int) -> Violation:
    """Return a violation with another number of a space in one backend."""

    def change(rows: list[Row]) -> list[Row]:
        return [row | {backend: number} if row["purpose"] == purpose else row for row in rows]

    return spaces(clause, f"{purpose}_{backend}", f"gives {purpose} memory the number {number} in {backend}", change)


SPACES = [
    renumbered("RT-09-01", "generic", 2),
    renumbered("RT-09-02", "global", 2),
    renumbered("RT-09-04", "constant", 6),
    renumbered("RT-09-05", "local", 6),
    in_backend("RT-09-03", "shared", "rocdl", 2),
    in_backend("RT-09-09", "constant", "nvvm", 2),
]
