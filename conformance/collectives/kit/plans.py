"""The properties of a plan that hold under any names: order, overlap, chunks (collectives specification, 2 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias

Unit: TypeAlias = dict[str, Any]

AWAIT = "tessera.await"


def planned(impl: Any, check: Any, text: str, **options: int) -> list[Unit]:
    """Return the units of @f; check that they wait for earlier ones only."""
    units: list[Unit] = check.returns(impl.collectives.plan(text=text, function="f", **options))["units"]
    check.equal([unit["id"] for unit in units], list(range(len(units))), "the numbers of the units, in order")
    early = all(other < unit["id"] for unit in units for other in unit["after"])
    check.true(early, "every unit waits for earlier ones", [unit["after"] for unit in units])
    return units


def chunks(units: Sequence[Unit], result: str | None = None) -> list[Unit]:
    """Return the units of the communication queue: of the collective with a future, or all."""
    return [unit for unit in units if unit["queue"] == "comm" and result in (None, *unit["results"])]


def making(units: Sequence[Unit], result: str) -> Unit:
    """Return the unit of the compute queue that computes a value."""
    (found,) = (unit for unit in units if unit["queue"] == "compute" and result in unit["results"])
    return found


def awaits_of(units: Sequence[Unit]) -> list[Unit]:
    """Return the waits."""
    return [unit for unit in units if unit["op"] == AWAIT]


def before(units: Sequence[Unit]) -> list[set[int]]:
    """Return all units that must have ended before each."""
    found: list[set[int]] = []
    for unit in units:
        found.append(set(unit["after"]).union(*(found[other] for other in unit["after"])))
    return found


def in_order(units: Sequence[Unit], first: Unit, second: Unit) -> bool:
    """True if the second starts only after the first has ended."""
    return first["id"] in before(units)[second["id"]]


def most_at_once(units: Sequence[Unit]) -> int:
    """Return the most chunks that may run together: the size of the largest set in which none waits for another."""
    comm = chunks(units)
    earlier = before(units)
    most = 0
    for size in range(1, len(comm) + 1):
        free = any(
            all(a["id"] not in earlier[b["id"]] for a, b in combinations(chosen, 2))
            for chosen in combinations(comm, size)
        )
        if not free:
            break
        most = size
    return most
