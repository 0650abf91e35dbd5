"""The ranks of a mesh side by side: one function, inputs of their own, collectives between them (spec section 9).

Each rank runs as a coroutine until it arrives at a collective or ends. A collective is executed when every rank of its
group has arrived, and only if all arrived at the same one; a rank that waits for ever is found and named (LANG-09-04,
LANG-11-11, LANG-15-12, AMB-RT-13). Results and diagnostics are those of the state in which no rank can go on, so that
neither depends on the order in which ranks make progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.module import Function, Instruction, Module
from ..ir.operation import Arrival, Refusal, Steps
from ..ir.refusals import diagnostic_of
from ..ir.types import Mesh
from ..numerics.array import Array
from .collectives import Collective, resolve_axis
from .disagreement import Standing, brought, deadlock, mismatch, on_ranks, refused
from .interpreter import Interpreter, reachable
from .tape import on_types_of

Choice = Callable[[Sequence[int]], int]
"""Of the ranks that can go on, in ascending order, the one that goes on next."""

RankObserver = Callable[[int, Instruction, tuple[Array, ...]], None]
"""As `Observer`, with the rank that has executed the instruction."""


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

    @classmethod
    def of(cls, name: str, mesh: Mesh, axis: str, rank: int) -> Group:
        """The group of a rank; ranks count row-major over the mesh, the last axis fastest (AMB-RT-02)."""
        index = mesh.axes.index(axis)
        stride, extent = prod(mesh.shape[index + 1 :]), mesh.shape[index]
        first = rank - rank // stride % extent * stride
        return cls(name, axis, tuple(range(first, first + extent * stride, stride)))


def groups_met(module: Module, function: Function) -> Sequence[tuple[int, ...]]:
    """The groups in which ranks may meet in a function, along the axes of its collectives.

    Raises `Rejection` where it is unclear which mesh runs it.
    """
    running = mesh_in_force(module, function, None)
    operations = [each.operation for each in reachable(module, function)]
    along = {(each.mesh or running, each.axis): None for each in operations if isinstance(each, Collective)}
    meshes = module.meshes
    groups = [Group.of(name, meshes[name], axis, rank) for name, axis in along for rank in range(meshes[name].size)]
    return list(dict.fromkeys(group.ranks for group in groups))


def run_on_mesh(
    module: Module,
    function: Function,
    arguments: Sequence[tuple[Array, ...]],
    mesh: str,
    observer: RankObserver | None = None,
    choice: Choice = min,
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, `arguments` and results by rank; `choice` never changes a bit.

    Raises `Rejection` for ranks that do not come together and for the error of a rank, `UnsupportedConstruct` where
    one goes beyond this interpreter.
    """
    ranks = Ranks(module, function, arguments, mesh, observer)
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
    ) -> None:
        assert len(arguments) == module.meshes[mesh].size
        self.module = module
        self.function = function
        self.mesh = mesh
        self.running: list[Steps] = [
            Interpreter(module, observer and partial(observer, rank)).run(function, given)
            for rank, given in enumerate(arguments)
        ]
        self.waiting: dict[Group, dict[int, Arrival]] = {}
        self.ended: dict[int, tuple[Array, ...]] = {}
        self.failed: dict[int, Rejection | UnsupportedConstruct] = {}
        self.mismatched: list[Group] = []

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
            group = min(self.mismatched, key=lambda group: group.ranks)
            raise Rejection([mismatch(self.waiting[group])])
        if self.waiting:
            raise Rejection([deadlock(self._standing())])
        return tuple(self.ended[rank] for rank in range(len(self.running)))

    def _advance(self, rank: int, sent: tuple[Array, ...] | None) -> Arrival | None:
        """Run a rank until it comes to a collective, ends or fails."""
        try:
            return next(self.running[rank]) if sent is None else self.running[rank].send(sent)
        except StopIteration as finished:
            self.ended[rank] = finished.value
        except (Rejection, UnsupportedConstruct) as failure:
            self.failed[rank] = failure
        except RecursionError:
            self.failed[rank] = UnsupportedConstruct("execute.deep_calls", self.function.location)
        return None

    def _arrive(self, rank: int, arrival: Arrival) -> Mapping[int, tuple[Array, ...]]:
        """What the ranks of a group are sent, once the last of them has come."""
        try:
            group = self._group(rank, arrival)
        except Refusal as refusal:
            self.failed[rank] = refused(arrival, refusal)
            return {}
        arrived = self.waiting.setdefault(group, {})
        arrived[rank] = arrival
        if len(arrived) < len(group.ranks):
            return {}
        first, *others = (arrived[member] for member in group.ranks)
        if any(brought(other) != brought(first) for other in others):
            self.mismatched.append(group)
            return {}
        del self.waiting[group]
        return self._exchange(group, arrived)

    def _exchange(self, group: Group, arrived: Mapping[int, Arrival]) -> Mapping[int, tuple[Array, ...]]:
        arrivals = [arrived[member] for member in group.ranks]
        operation = on_types_of(arrivals[0].operation, arrivals[0].operands)
        assert isinstance(operation, Collective)
        try:
            operation.results()  # dimensions are all known by now
            given = operation.combine([arrival.operands[0] for arrival in arrivals])
        except Refusal as refusal:
            self.failed |= {member: refused(arrived[member], refusal) for member in group.ranks}
        except MemoryError:
            more = "execute.more_memory"
            self.failed |= {member: UnsupportedConstruct(more, arrived[member].location) for member in group.ranks}
        else:
            return {member: (array,) for member, array in zip(group.ranks, given, strict=True)}
        return {}

    def _group(self, rank: int, arrival: Arrival) -> Group:
        """Whom a rank meets. Raises `Refusal` where an operation fits no mesh of these ranks."""
        operation = arrival.operation
        assert isinstance(operation, Collective)
        name, extent = resolve_axis(self.module.meshes, operation.axis, operation.mesh or self.mesh)
        mesh, ranks = self.module.meshes[name], len(self.running)
        if mesh.size != ranks or extent != operation.group:
            message = f"mesh {name} has {mesh.size} ranks, {extent} of them along {operation.axis}"
            wanted = f"a mesh of the {ranks} ranks of {self.mesh}, {operation.group} of them along {operation.axis}"
            raise Refusal("distributed", message, wanted, "LANG-05.4-04", "run on another mesh")
        return Group.of(name, mesh, operation.axis, rank)

    def _standing(self) -> list[Standing]:
        """Where every rank is, by rank."""
        standing = {rank: Standing(rank, None, ()) for rank in self.ended}
        for group, arrived in self.waiting.items():
            missing = tuple(member for member in group.ranks if member not in arrived)
            standing |= {rank: Standing(rank, arrival, missing) for rank, arrival in arrived.items()}
        return [standing[rank] for rank in sorted(standing)]

    def _failure(self) -> Rejection | UnsupportedConstruct:
        """The failure of the first rank that failed, naming the ranks that failed alike."""
        first = self.failed[min(self.failed)]
        if isinstance(first, UnsupportedConstruct):
            return first
        alike = [rank for rank, failure in self.failed.items() if _finding(failure) == _finding(first)]
        return on_ranks(first, sorted(alike), len(self.running))


def _finding(failure: Rejection | UnsupportedConstruct) -> object:
    return failure.diagnostics if isinstance(failure, Rejection) else failure
