"""What the two queues of a device hold: computations and collectives, and what each of them waits for.

Collectives spec 2.1, 4.1. A unit names the units whose values it uses, and waits for nothing else (COLL-02.1-02, -03).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from ..abi.status import Failure, Status
from ..graph.collective_hints import ALL_TO_ALL_ALGORITHMS
from ..ir.spelling import did_you_mean
from ..numerics.errors import shown
from .argument_checks import require_known, require_within
from .operations import OPERATIONS
from .schedules import ALGORITHMS

__all__ = ["MOST_UNITS", "Collective", "Compute", "Unit", "require_work"]

MOST_UNITS = 1024
_LONGEST = 10**18
"""Picoseconds, and bytes, of one unit."""


@dataclass(frozen=True)
class Compute:
    """A tile or kernel for the compute queue of each of its ranks, which takes so many picoseconds there."""

    id: str
    picoseconds: int
    ranks: tuple[int, ...]
    after: tuple[str, ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class Collective:
    """A collective of its ranks over a full buffer of some bytes, for their communication queues, chunk by chunk.

    Chunk k holds the k-th part of every share, so that all ranks have a part in every chunk (AMB-COLL-68). `fused` is
    what each sender does to a chunk as it sends it: packing, casting.
    """

    id: str
    operation: str
    algorithm: str
    bytes: int
    chunk_bytes: int
    ranks: tuple[int, ...]
    root: int = 0
    after: tuple[str, ...] = ()
    priority: int = 0
    qos: str | None = None
    fused: tuple[str, ...] = ()

    @property
    def chunks(self) -> tuple[int, ...]:
        """The bytes of each chunk; the last may be short, and of no bytes there is none."""
        whole, rest = divmod(self.bytes, self.chunk_bytes)
        return (self.chunk_bytes,) * whole + ((rest,) if rest else ())


Unit: TypeAlias = Compute | Collective


def require_work(function: str, units: Sequence[Unit], ranks: int) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for work that can never be done, naming the unit and why."""
    require_within(function, "number of units", len(units), 0, MOST_UNITS)
    known: dict[str, Unit] = {}
    for unit in units:
        if unit.id in known:
            raise _refusal(function, f"two units {shown(unit.id)}", "each id once")
        known[unit.id] = unit
    for unit in units:
        _require_fit(function, unit, ranks)
        for each in unit.after:
            if each not in known:
                hint = did_you_mean(each, tuple(known))
                raise _refusal(
                    function,
                    f"unit {shown(unit.id)} after {shown(each)}",
                    "ids of units" + (f": {hint}" if hint else ""),
                )
    _require_order(function, known)


def _require_fit(function: str, unit: Unit, ranks: int) -> None:
    name = f"unit {shown(unit.id)}"
    if not unit.ranks or len(set(unit.ranks)) != len(unit.ranks) or not all(0 <= each < ranks for each in unit.ranks):
        raise _refusal(function, f"{name} with ranks {list(unit.ranks)}", f"some of 0 to {ranks - 1}, each once")
    if isinstance(unit, Compute):
        require_within(function, f"picoseconds of {name}:", unit.picoseconds, 0, _LONGEST)
        return
    require_known(function, f"operation of {name}:", unit.operation, OPERATIONS)
    require_known(function, f"algorithm of {name}:", unit.algorithm, tuple(ALGORITHMS))
    if unit.operation == "all_to_all" and unit.algorithm not in ALL_TO_ALL_ALGORITHMS:
        given = f"{name}: all_to_all by {unit.algorithm!r}"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, given, "ring or direct (AMB-COLL-34)")
    require_within(function, f"bytes of {name}:", unit.bytes, 0, _LONGEST)
    require_within(function, f"chunk_bytes of {name}:", unit.chunk_bytes, 1, _LONGEST)
    require_within(function, f"root of {name}:", unit.root, 0, len(unit.ranks) - 1)


def _require_order(function: str, known: Mapping[str, Unit]) -> None:
    sorter = TopologicalSorter({name: unit.after for name, unit in known.items()})
    try:
        sorter.prepare()
    except CycleError as problem:
        cycle = " after ".join(shown(each) for each in problem.args[1])
        raise _refusal(function, f"units that wait for one another: {cycle}", "an order") from None


def _refusal(function: str, given: str, expected: str) -> Failure:
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, given, expected)
