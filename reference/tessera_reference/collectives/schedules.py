"""The algorithms of collectives as messages between ranks (collectives spec 3.1, 4.4; runtime spec 13).

A buffer is cut into as many shares as there are ranks. An algorithm says which rank owns each share, in which steps
contributions are combined there, and in which steps shares go from their owners to every rank. All messages of a
step read what their senders hold when it begins; a rank combines those that it gets in the order in which they are
listed. Every algorithm takes any number of ranks; hierarchical takes as many ranks on each node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias

from ..abi.status import invalid, unsupported
from ..ir.diagnostics import did_you_mean
from ..numerics.formats import shown

# Names and numbers that a collective, its attributes and the environment give, and what is said of others.


def require_known(function: str, what: str, actual: str, names: Sequence[str]) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for a name that is not known; it lists those known, nearest last."""
    if actual not in names:
        hint = did_you_mean(actual, names) if isinstance(actual, str) else ""
        allowed = f"one of {', '.join(names)}" + (f": {hint}" if hint else "")
        raise invalid(function, f"{what} {shown(actual)}", allowed)


def require_within(function: str, what: str, actual: int, least: int, most: int) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the range, for a number outside of it."""
    if not least <= actual <= most:
        raise invalid(function, f"{what} {shown(actual)}", f"{least} to {most}")


# The messages of each algorithm.


class Message(NamedTuple):
    """The shares from `first` up to `last`, sent from one rank to another, which combines them with its own or keeps
    them in their place."""

    source: int
    target: int
    first: int
    last: int
    combines: bool


Step: TypeAlias = tuple[Message, ...]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: how so many ranks combine shares at their owners, and how shares get from there to every rank."""

    name: str
    ranks: int
    owners: tuple[int, ...]
    combining: Sequence[Step]
    spreading: Sequence[Step]


class _Around(Sequence[Step]):
    """The steps around a ring, each made when it is asked for: of many ranks they have too many messages to hold."""

    def __init__(self, ranks: int, ahead: int, combines: bool) -> None:
        self._ranks, self._ahead, self._combines = ranks, ahead, combines

    def __len__(self) -> int:
        return self._ranks - 1

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(self[step] for step in range(len(self))[place])
        step = range(len(self))[place]
        shares = [(rank - step - self._ahead) % self._ranks for rank in range(self._ranks)]
        targets = [*range(1, self._ranks), 0]
        ends = [share + 1 for share in shares]
        return tuple(map(Message, range(self._ranks), targets, shares, ends, repeat(self._combines)))


def ring(ranks: int, per_node: int) -> Algorithm:
    """Every rank passes one share a step on to the next rank; share s begins at rank s + 1 and ends at rank s."""
    return Algorithm("ring", ranks, tuple(range(ranks)), _Around(ranks, 1, True), _Around(ranks, 0, False))


def tree(ranks: int, per_node: int) -> Algorithm:
    """A binomial tree whose root is rank 0: the distance between the ranks of a pair doubles from step to step."""
    combining = tuple(_level(range(ranks), distance, 0, ranks) for distance in powers(ranks))
    return Algorithm("tree", ranks, (0,) * ranks, combining, _reversed(combining))


def halving_doubling(ranks: int, per_node: int) -> Algorithm:
    """Recursive halving and doubling: partners at half the distance exchange half of what they have left.

    Ranks beyond a power of two hand all they have to a partner first, and get everything from it at the end.
    """
    power = 1 << (ranks.bit_length() - 1)
    folded = tuple(Message(power + extra, extra, 0, ranks, True) for extra in range(ranks - power))
    combining = [folded] if folded else []
    ranges = [(0, ranks)] * power
    for distance in reversed(powers(power)):
        step = []
        for rank, (first, last) in enumerate(ranges):
            middle = (first + last) // 2
            lower, upper = (first, middle), (middle, last)
            ranges[rank], gives = (upper, lower) if rank & distance else (lower, upper)
            step.append(Message(rank, rank ^ distance, *gives, True))
        combining.append(tuple(step))
    owners = tuple(next(rank for rank, (first, last) in enumerate(ranges) if first <= s < last) for s in range(ranks))
    return Algorithm("halving_doubling", ranks, owners, tuple(combining), _reversed(combining))


def hierarchical(ranks: int, per_node: int) -> Algorithm:
    """Within a node ranks exchange shares directly; between nodes, ranks of one place in their nodes form a tree.

    COLL-04.4-02, -03; the first stage, within a device, has no messages between ranks (`by_device`). Raises `Failure`
    with TESS_ERR_UNSUPPORTED where the ranks do not fill their nodes.
    """
    if ranks % per_node:
        actual = f"hierarchical with {ranks} ranks, {per_node} on a node"
        raise unsupported("collective", actual, "as many ranks on each node, or ring")
    nodes = ranks // per_node
    inside = tuple(
        Message(node * per_node + source, node * per_node + target, target * nodes, (target + 1) * nodes, True)
        for ahead in range(1, per_node)
        for node in range(nodes)
        for source, target in _pairs(per_node, ahead)
    )
    across = tuple(
        tuple(
            message
            for place in range(per_node)
            for message in _level(range(place, ranks, per_node), distance, place * nodes, (place + 1) * nodes)
        )
        for distance in powers(nodes)
    )
    combining = (inside, *across) if inside else across
    owners = tuple(share // nodes for share in range(ranks))
    return Algorithm("hierarchical", ranks, owners, combining, _reversed(combining))


def direct(ranks: int, per_node: int) -> Algorithm:
    """Every rank sends each share to its owner, and every owner its share to every rank."""
    pairs = [pair for ahead in range(1, ranks) for pair in _pairs(ranks, ahead)]
    combining = _step([Message(source, target, target, target + 1, True) for source, target in pairs])
    spreading = _step([Message(source, target, source, source + 1, False) for source, target in pairs])
    return Algorithm("direct", ranks, tuple(range(ranks)), tuple(combining), tuple(spreading))


Maker: TypeAlias = Callable[[int, int], Algorithm]

ALGORITHMS: Mapping[str, Maker] = {
    maker.__name__: maker for maker in (ring, tree, halving_doubling, hierarchical, direct)
}
"""By name, from the number of ranks and of ranks on a node."""


def maker(name: str) -> Maker:
    """Return the maker of an algorithm, a key for what is kept of it. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    require_known("collective", "algorithm", name, tuple(ALGORITHMS))
    return ALGORITHMS[name]


def algorithm(name: str, ranks: int, per_node: int | None = None) -> Algorithm:
    """An algorithm by its name. Raises `Failure` with TESS_ERR_INVALID_VALUE for an unknown one."""
    make = maker(name)
    return _kept(make, ranks, per_node or ranks) if ranks <= _MOST_KEPT else make(ranks, per_node or ranks)


_MOST_KEPT = 32
"""Ranks of an algorithm that is kept, of which a small collective is a quarter faster."""


@lru_cache(maxsize=256)
def _kept(make: Maker, ranks: int, per_node: int) -> Algorithm:
    return make(ranks, per_node)


def steps(operation: str, used: Algorithm, root: int = 0) -> Iterator[Step]:
    """The messages of an operation, in order of its steps; steps without a message are left out.

    Shares are those of the ranks: a reduce-scatter ends, and an all-gather begins, with share r on rank r. A broadcast
    hands the shares of the root to their owners first.
    """
    ranks = range(used.ranks)
    moved = [Message(used.owners[share], share, share, share + 1, False) for share in ranks]
    if operation == "all_to_all":
        every = [
            tuple(Message(source, target, target, target + 1, False) for source, target in _pairs(used.ranks, ahead))
            for ahead in range(1, used.ranks)
        ]
        yield from [tuple(chain(*every))] if used.name == "direct" and every else every
        return
    if operation in ("all_reduce", "reduce_scatter"):
        yield from used.combining
    if operation == "reduce_scatter":
        yield from _step(moved)
    elif operation == "all_gather":
        yield from _step([message._replace(source=message.target, target=message.source) for message in moved])
    elif operation == "broadcast":
        yield from _step([Message(root, used.owners[share], share, share + 1, False) for share in ranks])
    if operation != "reduce_scatter":
        yield from used.spreading


def _pairs(ranks: int, ahead: int) -> Iterator[tuple[int, int]]:
    """Each rank with the rank so many places ahead, so that no two send to the same one."""
    return ((rank, (rank + ahead) % ranks) for rank in range(ranks))


def _step(messages: Sequence[Message]) -> Iterator[Step]:
    if sent := tuple(message for message in messages if message.source != message.target):
        yield sent


def powers(count: int) -> list[int]:
    """Return 1, 2, 4, ... below a number."""
    return [1 << exponent for exponent in range(max(count - 1, 0).bit_length())]


def _level(members: Sequence[int], distance: int, first: int, last: int) -> Step:
    """The messages of one level of a binomial tree: from every second rank left to the one before it."""
    pairs = zip(members[distance :: 2 * distance], members[:: 2 * distance], strict=False)
    return tuple(Message(child, parent, first, last, True) for child, parent in pairs)


def _reversed(combining: Sequence[Step]) -> tuple[Step, ...]:
    """The way back: who got shares to combine returns them, from the last step to the first."""
    return tuple(tuple(Message(b, a, first, last, False) for a, b, first, last, _ in step) for step in combining[::-1])
