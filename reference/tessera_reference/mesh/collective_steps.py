"""The transfers between devices in a collective: ring, tree and hierarchical algorithms (RT-13-03 to -05).

Only routes and sizes, no values. The first device of a group is the root of collectives that have one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Step", "hierarchical", "ring", "tree"]


@dataclass(frozen=True)
class Step:
    """Transfers (from, to, bytes) that run at the same time, repeated `times` times in sequence."""

    transfers: tuple[tuple[int, int, int], ...]
    times: int = 1


def ring(devices: Sequence[int], collective: str, bytes: int) -> Iterator[Step]:
    """Every device passes a share on to the next: once around to reduce, once around to gather.

    A broadcast pipelines as many shares around the ring, and stops before the root.
    """
    count = len(devices)
    share = _part(bytes, count)
    around = tuple((each, devices[(at + 1) % count], share) for at, each in enumerate(devices))
    if collective == "broadcast":
        yield Step(around[:-1], 2 * (count - 1))
    else:
        yield Step(around, 2 * (count - 1) if collective == "all_reduce" else count - 1)


_Carried = Literal["nothing", "shares", "everything"]

_UP_AND_DOWN: Mapping[str, tuple[_Carried, _Carried]] = {
    "all_reduce": ("everything", "everything"),
    "reduce_scatter": ("everything", "shares"),
    "all_gather": ("shares", "everything"),
    "broadcast": ("nothing", "everything"),
}
"""The data that a tree moves towards its root, and back: the whole buffer, or the shares of the subtree."""


def tree(devices: Sequence[int], collective: str, bytes: int) -> Iterator[Step]:
    """A binomial tree: to the root in rounds, each of which halves the remaining devices, and back."""
    up, down = _UP_AND_DOWN[collective]
    rounds = list(_rounds(len(devices)))
    share = _part(bytes, len(devices))
    if up != "nothing":
        for pairs in rounds:
            sizes = [bytes if up == "everything" else share * beyond for _, _, beyond in pairs]
            yield Step(tuple((devices[c], devices[p], size) for (p, c, _), size in zip(pairs, sizes, strict=True)))
    for pairs in reversed(rounds):
        sizes = [bytes if down == "everything" else share * beyond for _, _, beyond in pairs]
        yield Step(tuple((devices[p], devices[c], size) for (p, c, _), size in zip(pairs, sizes, strict=True)))


def _rounds(count: int) -> Iterator[list[tuple[int, int, int]]]:
    """The rounds from the leaves up: (parent, child, devices in the child's subtree)."""
    distance = 1
    while distance < count:
        children = range(distance, count, 2 * distance)
        yield [(child - distance, child, min(distance, count - child)) for child in children]
        distance *= 2


def hierarchical(nodes: Sequence[Sequence[int]], collective: str, bytes: int) -> Iterator[Step]:
    """Within a node all devices exchange parts directly; across nodes, devices with the same index form rings."""
    part = _part(bytes, len(nodes[0]))
    exchange = [(a, b, part) for node in nodes for a in node for b in node if a != b]
    root, *others = nodes[0]
    if collective == "broadcast":
        yield from _step([(root, each, part) for each in others])
    elif collective != "all_gather":
        yield from _step(exchange)
    if len(nodes) > 1:
        rings = [list(ring(peers, collective, part)) for peers in zip(*nodes, strict=True)]
        for together in zip(*rings, strict=True):
            yield Step(tuple(each for step in together for each in step.transfers), together[0].times)
    if collective != "reduce_scatter":
        yield from _step(exchange)


def _step(transfers: Sequence[tuple[int, int, int]]) -> Iterator[Step]:
    if transfers:
        yield Step(tuple(transfers))


def _part(bytes: int, count: int) -> int:
    return -(-bytes // count)
