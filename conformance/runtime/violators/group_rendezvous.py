"""Groups that wait for one another, or fail for one another (runtime specification, 4.6; collectives, 2)."""

from __future__ import annotations

from typing import Any

from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.rendezvous import Rendezvous

from .order import broken


async def whole_mesh(self: CollectiveWork, rank: int, right: Any = CollectiveWork.run) -> None:
    """Every group waits until all ranks of the mesh have come."""
    barriers = self.stream.mesh.__dict__.setdefault("barriers", {})
    met: Rendezvous = barriers.setdefault(id(self.rendezvous), Rendezvous.of(self, self.name))
    await met.arrive(self, rank, None, lambda contributions: (0, lambda: None))
    await right(self, rank)


def all_fail(self: Rendezvous, work: Any, complete: Any, right: Any = Rendezvous._complete) -> Any:
    """One group that cannot meet lets all others of the collective fail."""

    async def completed() -> None:
        await right(self, work, complete)
        if self.done.error is not None:
            for other in work.rendezvous.values():
                other.done.fail(self.done.error)

    return completed()


def any_axis(self: CollectiveWork, rank: int, rendezvous: Rendezvous) -> None:
    """Ranks along other axes are not looked at, and are taken for those of the group."""
    for other in self.rendezvous.values():
        if other is not rendezvous and set(other.expected) & set(rendezvous.expected):
            rendezvous.expected = [each for each in rendezvous.expected if each not in other.contributions]


VIOLATIONS = [
    broken("COLL-02.1-03", "whole_mesh", "waits for all ranks of the mesh", CollectiveWork, "run", whole_mesh),
    broken("COLL-02.2-03", "all_fail", "lets all groups fail with one", Rendezvous, "_complete", all_fail),
    broken("RT-07-08", "any_axis", "meets without ranks of other axes", CollectiveWork, "_require_one_axis", any_axis),
]
