"""Groups that wait for one another, or fail for one another (runtime specification, 4.6; collectives, 2)."""

from dataclasses import replace

from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.streams import Rendezvous

from .changes import broken


async def whole_mesh(self, rank, right=CollectiveWork.run):
    barriers = self.stream.mesh.__dict__.setdefault("barriers", {})
    met = barriers.setdefault(id(self.rendezvous), Rendezvous.of(self, self.name))
    await met.arrive(self, rank, None, lambda contributions: (0, lambda: None))
    await right(self, rank)


async def all_fail(self, work, complete, right=Rendezvous._complete):
    await right(self, work, complete)
    if self.done.error is not None:
        for other in work.rendezvous.values():
            other.done.fail(self.done.error)


def any_axis(self, rank, rendezvous):
    for other in self.rendezvous.values():
        for before, contribution in list(other.contributions.items()) if other is not rendezvous else ():
            if before in rendezvous.expected:
                call = replace(contribution.call, axis=self.call.axis)
                rendezvous.contributions[before] = replace(contribution, call=call)
            if rank in other.expected:
                call = replace(self.call, axis=contribution.call.axis)
                other.contributions[rank] = replace(contribution, call=call, region=self.region)


VIOLATIONS = [
    broken("COLL-02.1-03", "whole_mesh", "waits for all ranks of the mesh",
        "runtime.collectives.CollectiveWork.run", whole_mesh),
    broken("COLL-02.2-03", "all_fail", "lets all groups fail with one",
        "runtime.streams.Rendezvous._complete", all_fail),
    broken("RT-07-08", "any_axis", "lets ranks of other axes meet",
        "runtime.collectives.CollectiveWork._require_one_axis", any_axis),
]  # fmt: skip
