"""Sums, products and trees of the oracle, against loops of the machine's own arithmetic, fractions, and by hand."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.arithmetic import Tree, TreeError
from tessera_conformance.oracle.exact import (
    FORMATS,
    NAN,
    NEGATIVE_ZERO,
    ZERO,
    BadArgument,
    FloatFormat,
    Value,
    finite,
    float_format,
    is_zero,
    values_of,
)
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.oracle.reductions import greatest, grown, pairwise_sum, reduced
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

NAMES = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}


def tensor(array: Any) -> Tensor:
    array = np.ascontiguousarray(array)
    return Tensor(NAMES.get(array.dtype.name, array.dtype.name), array.shape, array.tobytes())


def random_matrix(draw: random.Random, rows: int, columns: int, numpy_type: str) -> np.ndarray[Any, Any]:
    numbers = [[draw.gauss(0, 1) * 2.0 ** draw.randint(-9, 9) for _ in range(columns)] for _ in range(rows)]
    return np.array(numbers).astype(numpy_type)


@pytest.mark.parametrize(("dtype", "numpy_type"), [("fp64", "<f8"), ("fp32", "<f4")])
def test_matmul_is_a_loop_over_ascending_k(draw: random.Random, dtype: str, numpy_type: str) -> None:
    a, b = random_matrix(draw, 5, 33, numpy_type), random_matrix(draw, 33, 4, numpy_type)
    expected = np.zeros((5, 4), dtype=numpy_type)
    for k in range(33):
        expected = expected + a[:, k : k + 1] * b[k : k + 1, :]
    actual = oracle.matmul(Tensor(dtype, a.shape, a.tobytes()), Tensor(dtype, b.shape, b.tobytes()))
    assert actual == Tensor(dtype, (5, 4), expected.tobytes())


def test_a_narrow_matmul_accumulates_in_fp32_and_rounds_once(draw: random.Random) -> None:
    a, b = random_matrix(draw, 3, 20, "<f2"), random_matrix(draw, 20, 3, "<f2")
    total = np.zeros((3, 3), dtype=np.float32)
    for k in range(20):
        total = total + a[:, k : k + 1].astype(np.float32) * b[k : k + 1, :].astype(np.float32)
    left, right = Tensor("fp16", a.shape, a.tobytes()), Tensor("fp16", b.shape, b.tobytes())
    assert oracle.matmul(left, right, out="fp32") == Tensor("fp32", (3, 3), total.tobytes())
    assert oracle.matmul(left, right) == Tensor("fp16", (3, 3), total.astype("<f2").tobytes())


@pytest.mark.parametrize(
    ("dtype", "accumulator"), [("int8", "int32"), ("int16", "int32"), ("int32", "int32"), ("int64", "int64")]
)
def test_integers_wrap_in_the_accumulator_and_in_the_result(draw: random.Random, dtype: str, accumulator: str) -> None:
    info = np.iinfo(dtype)
    a, b = (
        np.array([[draw.randint(info.min, info.max) for _ in range(6)] for _ in range(6)], dtype=dtype)
        for _ in range(2)
    )
    expected = (a.astype(accumulator) @ b.astype(accumulator)).astype(dtype)
    actual = oracle.matmul(Tensor(dtype, a.shape, a.tobytes()), Tensor(dtype, b.shape, b.tobytes()))
    assert actual == Tensor(dtype, (6, 6), expected.tobytes())


def test_nothing_to_sum_gives_plus_zero() -> None:
    assert oracle.matmul(Tensor("fp32", (2, 0), b""), Tensor("fp32", (0, 1), b"")).bits() == "0" * 16


def test_a_negative_zero_product_is_added_to_plus_zero() -> None:
    assert (
        oracle.matmul(Tensor.from_bits("fp32", (1, 1), "80000000"), Tensor.from_bits("fp32", (1, 1), "3f800000")).bits()
        == "00000000"
    )


def test_tf32_rounds_its_operands_and_nothing_else() -> None:
    """1 + 2**-11 is a tie and goes to 1; the square of 1 + 2**-10 keeps 2**-20."""
    a = Tensor.from_bits("tf32", (2, 1), "3f8010003f802000")
    one_up = Tensor.from_bits("tf32", (1, 1), "3f802000")
    assert oracle.matmul(a, one_up).bits() == "3f802000" + "3f804008"


@pytest.mark.parametrize(
    ("count", "tree"),
    [
        (1, lambda x: x[0]),
        (2, lambda x: x[0] + x[1]),
        (3, lambda x: (x[0] + x[1]) + x[2]),
        (5, lambda x: ((x[0] + x[1]) + (x[2] + x[3])) + x[4]),
        (6, lambda x: ((x[0] + x[1]) + (x[2] + x[3])) + (x[4] + x[5])),
        (7, lambda x: ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6])),
    ],
)
def test_the_canonical_tree_spelled_out(draw: random.Random, count: int, tree: Any) -> None:
    for _ in range(50):
        numbers = [draw.gauss(0, 1) for _ in range(count)]
        total = pairwise_sum([Fraction(number) for number in numbers], float_format("fp64"))
        assert total == Fraction(tree(numbers))


def test_the_empty_sum_is_plus_zero_and_a_lone_negative_zero_stays() -> None:
    format_ = float_format("fp32")
    assert pairwise_sum([], format_) == 0
    assert pairwise_sum([NEGATIVE_ZERO], format_) is NEGATIVE_ZERO


@pytest.mark.parametrize(
    ("values", "expected"),
    [([NEGATIVE_ZERO, ZERO], ZERO), ([ZERO, NEGATIVE_ZERO], ZERO), ([Fraction(1), NAN, Fraction(2)], NAN)],
)
def test_the_greatest_orders_zeros_and_keeps_nan(values: list[Value], expected: Value) -> None:
    found = greatest(values)
    assert (found, type(found)) == (expected, type(expected))


def test_fused_products_differ_where_they_must() -> None:
    """-1 + (1 + 2**-27)**2: the rounded product loses 2**-54."""
    row = struct.pack("<2d", -1.0, 1 + 2.0**-27)
    column = struct.pack("<2d", 1.0, 1 + 2.0**-27)
    a, b = Tensor("fp64", (1, 2), row), Tensor("fp64", (2, 1), column)
    rounded, fused = (struct.unpack("<d", oracle.matmul(a, b, fused=fused).data)[0] for fused in (False, True))
    assert (rounded, fused) == (2.0**-26, 2.0**-26 + 2.0**-54)


def test_sums_along_any_axis_are_the_canonical_tree(draw: random.Random) -> None:
    x = random_matrix(draw, 7, 5, "<f4")

    def tree(terms: Any) -> Any:
        while len(terms) > 1:
            terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
        return terms[0]

    for axis, lines in ((0, list(x)), (1, list(x.T)), (-2, list(x)), (-1, list(x.T))):
        expected = tree(lines)
        assert oracle.sum_(tensor(x), axis) == tensor(expected)
        assert oracle.sum_(tensor(x), axis, keepdims=True).data == expected.tobytes()
        assert oracle.mean(tensor(x), axis) == tensor(expected / np.float32(len(lines)))
        assert oracle.max_(tensor(x), axis) == tensor(x.max(axis))
        assert oracle.min_(tensor(x), axis) == tensor(x.min(axis))
    assert oracle.sum_(tensor(x), 0, keepdims=True).shape == (1, 5)


def test_kahan_is_a_loop_of_four_operations(draw: random.Random) -> None:
    x = random_matrix(draw, 60, 4, "<f4")
    total, lost = x[0].copy(), np.zeros(4, np.float32)
    for term in x[1:]:
        corrected = term - lost
        following = total + corrected
        lost = (following - total) - corrected
        total = following
    assert oracle.sum_(tensor(x), 0, order="kahan") == tensor(total)
    assert oracle.sum_(tensor(x), 0, order="kahan") != oracle.sum_(tensor(x), 0, order="fold")


def test_kahan_keeps_an_infinity() -> None:
    x = np.array([[1, np.inf, 1, 1]], dtype=np.float32)
    assert oracle.sum_(tensor(x), order="kahan").bits() == "7f800000"
    assert oracle.sum_(tensor(np.array([[-0.0, -0.0]], dtype=np.float32)), order="kahan").bits() == "80000000"


def test_empty_sums_products_and_extremes() -> None:
    nothing = Tensor("fp32", (2, 0), b"")
    assert oracle.sum_(nothing).bits() == "0" * 16
    assert oracle.prod(nothing).bits() == "3f800000" * 2
    for function in (oracle.max_, oracle.min_, oracle.argmax, oracle.softmax, oracle.logsumexp):
        with pytest.raises(BadArgument):
            function(nothing)


def test_integer_sums_wrap_in_the_accumulator_and_then_in_the_dtype() -> None:
    x = np.array([[100, 100, 100], [-128, -128, 1]], dtype=np.int8)
    assert oracle.sum_(tensor(x)) == tensor(np.array([44, 1], dtype=np.int8))
    assert oracle.prod(tensor(x)) == tensor(np.array([64, 0], dtype=np.int8))
    wide = np.array([[2**31 - 1, 1]], dtype=np.int32)
    assert oracle.sum_(tensor(wide)) == tensor(np.array([-(2**31)], dtype=np.int32))
    with pytest.raises(BadArgument, match="dtype"):
        oracle.mean(tensor(x))


def test_extremes_order_zeros_and_propagate_nan() -> None:
    x = np.array([[-0.0, 0.0, -0.0], [0.0, -0.0, 0.0], [1, np.nan, 3], [-np.inf, 2, np.inf]], dtype=np.float32)
    assert oracle.max_(tensor(x)).bits() == "00000000" + "00000000" + "7fc00000" + "7f800000"
    assert oracle.min_(tensor(x)).bits() == "80000000" + "80000000" + "7fc00000" + "ff800000"
    assert oracle.argmax(tensor(x)).words().tolist() == [1, 0, 1, 2]
    two = np.array([[1, np.nan, 3, np.nan]], dtype=np.float32)
    assert oracle.argmax(tensor(two)).words().tolist() == [1]
    assert oracle.argmax(tensor(np.array([3, 7, 7, 1], dtype=np.int64))) == Tensor.from_words("int32", (), [1])


def test_the_addend_starts_the_fold(draw: random.Random) -> None:
    a, b, c = random_matrix(draw, 3, 9, "<f4"), random_matrix(draw, 9, 2, "<f4"), random_matrix(draw, 3, 2, "<f4")
    expected = c
    for k in range(9):
        expected = expected + a[:, k : k + 1] * b[k : k + 1]
    assert oracle.matmul(tensor(a), tensor(b), tensor(c)) == tensor(expected)
    last = np.zeros((3, 2), np.float32)
    for k in range(9):
        last = a[:, :1] * b[:1] if k == 0 else last + a[:, k : k + 1] * b[k : k + 1]
    assert oracle.matmul(tensor(a), tensor(b), tensor(c), tree="ring(0)") == tensor(last + c)
    with pytest.raises(BadArgument, match="addend"):
        oracle.matmul(tensor(a), tensor(b), tensor(c.T.copy()))


def test_a_product_tree_of_fused_nodes() -> None:
    """A tensor core's steps of four: the exact sum of the start value and four products, rounded once."""
    a = np.array([[2.0**12, 1, 2.0**-12, -(2.0**12), 1, 1]], dtype=np.float32)
    b = np.array([[2.0**12], [1], [2.0**-12], [2.0**12], [2.0**-24], [1]], dtype=np.float32)
    found = oracle.matmul(tensor(a), tensor(b), tree="((c 0 1 2 3) 4 5)")
    assert found == tensor(np.array([[2]], dtype=np.float32))
    assert oracle.matmul(tensor(a), tensor(b)) == tensor(np.array([[1]], dtype=np.float32))


def test_two_fused_products_that_meet_round_the_first_only() -> None:
    """-(1 + 2**-12)**2 is rounded, its positive twin enters exactly: what remains is the rounding error."""
    a = np.array([[-(1 + 2.0**-12), 1 + 2.0**-12]], dtype=np.float32)
    b = np.array([[1 + 2.0**-12], [1 + 2.0**-12]], dtype=np.float32)
    assert oracle.matmul(tensor(a), tensor(b), tree="(0 1)", fused=True).bits() == "33800000"
    assert oracle.matmul(tensor(a), tensor(b), tree="(0 1)").bits() == "00000000"


def complexes(draw: random.Random, *shape: int) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return np.array([complex(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(count)], np.complex64).reshape(shape)


def by_parts(x: Any, y: Any) -> Any:
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return ((a * c - b * d) + 1j * (a * d + b * c)).astype(np.complex64)


def test_complex_numbers_are_their_own_accumulator(draw: random.Random) -> None:
    x, y = complexes(draw, 4, 3), complexes(draw, 4, 3)
    assert oracle.add(tensor(x), tensor(y)) == tensor(x + y)
    assert oracle.subtract(tensor(x), tensor(y)) == tensor(x - y)
    assert oracle.multiply(tensor(x), tensor(y)) == tensor(by_parts(x, y))
    assert oracle.sum_(tensor(x), 0) == tensor((x[0] + x[1]) + (x[2] + x[3]))
    assert oracle.prod(tensor(x), 0) == tensor(by_parts(by_parts(x[0], x[1]), by_parts(x[2], x[3])))
    sums = (x[0] + x[1]) + (x[2] + x[3])
    assert oracle.mean(tensor(x), 0) == tensor((sums.real / 4 + 1j * (sums.imag / 4)).astype(np.complex64))
    product = np.zeros((4, 4), np.complex64)
    for k in range(3):
        product = product + by_parts(x[:, k : k + 1], y.T[k : k + 1])
    assert oracle.matmul(tensor(x), tensor(y.T)) == tensor(product)
    with pytest.raises(BadArgument, match="dtype"):
        oracle.divide(tensor(x), tensor(y))


def test_all_ranks_get_the_sum_along_the_canonical_tree(draw: random.Random) -> None:
    ranks = [random_matrix(draw, 1, 6, "<f4").astype("<f2") for _ in range(5)]
    wide = [rank.astype(np.float32) for rank in ranks]
    expected = (((wide[0] + wide[1]) + (wide[2] + wide[3])) + wide[4]).astype("<f2")
    found = oracle.all_reduce(*map(tensor, ranks), op="sum")
    assert found == (tensor(expected),) * 5
    assert oracle.all_reduce(*map(tensor, ranks), op="max")[3] == tensor(np.max(ranks, axis=0))
    assert oracle.all_reduce(*map(tensor, ranks), op="min")[0] == tensor(np.min(ranks, axis=0))
    with pytest.raises(BadArgument, match="op"):
        oracle.all_reduce(*map(tensor, ranks), op="median")
    with pytest.raises(BadArgument, match="inputs"):
        oracle.all_reduce(tensor(ranks[0]), tensor(wide[0]))


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
