"""The arithmetic of a known tree's nodes, and the masks that measure the subtree in which two terms meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, groupby, product
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.arithmetic import NodeArithmetic, Rounding, replay
from tessera_conformance.check import values_of
from tessera_conformance.oracle.exact import ACCUMULATORS, NAN, ZERO, Value, finite, float_format, is_negative, is_zero
from tessera_conformance.oracle.trees import START, Tree
from tessera_conformance.probe.calls import Box, CannotProbe, Terms, Words, samples, word_type, words_of
from tessera_conformance.probe.reveal import NotATree, abbreviated, pattern, reveal
from tessera_conformance.tensors import Tensor

# The arithmetic of a known tree's nodes: direct probes first, then replay of random terms bit for bit.


Start: TypeAlias = Literal["+0", "none"]
Kept: TypeAlias = Literal["kept", "flushed", "mixed"]

ROUNDINGS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
ACCUMULATORS_TRIED = ("fp32", "fp64", "fp16", "bf16")
ROWS = 16
PAIRS = 4
"""Rows in which all terms but two are zeros."""
REPEATS = 4
"""The number of times that the same terms are sent to see whether the result varies."""
WIDEST_ALIGNMENT = 64
NEAREST = 8
"""The number of models that are compared for the nearest if none fits."""


@dataclass(frozen=True)
class Observed:
    """The results of the implementation for random terms, and the findings of the direct probes."""

    rows: Sequence[Terms]
    words: Sequence[int]
    start: Start | None
    subnormals: Kept
    alignment_bits: int | None = None
    roundings: tuple[Rounding, ...] = ROUNDINGS


@dataclass(frozen=True)
class Arithmetic:
    """The model that replays every result, and others that no tried input distinguishes from it."""

    model: NodeArithmetic
    tree: Tree
    alike: tuple[NodeArithmetic, ...] = field(default=())


def observe(box: Box, tree: Tree, seed: int = 0) -> Observed:
    """Send random terms and run the direct probes. Raises `NotATree`: the same terms give different bits."""
    subject = box.subject
    rows = samples(subject.dtype, subject.terms, ROWS, box.has_products, seed)
    rows += _pairs_alone(box, tree, seed) if tree.arity == 2 and box.has_products else []
    words = [box.word(*row) for row in rows]
    for row, word in list(zip(rows, words, strict=True))[:2]:
        require_same(box, row, times=REPEATS // 2, word=word)
    bits = _alignment(box, tree) if tree.arity > 2 else None
    roundings = _roundings(box) if tree.arity == 2 else ROUNDINGS
    return Observed(rows, words, _start(box), _subnormals(box), bits, roundings)


def _pairs_alone(box: Box, tree: Tree, seed: int) -> list[Terms]:
    """Return rows with products at the two leaves of one node and zeros elsewhere: they show the one rounded first."""
    pair = next([left[0], right[0]] for left, right in tree.nodes() if len(left) == len(right) == 1)
    rows: list[Terms] = []
    for first, second in samples(box.subject.dtype, 2, PAIRS, True, seed):
        assert second is not None
        left, right = _placed(box, {}), _placed(box, {})
        left[pair], right[pair] = first, second
        rows.append((left, right))
    return rows


def require_same(box: Box, terms: Terms, *, times: int, word: int | None = None) -> None:
    """Send the same terms again, so many times; `word` is the known answer. Raises `NotATree`: the bits differ."""
    word = box.word(*terms) if word is None else word
    for _ in range(times):
        again = box.word(*terms)
        if not _same(again, word, box.subject.result_dtype):
            outcome = {"inputs": inputs_json(*terms), "first": word, "again": again}
            raise NotATree("runs", None, "the same terms gave other bits on another run", outcome)


def identify(box: Box, tree: Tree, observed: Observed) -> Arithmetic:
    """Return the arithmetic whose replay gives all observed bits.

    Raises `NotATree`: none does; the witness is a row that the nearest one misses.
    """
    candidates = list(_candidates(box, tree, observed))
    models = [(model, placed) for placed, model in candidates if replays(box, placed, model, observed)]
    if models:
        first, placed = models[0]
        alike = tuple(dict.fromkeys(model for model, _ in models if model != first))
        return Arithmetic(first, placed, alike)
    missed = [(mismatches(box, placed, model, observed), model) for placed, model in candidates[:NEAREST]]
    wrong, model = min(missed, key=lambda entry: len(entry[0]))
    row = min(wrong)
    nearest = f"the nearest misses {len(wrong)} of {len(observed.rows)} rows"
    raise NotATree(
        "replay",
        None,
        f"no arithmetic replays the tree that the masks show; {nearest}",
        {
            "inputs": inputs_json(*observed.rows[row]),
            "nearest": model.to_json(),
            "replayed": hexadecimal(wrong[row], box),
            "found": hexadecimal(observed.words[row], box),
        },
    )


def replays(box: Box, tree: Tree, model: NodeArithmetic, observed: Observed) -> bool:
    """True if a replay gives all observed bits; an exact replay, which is slow, tries a single row first."""
    is_quick = replay.is_fast(tree, model, box.subject.dtype, box.has_products, box.subject.terms)
    return (is_quick or not mismatches(box, tree, model, observed, slice(1, 2))) and not mismatches(
        box, tree, model, observed
    )


def mismatches(
    box: Box, tree: Tree, model: NodeArithmetic, observed: Observed, rows: slice = slice(None)
) -> dict[int, int]:
    """Return the numbers of the rows that a replay of these rows misses, with the replayed words."""
    dtype, out, words = box.subject.dtype, box.subject.result_dtype, observed.words[rows]
    shape = (len(words), box.subject.terms)
    left, right = zip(*observed.rows[rows], strict=True)
    terms = Tensor(dtype, shape, np.stack(left).tobytes())
    if box.has_products:
        replayed = replay.inner(terms, Tensor(dtype, shape, np.stack(right).tobytes()), tree, model, out)
    else:
        replayed = replay.sum(terms, 1, tree, model, out)
    pairs = enumerate(zip(words, replayed.words().tolist(), strict=True))
    return {row: wanted for row, (found, wanted) in pairs if not _same(found, wanted, out)}


def _candidates(box: Box, tree: Tree, observed: Observed) -> Iterator[tuple[Tree, NodeArithmetic]]:
    """Yield models to try, the likeliest first."""
    usual = ACCUMULATORS[box.subject.dtype]
    others = [name for name in ACCUMULATORS_TRIED if name != usual]
    subnormals = ["kept", "flushed"] if observed.subnormals == "mixed" else [observed.subnormals]
    products = ("rounded", "fused") if box.has_products else ("rounded",)
    placements = [(name, placed) for name in products for placed in _placements(tree, name)]
    start = "none" if box.has_products and observed.start == "none" else "zero"
    for accumulator, rounding, kept in product([usual, *others], observed.roundings, subnormals):
        wider = float_format(accumulator).fraction_bits > float_format(usual).fraction_bits
        usual_here = ("nearest_even",) if wider else ("nearest_even", "toward_zero")
        if accumulator == usual or rounding in usual_here:
            for name, placed in placements:
                yield placed, NodeArithmetic(accumulator, name, rounding, observed.alignment_bits, kept, start)  # type: ignore[arg-type]


def _placements(tree: Tree, products: str) -> list[Tree]:
    """Return trees that masks cannot distinguish: orders of two fused leaves, and positions of the start value.

    It may stand in the first node, if that has one term less than the widest.
    """
    if tree.arity <= 2:
        return [tree, _with_pairs_swapped(tree)] if products == "fused" else [tree]
    steps = tree.steps
    first = next(k for k, step in enumerate(steps) if step < START)
    if -steps[first] != tree.arity - 1:
        return [tree]
    return [Tree.explicit([START, *steps[:first], steps[first] - 1, *steps[first + 1 :]]), tree]


def _with_pairs_swapped(tree: Tree) -> Tree:
    """Return the tree with the two leaves of every node of two leaves exchanged."""
    steps = list(tree.steps)
    for k in range(2, len(steps)):
        if steps[k] == -2 and steps[k - 1] > START and steps[k - 2] > START:
            steps[k - 2], steps[k - 1] = steps[k - 1], steps[k - 2]
    return Tree.explicit(steps)


def _start(box: Box) -> Start | None:
    """Return the start of a sum: "none" if a sum of negative zeros keeps the sign."""
    dtype, terms = box.subject.dtype, box.subject.terms
    left = np.full(terms, float_format(dtype).sign_bit, word_type(dtype))
    right = words_of([Fraction(1)], dtype).repeat(terms) if box.has_products else None
    total = box.value(left, right)
    if not is_zero(total):
        return None
    return "none" if is_negative(total) else "+0"


def _subnormals(box: Box) -> Kept:
    """Return "kept" if subnormal inputs and subnormal results survive, else "mixed" or "flushed"."""
    dtype = box.subject.dtype
    smallest = float_format(dtype).smallest_normal
    answers = [_alone(box, smallest / 2) == smallest / 2]
    if ACCUMULATORS[dtype] == dtype:  # otherwise such a result is no normal number of the accumulator
        answers.append(_alone(box, 3 * smallest / 2, -smallest) == smallest / 2)
    if float_format(box.subject.result_dtype).smallest_normal > smallest:
        return "kept"
    return "kept" if all(answers) else "mixed" if any(answers) else "flushed"


def _roundings(box: Box) -> tuple[Rounding, ...]:
    """Return the directions consistent with 1 plus and minus a tiny number, if the result shows the accumulator."""
    dtype = box.subject.dtype
    accumulator, result = (float_format(name) for name in (ACCUMULATORS[dtype], box.subject.result_dtype))
    tiny = Fraction(2) ** (-accumulator.fraction_bits - 8)
    if result.fraction_bits < accumulator.fraction_bits or tiny < float_format(dtype).smallest_normal:
        return ROUNDINGS
    above, below = (_alone(box, Fraction(1), sign * tiny) for sign in (1, -1))
    if above == 1 and below == 1:
        return ROUNDINGS[:2]
    return ROUNDINGS[2:]


def _alignment(box: Box, tree: Tree) -> int | None:
    """Return the bits below the largest term that a fused node keeps; None if it keeps all that terms can have.

    A power of two and its negation cancel in the node, beside a smaller one, 2^-g times theirs: it survives as long as
    g is at most the number of bits.
    """
    (one, _), (other, _), (small, _), *_ = next(children for children in tree.joints() if len(children) > 2)
    large = Fraction(2) ** (8 if box.subject.dtype == "fp8_e4m3" else 0)
    lowest = float_format(box.subject.dtype).smallest
    scale, rights = (large * large, (large, lowest)) if box.has_products else (large, (Fraction(1),))
    for bits in range(1, WIDEST_ALIGNMENT + 1):
        number = scale / 2**bits
        right = next((factor for factor in rights if number / factor >= lowest), None)
        if right is None:
            return None
        left = _placed(box, {one: large, other: -large, small: number / right})
        factors = _placed(box, {one: large, other: large, small: right}) if box.has_products else None
        if is_zero(box.value(left, factors)):
            return bits - 1
    return None


def _alone(box: Box, *terms: Fraction) -> Value:
    """Return the sum of a few terms, with zeros at all other leaves."""
    factors = _placed(box, dict.fromkeys(range(len(terms)), Fraction(1))) if box.has_products else None
    return box.value(_placed(box, dict(enumerate(terms))), factors)


def _placed(box: Box, values: dict[int, Fraction]) -> Words:
    return words_of([values.get(leaf, ZERO) for leaf in range(box.subject.terms)], box.subject.dtype)


def inputs_json(left: Words, right: Words | None) -> dict[str, Any]:
    """Return terms as hexadecimal words."""
    digits = left.dtype.itemsize * 2
    named = {"terms": left} if right is None else {"left": left, "right": right}
    return {name: [f"{int(word):0{digits}x}" for word in words] for name, words in named.items()}


def hexadecimal(word: int, box: Box) -> str:
    """Return the code of a result."""
    return f"{word:0{float_format(box.subject.result_dtype).sign_bit.bit_length() // 4}x}"


def _same(one: int, other: int, dtype: str) -> bool:
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
"""Of powers of two: the large term and the unit, of the left factor and, for products, of the right one."""

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
        survivors = Fraction(0)
        for first in range(0, self.terms, self.part):
            count = self._units_in_sum(i, j, self._some_units(first))
            survivors += count
            if survivors.denominator != 1 or count < 0 or survivors > self.terms - 2:
                number = str(survivors) if survivors.denominator == 1 else f"{float(survivors):g}"
                raise NotATree("masks", (i, j), f"the mask leaves {number} of {self.terms - 2} units")
        return self.terms - int(survivors)

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
