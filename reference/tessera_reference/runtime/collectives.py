"""Collectives on streams: a rendezvous for each group of ranks along an axis (runtime spec 4.6, 11, 13).

A call of the C API issues a collective on every rank alike. Ranks that issue for themselves may disagree, which is
found at the rendezvous (AMB-RT-13, AMB-RT-41).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..abi.descriptor import Descriptor
from ..abi.enumerations import CollOp
from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status
from ..collectives.durations import collective_duration
from ..collectives.groups import combine, share_of
from ..collectives.ways import way_between
from ..mesh.allocations import Region
from ..numerics.array import Array
from ..numerics.formats import DType
from .algorithms import Plan
from .rendezvous import Rendezvous, require_connected
from .work import Access, Carried, Work

__all__ = ["FUNCTIONS", "CollectiveCall", "CollectiveWork", "Contribution", "Issued"]

FUNCTIONS: Mapping[str, str] = {
    "all_reduce": "tessAllReduce",
    "reduce_scatter": "tessReduceScatter",
    "all_gather": "tessAllGather",
    "broadcast": "tessBroadcast",
}


Met = dict[tuple[int, ...], Rendezvous]
"""The rendezvous of one collective, by group."""


@dataclass(frozen=True)
class CollectiveCall:
    """The parameters of a collective; but for the address of the buffer, they have to be the same on all ranks.

    Of the plan the algorithm has to be, not why it is.
    """

    collective: str
    count: int
    dtype: DType
    plan: Plan
    op: CollOp | None = None
    axis: str | None = None
    root: int | None = None

    @property
    def algorithm(self) -> str:
        """That of the plan."""
        return self.plan.algorithm

    def difference(self, other: CollectiveCall, rank: int) -> str:
        """The first parameter in which another call differs from this one of a rank, in words; empty if none does."""
        for name in ("collective", "count", "dtype", "op", "axis", "root", "algorithm"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name} {theirs} where rank {rank} has {mine}"
        return ""


@dataclass(frozen=True)
class Contribution:
    """What a rank contributes to the rendezvous."""

    call: CollectiveCall
    descriptor: Descriptor
    policy: NumericsPolicy
    region: Region | None


@dataclass(eq=False, kw_only=True)
class CollectiveWork(Work):
    """A collective issued on every rank, or by one rank for itself."""

    kind = "collective"

    call: CollectiveCall
    descriptor: Descriptor
    policy: NumericsPolicy
    region: Region | None
    only: int | None = None
    rendezvous: Met = field(default_factory=dict, init=False)

    @property
    def function(self) -> str:  # type: ignore[override]  # other work has but one
        """The call of this collective."""
        return FUNCTIONS[self.call.collective]

    def ranks(self) -> Sequence[int]:
        """All, or the one that issues it."""
        return super().ranks() if self.only is None else (self.only,)

    def carries(self) -> Sequence[Carried]:
        """Its own."""
        return [Carried(self.call.collective, self.descriptor, self.policy)]

    def accesses(self) -> Sequence[Access]:
        """Its buffer."""
        return [] if self.region is None else [(self.region, self.call.count * self.call.dtype.storage_bytes, True)]

    async def run(self, rank: int) -> None:
        """Combine with the other ranks. Raises `Failure`."""
        mesh = self.stream.mesh
        start = mesh.machine.engine.now
        group = self._group(rank)
        rendezvous = self.rendezvous.setdefault(group, Rendezvous.of(self, self.name, group))
        self._require_one_axis(rank, rendezvous)
        contribution = Contribution(self.call, self.descriptor, self.policy, self.region)
        await rendezvous.arrive(self, rank, contribution, self._complete)
        moved = self.call.count * self.call.dtype.storage_bytes
        self.profile(rank, start, over=lambda: self._link(rank, start), bytes=moved, algorithm=self.call.algorithm)

    def _link(self, rank: int, start: int) -> str | None:
        """The link on which a rank's data leaves it for the next rank of its group, as the links are at the start."""
        mesh = self.stream.mesh
        group = self._group(rank)
        follower = group[(group.index(rank) + 1) % len(group)]
        if follower == rank or not self.call.count:
            return None
        ends, path = (mesh.devices[rank], mesh.devices[follower]), mesh.context.environment.collectives.path
        down = frozenset(cut.link for cut in mesh.context.faults.link_cuts(start) if not cut.at)
        return way_between(mesh.machine.topology, *ends, down, path).links[0]

    def _group(self, rank: int) -> tuple[int, ...]:
        """The ranks that a rank meets, in order of the axis coordinate."""
        return tuple(next(each for each in self.stream.mesh.groups(self.call.axis) if rank in each))

    def _require_one_axis(self, rank: int, rendezvous: Rendezvous) -> None:
        """Let groups fail of which a rank has come along another axis: neither its group nor this one can meet."""
        for other in self.rendezvous.values():
            for before, contribution in other.contributions.items():
                if other is not rendezvous and (before in rendezvous.expected or rank in other.expected):
                    difference = contribution.call.difference(self.call, before)
                    failure = self._mismatch(rank, difference or "another group")
                    other.done.fail(failure)
                    rendezvous.done.fail(failure)

    def _mismatch(self, rank: int, difference: str) -> Failure:
        given = f"rank {rank} brings {difference}"
        return Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, self.function, given, "the same on every rank")

    def _complete(self, contributions: Mapping[int, Contribution]) -> tuple[int, Callable[[], None]]:
        """Combine the contributions of a group once all have come: how long it takes, and what writes the results."""
        self._require_agreement(contributions)
        mesh, group = self.stream.mesh, self._group(next(iter(contributions)))
        require_connected(self, [group])
        results = self._combined(group, contributions)
        duration = self._duration(group)

        def finish() -> None:
            for rank, array in results.items():
                region = contributions[rank].region
                if region is not None:
                    start, stop = self._gets(rank, group)
                    mesh.write(Region(region.allocation, region.offset + start), rank, array.to_bits()[start:stop])

        return duration, finish

    def _duration(self, group: Sequence[int]) -> int:
        """How long it takes a group from now on, on links that may fail meanwhile (AMB-RT-182). Raises `Failure`."""
        mesh, call, context = self.stream.mesh, self.call, self.stream.mesh.context
        try:
            return collective_duration(
                mesh.machine.topology,
                [mesh.devices[rank] for rank in group],
                call.collective,
                call.count * call.dtype.storage_bytes,
                call.algorithm,
                call.root or 0,
                path=context.environment.collectives.path,
                cuts=context.faults.link_cuts(mesh.machine.engine.now),
            )
        except Failure as failure:
            if failure.status is Status.TESS_ERR_LAUNCH_FAILED and context.timeout is not None:
                raise self.timed_out(context.timeout) from None
            raise

    def _share(self, place: int, ranks: int) -> tuple[int, int]:
        """The bytes of the elements that a place in a group owns."""
        size, own = self.call.dtype.storage_bytes, share_of(self.call.count, place, ranks)
        return own.start * size, own.stop * size

    def _brings(self, place: int, ranks: int) -> tuple[int, int]:
        """The bytes of its buffer that a rank contributes."""
        whole = (0, self.call.count * self.call.dtype.storage_bytes)
        if self.call.collective == "all_gather":
            return self._share(place, ranks)
        return (0, 0) if self.call.collective == "broadcast" and place != self.call.root else whole

    def _gets(self, rank: int, group: Sequence[int]) -> tuple[int, int]:
        """The bytes of its buffer that are written on a rank."""
        if self.call.collective != "reduce_scatter":
            return 0, self.call.count * self.call.dtype.storage_bytes
        return self._share(group.index(rank), len(group))

    def _combined(self, group: Sequence[int], contributions: Mapping[int, Contribution]) -> Mapping[int, Array]:
        """What each rank of a group then has in its buffer."""
        call, mesh = self.call, self.stream.mesh
        if call.count == 0 or len(group) == 1:
            return {}
        buffers = []
        for rank in group:
            region = contributions[rank].region
            assert region is not None, "a collective of something has a buffer"
            start, stop = self._brings(group.index(rank), len(group))
            own = Region(region.allocation, region.offset + start)
            mesh.read(own, rank, stop - start, self.function)  # what counts has to have been written
            data = mesh.peek(region, rank, call.count * call.dtype.storage_bytes)
            buffers.append(Array.from_bits(call.dtype, (call.count,), data))
        op = None if call.op is None else call.op.name.removeprefix("TESS_COLL_").lower()
        made = combine(call.collective, buffers, op=op, root=call.root, policy=self.policy, descriptor=self.descriptor)
        return dict(zip(group, made, strict=True))

    def _require_agreement(self, contributions: Mapping[int, Contribution]) -> None:
        lowest, first = next(iter(contributions.items()))
        for rank, each in contributions.items():
            if difference := first.call.difference(each.call, lowest):
                raise self._mismatch(rank, difference)
            for name in ("descriptor", "policy"):
                if getattr(each, name) != getattr(first, name):
                    given = f"rank {rank} brings another {name} than rank {lowest}"
                    raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, self.function, given, "the same on every rank")


@dataclass(eq=False)
class Issued:
    """The collectives that ranks of a stream issued for themselves; the n-th of each rank are one (AMB-RT-41)."""

    counts: dict[int, int] = field(default_factory=dict)
    """By rank."""
    rendezvous: dict[int, Met] = field(default_factory=dict)
    """By number."""
