"""Execution of Graph IR: a function on one rank, or on all ranks of a mesh side by side (spec sections 4, 9)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise, product
from math import inf, prod

import numpy as np

from ..ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct
from ..ir.operation import Arrival, Function, Instruction, Module, Refusal, Steps, diagnostic_of
from ..ir.types import Mesh, Shard
from ..numerics.array import Array
from ..numerics.formats import dtype
from .collectives import Collective
from .futures import Await, FutureCollective, PointToPoint
from .grad import on_types_of
from .interpreter import FROM_ZERO, InputMismatch, Interpreter, Observer, RandomSource, bind, describe, reachable

# Diagnostics of ranks that disagree: who is where, what differs, what to do (spec sections 9, 11, 15).
#
# LANG-09-04, LANG-11-11, LANG-11-12, LANG-15-11, LANG-15-12; AMB-RT-13.


_MOST_PLACES = 8
"""The number of places that a diagnostic lists."""

_MOST_LINKS = 4
"""The number of ranks of a circle that a diagnostic names."""


SAME = "have every rank of the group run the same collectives in the same order"
SAME_ORDER = ("the same collectives, in the same order, on every rank of the group", "AMB-RT-13", SAME)
ONE_AXIS = ("one axis on every rank of the group", "LANG-11-11", SAME)
BOTH_ENDS = (
    "a recv of its tag at the peer for every send, and a send for every recv, issued before a rank waits for the other",
    "AMB-COLL-59",
    "issue sends and recvs before awaiting any of them",
)
"""The rule broken where ranks wait forever: requirement, clause, remedy."""


class Disagreement(Rejection):
    """Ranks arrived at different collectives, or wait for ranks that never arrive (AMB-RT-13)."""


@dataclass(frozen=True, eq=False)
class Standing:
    """The state of a rank: at a collective at which `missing` ranks have not arrived, or at its end."""

    rank: int
    arrival: Arrival | None
    missing: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "ended" if self.arrival is None else shown(self.arrival)


def spelled(arrival: Arrival) -> str:
    """Return the collective of an arrival as the source writes it."""
    return (*arrival.operation.spellings, arrival.operation.short_name)[0]


def shown(arrival: Arrival) -> str:
    """Return the text of a collective with a rank's operand, and its place."""
    attributes = ", ".join(f"{name}={value}" for name, value in arrival.operation.attributes.items())
    types = ", ".join(describe(operand) for operand in arrival.operands)
    return f"{spelled(arrival)}({types}, {attributes}) in {arrival.location}"


def brought(arrival: Arrival) -> dict[str, object]:
    """Return the fields on which the ranks of a group must agree, by name."""
    (x,) = arrival.operands
    assert isinstance(arrival.operation, Collective)
    own = arrival.operation.terms()
    operation = "message" if isinstance(arrival.operation, PointToPoint) else spelled(arrival)
    return {"operation": operation, **own, "dtype": x.dtype, "shape": list(x.shape)}


def mismatch(arrived: Mapping[int, Arrival]) -> Diagnostic:
    """Return the diagnostic of a group whose ranks arrived at different collectives."""
    first, *others = sorted(arrived)
    expected = brought(arrived[first])
    odd = next(rank for rank in others if brought(arrived[rank]) != expected)
    actual = brought(arrived[odd])
    what = next(name for name in dict.fromkeys([*expected, *actual]) if expected.get(name) != actual.get(name))
    values = f"{expected.get(what, 'none')} and {actual.get(what, 'none')}"
    message = f"{spelled(arrived[odd])}: the {what} of ranks {first} and {odd} differs: {values}"
    standing = [Standing(rank, arrived[rank]) for rank in sorted(arrived)]
    clause = {"dtype": "LANG-15-12", "shape": "LANG-09-04"}.get(what, "AMB-RT-13")
    remedy = "give every rank an operand of the same type" if what in ("dtype", "shape") else SAME
    return _diagnostic(arrived[odd], message, standing, f"one {what} on every rank of the group", clause, remedy)


def deadlock(standing: Sequence[Standing]) -> Diagnostic:
    """Return the diagnostic of ranks that wait for each other, or for a rank that has ended."""
    places = {run.rank: run for run in standing}
    chain = [next(run for run in standing if run.arrival is not None)]
    while chain[-1].missing and chain[-1] not in chain[:-1]:
        chain.append(places[chain[-1].missing[0]])
    if chain[-1].arrival is None:
        waiting, awaited = chain[-2:]
        message = f"rank {waiting.rank} waits for rank {awaited.rank}, which has ended"
        rule = SAME_ORDER
    else:
        circle = chain[chain.index(chain[-1]) :]
        waiting = circle[0]
        links = [f"{_where(a)} for rank {b.rank}" for a, b in pairwise(circle)]
        message = f"rank {waiting.rank} waits {', which waits '.join(links[:_MOST_LINKS])}"
        message += f", and so on through {len(links)} ranks" if len(links) > _MOST_LINKS else ""
        rule = ONE_AXIS
    assert waiting.arrival is not None
    if any(run.arrival is not None and isinstance(run.arrival.operation, PointToPoint) for run in chain):
        rule = BOTH_ENDS
    return _diagnostic(waiting.arrival, f"{spelled(waiting.arrival)}: {message}", standing, *rule)


def refused(arrival: Arrival, refusal: Refusal) -> Rejection:
    """Return the rejection of a collective that a dimension known only at run time makes illegal."""
    operands = tuple(f"operand is {describe(operand)}" for operand in arrival.operands)
    problem = diagnostic_of(refusal, arrival.location, operands, "execute")
    return Rejection([replace(problem, message=f"{spelled(arrival)}: {refusal.message}")])


def on_ranks(failure: Rejection, ranks: Sequence[int], total: int) -> Rejection:
    """Return the failure of some ranks, naming them."""
    who = "every rank" if len(ranks) == total else _ranks(ranks)
    return Rejection(replace(finding, message=f"{finding.message}, on {who}") for finding in failure.diagnostics)


def _where(standing: Standing) -> str:
    assert standing.arrival is not None
    assert isinstance(standing.arrival.operation, Collective)
    return standing.arrival.operation.where()


def _diagnostic(
    at: Arrival, message: str, standing: Iterable[Standing], requirement: str, clause: str, remedy: str
) -> Diagnostic:
    span, filename = at.location.span, at.location.filename
    operands = _places(standing)
    return Diagnostic("distributed", "execute", message, span, filename, operands, requirement, clause, remedy)


def _places(standing: Iterable[Standing]) -> tuple[str, ...]:
    """Return the place of every rank, with ranks at one place together."""
    together: dict[str, list[int]] = {}
    for run in standing:
        together.setdefault(str(run), []).append(run.rank)
    groups = [f"{_ranks(ranks)}: {where}" for where, ranks in together.items()]
    more = len(groups) - _MOST_PLACES
    return (*groups[:_MOST_PLACES], *([f"others at {more} more places"] if more > 0 else []))


def _ranks(ranks: Sequence[int]) -> str:
    """Return the words for ranks in ascending order: `rank 3`, `ranks 1 and 2`, `ranks 0 to 2 and 5`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(parts[:-1])}{' and ' * (len(parts) > 1)}{parts[-1]}"


# The ranks of a mesh side by side: one function, inputs of their own, collectives between them (spec section 9).
#
# Each rank runs as a coroutine until it arrives at a collective or ends. A collective is executed when every rank of
# its group has arrived, and only if all arrived at the same one; a rank that waits forever is found and named
# (LANG-09-04, LANG-11-11, LANG-15-12, AMB-RT-13). The n-th collective of one rank of a group matches the n-th of the
# others. A rank that issues one with a future continues, and waits where it awaits it (COLL-02.1-02); until then it
# has a number for it. The two ends of a message are a group of their own (AMB-COLL-59). Results and diagnostics are
# those of the state in which no rank can continue, so they do not depend on the order in which ranks make progress.


Choice = Callable[[Sequence[int]], int]
"""A function from the ranks that can continue, in ascending order, to the one that continues."""

Combine = Callable[[Collective, Sequence[Array]], Sequence[Array]]
"""A function from the contributions to a collective to its results, both in order of the group."""

RankObserver = Callable[[int, Instruction, tuple[Array, ...]], None]
"""An `Observer` that also gets the rank that executed the instruction."""


def lowest(ready: Sequence[int]) -> int:
    """Return the first of the ranks that can continue."""
    return ready[0]


def canonically(collective: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """Return the results of a collective, reductions over the canonical tree."""
    return collective.combine(contributions)


def meets(module: Module, function: Function) -> bool:
    """True if a function may execute a collective."""
    return any(isinstance(instruction.operation, Collective) for instruction in reachable(module, function))


def mesh_in_force(module: Module, function: Function, mesh: str | None) -> str:
    """Return the mesh whose ranks run a function: the named one, that of its collectives, or the module's only one.

    Raises `Rejection` where there is none, or several of different sizes (AMB-LANG-108).
    """
    operations = [instruction.operation for instruction in reachable(module, function)]
    named = [operation.mesh for operation in operations if isinstance(operation, Collective)]
    candidates = [mesh] if mesh else list(dict.fromkeys(name for name in named if name)) or list(module.meshes)
    meshes = [name for name in candidates if name in module.meshes]
    sizes = {module.meshes[name].size for name in meshes}
    if meshes == candidates and len(sizes) == 1:
        return meshes[0]
    if mesh or meshes != candidates:
        message = f"the module has no mesh {candidates[0]!r}"
    elif not meshes:
        message = "the module declares no mesh"
    else:
        message = f"which mesh runs it? {', '.join(f'{name} has {module.meshes[name].size} ranks' for name in meshes)}"
    requirement, remedy = "a mesh to run on", "declare one: mesh g = mesh<axes=[dp], shape=[2]>;"
    if module.meshes:
        requirement, remedy = f"one of {', '.join(module.meshes)}", "name the mesh"
    refusal = Refusal("distributed", f"@{function.name}: {message}", requirement, "AMB-LANG-108", remedy)
    raise Rejection([diagnostic_of(refusal, function.location, phase="execute")])


@dataclass(frozen=True)
class Group:
    """A group of ranks that differ only in their coordinate along an axis of a mesh, in its order."""

    mesh: str
    axis: str
    ranks: tuple[int, ...]
    turn: int = 0
    """The number of their earlier collectives."""

    def __hash__(self) -> int:
        """Return a hash of the ends of `ranks` alone, since a mesh may have thousands and each looks its group up."""
        return hash((self.mesh, self.axis, self.ranks[0], self.ranks[-1], self.turn))

    @classmethod
    def of(cls, name: str, mesh: Mesh, axis: str, rank: int) -> Group:
        """Return the group of a rank; ranks count row-major over the mesh, the last axis fastest (AMB-RT-02)."""
        index = mesh.axes.index(axis)
        return _along(name, mesh, (index,), axis, _first(mesh, (index,), rank))

    @classmethod
    def in_shard(cls, name: str, mesh: Mesh, shard: Shard, rank: int) -> Group:
        """Return the group of a rank in a subgroup (AMB-COLL-51). Raises `Refusal` where no group contains it."""
        if len(shard.axes) == 1:
            return cls.of(name, mesh, shard.axes[0], rank)
        for ranks in shard.groups:
            if rank in ranks:
                return cls(name, str(shard), ranks)
        if shard.groups:
            requirement = f"one of the groups {', '.join(str(list(ranks)) for ranks in shard.groups)}"
            remedy = "have it issue no collective of this subgroup"
            raise Refusal("distributed", f"rank {rank} is in no group", requirement, "COLL-02.2-03", remedy)
        varying = tuple(index for index, axis in enumerate(mesh.axes) if axis in shard.axes)
        return _along(name, mesh, varying, str(shard), _first(mesh, varying, rank))

    def channel(self, message: PointToPoint, rank: int) -> Group:
        """Return the two ends of a message in this group, the sender first; each tag counts its own messages.

        Raises `Refusal` where a rank is its own peer.
        """
        return replace(self, axis=f"tag {message.tag}", ranks=message.ends(rank, self.ranks))


def _stride(mesh: Mesh, index: int) -> int:
    """Return the distance in ranks of neighbours along an axis; ranks count row-major."""
    return prod(mesh.shape[index + 1 :])


def _first(mesh: Mesh, varying: Sequence[int], rank: int) -> int:
    """Return the lowest of the ranks that differ from this one along the varying axes only."""
    return rank - sum(rank // _stride(mesh, index) % mesh.shape[index] * _stride(mesh, index) for index in varying)


@lru_cache(maxsize=1024)
def _along(name: str, mesh: Mesh, varying: tuple[int, ...], axis: str, first: int) -> Group:
    """Return the group of a first rank; all of its ranks share one object."""
    offsets = [range(0, mesh.shape[index] * _stride(mesh, index), _stride(mesh, index)) for index in varying]
    return Group(name, axis, tuple(first + sum(place) for place in product(*offsets)))


def groups_met(module: Module, function: Function) -> Sequence[tuple[int, ...]]:
    """Return the groups of ranks of a function's collectives, along their axes.

    Raises `Rejection` where it is unclear which mesh runs it.
    """
    mesh_in_force(module, function, None)
    operations = [instruction.operation for instruction in reachable(module, function)]
    along = dict.fromkeys((x.grid, x.met) for x in operations if isinstance(x, Collective))
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
    choice: Choice = lowest,
    combine: Combine = canonically,
    source: RandomSource = FROM_ZERO,
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, `arguments` and results by rank; `choice` never changes a bit.

    Raises `Rejection` for ranks that disagree and for the error of a rank, `UnsupportedConstruct` where a rank goes
    beyond this interpreter.
    """
    ranks = Ranks(module, function, arguments, mesh, observer, combine, source)
    ranks.run(choice)
    return ranks.results()


class Ranks:
    """The ranks of one run, with the state of each."""

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
            Interpreter(module, observer and partial(observer, rank), source=source).run(function, values)
            for rank, values in enumerate(arguments)
        ]
        self.waiting: dict[Group, dict[int, Arrival]] = {}
        self.ended: dict[int, tuple[Array, ...]] = {}
        self.failed: dict[int, Rejection | UnsupportedConstruct] = {}
        self.mismatched: list[Group] = []
        self.broken: set[Group] = set()
        """The groups that never complete, since the operands of their ranks did not match."""
        self.turns: dict[tuple[Group, int], int] = {}
        """The number of times that each rank has arrived at a collective of each of its groups."""
        self.futures: list[dict[int, Group | Array]] = [{} for _ in arguments]
        """The futures that each rank has issued, by number: the rendezvous of its group, or its value."""
        self.issued: dict[tuple[Group, int], int] = {}
        """The number of the future that a rank has issued for a rendezvous of a group."""
        self.awaited: dict[int, int] = {}
        """The future for which a rank waits."""
        self._since: dict[int, float] = {}

    def run(self, choice: Choice) -> None:
        """Let ranks make progress until none can."""
        ready: dict[int, tuple[Array, ...] | None] = dict.fromkeys(range(len(self.running)))
        ascending = list(ready)
        while ready:
            rank = choice(ascending)
            del ascending[bisect_left(ascending, rank)]
            arrival = self._advance(rank, ready.pop(rank))
            if arrival is not None:
                sent = self._arrive(rank, arrival)
                ready.update(sent)
                for resumed in sent:
                    insort(ascending, resumed)

    def results(self) -> tuple[tuple[Array, ...], ...]:
        """Return the results of every rank. Raises `Rejection` or `UnsupportedConstruct` where a rank has none."""
        if self.failed:
            raise self._failure()
        if self.mismatched:
            group = min(self.mismatched, key=lambda group: (group.ranks, group.axis, group.turn))
            raise Disagreement([mismatch(self.waiting[group])])
        if self.waiting:
            raise Disagreement([deadlock([self._standing(rank) for rank in range(len(self.running))])])
        return tuple(self.ended[rank] for rank in range(len(self.running)))

    def _advance(self, rank: int, sent: tuple[Array, ...] | None) -> Arrival | None:
        """Run a rank until it arrives at a collective, ends or fails."""
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
        """Record an arrival; return the values to resume ranks with: the rank's future, or the group's results."""
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
        expected = brought(first)
        if any(brought(other) != expected for other in others):
            self.mismatched.append(group)
            self.broken.add(lasting)
            return sent
        del self.waiting[group]
        return {**sent, **self._exchange(group, arrived)}

    def _issue(self, rank: int, group: Group) -> Array:
        """Return the number by which a rank refers to a new future."""
        number = self.issued[group, rank] = len(self.futures[rank])
        self.futures[rank][number] = group
        return Array(dtype("int64"), np.asarray(number, np.int64))

    def _await(self, rank: int, arrival: Arrival) -> Mapping[int, tuple[Array, ...]]:
        """Return the value of a future if it is complete; else record that the rank awaits it (AMB-COLL-03)."""
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
            operation.results()  # all dimensions are known by now
            combined = self.combine(operation, [arrival.operands[0] for arrival in arrivals])
        except Refusal as refusal:
            for member in group.ranks:
                self._fail(member, refused(arrived[member], refusal), self._number(member, group))
        except MemoryError:
            for member in group.ranks:
                failure = UnsupportedConstruct("execute.more_memory", arrived[member].location)
                self._fail(member, failure, self._number(member, group))
        else:
            pairs = zip(group.ranks, combined, strict=True)
            return {member: (array,) for member, array in pairs if self._resumes(member, group, array)}
        return {}

    def _resumes(self, rank: int, group: Group, value: Array) -> bool:
        """Return True if a rank has waited for this value; keep it if it is a future's."""
        number = self._number(rank, group)
        if number is None:
            return True
        self.futures[rank][number] = value
        waits = self.awaited.get(rank) == number
        if waits:
            del self.awaited[rank]
        return waits

    def _number(self, rank: int, group: Group) -> int | None:
        """Return the number of the rank's future that its group computes; None if it waits for the collective."""
        return self.issued.get((group, rank))

    def _fail(self, rank: int, failure: Rejection | UnsupportedConstruct, number: float | None = None) -> None:
        """Keep the first failure of a rank in program order, in which a future counts where it is issued."""
        since = inf if number is None else number
        if rank not in self.failed or since < self._since[rank]:
            self.failed[rank], self._since[rank] = failure, since

    def _group(self, rank: int, arrival: Arrival) -> Group:
        """Return the ranks a rank communicates with. Raises `Refusal` if an operation fits no mesh of these ranks."""
        operation = arrival.operation
        assert isinstance(operation, Collective)
        name, mesh, ranks = operation.grid, self.module.meshes[operation.grid], len(self.running)
        if mesh.size != ranks:
            message = f"mesh {name} has {mesh.size} ranks, {operation.group} of them along {operation.axis}"
            expected = f"a mesh of the {ranks} ranks of {self.mesh}, {operation.group} of them along {operation.axis}"
            raise Refusal("distributed", message, expected, "LANG-05.4-04", "run on another mesh")
        group = Group.in_shard(name, mesh, operation.met, rank)
        return group.channel(operation, rank) if isinstance(operation, PointToPoint) else group

    def _standing(self, rank: int) -> Standing:
        """Return the arrival at which a rank waits or, once it has ended, that of its first incomplete future."""
        open_futures = {number: where for number, where in self.futures[rank].items() if isinstance(where, Group)}
        if rank in self.awaited:
            group: Group | None = open_futures[self.awaited[rank]]
        elif rank in self.ended:
            group = next(iter(open_futures.values()), None)
        else:
            futures = list(open_futures.values())
            group = next(key for key, arrived in self.waiting.items() if rank in arrived and key not in futures)
        if group is None:
            return Standing(rank, None)
        arrived = self.waiting[group]
        return Standing(rank, arrived[rank], tuple(member for member in group.ranks if member not in arrived))

    def _failure(self) -> Rejection | UnsupportedConstruct:
        """Return the failure of the first rank that failed, naming the ranks with the same failure."""
        first = self.failed[min(self.failed)]
        if isinstance(first, UnsupportedConstruct):
            return first
        alike = [rank for rank, failure in self.failed.items() if _finding(failure) == _finding(first)]
        return on_ranks(first, sorted(alike), len(self.running))


def _finding(failure: Rejection | UnsupportedConstruct) -> object:
    return failure.diagnostics if isinstance(failure, Rejection) else failure


# Execution of Graph IR: a function of a module on named inputs, on one rank or on a mesh (spec section 4).


class UnknownFunction(Exception):
    """The module has no function of that name."""

    def __init__(self, name: str, available: tuple[str, ...]) -> None:
        super().__init__(f"no function {name!r}; there is {', '.join(available) or 'none'}")


def find_function(modules: Sequence[Module], name: str) -> tuple[Module, Function]:
    """Return the module and function that `function` or `module.function` names. Raises `UnknownFunction`."""
    owner, _, short = name.rpartition(".")
    owners = [module for module in modules if short in module.functions and owner in ("", module.name)]
    if len(owners) != 1:
        known = tuple(f"{module.name}.{function}" for module in modules for function in module.functions)
        raise UnknownFunction(name, known)
    return owners[0], owners[0].functions[short]


def function_named(module: Module, name: str) -> Function:
    """Return the function of a module with this name. Raises `UnknownFunction`."""
    if name not in module.functions:
        raise UnknownFunction(name, tuple(module.functions))
    return module.functions[name]


def execute(
    module: Module,
    function: str,
    inputs: Mapping[str, Array],
    observer: Observer | None = None,
    source: RandomSource = FROM_ZERO,
) -> tuple[Array, ...]:
    """Run a function on named inputs; return its results in order, of a kernel its tensor parameters as it leaves them.

    A function with collectives runs on every rank of its mesh, on the same inputs; the results are rank 0's.
    Raises `UnknownFunction`, `InputMismatch`, `Rejection` with phase execute for an error of the running program, or
    `UnsupportedConstruct` where it goes beyond this interpreter.
    """
    target = function_named(module, function)
    arguments = bind(target, inputs)
    if meets(module, target):
        mesh = mesh_in_force(module, target, None)
        every = [arguments] * module.meshes[mesh].size
        return run_on_mesh(module, target, every, mesh, observer and _of_rank_0(observer), source=source)[0]
    try:
        next(Interpreter(module, observer, source=source).run(target, arguments))
    except StopIteration as finished:
        results: tuple[Array, ...] = finished.value
        return results
    except RecursionError:
        raise UnsupportedConstruct("execute.deep_calls", target.location) from None
    raise AssertionError(f"@{function} has collectives")  # `meets` has excluded them


def execute_on_mesh(
    module: Module,
    function: str,
    inputs: Sequence[Mapping[str, Array]],
    mesh: str | None = None,
    observer: RankObserver | None = None,
    choice: Choice = lowest,
    combine: Combine = canonically,
    source: RandomSource = FROM_ZERO,
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, named inputs and results by rank, row-major over the mesh.

    Raises as `execute` does, and `Rejection` where ranks disagree; its message names the ranks.
    """
    target = function_named(module, function)
    mesh, arguments = bind_on_mesh(module, target, inputs, mesh)
    return run_on_mesh(module, target, arguments, mesh, observer, choice, combine, source)


def bind_on_mesh(
    module: Module, function: Function, inputs: Sequence[Mapping[str, Array]], mesh: str | None = None
) -> tuple[str, list[tuple[Array, ...]]]:
    """Return the mesh that runs a function, and the arguments of each rank. Raises `InputMismatch`, `Rejection`."""
    mesh = mesh_in_force(module, function, mesh)
    ranks = module.meshes[mesh].size
    if len(inputs) != ranks:
        expected = f"one set of inputs for each of the {ranks} ranks of mesh {mesh}"
        raise InputMismatch("ranks", expected, str(len(inputs)))
    return mesh, [_bind_on_rank(function, rank, values) for rank, values in enumerate(inputs)]


def _bind_on_rank(function: Function, rank: int, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    try:
        return bind(function, inputs)
    except InputMismatch as found:
        raise InputMismatch(f"{found.name} of rank {rank}", found.expected, found.given, found.why) from None


def _of_rank_0(observer: Observer) -> RankObserver:
    def observe(rank: int, instruction: Instruction, results: tuple[Array, ...]) -> None:
        if rank == 0:
            observer(instruction, results)

    return observe
