"""Sums of the oracle against fractions, and the written form of trees."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from tessera_conformance.arithmetic import Tree, TreeError
from tessera_conformance.oracle.exact import FORMATS, BadArgument, FloatFormat, finite, float_format, is_zero, values_of
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.oracle.reductions import grown, reduced
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

NAMES = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}


def tensor(array: Any) -> Tensor:
    array = np.ascontiguousarray(array)
    return Tensor(NAMES.get(array.dtype.name, array.dtype.name), array.shape, array.tobytes())


def spelled(tree: Any, count: int, *, start: bool = False) -> str:
    """The additions in the order they happen, in brackets."""
    return str(reduced(grown(tree, count, start=start), str, "c", lambda children: f"({' '.join(children)})"))


TREES = [
    ("fold", 4, "(((0 1) 2) 3)"),
    ("pairwise", 4, "((0 1) (2 3))"),
    ("pairwise", 5, "(((0 1) (2 3)) 4)"),
    ("pairwise", 7, "(((0 1) (2 3)) ((4 5) 6))"),
    ("ring(2)", 4, "(((2 3) 0) 1)"),
    ("ring(5)", 4, "(((1 2) 3) 0)"),
    ({"ring": 1}, 3, "((1 2) 0)"),
    ("((2 0) 1)", 3, "((2 0) 1)"),
    ([[2, 0], 1], 3, "((2 0) 1)"),
    ("(0 1 2)", 3, "(0 1 2)"),
    ("0", 1, "0"),
    (0, 1, "0"),
    ("fold", 1, "0"),
    ("pairwise", 1, "0"),
]


@pytest.mark.parametrize(("tree", "count", "expected"), TREES)
def test_trees_without_a_start_value(tree: Any, count: int, expected: str) -> None:
    assert spelled(tree, count) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("fold", "(((c 0) 1) 2)"),
        ("pairwise", "(((0 1) 2) c)"),
        ("ring(1)", "(((1 2) 0) c)"),
        ("((0 1) 2)", "(((0 1) 2) c)"),
        ("((c 0 1) 2)", "((c 0 1) 2)"),
        ([["c", 0, 1], 2], "((c 0 1) 2)"),
    ],
)
def test_a_fold_takes_the_start_value_first_and_other_trees_last(tree: Any, expected: str) -> None:
    assert spelled(tree, 3, start=True) == expected


def test_a_named_start_value_stands_even_where_none_is_given() -> None:
    assert spelled("((c 0) 1)", 2) == "((c 0) 1)"


NO_TREES = [
    *("(0 1)", "((0 1) (1 2))", "((0 1) 3)", "((0 1) 2", "(0 1 2))", "(0 (1) 2)", "tree", "ring(x)", "(c c 0 1 2)"),
    *("", [[0, 1]], [0, 1, 2, "d"], {"ring": "1"}, {"rings": 1}, [0, 1, True], None, [0, 1, 2.0]),
]


@pytest.mark.parametrize("tree", NO_TREES)
def test_what_is_no_tree_over_three_leaves_is_refused(tree: Any) -> None:
    with pytest.raises(BadArgument, match="tree"):
        grown(tree, 3, start=False)


def nesting(random: Random, leaves: list[Any]) -> Any:
    """Any nesting of these leaves."""
    if len(leaves) == 1:
        return leaves[0]
    cuts = sorted(random.sample(range(1, len(leaves)), random.randint(1, min(3, len(leaves) - 1))))
    return [nesting(random, leaves[start:end]) for start, end in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]


def some_trees() -> Iterator[tuple[Any, int]]:
    """The trees above and many nestings, with and without a start value, as arrays and as text."""
    yield from ((tree, count) for tree, count, _ in TREES)
    yield from ((name, count) for name in ("fold", "pairwise", "ring(3)") for count in range(1, 20))
    random = Random(17)
    for count in range(2, 40):
        leaves: list[Any] = [*range(count), *(["c"] if count % 2 else [])]
        random.shuffle(leaves)
        tree = nesting(random, leaves)
        yield from ((tree, count), (Tree.from_json(tree).to_text(), count))


def test_the_other_reading_of_trees_reads_the_same() -> None:
    """The oracle's and the one that the probe and the replay use."""
    for tree, count in some_trees():
        other = Tree.from_json(tree)
        assert spelled(tree, count) == other.over(count).to_text()
        assert spelled(tree, count, start=True) == other.with_start(count).to_text()


@pytest.mark.parametrize("tree", NO_TREES)
def test_the_other_reading_refuses_the_same(tree: Any) -> None:
    with pytest.raises(TreeError):
        Tree.from_json(tree).over(3)


@pytest.mark.slow
def test_deep_trees_are_no_trouble() -> None:
    nested: Any = 0
    for leaf in range(1, 20_000):
        nested = [nested, leaf]
    assert reduced(grown(nested, 20_000, start=False), lambda leaf: leaf, 0, sum) == sum(range(20_000))


FLOATS = [name for name, entry in FORMATS.items() if isinstance(entry, FloatFormat)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_bits_sum_as_fractions_do(rng: np.random.Generator, dtype: str) -> None:
    """Rows of any codes: the whole exponent range, subnormals, zeros, and now and then no number at all."""
    width = ELEMENT_FORMATS[dtype].word_bytes
    words = rng.integers(0, 1 << (8 * width), (40, 30), dtype=np.uint64).astype(f"<u{width}")
    x = Tensor(dtype, words.shape, words.tobytes())
    values = values_of(x)
    for magnitudes in (False, True):
        sums = exact_sum(x, magnitudes=magnitudes).fractions()
        for row in range(40):
            terms = values[30 * row : 30 * row + 30]
            if all(isinstance(term, Fraction) or is_zero(term) for term in terms):
                assert sums[row] == sum(abs(finite(term)) if magnitudes else finite(term) for term in terms)
            else:
                assert sums[row] is None


@pytest.mark.parametrize("numpy_type", ["<f4", "<f8"])
def test_neither_order_nor_spread_matters(rng: np.random.Generator, fast: Any, numpy_type: str) -> None:
    x = (rng.normal(0, 1, 1000) * np.exp2(rng.integers(-60, 60, 1000))).astype(numpy_type)
    totals = {exact_sum(fast.tensor(x[rng.permutation(1000)].reshape(1, -1))).fractions()[0] for _ in range(5)}
    assert totals == {sum(map(Fraction, x.tolist()))}


def test_the_longest_rows_do_not_overflow() -> None:
    """The largest significands, all of one sign."""
    for numpy_type, dtype in (("<f4", "fp32"), ("<f8", "fp64")):
        largest = np.full((1, 1 << 17), np.nextafter(np.array(2, numpy_type), np.array(0, numpy_type)), numpy_type)
        (total,) = exact_sum(Tensor(dtype, largest.shape, largest.tobytes())).fractions()
        assert total == Fraction(float(largest[0, 0])) * (1 << 17)


def test_rounding_happens_once(fast: Any) -> None:
    """1 + 2**-24 + 2**-60 is above a tie of fp32, which rounding to fp64 first would lose."""
    x = np.float32([[1, 2.0**-24, 2.0**-60], [1, 2.0**-24, 0]])
    assert exact_sum(fast.tensor(x)).rounded(float_format("fp32")) == [0x3F800001, 0x3F800000]


def test_nothing_sums_to_zero(fast: Any) -> None:
    assert exact_sum(fast.tensor(np.zeros((2, 0), np.float32))).fractions() == [0, 0]
