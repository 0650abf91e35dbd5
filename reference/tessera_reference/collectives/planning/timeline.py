"""The times of a plan's units, as work of the two queues of every device (collectives spec 4.1; AMB-COLL-90).

A computation takes the same time on every rank, a wait and the return take none. A chunk is a collective by the
algorithm that the program names for it, or that is selected for all of its tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...mesh.topology import Topology
from ...numerics.formats import dtype
from ..queues import Collective, Compute, Run, Unit, simulate
from ..schedules import require_within
from ..selection import select
from ..travel import algorithms
from .execution import Groups
from .planner import NAME, Issue, Plan, elements
from .planner import Compute as Computation
from .planner import Unit as PlannedUnit


def time_plan(
    plan: Plan, groups: Groups, ranks: int, topology: Topology, picoseconds: int, max_inflight: int | None = None
) -> Run:
    """The run of a plan on the first devices of a topology; a slot is named by its unit's number.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for more ranks than devices, and as `select` and `simulate`.
    """
    require_within(NAME, "number of ranks", ranks, 1, len(topology.devices))
    work = _Work(plan, groups, ranks, topology, picoseconds)
    devices = [device.id for device in topology.devices[:ranks]]
    return simulate(work.units(), topology, devices, max_inflight or MOST)


MOST = 1 << 16
"""Chunks in flight where a plan sets no bound itself."""


class _Work:
    """The units of a plan as work, once for each group of ranks that run them together."""

    def __init__(self, plan: Plan, groups: Groups, ranks: int, topology: Topology, picoseconds: int) -> None:
        self._plan = plan
        self._groups = groups
        self._topology = topology
        self._picoseconds = picoseconds
        everyone = tuple(range(ranks))
        whole = all(some == (everyone,) for some in groups.values())
        self._alone = (everyone,) if whole else tuple((rank,) for rank in everyone)
        """The ranks of a computation: all at once, or, where they wait for different chunks, each by itself."""
        self._algorithms = {step: self._algorithm(step) for step in groups}

    def units(self) -> list[Unit]:
        """All of them, in order."""
        return [self._unit(unit, ranks) for unit in self._plan.units for ranks in self._ranks(unit.id)]

    def _ranks(self, unit: int) -> Sequence[tuple[int, ...]]:
        step = self._plan.steps[unit]
        return self._groups[step] if isinstance(step, Issue) else self._alone

    def _unit(self, unit: PlannedUnit, ranks: tuple[int, ...]) -> Unit:
        after = tuple(
            _name(other, some) for other in unit.after for some in self._ranks(other) if set(some) & set(ranks)
        )
        step = self._plan.steps[unit.id]
        if not isinstance(step, Issue):
            takes = self._picoseconds if isinstance(step, Computation) and step.instruction is not None else 0
            return Compute(_name(unit.id, ranks), takes, ranks, after)
        assert unit.chunk is not None, "a unit of the communication queue"
        size = unit.chunk[1] * dtype(unit.wire or step.operation.x.dtype.name).storage_bytes * _parts(step)
        return Collective(
            _name(unit.id, ranks),
            _short(step),
            self._algorithms[step],
            size,
            max(size, 1),
            ranks,
            int(str(step.operation.attributes.get("root", 0))),
            after,
        )

    def _algorithm(self, step: Issue) -> str:
        """The one that is named, or selected for as many devices, or, where this group cannot run that, a ring."""
        size = sum(map(elements, step.types)) * step.operation.x.dtype.storage_bytes * _parts(step)
        hint = step.operation.attributes.get("algo") or "auto"
        found = select(_short(step), size, step.operation.group, self._topology, str(hint))
        devices = [self._topology.devices[rank].id for rank in self._groups[step][0]]
        follows = found.source == "hint" or found.algorithm in algorithms(self._topology, devices)
        return found.algorithm if follows else "ring"


def _name(unit: int, ranks: tuple[int, ...]) -> str:
    return f"{unit}/{ranks[0]}"


def _short(step: Issue) -> str:
    return step.name.rpartition(".")[2]


def _parts(step: Issue) -> int:
    """Return how many times the full buffer is larger than a rank's contribution."""
    return step.operation.group if _short(step) == "all_gather" else 1
