"""The tree of a sum from masks of pairs of its terms, or the evidence against one, and the name of its order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, groupby
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.check import values_of
from tessera_conformance.oracle.exact import NAN, finite, float_format, is_zero
from tessera_conformance.oracle.trees import FOLD, PAIRWISE, Tree
from tessera_conformance.probe.calls import Box, CannotProbe, Terms, Words, word_type, words_of

# Evidence that an order of summation is no fixed tree, with the inputs that prove it.


Proof: TypeAlias = Literal["masks", "runs", "replay"]

REPEATS = 4
"""The number of times that the same terms are sent to see whether the result varies."""


class NotATree(Exception):
    """Raised if no tree explains the observations.

    `proof` is the kind of evidence: `masks` whose counts fit no tree, `runs` that differ on the same input, or a
    `replay` that gives other bits under every arithmetic tried. `pair` are the leaves of the mask; `witness` has the
    inputs and the outcomes.
    """

    def __init__(
        self, proof: Proof, pair: tuple[int, int] | None, reason: str, witness: dict[str, Any] | None = None
    ) -> None:
        self.proof, self.pair, self.reason, self.witness = proof, pair, reason, witness or {}
        super().__init__(f"leaves {pair[0]} and {pair[1]}: {reason}" if pair else reason)

    def to_json(self) -> dict[str, Any]:
        """Return the evidence for the machine-readable finding."""
        return {"proof": self.proof, "pair": self.pair and list(self.pair), "reason": self.reason, **self.witness}


def require_same(box: Box, terms: Terms, *, times: int, word: int | None = None) -> None:
    """Send the same terms again, so many times; `word` is the known answer. Raises `NotATree`: the bits differ."""
    word = box.word(*terms) if word is None else word
    for _ in range(times):
        again = box.word(*terms)
        if not are_same(again, word, box.subject.result_dtype):
            outcome = {"inputs": inputs_json(*terms), "first": word, "again": again}
            raise NotATree("runs", None, "the same terms gave other bits on another run", outcome)


def inputs_json(left: Words, right: Words | None) -> dict[str, Any]:
    """Return terms as hexadecimal words."""
    digits = left.dtype.itemsize * 2
    named = {"terms": left} if right is None else {"left": left, "right": right}
    return {name: [f"{int(word):0{digits}x}" for word in words] for name, words in named.items()}


def hexadecimal(word: int, box: Box) -> str:
    """Return the code of a result."""
    return f"{word:0{float_format(box.subject.result_dtype).sign_bit.bit_length() // 4}x}"


def are_same(one: int, other: int, dtype: str) -> bool:
    """True if two codes are equal, or both NaN."""
    decode = float_format(dtype).decode
    return one == other or (decode(one) is NAN and decode(other) is NAN)


# Masks: inputs whose sum measures the subtree that joins two terms.
#
# After FPRev (Revealing floating-point accumulation orders): +M is at one leaf, -M at another, and units everywhere
# else. A unit that is added to M or -M before these two are joined is lost. So the sum counts the leaves outside the
# smallest subtree that holds both. M must absorb all units of one call together, in the widest accumulator that absorbs
# a single one. The count must be exact in the narrowest intermediate format. With more leaves than that, units are
# counted in several calls, with zeros at all other leaves.


Exponents: TypeAlias = tuple[int, int, int, int]
"""Powers of two: the large term and the unit, of the left factor and, for products, of the right one."""

SUM_MASKS: Mapping[str, Sequence[Exponents]] = {
    "fp64": [(900, 0, 0, 0)],
    "fp32": [(100, 0, 0, 0)],
    "tf32": [(100, 0, 0, 0)],
    "bf16": [(100, 0, 0, 0)],
    "fp16": [(15, -24, 0, 0), (15, -14, 0, 0)],
    "fp8_e5m2": [(15, -16, 0, 0), (15, -14, 0, 0)],
    "fp8_e4m3": [(8, -9, 0, 0), (8, -6, 0, 0)],
}
PRODUCT_MASKS: Mapping[str, Sequence[Exponents]] = {
    **SUM_MASKS,
    "fp16": [(15, -7, 15, -7), (15, -14, 0, 0), (15, -24, 0, 0)],
    "fp8_e5m2": [(15, -16, 15, -16), (15, -14, 15, -14), (15, -14, 0, 0)],
    "fp8_e4m3": [(8, -9, 8, -9), (8, -6, 8, -6), (8, -6, 0, 0)],
}
PRECISIONS = (53, 24, 11, 8)
"""The precisions of the tried accumulators, the widest first."""


class Masks:
    """Measures the subtrees that join pairs of leaves, with one large number; sends the mask of each pair once."""

    def __init__(self, box: Box, exponents: Exponents) -> None:
        self.box = box
        self.terms = box.subject.terms
        self.measured: dict[tuple[int, int], int] = {}
        dtype, out = box.subject.dtype, box.subject.result_dtype
        precisions = [_precision(out)] if dtype.startswith("fp8") else [_precision(dtype), _precision(out)]
        self._absorbed = _absorbed(exponents)
        self.part = min(self._absorbed, 1 << min(precisions), self.terms)
        self.large, self.unit, right_large, self.right_unit = (Fraction(2) ** exponent for exponent in exponents)
        self.quantum = self.unit * self.right_unit
        self._large, self._negative, unit = words_of([self.large, -self.large, self.unit], dtype)
        self._right_large, right_unit = words_of([right_large, self.right_unit], dtype)
        self._units = np.full(self.terms, unit, word_type(dtype))
        self._rights = np.full(self.terms, right_unit, word_type(dtype)) if box.has_products else None

    def unfit(self) -> str:
        """Return "" if units are counted correctly and vanish beside the large number, else the reason.

        Raises `NotATree`: the same terms give different bits.
        """
        terms = self._some_units(0), self._rights
        word, expected = self.box.word(*terms), self.part * self.quantum
        total = float_format(self.box.subject.result_dtype).decode(word)
        if total != expected:
            description = f"{float(total):g}" if isinstance(total, Fraction) else "0" if is_zero(total) else total.value
            factor = f" times {float(self.right_unit):g}" if self.box.has_products else ""
            units = f"terms 0 to {self.part - 1} are {float(self.unit):g}{factor}, all others 0"
            require_same(self.box, terms, times=REPEATS, word=word)
            return f"{units}: expected {float(expected):g}, found {description}"
        try:
            self.lca(0, self.terms - 1)
        except NotATree as stop:
            require_same(self.box, self.words(0, self.terms - 1), times=REPEATS)
            return f"{stop}; the terms are {float(self.large):g}, its negation, and units"
        return ""

    def absorbs_nothing(self) -> bool:
        """True if no unit is absorbed, at any leaf: as far as masks show, the sum is exact.

        The paths from one leaf to all others pass every node, so one mask for each other leaf is enough. The first of
        them was sent before, and shows an absorbed unit in nearly every other sum.
        """
        others = [self.terms - 1, *range(1, self.terms - 1)]
        return self.terms > 2 and all(self.lca(0, leaf) == 2 for leaf in others)

    def lca(self, i: int, j: int) -> int:
        """Return the number of leaves of the smallest subtree with leaves i and j.

        Raises `NotATree`: the outcome is no number of leaves.
        """
        pair = (i, j) if i < j else (j, i)
        if pair not in self.measured:
            self.measured[pair] = self._measure(*pair)
        return self.measured[pair]

    def _measure(self, i: int, j: int) -> int:
        survivors = 0
        for first in range(0, self.terms, self.part):
            count = self._units_in_sum(i, j, self._some_units(first))
            survivors += int(count)
            if count.denominator != 1 or count.numerator < 0 or survivors > self.terms - 2:
                number = str(survivors) if count.denominator == 1 else f"{float(count):g}"
                raise NotATree("masks", (i, j), f"the mask leaves {number} of {self.terms - 2} units")
        return self.terms - survivors

    def _some_units(self, first: int) -> Words:
        """Return as many units as are counted in one call, from `first` on, and zeros at all other leaves."""
        left = np.zeros_like(self._units)
        left[first : first + self.part] = self._units[0]
        return left

    def _units_in_sum(self, i: int, j: int, left: Words) -> Fraction:
        total = self.box.value(*self.words(i, j, left))
        if not isinstance(total, Fraction) and not is_zero(total):
            raise NotATree("masks", (i, j), f"the sum of a mask is {total.value}, which counts nothing")
        return finite(total) / self.quantum

    def words(self, i: int, j: int, left: Words | None = None) -> Terms:
        """Return the mask of a pair, over units or other values at the other leaves."""
        left = self._units.copy() if left is None else left
        left[i], left[j] = self._large, self._negative
        if self._rights is None:
            return left, None
        right = self._rights.copy()
        right[i] = right[j] = self._right_large
        return left, right

    def survivors(self, i: int, j: int) -> frozenset[int]:
        """Return the leaves whose units a pair's mask does not absorb: a few leaves a call, with unlike units."""
        dtype = self.box.subject.dtype
        width = min(_precision(dtype), _precision(self.box.subject.result_dtype)) - 1
        width = max(1, min(width, self._absorbed.bit_length() - 1))
        others = [leaf for leaf in range(self.terms) if leaf not in (i, j)]
        leaves: set[int] = set()
        for first in range(0, len(others), width):
            some = others[first : first + width]
            left = np.zeros_like(self._units)
            left[some] = words_of([self.unit * 2**k for k in range(len(some))], dtype)
            number = self._units_in_sum(i, j, left)
            if number.denominator != 1 or not 0 <= number < 1 << len(some):
                raise NotATree("masks", (i, j), "a mask leaves units that it does not have")
            leaves |= {leaf for k, leaf in enumerate(some) if int(number) >> k & 1}
        return frozenset(leaves)


def masks_for(box: Box) -> Masks:
    """Return the masks whose units the implementation counts.

    Raises `CannotProbe`: nothing can be counted; or `NotATree`: the same terms give different bits.
    """
    unfit = ""
    for exponents in (PRODUCT_MASKS if box.has_products else SUM_MASKS)[box.subject.dtype]:
        masks = Masks(box, exponents)
        unfit = masks.unfit()
        if not unfit:
            return masks
    raise CannotProbe(
        f"{box.subject}: a sum of equal units does not give their number, so nothing can be counted: {unfit}"
    )


def _absorbed(exponents: Exponents) -> int:
    """Return the number of units that M absorbs together in the widest accumulator in which it absorbs one."""
    large, unit, right_large, right_unit = exponents
    ratio = large + right_large - unit - right_unit
    return 1 << next((ratio - bits - 1 for bits in PRECISIONS if ratio > bits), 0)


def _precision(dtype: str) -> int:
    return float_format(dtype).fraction_bits + 1


# The tree from measured pairs (FPRev's refined algorithm, with random pivots).
#
# For a pivot leaf, the leaves that meet it in subtrees of the same size hang at the same node of its path to the root;
# each such group is revealed in turn. A group whose own root is the node itself gives several children of one fused
# node.


Steps = list[int]


Lca: TypeAlias = Callable[[int, int], int]
"""Measures the number of leaves of the smallest subtree with two leaves."""


def reveal(terms: int, lca: Lca, seed: int = 0) -> Tree:
    """Return the tree, its children in the order of their first leaves.

    Nodes that add three or more terms must drop the units beside M, as aligned sums do; `reveal_exact_nodes` is for
    those that do not.

    Raises `NotATree`: no tree gives these counts; `pair` is a pair that shows it.
    """
    if terms < 2:
        return Tree.explicit([0])
    draw = random.Random(seed)
    shapes: dict[int, Tree] = {}  # the last tree of as many leaves: to compare a group with it takes fewer calls

    def revealed(leaves: Sequence[int]) -> tuple[list[Steps], int]:
        """Return the children, among these leaves, of the node that joins them, and that node's size."""
        guess = shapes.get(len(leaves))
        if guess is not None:
            with suppress(NotATree):
                if first_wrong_pair(lca, guess, leaves) is None:
                    return [[leaves[step] if step >= 0 else step for step in guess.steps]], len(leaves)
        children, size = searched(leaves)
        if size == len(leaves) > 2:
            shapes[size] = _relabelled(_joined(children), leaves)
        return children, size

    def searched(leaves: Sequence[int]) -> tuple[list[Steps], int]:
        pivot = leaves[draw.randrange(len(leaves))]
        if len(leaves) == 1:
            return [[pivot]], 1
        groups: dict[int, list[int]] = {}
        for leaf in leaves:
            if leaf != pivot:
                groups.setdefault(lca(pivot, leaf), []).append(leaf)
        children: list[Steps] = [[pivot]]
        below, last = 1, max(groups)
        for size in sorted(groups):
            group = groups[size]
            pair = (pivot, group[0])
            others, lead = revealed(group)
            if lead != len(group) and lead != size:
                raise NotATree("masks", pair, _unfitting(size, f"others of its leaves are joined in one of {lead}"))
            children = [_joined(children), *([_joined(others)] if lead == len(group) else others)]
            below += len(group)
            if below > size or (below < size and size != last):
                raise NotATree("masks", pair, _unfitting(size, f"{below} leaves belong there"))
        return children, last

    children, size = revealed(range(terms))
    if size != terms:
        pair = (children[0][0], children[-1][0])
        raise NotATree("masks", pair, f"no two leaves are joined in the root: the largest subtree has {size} leaves")
    return Tree.explicit(_joined(children)).canonical()


def first_wrong_pair(lca: Lca, tree: Tree, leaves: Sequence[int]) -> tuple[int, int, int] | None:
    """Return a pair of leaves that is not joined as in the tree, and the size of the subtree that should join it.

    `leaves` are those of the tree's own numbers. One pair for each two children of each node proves the tree, from the
    leaves up: if two subtrees are right and two of their leaves are joined in a subtree of exactly their joint size,
    they are its two children.
    """
    for children in tree.joints():
        size = sum(count for _, count in children)
        for (left, _), (right, _) in combinations(children, 2):
            if lca(leaves[left], leaves[right]) != size:
                return leaves[left], leaves[right], size
    return None


def reveal_exact_nodes(terms: int, survivors: Callable[[int, int], frozenset[int]], seed: int = 0) -> Tree:
    """Return the tree if nodes of three and more terms add exactly, so that units beside M survive.

    `survivors` are the leaves that are added to neither of two others before these are joined.

    Raises `NotATree`: no tree gives these survivors.
    """
    draw = random.Random(seed)
    everything = frozenset(range(terms))

    def revealed(leaves: frozenset[int]) -> Steps:
        pivot = draw.choice(sorted(leaves)) if len(leaves) > 1 else min(leaves)
        absorbed = {leaf: everything - survivors(pivot, leaf) for leaf in sorted(leaves - {pivot})}
        steps = [pivot]
        for siblings in _path(pivot, leaves, absorbed):
            steps = _joined([steps, *(revealed(sibling) for sibling in sorted(siblings, key=min))])
        return steps

    return Tree.explicit(revealed(everything)).canonical()


def _path(pivot: int, leaves: frozenset[int], absorbed: Mapping[int, frozenset[int]]) -> list[set[frozenset[int]]]:
    """Return the subtrees that are joined to a pivot in each node on its path to the root of `leaves`."""
    built, path = frozenset({pivot}), []
    while built != leaves:
        rest = [leaf for leaf in absorbed if leaf not in built]
        nearest = min(rest, key=lambda leaf: len(absorbed[leaf]))
        child = absorbed[nearest] - built
        siblings = {absorbed[leaf] - built for leaf in rest if not child <= absorbed[leaf]} | {child}
        joined = frozenset(leaf for sibling in siblings for leaf in sibling)
        sound = sum(map(len, siblings)) == len(joined) and joined <= leaves and not joined & built
        if not sound or any(leaf not in absorbed[leaf] or not built <= absorbed[leaf] for leaf in rest):
            raise NotATree("masks", (pivot, nearest), "which units outlive the mask fits no tree")
        path.append(siblings)
        built |= joined
    return path


def _joined(children: list[Steps]) -> Steps:
    if len(children) == 1:
        return children[0]
    return [step for child in children for step in child] + [-len(children)]


def _unfitting(size: int, other: str) -> str:
    return f"they are joined in a subtree of {size} leaves, but {other}"


# The name of a revealed tree: fold, ring, lanes, blocks; the text for people.


Leaves: TypeAlias = tuple[int, ...]
"""Leaves in ascending order."""

LONGEST_TEXT = 160
MOST_BLOCKS = 64


def pattern(tree: Tree) -> str:
    """Return a description such as `fold`, `8 interleaved lanes, each fold; joined pairwise`, or `irregular`."""
    tree = tree.without_start().canonical()
    terms = tree.leaves
    sizes = (terms // count for count in range(2, terms // 2 + 1) if terms % count == 0)
    blocks = ([tuple(range(first, first + size)) for first in range(0, terms, size)] for size in sizes)
    name = _named(tree) or _grouped(tree, "interleaved lanes", _lanes(terms)) or _grouped(tree, "blocks", blocks)
    return name or _unequal_blocks(tree) or f"irregular: depth {tree.depth}, nodes of at most {tree.arity}"


def abbreviated(tree: Tree) -> str:
    """Return the text form, with a long middle left out."""
    text = tree.to_text()
    half = (LONGEST_TEXT - 5) // 2
    return text if len(text) <= LONGEST_TEXT else f"{text[:half]} ... {text[-half:]}"


def _named(tree: Tree) -> str | None:
    terms = tree.leaves
    if terms <= 1:
        return "one term"
    if terms == 2:
        return "one addition"
    if tree == FOLD.over(terms):
        return "fold"
    if tree == PAIRWISE.over(terms).canonical():
        return "pairwise"
    if tree == Tree.explicit([*range(terms), -terms]):
        return f"one fused node of {terms}"
    if name := _chain(tree):
        return name
    if any(tree == Tree.explicit(_halves(0, terms, larger)).canonical() for larger in (False, True)):
        return "recursive halving"
    return _fused_fold(tree)


def _chain(tree: Tree) -> str | None:
    """Return the name of a running sum that adds one term at a time, in a regular order."""
    terms = tree.leaves
    if tree.arity > 2 or tree.depth != terms - 1:
        return None
    order: list[int] = []
    for left, right in tree.nodes():
        order += [*left, *right] if not order else left if len(left) == 1 else right
    for first_two in (order[:2], order[1::-1]):
        whole = [*first_two, *order[2:]]
        start = whole[0]
        if whole == [(start + k) % terms for k in range(terms)]:
            return f"ring({start})"
        if whole == [(start - k) % terms for k in range(terms)]:
            return "fold from the last term" if start == terms - 1 else f"ring downwards from {start}"
        for block in range(2, min(terms // 2, 64) + 1):
            if whole == [leaf for at in range(0, terms, block) for leaf in reversed(range(at, min(at + block, terms)))]:
                return f"fold, every {block} terms in reverse order"
    return None


def _halves(first: int, count: int, first_larger: bool) -> list[int]:
    """Return the steps of a sum by halves of contiguous terms, the larger one first or last, down to single terms."""
    if count == 1:
        return [first]
    half = (count + first_larger) // 2
    return [*_halves(first, half, first_larger), *_halves(first + half, count - half, first_larger), -2]


def _fused_fold(tree: Tree) -> str | None:
    """Return the name of a running sum that adds several terms at once: ((0 1 2 3) 4 5 6 7)."""
    width = tree.arity - 1
    if width < 2:
        return None
    for start in (width, width + 1):
        steps = [*range(start), -start]
        for leaf in range(start, tree.leaves, width):
            block = range(leaf, min(leaf + width, tree.leaves))
            steps += [*block, -1 - len(block)]
        if tree == Tree.explicit(steps).canonical():
            return f"fold in fused blocks of {width}" + (f", {start} at first" if start != width else "")
    return None


def _lanes(terms: int) -> Iterator[list[Leaves]]:
    """Yield the partitions of leaves into interleaved lanes, most lanes first."""
    for count in range(terms // 2, 1, -1):
        yield [tuple(range(lane, terms, count)) for lane in range(count)]


def _grouped(tree: Tree, kind: str, partitions: Iterable[list[Leaves]]) -> str | None:
    """Return the name of the first partition into subtrees of one pattern, with this pattern and their joining."""
    subtrees = _subtrees(tree)
    for groups in partitions:
        if all(group in subtrees for group in groups):
            inside = {pattern(_relabelled(subtrees[group], group)) for group in groups if len(group) > 1}
            if len(inside) <= len(set(map(len, groups))) and not any("irregular" in name for name in inside):
                sizes = "" if kind == "interleaved lanes" else f" of {len(groups[0])}"
                joined = pattern(_quotient(tree, groups))
                return f"{len(groups)} {kind}{sizes}, each {' or '.join(sorted(inside))}; joined: {joined}"
    return None


def _unequal_blocks(tree: Tree) -> str | None:
    """Return the name of contiguous blocks of unequal sizes: the largest sums of one kind, or of lanes."""
    blocks: list[tuple[Leaves, str]] = []
    waiting = [tuple(range(tree.leaves))]
    subtrees, children = _subtrees(tree), {tuple(sorted(sum(node, ()))): node for node in tree.nodes()}
    while waiting:
        leaves = waiting.pop()
        if leaves[-1] - leaves[0] + 1 != len(leaves) or len(blocks) >= MOST_BLOCKS:
            return None
        part = _relabelled(subtrees[leaves], leaves)
        name = _named(part) or _grouped(part, "interleaved lanes", _lanes(part.leaves))
        if name is None:
            waiting += sorted((tuple(sorted(child)) for child in children[leaves]), reverse=True)
        else:
            blocks.append((leaves, name))
    names = sorted({name for leaves, name in blocks if len(leaves) > 1})
    if not 1 <= len(names) <= 2:
        return None
    joined = _quotient(tree, [leaves for leaves, _ in blocks])
    runs = [(size, len(list(run))) for size, run in groupby(len(leaves) for leaves, _ in blocks)]
    sizes = ", ".join(f"{count} of {size}" for size, count in runs)
    return f"blocks ({sizes}), each {' or '.join(names)}; joined: {_named(joined) or joined.to_text()}"


def _subtrees(tree: Tree) -> dict[Leaves, Steps]:
    """Return the steps of every subtree, by its leaves."""
    subtrees: dict[Leaves, Steps] = {}

    def added(steps: Steps) -> Steps:
        subtrees[tuple(sorted(step for step in steps if step >= 0))] = steps
        return steps

    tree.folded(lambda leaf: added([leaf]), lambda children: added(_joined(children)))
    return subtrees


def _relabelled(steps: Sequence[int], leaves: Sequence[int]) -> Tree:
    number = {leaf: k for k, leaf in enumerate(sorted(leaves))}
    return Tree.explicit([number.get(step, step) for step in steps])


def _quotient(tree: Tree, groups: Sequence[Leaves]) -> Tree:
    """Return the tree whose leaves are these groups, which are subtrees and have all leaves."""
    number = {group: k for k, group in enumerate(groups)}

    def named(leaves: Leaves, steps: Steps) -> tuple[Leaves, Steps]:
        return leaves, [number[leaves]] if leaves in number else steps

    def node(children: list[tuple[Leaves, Steps]]) -> tuple[Leaves, Steps]:
        leaves = sorted(leaf for own, _ in children for leaf in own)
        return named(tuple(leaves), _joined([steps for _, steps in children]))

    _, steps = tree.folded(lambda leaf: named((leaf,), [leaf]), node)
    return Tree.explicit(steps).canonical()


# The orders of all elements of an all-reduce: a ring starts at another rank for every chunk.
#
# Every pair of ranks is masked once, and one call measures that pair for all elements.


MOST_RANKS = 16


@dataclass(frozen=True)
class Group:
    """Elements first..last, both included, and their order; None where it is no tree."""

    first: int
    last: int
    tree: Tree | None

    def sentence(self) -> str:
        """Return the group in words."""
        order = "no fixed tree" if self.tree is None else f"{pattern(self.tree)}: {abbreviated(self.tree)}"
        return f"elements {self.first} to {self.last}: {order}"


def groups_of(box: Box) -> tuple[Group, ...]:
    """Return runs of elements that share an order; () for more ranks than `MOST_RANKS`."""
    ranks = box.subject.terms
    if ranks > MOST_RANKS:
        return ()
    try:
        masks = masks_for(box)
    except NotATree:
        return ()
    sizes = {pair: _sizes(box, masks, pair) for pair in combinations(range(ranks), 2)}
    groups: list[Group] = []
    keys = list(zip(*sizes.values(), strict=True))
    for key, elements in groupby(range(len(keys)), keys.__getitem__):
        first, *others = elements
        groups.append(Group(first, first + len(others), _tree(ranks, dict(zip(sizes, key, strict=True)))))
    return tuple(groups)


def _sizes(box: Box, masks: Masks, pair: tuple[int, int]) -> list[int]:
    """Return the sizes that a pair's mask measures, element by element; 0 for an invalid count."""
    sizes = []
    for value in values_of(box.result(*masks.words(*pair))):
        count = None if value is None else value / masks.quantum
        sizes.append(0 if count is None or count.denominator != 1 else box.subject.terms - int(count))
    return sizes


def _tree(ranks: int, sizes: dict[tuple[int, int], int]) -> Tree | None:
    """Return the tree with these sizes of the subtrees that join two leaves; None if there is none."""
    if not all(2 <= size <= ranks for size in sizes.values()):
        return None
    try:
        return reveal(ranks, lambda i, j: sizes[min(i, j), max(i, j)])
    except NotATree:
        return None
