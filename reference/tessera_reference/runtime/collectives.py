"""Collectives on streams: all ranks of a mesh meet, in groups along an axis (runtime spec 4.6, 11, 13).

A call of the C API issues a collective on every rank alike. Ranks that issue for themselves may disagree, which is
found when they meet (AMB-RT-13, AMB-RT-41).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..abi.descriptor import Descriptor
from ..abi.enumerations import CollOp
from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status
from ..collectives.groups import combine, share_of
from ..mesh.allocations import Region
from ..mesh.costs import collective_duration
from ..mesh.engine import Signal
from ..numerics.array import Array
from ..numerics.formats import DType
from .rendezvous import Meeting, require_connected
from .work import Access, Carried, Work

__all__ = ["FUNCTIONS", "CollectiveCall", "CollectiveWork"]

FUNCTIONS: Mapping[str, str] = {
    "all_reduce": "tessAllReduce",
    "reduce_scatter": "tessReduceScatter",
    "all_gather": "tessAllGather",
    "broadcast": "tessBroadcast",
}


@dataclass(frozen=True)
class CollectiveCall:
    """What a rank asks for; apart from where its buffer lies, all ranks have to ask for the same."""

    collective: str
    count: int
    dtype: DType
    algorithm: str
    op: CollOp | None = None
    axis: str | None = None
    root: int | None = None

    def difference(self, other: CollectiveCall) -> str:
        """The first thing in which another asks for something else, in words; empty where nothing differs."""
        for name in ("collective", "count", "dtype", "op", "axis", "root", "algorithm"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name} {theirs} where rank 0 has {mine}"
        return ""


@dataclass(frozen=True)
class Brought:
    """What a rank brings to a meeting."""

    call: CollectiveCall
    descriptor: Descriptor
    policy: NumericsPolicy
    region: Region | None


@dataclass(eq=False, kw_only=True)
class CollectiveWork(Work):
    """A collective of every rank, or the part of a single one that issues it for itself."""

    kind = "collective"

    call: CollectiveCall
    descriptor: Descriptor
    policy: NumericsPolicy
    region: Region | None
    only: int | None = None
    joined: Meeting | None = None
    meeting: Meeting | None = field(default=None, init=False)

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
        """Meet the others. Raises `Failure`."""
        start = self.stream.mesh.machine.engine.now
        meeting = self.joined or self._meeting()
        brings = Brought(self.call, self.descriptor, self.policy, self.region)
        await meeting.come(self, rank, brings, self._conclude)
        moved = self.call.count * self.call.dtype.storage_bytes
        self.profile(rank, start, over=lambda: self._link(rank), bytes=moved)

    def _link(self, rank: int) -> str | None:
        """The link on which a rank's data leaves it for the next rank of its group."""
        mesh = self.stream.mesh
        group = next(each for each in self._groups() if rank in each)
        follower = group[(group.index(rank) + 1) % len(group)]
        way = mesh.machine.topology.route(mesh.devices[rank], mesh.devices[follower])
        return way[0].name if way else None

    def _groups(self) -> Sequence[tuple[int, ...]]:
        """The ranks that combine: all, or those of each group along the axis."""
        mesh, axis = self.stream.mesh, self.call.axis
        return [tuple(range(len(mesh.devices)))] if axis is None else mesh.axes.groups(axis)

    def _meeting(self) -> Meeting:
        if self.meeting is None:
            self.meeting = new_meeting(self)
        return self.meeting

    def _conclude(self, brought: Mapping[int, Brought]) -> tuple[int, Callable[[], None]]:
        """Compare what the ranks bring, combine it, and say how long that takes."""
        self._require_agreement(brought)
        mesh, call = self.stream.mesh, self.call
        groups = self._groups()
        require_connected(self, groups)
        size = call.count * call.dtype.storage_bytes
        results: dict[int, Array] = {}
        for group in groups:
            results.update(self._combined(group, brought))
        duration = max(
            collective_duration(
                mesh.machine.topology,
                [mesh.devices[rank] for rank in group],
                call.collective,
                size,
                call.algorithm,
                call.root or 0,
            )
            for group in groups
        )

        def finish() -> None:
            for rank, array in results.items():
                region = brought[rank].region
                if region is not None:
                    start, stop = self._gets(rank, groups)
                    mesh.write(Region(region.allocation, region.offset + start), rank, array.to_bits()[start:stop])

        return duration, finish

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

    def _gets(self, rank: int, groups: Sequence[Sequence[int]]) -> tuple[int, int]:
        """The bytes of its buffer that are written on a rank."""
        if self.call.collective != "reduce_scatter":
            return 0, self.call.count * self.call.dtype.storage_bytes
        group = next(each for each in groups if rank in each)
        return self._share(group.index(rank), len(group))

    def _combined(self, group: Sequence[int], brought: Mapping[int, Brought]) -> Mapping[int, Array]:
        """What each rank of a group then has in its buffer."""
        call, mesh = self.call, self.stream.mesh
        if call.count == 0 or len(group) == 1:
            return {}
        buffers = []
        for rank in group:
            region = brought[rank].region
            assert region is not None, "a collective of something has a buffer"
            start, stop = self._brings(group.index(rank), len(group))
            own = Region(region.allocation, region.offset + start)
            mesh.read(own, rank, stop - start, self.function)  # what counts has to have been written
            data = mesh.peek(region, rank, call.count * call.dtype.storage_bytes, self.function)
            buffers.append(Array.from_bits(call.dtype, (call.count,), data))
        op = None if call.op is None else call.op.name.removeprefix("TESS_COLL_").lower()
        made = combine(call.collective, buffers, op=op, root=call.root, policy=self.policy, descriptor=self.descriptor)
        return dict(zip(group, made, strict=True))

    def _require_agreement(self, brought: Mapping[int, Brought]) -> None:
        first = brought[0]
        for rank, each in brought.items():
            difference = first.call.difference(each.call)
            if difference:
                given = f"rank {rank} brings {difference}"
                raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, self.function, given, "the same on every rank")
            for name in ("descriptor", "policy"):
                if getattr(each, name) != getattr(first, name):
                    given = f"rank {rank} brings another {name} than rank 0"
                    raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, self.function, given, "the same on every rank")


def new_meeting(work: CollectiveWork) -> Meeting:
    """A meeting of all ranks of a stream."""
    mesh = work.stream.mesh
    done = Signal(mesh.machine.engine, f"the ranks of {work.name}", work.stream.workers)
    return Meeting(work.name, done, len(mesh.devices))
