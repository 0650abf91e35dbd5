"""From measured pairs to the tree (FPRev's refined algorithm, with random pivots), or why there is none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, Protocol, TypeAlias

from tessera_conformance.arithmetic.tree import Tree

# Why an order of summation is no fixed tree, and the inputs that prove it.


Proof: TypeAlias = Literal["masks", "runs", "replay"]


class NotATree(Exception):
    """Raised where no tree explains what was seen.

    `proof` says how it shows: `masks` whose counts fit no tree, `runs` that differ on the same input, or a `replay`
    that gives other bits under every arithmetic tried. `pair` are the leaves of the mask; `witness` has the inputs and
    the outcomes.
    """

    def __init__(
        self, proof: Proof, pair: tuple[int, int] | None, reason: str, witness: dict[str, Any] | None = None
    ) -> None:
        self.proof, self.pair, self.reason, self.witness = proof, pair, reason, witness or {}
        super().__init__(f"leaves {pair[0]} and {pair[1]}: {reason}" if pair else reason)

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {"proof": self.proof, "pair": self.pair and list(self.pair), "reason": self.reason, **self.witness}


# From measured pairs to the tree (FPRev's refined algorithm, with random pivots).
#
# For a pivot leaf, the leaves that meet it in subtrees of the same size hang at the same node of its path to the
# root; each such group is revealed in turn. A group whose own root is the node itself gives several children of one
# fused node.


Steps = list[int]


class Measured(Protocol):
    """The sizes of subtrees that `reveal` measures."""

    terms: int

    def lca(self, i: int, j: int) -> int:
        """The size of the smallest subtree with both leaves."""
        ...


class Sets(Protocol):
    """The survivors of masks that `reveal_exact_nodes` measures."""

    terms: int

    def survivors(self, i: int, j: int) -> frozenset[int]:
        """The leaves that are added to neither i nor j before these two are joined."""
        ...


def reveal(masks: Measured, seed: int = 0) -> Tree:
    """The tree, its children in the order of their first leaves.

    Nodes that add three or more terms must drop the units beside M, as aligned sums do; `reveal_exact_nodes` is for
    those that do not.

    Raises:
        NotATree: no tree gives these counts; `pair` is where it shows.
    """
    if masks.terms < 2:
        return Tree.explicit([0])
    children, size = _Search(masks, seed).revealed(list(range(masks.terms)))
    if size != masks.terms:
        pair = (children[0][0], children[-1][0])
        raise NotATree("masks", pair, f"no two leaves are joined in the root: the largest subtree has {size} leaves")
    return Tree.explicit(_joined(children)).canonical()


def first_wrong_pair(masks: Measured, tree: Tree, leaves: Sequence[int]) -> tuple[int, int, int] | None:
    """A pair of leaves that is not joined as in the tree, and the size of the subtree that should join it.

    `leaves` are those of the tree's own numbers. One pair for each two children of each node proves the
    tree, from the leaves up: where two subtrees are right and two of their leaves are joined in a subtree of exactly
    their joint size, they are its two children.
    """
    for children in tree.joints():
        size = sum(count for _, count in children)
        for (left, _), (right, _) in combinations(children, 2):
            if masks.lca(leaves[left], leaves[right]) != size:
                return leaves[left], leaves[right], size
    return None


class _Search:
    """FPRev's refined search; a group is first compared with the last subtree of as many leaves, which is cheaper."""

    def __init__(self, masks: Measured, seed: int) -> None:
        self.masks, self.draw = masks, random.Random(seed)
        self.shapes: dict[int, Tree] = {}

    def revealed(self, leaves: Sequence[int]) -> tuple[list[Steps], int]:
        """The children of the node that joins these leaves, as far as they are among them, and that node's size."""
        guess = self.shapes.get(len(leaves))
        if guess is not None and self._fits(guess, leaves):
            return [[leaves[step] if step >= 0 else step for step in guess.steps]], len(leaves)
        children, size = self._searched(leaves)
        if size == len(leaves) > 2:
            number = {leaf: k for k, leaf in enumerate(leaves)}
            self.shapes[size] = Tree.explicit([number.get(step, step) for step in _joined(children)])
        return children, size

    def _fits(self, guess: Tree, leaves: Sequence[int]) -> bool:
        try:
            return first_wrong_pair(self.masks, guess, leaves) is None
        except NotATree:
            return False

    def _searched(self, leaves: Sequence[int]) -> tuple[list[Steps], int]:
        pivot = leaves[self.draw.randrange(len(leaves))]
        if len(leaves) == 1:
            return [[pivot]], 1
        groups: dict[int, list[int]] = {}
        for leaf in leaves:
            if leaf != pivot:
                groups.setdefault(self.masks.lca(pivot, leaf), []).append(leaf)
        children: list[Steps] = [[pivot]]
        below, last = 1, max(groups)
        for size in sorted(groups):
            group = groups[size]
            pair = (pivot, group[0])
            others, lead = self.revealed(group)
            if lead != len(group) and lead != size:
                raise NotATree("masks", pair, _unfitting(size, f"others of its leaves are joined in one of {lead}"))
            children = [_joined(children), *([_joined(others)] if lead == len(group) else others)]
            below += len(group)
            if below > size or (below < size and size != last):
                raise NotATree("masks", pair, _unfitting(size, f"{below} leaves belong there"))
        return children, last


def reveal_exact_nodes(masks: Sets, seed: int = 0) -> Tree:
    """The tree where nodes of three and more terms add exactly, so that units beside M outlive it.

    Raises:
        NotATree: no tree gives these survivors.
    """
    draw = random.Random(seed)
    everything = frozenset(range(masks.terms))
    results: list[Steps] = []
    waiting: list[frozenset[int] | int] = [everything]  # subtrees to reveal, or the number of children to join
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, int):
            results[entry:] = [_joined(results[entry:])]
        elif len(entry) == 1:
            results.append(list(entry))
        else:
            waiting += reversed(_path(masks, entry, draw))
    return Tree.explicit(results[0]).canonical()


def _path(masks: Sets, leaves: frozenset[int], draw: random.Random) -> list[frozenset[int] | int]:
    """Return the order in which to reveal and join the parts of the subtree over `leaves` along the path of a pivot."""
    pivot = draw.choice(sorted(leaves))
    everything = frozenset(range(masks.terms))
    absorbed = {leaf: everything - masks.survivors(pivot, leaf) for leaf in sorted(leaves - {pivot})}
    built, plan = frozenset({pivot}), list[frozenset[int] | int]([frozenset({pivot})])
    while built != leaves:
        rest = [leaf for leaf in absorbed if leaf not in built]
        nearest = min(rest, key=lambda leaf: len(absorbed[leaf]))
        child = absorbed[nearest] - built
        siblings = {absorbed[leaf] - built for leaf in rest if not child <= absorbed[leaf]} | {child}
        joined = frozenset(leaf for sibling in siblings for leaf in sibling)
        sound = sum(map(len, siblings)) == len(joined) and joined <= leaves and not joined & built
        if not sound or any(leaf not in absorbed[leaf] or not built <= absorbed[leaf] for leaf in rest):
            raise NotATree("masks", (pivot, nearest), "which units outlive the mask fits no tree")
        plan += [*sorted(siblings, key=min), -1 - len(siblings)]
        built |= joined
    return plan


def _joined(children: list[Steps]) -> Steps:
    if len(children) == 1:
        return children[0]
    return [step for child in children for step in child] + [-len(children)]


def _unfitting(size: int, other: str) -> str:
    return f"they are joined in a subtree of {size} leaves, but {other}"
