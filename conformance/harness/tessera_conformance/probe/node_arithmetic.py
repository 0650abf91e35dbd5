"""The arithmetic of a known tree's nodes: direct probes first, then replay of random terms bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, Literal, TypeAlias

from tessera_conformance.arithmetic import replay
from tessera_conformance.arithmetic.tree import START, NodeArithmetic, Rounding, Tree
from tessera_conformance.oracle.exact import ACCUMULATORS, NAN, ZERO, Value, float_format, is_negative, is_zero
from tessera_conformance.probe.calls import Box, Sample, Words, samples, stacked, words_of
from tessera_conformance.probe.reveal import NotATree
from tessera_conformance.tensors import Tensor

Start: TypeAlias = Literal["+0", "none"]
Kept: TypeAlias = Literal["kept", "flushed", "mixed"]

ROUNDINGS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
ROWS = 16
PAIRS = 4
"""Rows in which all terms but two are zeros."""
REPEATS = 4
"""The number of times that the same terms are asked for to see whether the result varies."""
WIDEST_ALIGNMENT = 64
NEAREST = 8
"""The number of models that are compared for the nearest where none fits."""


@dataclass(frozen=True)
class Observed:
    """The results of the implementation for random terms, and the findings of the direct probes."""

    rows: Sequence[Sample]
    words: Sequence[int]
    start: Start | None
    subnormals: Kept
    alignment_bits: int | None = None
    roundings: tuple[Rounding, ...] = ROUNDINGS


@dataclass(frozen=True)
class Arithmetic:
    """The model that replays everything, and others that no tried input distinguishes from it."""

    model: NodeArithmetic
    tree: Tree
    alike: tuple[NodeArithmetic, ...] = field(default=())


def observe(box: Box, tree: Tree | None, seed: int = 0) -> Observed:
    """Ask for random terms and run the direct probes.

    Raises:
        NotATree: the same terms give different bits.
    """
    subject = box.subject
    rows = samples(subject.dtype, subject.terms, ROWS, box.has_products, seed)
    rows += _pairs_alone(box, tree, seed) if tree is not None and tree.arity == 2 and box.has_products else []
    words = [box.word(row.left, row.right) for row in rows]
    for row, word in list(zip(rows, words, strict=True))[:2]:
        for _ in range(REPEATS // 2):
            require_same(box, row.left, row.right, word)
    bits = _alignment(box, tree) if tree is not None and tree.arity > 2 else None
    roundings = _roundings(box) if tree is not None and tree.arity == 2 else ROUNDINGS
    return Observed(rows, words, _start(box), _subnormals(box), bits, roundings)


def _pairs_alone(box: Box, tree: Tree, seed: int) -> list[Sample]:
    """Products at the leaves of one node of two leaves, zeros at all others: they show which one is rounded first."""
    pair = next([left[0], right[0]] for left, right in tree.nodes() if len(left) == len(right) == 1)
    rows = []
    for sample in samples(box.subject.dtype, 2, PAIRS, True, seed):
        left, right = _placed(box, {}), _placed(box, {})
        left[pair] = sample.left
        if sample.right is not None:
            right[pair] = sample.right
        rows.append(Sample(left, right))
    return rows


def require_same(box: Box, left: Words, right: Words | None, word: int) -> None:
    """Ask once more.

    Raises:
        NotATree: the bits differ.
    """
    again = box.word(left, right)
    if not _same(again, word, box.subject.result_dtype):
        outcome = {"inputs": inputs_json(box, left, right), "first": word, "again": again}
        raise NotATree("runs", None, "the same terms gave other bits on another run", outcome)


def identify(box: Box, tree: Tree, observed: Observed) -> Arithmetic:
    """The arithmetic whose replay gives every bit seen.

    Raises:
        NotATree: none does; the witness is a row that the nearest one misses.
    """
    candidates = list(_candidates(box, tree, observed))
    models = [(model, placed) for placed, model in candidates if replays(box, placed, model, observed)]
    if models:
        first, placed = models[0]
        alike = tuple(dict.fromkeys(model for model, _ in models if model != first))
        return Arithmetic(first, placed, alike)
    missed = [(*mismatches(box, placed, model, observed), model) for placed, model in candidates[:NEAREST]]
    wrong, row, word, model = min(missed, key=lambda entry: entry[0])
    sample = observed.rows[row]
    raise NotATree(
        "replay",
        None,
        f"no arithmetic replays the tree that the masks show; the nearest misses {wrong} of {len(observed.rows)} rows",
        {
            "inputs": inputs_json(box, sample.left, sample.right),
            "nearest": model.to_json(),
            "replayed": hexadecimal(word, box),
            "found": hexadecimal(observed.words[row], box),
        },
    )


def replays(box: Box, tree: Tree, model: NodeArithmetic, observed: Observed) -> bool:
    """True if a replay gives every bit seen; an exact replay, which takes rows one by one, first tries a single one."""
    head = Observed(observed.rows[1:2], observed.words[1:2], observed.start, observed.subnormals)
    quick = replay.is_fast(tree, model, box.subject.dtype, box.has_products, box.subject.terms)
    return (quick or mismatches(box, tree, model, head)[0] == 0) and mismatches(box, tree, model, observed)[0] == 0


def mismatches(box: Box, tree: Tree, model: NodeArithmetic, observed: Observed) -> tuple[int, int, int]:
    """Return the number of rows that a replay misses, the first of them and the replayed value there."""
    replayed = replayed_rows(box, tree, model, observed.rows)
    out = box.subject.result_dtype
    pairs = enumerate(zip(observed.words, replayed, strict=True))
    wrong = [row for row, (found, wanted) in pairs if not _same(found, wanted, out)]
    return (len(wrong), wrong[0], replayed[wrong[0]]) if wrong else (0, 0, 0)


def replayed_rows(box: Box, tree: Tree, model: NodeArithmetic, rows: Sequence[Sample]) -> list[int]:
    """The codes that a tree and a model give for rows of terms."""
    left, right = stacked(rows, box.subject.dtype)
    out = box.subject.result_dtype
    result: Tensor = (
        replay.sum(left, 1, tree, model, out) if right is None else replay.inner(left, right, tree, model, out)
    )
    return [int(word) for word in result.words()]


def _candidates(box: Box, tree: Tree, observed: Observed) -> Iterator[tuple[Tree, NodeArithmetic]]:
    """Models to try, the likeliest first."""
    dtype = box.subject.dtype
    usual = ACCUMULATORS[dtype]
    others = [name for name in ("fp32", "fp64", "fp16", "bf16") if name != usual]
    subnormals = ["kept", "flushed"] if observed.subnormals == "mixed" else [observed.subnormals]
    products = ("rounded", "fused") if box.has_products else ("rounded",)
    roundings = observed.roundings
    for accumulator, rounding, subnormal_handling in product([usual, *others], roundings, subnormals):
        for product_, placed in ((name, place) for name in products for place in _placements(box, tree, name)):
            wider = float_format(accumulator).fraction_bits > float_format(usual).fraction_bits
            if accumulator != usual and rounding not in ("nearest_even", *(() if wider else ("toward_zero",))):
                continue
            if not _holds(accumulator, box, observed):
                continue
            model = NodeArithmetic(accumulator, product_, rounding, observed.alignment_bits, subnormal_handling)  # type: ignore[arg-type]
            yield placed, model.but(start="none") if box.has_products and observed.start == "none" else model


def _holds(accumulator: str, box: Box, observed: Observed) -> bool:
    """True if every result seen is a number of the accumulator, which it was before it was rounded to the result."""
    narrow, wide = float_format(accumulator), float_format(box.subject.result_dtype)
    if narrow.fraction_bits >= wide.fraction_bits:
        return True
    return all(narrow.round(value) == value for value in map(wide.decode, observed.words))


def _placements(box: Box, tree: Tree, products: str) -> list[Tree]:
    """Return the trees that masks cannot distinguish: places of the start value, and orders of two fused leaves."""
    if tree.arity <= 2:
        return [tree, _with_pairs_swapped(tree)] if products == "fused" else [tree]
    widened = _with_start_in_first_node(tree)
    return [widened, tree] if widened is not None else [tree]


def _with_start_in_first_node(tree: Tree) -> Tree | None:
    """The tree with `c` in the first node, where that node has one term less than the widest."""
    first = next((k for k, step in enumerate(tree.steps) if step < START), None)
    if first is None or -tree.steps[first] != tree.arity - 1:
        return None
    steps = list(tree.steps)
    return Tree.explicit([START, *steps[:first], steps[first] - 1, *steps[first + 1 :]])


def _with_pairs_swapped(tree: Tree) -> Tree:
    """The tree with the two leaves of every node of two leaves exchanged."""
    steps = list(tree.steps)
    for k in range(2, len(steps)):
        if steps[k] == -2 and steps[k - 1] > START and steps[k - 2] > START:
            steps[k - 2], steps[k - 1] = steps[k - 1], steps[k - 2]
    return Tree.explicit(steps)


def _start(box: Box) -> Start | None:
    """Return the start of a sum: none of its own where a sum of negative zeros keeps the sign."""
    dtype, terms = box.subject.dtype, box.subject.terms
    left = words_of([ZERO], dtype).repeat(terms) | words_of([ZERO], dtype).dtype.type(float_format(dtype).sign_bit)
    right = words_of([Fraction(1)], dtype).repeat(terms) if box.has_products else None
    total = box.value(left, right)
    if not is_zero(total):
        return None
    return "none" if is_negative(total) else "+0"


def _subnormals(box: Box) -> Kept:
    """Return whether subnormal inputs and subnormal results survive."""
    dtype = box.subject.dtype
    smallest = float_format(dtype).smallest_normal
    answers = [_alone(box, [smallest / 2], [Fraction(1)]) == smallest / 2]
    if ACCUMULATORS[dtype] == dtype:  # else a result that the accumulator has no normal number for cannot be seen
        answers.append(_alone(box, [3 * smallest / 2, -smallest], [Fraction(1)] * 2) == smallest / 2)
    if float_format(box.subject.result_dtype).smallest_normal > smallest:
        return "kept"
    return "kept" if all(answers) else "mixed" if any(answers) else "flushed"


def _roundings(box: Box) -> tuple[Rounding, ...]:
    """The directions that 1 and a tiny number of either sign leave possible, where the result shows the accumulator."""
    dtype = box.subject.dtype
    accumulator, result = (float_format(name) for name in (ACCUMULATORS[dtype], box.subject.result_dtype))
    tiny = Fraction(2) ** (-accumulator.fraction_bits - 8)
    if result.fraction_bits < accumulator.fraction_bits or tiny < float_format(dtype).smallest_normal:
        return ROUNDINGS
    above, below = (_alone(box, [Fraction(1), sign * tiny], [Fraction(1)] * 2) for sign in (1, -1))
    if above == 1 and below == 1:
        return ROUNDINGS[:2]
    return ROUNDINGS[2:]


def _alignment(box: Box, tree: Tree) -> int | None:
    """Return the bits below the largest term that a fused node keeps; None where it keeps all that can be sent.

    A power of two and its negation cancel in the node, and a smaller one, 2^-g times theirs, is beside them: it
    survives as long as g is not more than the bits.
    """
    leaves = next(([leaf for leaf, _ in children] for children in tree.joints() if len(children) > 2), [])
    if len(leaves) < 3:
        return None
    one, other, small = leaves[:3]
    large = Fraction(2) ** (8 if box.subject.dtype == "fp8_e4m3" else 0)
    scale = large * large if box.has_products else large
    for bits in range(1, WIDEST_ALIGNMENT + 1):
        factors = _factors(scale / 2**bits, large, box)
        if factors is None:
            return None
        left = _placed(box, {one: large, other: -large, small: factors[0]})
        right = _placed(box, {one: large, other: large, small: factors[1]}) if box.has_products else None
        if is_zero(box.value(left, right)):
            return bits - 1
    return None


def _factors(number: Fraction, large: Fraction, box: Box) -> tuple[Fraction, Fraction] | None:
    """A power of two as the factors of one term, where the dtype has them."""
    lowest = float_format(box.subject.dtype).smallest
    if not box.has_products:
        return (number, large) if number >= lowest else None
    if number / large >= lowest:
        return number / large, large
    return (number / lowest, lowest) if number / lowest >= lowest else None


def _alone(box: Box, left: Sequence[Fraction], right: Sequence[Fraction]) -> Value:
    """The sum of a few terms, zeros standing at all other leaves."""
    factors = _placed(box, dict(enumerate(right))) if box.has_products else None
    return box.value(_placed(box, dict(enumerate(left))), factors)


def _placed(box: Box, values: dict[int, Fraction]) -> Words:
    return words_of([values.get(leaf, ZERO) for leaf in range(box.subject.terms)], box.subject.dtype)


def inputs_json(box: Box, left: Words, right: Words | None) -> dict[str, Any]:
    """Terms as hexadecimal words."""
    digits = left.dtype.itemsize * 2
    named = {"terms": left} if right is None else {"left": left, "right": right}
    return {name: [f"{int(word):0{digits}x}" for word in words] for name, words in named.items()}


def hexadecimal(word: int, box: Box) -> str:
    """A result's code."""
    return f"{word:0{float_format(box.subject.result_dtype).sign_bit.bit_length() // 4}x}"


def _same(one: int, other: int, dtype: str) -> bool:
    """True if two codes are equal, or both NaN."""
    decode = float_format(dtype).decode
    return one == other or (decode(one) is NAN and decode(other) is NAN)
