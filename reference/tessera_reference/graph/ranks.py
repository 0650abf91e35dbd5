"""The ranks of a mesh side by side: one function, inputs of their own, collectives between them (spec section 9).

Each rank runs as a coroutine until it arrives at a collective or ends. A collective is executed when every rank of its
group has arrived, and only if all arrived at the same one; a rank that waits for ever is found and named (LANG-09-04,
LANG-11-11, LANG-15-12, AMB-RT-13). The n-th collective of one rank of a group meets the n-th of the others. A rank that
issues one with a future goes on and waits where it awaits it (COLL-02.1-02); until then it has a number for it. The two
ends of a message are a group of their own (AMB-COLL-59). Results and diagnostics are those of the state in which no
rank can go on, so that neither depends on the order in which ranks make progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod

import numpy as np

from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.module import Function, Instruction, Module
from ..ir.operation import Refusal
from ..ir.refusals import diagnostic_of
from ..ir.stepwise import Arrival, Steps
from ..ir.types import Mesh, Shard
from ..numerics.array import Array
from ..numerics.formats import dtype
from .collectives import Collective
from .disagreement import Disagreement, Standing, brought, deadlock, mismatch, on_ranks, refused
from .futures import Await, FutureCollective
from .interpreter import FROM_ZERO, Interpreter, RandomSource, reachable
from .mesh_axes import resolve_axis
from .messages import PointToPoint
from .tape import on_types_of

Choice = Callable[[Sequence[int]], int]
"""Of the ranks that can go on, in ascending order, the one that goes on next."""

Combine = Callable[[Collective, Sequence[Array]], Sequence[Array]]
"""What each rank of a group is given by a collective, from what all bring, both in order of the group."""

RankObserver = Callable[[int, Instruction, tuple[Array, ...]], None]
"""As `Observer`, with the rank that has executed the instruction."""


def canonically(collective: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """What is reduced is reduced over the canonical tree."""
    return collective.combine(contributions)


def meets(module: Module, function: Function) -> bool:
    """Whether a function may execute a collective."""
    return any(isinstance(each.operation, Collective) for each in reachable(module, function))


def mesh_in_force(module: Module, function: Function, mesh: str | None) -> str:
    """The mesh whose ranks run a function: the named one, that of its collectives, or the module's only one.

    Raises `Rejection` where there is none, or several of different sizes (AMB-LANG-108).
    """
    named = [each.operation.mesh for each in reachable(module, function) if isinstance(each.operation, Collective)]
    candidates = [mesh] if mesh else list(dict.fromkeys(name for name in named if name)) or list(module.meshes)
    known = [name for name in candidates if name in module.meshes]
    sizes = {module.meshes[name].size for name in known}
    if known == candidates and len(sizes) == 1:
        return known[0]
    if mesh or known != candidates:
        message = f"the module has no mesh {candidates[0]!r}"
    elif not known:
        message = "the module declares no mesh"
    else:
        message = f"which mesh runs it? {', '.join(f'{name} has {module.meshes[name].size} ranks' for name in known)}"
    known_meshes = ", ".join(module.meshes)
    refusal = Refusal(
        "distributed",
        f"@{function.name}: {message}",
        f"one of {known_meshes}" if known_meshes else "a mesh to run on",
        "AMB-LANG-108",
        "name the mesh" if known_meshes else "declare one: mesh g = mesh<axes=[dp], shape=[2]>;",
    )
    raise Rejection([diagnostic_of(refusal, function.location, phase="execute")])


@dataclass(frozen=True)
class Group:
    """Ranks that differ only in their coordinate along an axis of a mesh, in its order."""

    mesh: str
    axis: str
    ranks: tuple[int, ...]
    turn: int = 0
    """How many collectives they have met for before."""

    @classmethod
    def of(cls, name: str, mesh: Mesh, axis: str, rank: int) -> Group:
        """The group of a rank; ranks count row-major over the mesh, the last axis fastest (AMB-RT-02)."""
        index = mesh.axes.index(axis)
        stride, extent = prod(mesh.shape[index + 1 :]), mesh.shape[index]
        first = rank - rank // stride % extent * stride
        return cls(name, axis, tuple(range(first, first + extent * stride, stride)))

    @classmethod
    def in_shard(cls, name: str, mesh: Mesh, shard: Shard, rank: int) -> Group:
        """The group of a rank in a subgroup (AMB-COLL-51). Raises `Refusal` where it is in none."""
        if len(shard.axes) == 1:
            return cls.of(name, mesh, shard.axes[0], rank)
        for ranks in shard.groups:
            if rank in ranks:
                return cls(name, str(shard), ranks)
        if shard.groups:
            requirement = f"one of the groups {', '.join(str(list(ranks)) for ranks in shard.groups)}"
            remedy = "have it issue no collective of this subgroup"
            raise Refusal("distributed", f"rank {rank} is in no group", requirement, "COLL-02.2-03", remedy)
        kept = [mesh.axes.index(axis) for axis in mesh.axes if axis not in shard.axes]
        here = _place(mesh, rank)
        alike = [each for each in range(mesh.size) if all(_place(mesh, each)[i] == here[i] for i in kept)]
        return cls(name, str(shard), tuple(alike))

    def channel(self, message: PointToPoint, rank: int) -> Group:
        """The two ends of a message in this group, first who sends; each tag counts its own messages.

        Raises `Refusal` where a rank is its own peer.
        """
        return replace(self, axis=f"tag {message.tag}", ranks=message.ends(rank, self.ranks))


def _place(mesh: Mesh, rank: int) -> tuple[int, ...]:
    """The coordinates of a rank, row-major."""
    return tuple(rank // prod(mesh.shape[axis + 1 :]) % extent for axis, extent in enumerate(mesh.shape))


def groups_met(module: Module, function: Function) -> Sequence[tuple[int, ...]]:
    """The groups in which ranks may meet in a function, along the axes of its collectives.

    Raises `Rejection` where it is unclear which mesh runs it.
    """
    running = mesh_in_force(module, function, None)
    operations = [each.operation for each in reachable(module, function)]
    along = {
        (each.mesh or running, each.met if isinstance(each, FutureCollective) else Shard((each.axis,))): None
        for each in operations
        if isinstance(each, Collective)
    }
    meshes = module.meshes
    groups = [
        Group.in_shard(name, meshes[name], shard, rank)
        for name, shard in along
        for rank in range(meshes[name].size)
        if not shard.groups or any(rank in ranks for ranks in shard.groups)
    ]
    return list(dict.fromkeys(group.ranks for group in groups))


def run_on_mesh(
    module: Module,
    function: Function,
    arguments: Sequence[tuple[Array, ...]],
    mesh: str,
    observer: RankObserver | None = None,
    choice: Choice = min,
    combine: Combine = canonically,
    source: RandomSource = FROM_ZERO,
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, `arguments` and results by rank; `choice` never changes a bit.

    Raises `Rejection` for ranks that do not come together and for the error of a rank, `UnsupportedConstruct` where
    one goes beyond this interpreter.
    """
    ranks = Ranks(module, function, arguments, mesh, observer, combine, source)
    ranks.run(choice)
    return ranks.results()


class Ranks:
    """The ranks of one run: where each of them is."""

    def __init__(
        self,
        module: Module,
        function: Function,
        arguments: Sequence[tuple[Array, ...]],
        mesh: str,
        observer: RankObserver | None,
        combine: Combine = canonically,
        source: RandomSource = FROM_ZERO,
    ) -> None:
        assert len(arguments) == module.meshes[mesh].size
        self.module = module
        self.function = function
        self.mesh = mesh
        self.combine = combine
        self.running: list[Steps] = [
            Interpreter(module, observer and partial(observer, rank), source=source).run(function, given)
            for rank, given in enumerate(arguments)
        ]
        self.waiting: dict[Group, dict[int, Arrival]] = {}
        self.ended: dict[int, tuple[Array, ...]] = {}
        self.failed: dict[int, Rejection | UnsupportedConstruct] = {}
        self.mismatched: list[Group] = []
        self.broken: set[Group] = set()
        """Groups that meet no more, since what their ranks brought did not match."""
        self.turns: dict[tuple[Group, int], int] = {}
        """How often each rank has come to a collective of each of its groups."""
        self.futures: list[dict[int, Group | Array]] = [{} for _ in arguments]
        """What each rank has issued, by number: where it is to be met for, or its value."""
        self.issued: dict[tuple[Group, int], int] = {}
        """The number of the future that a rank has issued for a meeting of a group."""
        self.awaited: dict[int, int] = {}
        """The future for which a rank waits."""
        self._since: dict[int, float] = {}

    def run(self, choice: Choice) -> None:
        """Let ranks make progress until none can."""
        ready: dict[int, tuple[Array, ...] | None] = dict.fromkeys(range(len(self.running)))
        while ready:
            rank = choice(sorted(ready))
            arrival = self._advance(rank, ready.pop(rank))
            if arrival is not None:
                ready.update(self._arrive(rank, arrival))

    def results(self) -> tuple[tuple[Array, ...], ...]:
        """The results of every rank. Raises `Rejection` and `UnsupportedConstruct` where one has none."""
        if self.failed:
            raise self._failure()
        if self.mismatched:
            group = min(self.mismatched, key=lambda group: (group.ranks, group.axis, group.turn))
            raise Disagreement([mismatch(self.waiting[group])])
        if self.waiting:
            raise Disagreement([deadlock(self._standing())])
        return tuple(self.ended[rank] for rank in range(len(self.running)))

    def _advance(self, rank: int, sent: tuple[Array, ...] | None) -> Arrival | None:
        """Run a rank until it comes to a collective, ends or fails."""
        try:
            return next(self.running[rank]) if sent is None else self.running[rank].send(sent)
        except StopIteration as finished:
            self.ended[rank] = finished.value
        except (Rejection, UnsupportedConstruct) as failure:
            self._fail(rank, failure)
        except RecursionError:
            self._fail(rank, UnsupportedConstruct("execute.deep_calls", self.function.location))
        return None

    def _arrive(self, rank: int, arrival: Arrival) -> Mapping[int, tuple[Array, ...]]:
        """What ranks are sent now that this one has come: itself if it goes on, its group if that is complete."""
        if isinstance(arrival.operation, Await):
            return self._await(rank, arrival)
        try:
            group = self._group(rank, arrival)
        except Refusal as refusal:
            self._fail(rank, refused(arrival, refusal))
            return {}
        lasting = group
        turn = self.turns[group, rank] = self.turns.get((group, rank), -1) + 1
        group = replace(group, turn=turn) if turn else group
        sent: dict[int, tuple[Array, ...]] = {}
        if isinstance(arrival.operation, FutureCollective):
            sent[rank] = (self._issue(rank, group),)
        arrived = self.waiting.setdefault(group, {})
        arrived[rank] = arrival
        if len(arrived) < len(group.ranks) or lasting in self.broken:
            return sent
        first, *others = (arrived[member] for member in group.ranks)
        if any(brought(other) != brought(first) for other in others):
            self.mismatched.append(group)
            self.broken.add(lasting)
            return sent
        del self.waiting[group]
        return {**sent, **self._exchange(group, arrived)}

    def _issue(self, rank: int, group: Group) -> Array:
        """The number by which a rank knows a future."""
        number = self.issued[group, rank] = len(self.futures[rank])
        self.futures[rank][number] = group
        return Array(dtype("int64"), np.asarray(number, np.int64))

    def _await(self, rank: int, arrival: Arrival) -> Mapping[int, tuple[Array, ...]]:
        """The value of a future, if it is there (AMB-COLL-03)."""
        number = int(arrival.operands[0].values)
        value = self.futures[rank][number]
        if isinstance(value, Array):
            return {rank: (value,)}
        self.awaited[rank] = number
        return {}

    def _exchange(self, group: Group, arrived: Mapping[int, Arrival]) -> Mapping[int, tuple[Array, ...]]:
        arrivals = [arrived[member] for member in group.ranks]
        operation = on_types_of(arrivals[0].operation, arrivals[0].operands)
        assert isinstance(operation, Collective)
        try:
            operation.results()  # dimensions are all known by now
            given = self.combine(operation, [arrival.operands[0] for arrival in arrivals])
        except Refusal as refusal:
            for member in group.ranks:
                self._fail(member, refused(arrived[member], refusal), self._number(member, group))
        except MemoryError:
            for member in group.ranks:
                failure = UnsupportedConstruct("execute.more_memory", arrived[member].location)
                self._fail(member, failure, self._number(member, group))
        else:
            pairs = zip(group.ranks, given, strict=True)
            return {member: (array,) for member, array in pairs if self._resumes(member, group, array)}
        return {}

    def _resumes(self, rank: int, group: Group, value: Array) -> bool:
        """Whether a rank has waited for this; keeps the value of a future."""
        number = self._number(rank, group)
        if number is None:
            return True
        self.futures[rank][number] = value
        waits = self.awaited.get(rank) == number
        if waits:
            del self.awaited[rank]
        return waits

    def _number(self, rank: int, group: Group) -> int | None:
        """The future of a rank that a group meets for; nothing where it waits for the collective itself."""
        return self.issued.get((group, rank))

    def _fail(self, rank: int, failure: Rejection | UnsupportedConstruct, number: float | None = None) -> None:
        """Keep the first failure of a rank in the order of its program, in which a future stands where it is issued."""
        since = inf if number is None else number
        if rank not in self.failed or since < self._since[rank]:
            self.failed[rank], self._since[rank] = failure, since

    def _group(self, rank: int, arrival: Arrival) -> Group:
        """Whom a rank meets. Raises `Refusal` where an operation fits no mesh of these ranks."""
        operation = arrival.operation
        assert isinstance(operation, Collective)
        ranks = len(self.running)
        if isinstance(operation, FutureCollective):
            name, mesh, extent = operation.grid, self.module.meshes[operation.grid], operation.group
        else:
            name, extent = resolve_axis(self.module.meshes, operation.axis, operation.mesh or self.mesh)
            mesh = self.module.meshes[name]
        if mesh.size != ranks or extent != operation.group:
            message = f"mesh {name} has {mesh.size} ranks, {extent} of them along {operation.axis}"
            wanted = f"a mesh of the {ranks} ranks of {self.mesh}, {operation.group} of them along {operation.axis}"
            raise Refusal("distributed", message, wanted, "LANG-05.4-04", "run on another mesh")
        if isinstance(operation, FutureCollective):
            group = Group.in_shard(name, mesh, operation.met, rank)
            return group.channel(operation, rank) if isinstance(operation, PointToPoint) else group
        return Group.of(name, mesh, operation.axis, rank)

    def _standing(self) -> list[Standing]:
        """Where every rank is, by rank."""
        return [self._standing_of(rank) for rank in range(len(self.running))]

    def _standing_of(self, rank: int) -> Standing:
        """At what a rank waits; of one that has ended, at the first of its futures that never was complete."""
        open_futures = {number: where for number, where in self.futures[rank].items() if isinstance(where, Group)}
        if rank in self.awaited:
            group: Group | None = open_futures[self.awaited[rank]]
        elif rank in self.ended:
            group = next(iter(open_futures.values()), None)
        else:
            futures = list(open_futures.values())
            group = next(each for each, arrived in self.waiting.items() if rank in arrived and each not in futures)
        if group is None:
            return Standing(rank, None)
        arrived = self.waiting[group]
        return Standing(rank, arrived[rank], tuple(member for member in group.ranks if member not in arrived))

    def _failure(self) -> Rejection | UnsupportedConstruct:
        """The failure of the first rank that failed, naming the ranks that failed alike."""
        first = self.failed[min(self.failed)]
        if isinstance(first, UnsupportedConstruct):
            return first
        alike = [rank for rank, failure in self.failed.items() if _finding(failure) == _finding(first)]
        return on_ranks(first, sorted(alike), len(self.running))


def _finding(failure: Rejection | UnsupportedConstruct) -> object:
    return failure.diagnostics if isinstance(failure, Rejection) else failure
