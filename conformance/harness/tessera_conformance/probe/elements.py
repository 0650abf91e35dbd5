"""The orders of all elements of an all-reduce: a ring starts at another rank for every chunk.

Every pair of ranks is masked once, and one call shows that pair for all elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tessera_conformance.arithmetic.tree import Tree
from tessera_conformance.differences import values_of
from tessera_conformance.probe.calls import Box
from tessera_conformance.probe.evidence import NotATree
from tessera_conformance.probe.masks import Masks
from tessera_conformance.probe.pattern import abbreviated, pattern
from tessera_conformance.probe.reveal import reveal

MOST_RANKS = 16


@dataclass(frozen=True)
class Group:
    """Elements first..last, both included, and their order; None where it is no tree."""

    first: int
    last: int
    tree: Tree | None

    def sentence(self) -> str:
        """In words."""
        order = "no fixed tree" if self.tree is None else f"{pattern(self.tree)}: {abbreviated(self.tree)}"
        return f"elements {self.first} to {self.last}: {order}"

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {"first": self.first, "last": self.last, "tree": self.tree.to_text() if self.tree else None}


class _Measured:
    """The counts of one element."""

    def __init__(self, terms: int, sizes: dict[tuple[int, int], int]) -> None:
        self.terms, self._sizes = terms, sizes

    def lca(self, i: int, j: int) -> int:
        size = self._sizes[min(i, j), max(i, j)]
        if not 2 <= size <= self.terms:
            raise NotATree("masks", (i, j), f"a count of {size}")
        return size


def groups_of(box: Box) -> tuple[Group, ...]:
    """Runs of elements that share an order; nothing for more ranks than `MOST_RANKS`."""
    ranks = box.subject.terms
    if ranks > MOST_RANKS:
        return ()
    try:
        masks = Masks(box)
    except NotATree:
        return ()
    counts = {pair: _counts(box, masks, pair) for pair in combinations(range(ranks), 2)}
    keys = list(zip(*counts.values(), strict=True))
    groups: list[Group] = []
    for element, key in enumerate(keys):
        if element and key == keys[element - 1]:
            groups[-1] = Group(groups[-1].first, element, groups[-1].tree)
            continue
        groups.append(Group(element, element, _tree(ranks, dict(zip(counts, key, strict=True)))))
    return tuple(groups)


def _counts(box: Box, masks: Masks, pair: tuple[int, int]) -> list[int]:
    """The sizes that a pair's mask gives, element by element; 0 where it counts nothing."""
    sizes = []
    for value in values_of(box.result(*masks.words(*pair))):
        count = None if value is None else value / masks.quantum
        sizes.append(0 if count is None or count.denominator != 1 else box.subject.terms - int(count))
    return sizes


def _tree(ranks: int, sizes: dict[tuple[int, int], int]) -> Tree | None:
    try:
        return reveal(_Measured(ranks, sizes))
    except NotATree:
        return None
