"""In which order an algorithm combines the contributions to each share, found by following its messages.

Under deterministic policies an algorithm has its own order, which `numerics.declared` tells; under strict ones every
algorithm gives the bits of the canonical tree (AMB-RT-26, AMB-LANG-109). The order of an element depends on its place
in its own tensor alone, not on chunks or on tensors that travel with it (AMB-COLL-29).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..numerics.trees import Tree
from .groups import share_of
from .schedules import Maker, Step, maker
from .stage_one import through_devices

__all__ = ["follow", "order_of", "orders"]


def order_of(
    name: str,
    ranks: int,
    count: int,
    element: int,
    per_node: int | None = None,
    partials: Sequence[int] | None = None,
) -> Tree:
    """The tree of one of `count` elements. Raises `Failure` as `schedules.algorithm` does."""
    trees = orders(name, ranks, per_node, partials)
    return trees[next((share for share in range(ranks) if element < share_of(count, share, ranks).stop), 0)]


def orders(
    name: str, ranks: int, per_node: int | None = None, partials: Sequence[int] | None = None
) -> tuple[Tree, ...]:
    """The tree of each share. Its leaves are the ranks, or the partial values of all ranks where there are such.

    Raises `Failure` as `schedules.algorithm` does.
    """
    trees = _orders(maker(name), ranks, per_node or ranks)
    return trees if partials is None else tuple(through_devices(each, ranks, partials) for each in trees)


@lru_cache(maxsize=256)
def _orders(make: Maker, ranks: int, per_node: int) -> tuple[Tree, ...]:
    used = make(ranks, per_node)
    held: list[list[Any]] = [[rank] * ranks for rank in range(ranks)]
    for step in used.combining:
        follow(step, held)
    return tuple(Tree.from_json(_written(held[owner][share])) for share, owner in enumerate(used.owners))


def follow(step: Step, held: list[list[Any]]) -> None:
    """Carry the messages of a step out on what each rank holds of each share; two that are combined become a list."""
    sent = [held[message.source][message.first : message.last] for message in step]
    for message, shares in zip(step, sent, strict=True):
        for share, value in enumerate(shares, start=message.first):
            own = held[message.target][share]
            held[message.target][share] = [own, value] if message.combines else value


def _written(order: Any) -> Any:
    """The order as JSON, or as a text where it is deep: a ring of many ranks is one long fold."""
    tokens: list[str] = []
    waiting = [order]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += [")", each[1], each[0], "("]
        else:
            tokens.append(str(each))
    return order if isinstance(order, int) else " ".join(tokens).replace("( ", "(").replace(" )", ")")
