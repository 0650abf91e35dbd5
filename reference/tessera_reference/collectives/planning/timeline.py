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

MOST = 1 << 16
"""Chunks in flight where a plan sets no bound itself."""


def time_plan(
    plan: Plan, groups: Groups, ranks: int, topology: Topology, picoseconds: int, max_inflight: int | None = None
) -> Run:
    """The run of a plan on the first devices of a topology; a slot is named by its unit's number.

    A computation is one unit of all ranks, or, where ranks wait for different chunks, one of each.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for more ranks than devices, and as `select` and `simulate`.
    """
    require_within(NAME, "number of ranks", ranks, 1, len(topology.devices))
    everyone = tuple(range(ranks))
    whole = all(some == (everyone,) for some in groups.values())
    alone = (everyone,) if whole else tuple((rank,) for rank in everyone)
    meeting = {number: groups[step] if isinstance(step, Issue) else alone for number, step in plan.steps.items()}
    chosen = {step: _algorithm(step, groups[step][0], topology) for step in groups}
    work: list[Unit] = []
    for unit in plan.units:
        for members in meeting[unit.id]:
            name, step = _name(unit.id, members), plan.steps[unit.id]
            after = tuple(
                _name(other, some) for other in unit.after for some in meeting[other] if set(some) & set(members)
            )
            if isinstance(step, Issue):
                work.append(_collective(name, unit, step, chosen[step], members, after))
            else:
                takes = picoseconds if isinstance(step, Computation) and step.instruction is not None else 0
                work.append(Compute(name, takes, members, after))
    devices = [device.id for device in topology.devices[:ranks]]
    return simulate(work, topology, devices, max_inflight or MOST)


def _collective(
    name: str, unit: PlannedUnit, step: Issue, algorithm: str, ranks: tuple[int, ...], after: tuple[str, ...]
) -> Collective:
    assert unit.chunk is not None, "a unit of the communication queue"
    size = unit.chunk[1] * dtype(unit.wire or step.operation.x.dtype.name).storage_bytes * _parts(step)
    root = int(str(step.operation.attributes.get("root", 0)))
    return Collective(name, _short(step), algorithm, size, max(size, 1), ranks, root, after)


def _algorithm(step: Issue, group: Sequence[int], topology: Topology) -> str:
    """The one that is named, or selected for as many devices, or, where this group cannot run that, a ring."""
    size = sum(map(elements, step.types)) * step.operation.x.dtype.storage_bytes * _parts(step)
    hint = step.operation.attributes.get("algo") or "auto"
    selection = select(_short(step), size, step.operation.group, topology, str(hint))
    devices = [topology.devices[rank].id for rank in group]
    follows = selection.source == "hint" or selection.algorithm in algorithms(topology, devices)
    return selection.algorithm if follows else "ring"


def _name(unit: int, ranks: tuple[int, ...]) -> str:
    return f"{unit}/{ranks[0]}"


def _short(step: Issue) -> str:
    return step.name.rpartition(".")[2]


def _parts(step: Issue) -> int:
    """Return how many times the full buffer is larger than a rank's contribution."""
    return step.operation.group if _short(step) == "all_gather" else 1
