"""Collectives on streams (runtime spec 4.6, 11, 13).

Their algorithm, their arguments, and the rendezvous of their ranks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..abi.cache import CacheKey
from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import CollOp, Failure, Status, mismatch, violation
from ..collectives.links import preferred_route
from ..collectives.operations import require_operator
from ..collectives.selection import Selection, choose, followed, require_followed
from ..collectives.travel import collective_duration
from ..mesh.memory import Region
from ..numerics.array import Array
from ..numerics.collectives import group_results, reduced, share_of
from ..numerics.formats import DTYPES, DType, shown
from .launches import CodeCache
from .machine import INT, SIZE, Access, integer, invalid, one_of, required
from .streams import Carried, Mesh, Rendezvous, Stream, Work, region_of, require_aligned, require_connected

# The algorithm of a collective, and the reason for it (runtime spec 13; AMB-RT-180, AMB-RT-181).
#
# `collectives.selection` makes the choice from what a context knows: hints, plans of modules, the environment, the
# autotuner's results. An algorithm changes when a collective ends, never its bits (AMB-RT-26).


def plan(
    mesh: Mesh,
    collective: str,
    count: int,
    dtype: DType,
    axis: str | None,
    cache: CodeCache,
    algorithm: str | None = None,
) -> Selection:
    """Return the algorithm of a collective and the reason for it; a named `algorithm` is taken.

    Raises `Failure` with TESS_ERR_UNSUPPORTED if a group along the axis cannot follow the named algorithm. Other hints
    that a group cannot follow are ignored (RT-08.1-11).
    """
    topology, environment = mesh.machine.topology, mesh.context.environment
    groups = [tuple(mesh.devices[rank] for rank in group) for group in mesh.groups(axis)]
    if algorithm is not None:
        possible = followed(collective, topology, groups)
        require_followed("", algorithm, possible, f"devices {', '.join(map(str, groups[0]))}")
        return Selection(algorithm, "hint")

    size, group, path = count * dtype.storage_bytes, groups[0], environment.collectives.path

    def tuned(possible: Sequence[str]) -> str | None:
        """Return the autotuner's result set in the context, or the algorithm that ends first (RT-08.2-02).

        Return None if the environment does not ask for tuning. The cache keeps the algorithm that ends first.
        """
        result = mesh.context.tuned.get(collective)
        if result is not None or not environment.autotune:
            return result
        store, tags = cache.store(mesh.context), cache.tags(mesh.context.governing())
        machine = (topology.name, group, *(() if path == "auto" else (path,)))
        key = CacheKey((collective, *machine), (count,), dtype.name, cache.arch(*mesh.targets))
        entry = store.get("autotune", key, tags, same_policy=bool(tags.policy.deterministic)) if store else None
        if entry is not None:
            cache.hits += 1
            return entry.decode()
        best = min(possible, key=lambda name: collective_duration(topology, group, collective, size, name, path=path))
        if store is not None:
            cache.misses += 1
            store.put("autotune", key, tags, best.encode())
        return best

    return choose(collective, size, topology, groups, _hint(mesh, collective, axis), environment.collectives, tuned)


def _hint(mesh: Mesh, collective: str, axis: str | None) -> str | None:
    """Return the context's hint of an algorithm, or the one of the module loaded last (AMB-RT-167, AMB-COLL-85)."""
    if collective in mesh.context.hints:
        return mesh.context.hints[collective]
    plans = [plan for module in mesh.context.plans.values() for plan in module]
    key = ("hint", None, collective, axis)
    hints = [plan for plan in plans if (plan.source, plan.subgroup, plan.collective, plan.axis) == key]
    return hints[-1].algorithm if hints else None


# Collectives on streams: a rendezvous for each group of ranks along an axis (runtime spec 4.6, 11, 13).
#
# A call of the C API issues a collective on every rank alike. Ranks that issue for themselves may disagree, which is
# found at the rendezvous (AMB-RT-13, AMB-RT-41).


FUNCTIONS: Mapping[str, str] = {
    "all_reduce": "tessAllReduce",
    "reduce_scatter": "tessReduceScatter",
    "all_gather": "tessAllGather",
    "broadcast": "tessBroadcast",
}


Met = dict[tuple[int, int, int], Rendezvous]
"""The rendezvous of one collective; the key is the first, the last and the number of a group's ranks.
They are evenly spaced, so no rank needs to hash thousands of them."""


@dataclass(frozen=True)
class CollectiveCall:
    """The parameters of a collective, which must be the same on all ranks.

    Addresses of buffers may differ, and so may the reason in the plan, but not its algorithm.
    """

    collective: str
    count: int
    dtype: DType
    plan: Selection
    op: CollOp | None = None
    axis: str | None = None
    root: int | None = None

    @property
    def algorithm(self) -> str:
        """The algorithm of the plan."""
        return self.plan.algorithm

    @property
    def bytes(self) -> int:
        """The number of bytes of the buffer."""
        return self.count * self.dtype.storage_bytes

    def difference(self, other: CollectiveCall, rank: int) -> str:
        """Return the first parameter in which another call differs from this call of `rank`, in words, or ""."""
        for name in ("collective", "count", "dtype", "op", "axis", "root", "algorithm"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name} {theirs} where rank {rank} has {mine}"
        return ""


@dataclass(eq=False, kw_only=True)
class CollectiveWork(Work):
    """A collective issued on every rank or by one rank; each rank brings its own to the rendezvous."""

    kind = "collective"

    call: CollectiveCall
    descriptor: Descriptor
    policy: NumericsPolicy
    region: Region | None
    only: int | None = None
    rendezvous: Met = field(default_factory=dict, init=False)

    @property
    def function(self) -> str:  # type: ignore[override]  # other work has a single function
        """The API function of this collective."""
        return FUNCTIONS[self.call.collective]

    def ranks(self) -> Sequence[int]:
        """Return all ranks, or the one that issues it."""
        return super().ranks() if self.only is None else (self.only,)

    def carries(self) -> Sequence[Carried]:
        return [Carried(self.call.collective, self.descriptor, self.policy)]

    def accesses(self) -> Sequence[Access]:
        return [] if self.region is None else [(self.region, self.call.bytes, True)]

    async def run(self, rank: int) -> None:
        mesh = self.stream.mesh
        start = mesh.machine.engine.now
        group = self._group(rank)
        key = group[0], group[-1], len(group)
        rendezvous = self.rendezvous.get(key)
        if rendezvous is None:
            rendezvous = self.rendezvous[key] = Rendezvous.of(self, self.name, group)
        if self.only is not None:
            self._require_one_axis(rank, rendezvous)
        await rendezvous.arrive(self, rank, self, self._complete)
        over, call = (lambda: self._link(rank, start)), self.call
        self.profile(rank, start, over=over, bytes=call.bytes, algorithm=call.algorithm)

    def _link(self, rank: int, start: int) -> str | None:
        """Return the link from a rank to the next rank of its group, by the state of links at `start`."""
        mesh = self.stream.mesh
        group = self._group(rank)
        follower = group[(bisect_left(group, rank) + 1) % len(group)]
        if follower == rank or not self.call.count:
            return None
        ends, path = (mesh.devices[rank], mesh.devices[follower]), mesh.context.environment.collectives.path
        down = frozenset(cut.link for cut in mesh.context.faults.link_cuts(start) if not cut.at)
        return preferred_route(mesh.machine.topology, *ends, path, down).names[0]

    def _group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of a rank's group, in order of the axis coordinate."""
        return self.stream.mesh.group_of(self.call.axis, rank)

    def _require_one_axis(self, rank: int, rendezvous: Rendezvous) -> None:
        """Fail both groups if a rank issued this collective along another axis, since neither can then complete."""
        for other in self.rendezvous.values():
            for before, contribution in other.contributions.items() if other is not rendezvous else ():
                if before in rendezvous.expected or rank in other.expected:
                    difference = contribution.call.difference(self.call, before)
                    failure = self._mismatch(rank, difference or "another group")
                    other.done.fail(failure)
                    rendezvous.done.fail(failure)

    def _mismatch(self, rank: int, difference: str) -> Failure:
        return mismatch(self.function, f"rank {rank} has {difference}", "the same on every rank")

    def _complete(self, contributions: Mapping[int, CollectiveWork]) -> tuple[int, Callable[[], None]]:
        """Combine the contributions of a whole group; return the duration, and a writer of the results."""
        self._require_agreement(contributions)
        mesh, group = self.stream.mesh, self._group(next(iter(contributions)))
        require_connected(self, [group])
        results = self._combined(group, contributions)
        duration = self._duration(group)

        def finish() -> None:
            encoded: dict[int, bytes] = {}  # ranks with the same result share one object
            for place, (rank, array) in enumerate(results.items()):
                own, _ = contributions[rank]._part(place, len(group), "reduce_scatter")
                bits = encoded.get(id(array)) or encoded.setdefault(id(array), array.to_bits())
                mesh.write(own, rank, bits)

        return duration, finish

    def _duration(self, group: Sequence[int]) -> int:
        """Return a group's duration, on links that may fail meanwhile (AMB-RT-182). Raises `Failure`."""
        mesh, call, context = self.stream.mesh, self.call, self.stream.mesh.context
        try:
            return collective_duration(
                mesh.machine.topology,
                [mesh.devices[rank] for rank in group],
                call.collective,
                call.bytes,
                call.algorithm,
                call.root or 0,
                path=context.environment.collectives.path,
                cuts=context.faults.link_cuts(mesh.machine.engine.now),
            )
        except Failure as failure:
            if failure.status is Status.TESS_ERR_LAUNCH_FAILED and context.timeout is not None:
                raise self.timed_out(context.timeout) from None
            raise

    def _part(self, place: int, ranks: int, sharing: str) -> tuple[Region, int]:
        """Return a place's part of the buffer and its element count; only `sharing` divides the buffer."""
        assert self.region is not None, "a collective of something has a buffer"
        count = self.call.count
        own = share_of(count, place, ranks) if self.call.collective == sharing else slice(0, count)
        offset = self.region.offset + own.start * self.call.dtype.storage_bytes
        return Region(self.region.allocation, offset), own.stop - own.start

    def _combined(self, group: Sequence[int], contributions: Mapping[int, CollectiveWork]) -> Mapping[int, Array]:
        """Return the results of a group's ranks: shares for a reduce-scatter, whole buffers for others."""
        call, mesh, ranks = self.call, self.stream.mesh, len(group)
        if call.count == 0 or ranks == 1:
            return {}
        inputs = []
        for place, rank in enumerate(group):
            own, count = contributions[rank]._part(place, ranks, "all_gather")
            size = count * call.dtype.storage_bytes
            contributed = 0 if call.collective == "broadcast" and place != call.root else size
            mesh.read(own, rank, contributed, self.function)  # contributed bytes must have been written
            inputs.append(Array.from_bits(call.dtype, (count,), mesh.peek(own, rank, size)))
        whole = partial(reduced, _name_of(call.op), tree=self.descriptor.reduction_order)
        results = group_results(call.collective, inputs, ranks, call.root or 0, whole)
        return dict(zip(group, results, strict=True))

    def _require_agreement(self, contributions: Mapping[int, CollectiveWork]) -> None:
        lowest, first = next(iter(contributions.items()))
        for rank, contribution in contributions.items():
            if difference := first.call.difference(contribution.call, lowest):
                raise self._mismatch(rank, difference)
            for name in ("descriptor", "policy"):
                if getattr(contribution, name) != getattr(first, name):
                    subject, expected = f"rank {rank} has another {name} than rank {lowest}", "the same on every rank"
                    raise violation(self.function, subject, expected)


def _name_of(op: CollOp | None) -> str:
    """Return the name of an operator in the reference arithmetic, or "" for none."""
    return "" if op is None else op.name.removeprefix("TESS_COLL_").lower()


@dataclass(eq=False)
class Issued:
    """The collectives that ranks of a stream issued for themselves; the n-th of each rank are one (AMB-RT-41)."""

    counts: dict[int, int] = field(default_factory=dict)
    """The number of collectives issued, by rank."""
    rendezvous: dict[int, Met] = field(default_factory=dict)
    """The rendezvous, by the number of the collective."""


# What a collective checks and reads before it is queued (runtime spec 4.6, 13; AMB-RT-02 to -05, -28, -40, -59).


BY_ID = {dtype.abi_id: dtype for dtype in DTYPES.values() if dtype.abi_id is not None}


def read_call(
    mesh: Mesh,
    code: CodeCache,
    collective: str,
    count: int,
    dtype: int,
    *,
    op: Any = None,
    axis: Any = None,
    root: Any = None,
    algorithm: str | None = None,
) -> CollectiveCall:
    """Return the parameters of a collective, with the plan that it follows. Raises `Failure`."""
    elements = integer("count", count, SIZE)
    if type(dtype) is not int or dtype not in BY_ID:  # RT-04.6-15, AMB-RT-59
        raise invalid(f"dtype is {shown(dtype)}", "an id from 1 to 13")
    element, operator = BY_ID[dtype], None
    if collective in ("all_reduce", "reduce_scatter"):
        one_of("op", op, list(CollOp), "TESS_COLL_SUM (0), TESS_COLL_MAX (1) or TESS_COLL_MIN (2)")
        operator = CollOp(op)
        require_operator(_name_of(operator), element, "")
    if collective == "broadcast":
        integer("root", root, INT)
        if axis is not None:
            raise invalid(f"axis is {shown(axis)}", "none: a broadcast spans the mesh (AMB-RT-02)")
        if not 0 <= root < len(mesh.devices):
            raise invalid(f"root is {root}", f"a rank from 0 to {len(mesh.devices) - 1} (AMB-RT-02)")
    else:
        size = mesh.axes.size_along(axis)
        if collective != "all_reduce" and elements % size:
            subject = f"count {elements} over the {size} ranks of axis {axis}"
            raise invalid(subject, f"a multiple of {size} (AMB-RT-04)")
    chosen = plan(mesh, collective, elements, element, axis, code, algorithm)
    return CollectiveCall(collective, elements, element, chosen, op=operator, axis=axis, root=root)


def collective_work(
    call: CollectiveCall,
    buffer: Any,
    stream: Stream,
    policy: NumericsPolicy,
    descriptor: Descriptor | None = None,
    only: int | None = None,
) -> CollectiveWork:
    """Return the work of a collective on all ranks or on one; without elements it needs no buffer. Raises `Failure`."""
    region = None
    if call.bytes:
        argument = "buffer" if call.collective in ("all_reduce", "broadcast") else "inout"
        pointer = required(argument, buffer)
        region = region_of(FUNCTIONS[call.collective], argument, pointer, call.bytes, "device", stream, written=True)
        require_aligned(argument, pointer, call.dtype)
    descriptor = descriptor or stream.mesh.context.descriptor
    if call.op is not None and descriptor.reduction_order is not None:
        descriptor.reduction_order.require_leaves(stream.mesh.axes.size_along(call.axis))
    name = call.collective
    return CollectiveWork(
        name=name, stream=stream, call=call, descriptor=descriptor, policy=policy, region=region, only=only
    )
