"""Matrix products over trees, with a start value, in exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.trees import FOLD, Tree

ACCUMULATOR = {"fp64": "fp64"}  # of floats; all others accumulate in fp32
FLOATS = [name for name, dtype in DTYPES.items() if dtype.kind == "float"]


def array(name: str, values: object) -> Array:
    return Array(dtype(name), np.array(values, dtype(name).carrier))


def fold(row: list[float], column: list[float], name: str, oracle) -> float:
    """Evaluate one element by the definition."""
    inner = ACCUMULATOR.get(name, "fp32")
    total = 0.0
    for a, b in zip(row, column, strict=True):
        if name == "tf32":
            a, b = (oracle.nearest_or_special(x, "tf32 operand") for x in (a, b))
        total = oracle.add(total, oracle.multiply(a, b, inner), inner)
    return oracle.nearest_or_special(total, name)


@pytest.mark.parametrize("shape", [(300, 3, 70), (3, 2, 20000), (20000, 2, 3)])
def test_large_results_are_computed_in_tiles_alike(shape):
    """Small integers are exact in any order, so numpy's integer product is an oracle across every tile border."""
    m, k, n = shape
    a = np.arange(m * k, dtype=np.int64).reshape(m, k) % 11 - 5
    b = np.arange(k * n, dtype=np.int64).reshape(k, n) % 7 - 3
    actual = matmul(array("fp32", a), array("fp32", b))
    assert np.array_equal(actual.values, a @ b)


def test_operands_in_any_memory_order():
    a = np.arange(6, dtype=np.float32).reshape(3, 2)
    actual = matmul(Array(dtype("fp32"), a.T), Array(dtype("fp32"), a))
    assert actual.values.tolist() == [[20, 26], [26, 35]]


NUMBERS = [name for name, dtype in DTYPES.items() if dtype.kind != "bool"]


def wild(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random codes of every magnitude and kind."""
    form = dtype(name)
    part = form.component if form.kind == "complex" else form
    code = code_dtype(part)
    count = math.prod(shape) * (2 if form.kind == "complex" else 1)
    values = decode(rng.integers(0, np.iinfo(code).max, count, code, endpoint=True), part)
    return Array(form, values.view(form.carrier).reshape(shape))


def tame(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values within a few binades, so that nearly every sum is inexact."""
    form = dtype(name)
    if form.kind == "int":
        return Array(form, rng.integers(form.int_min, form.int_max, shape, form.carrier, endpoint=True))
    codes = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if form.kind == "complex" else 0)
    if form.is_narrow:
        codes = np.rint(codes * 2 ** (form.fraction_bits - 1)) / 2 ** (form.fraction_bits - 1)
        codes = np.clip(codes, -1.75, 1.75)
    return Array(form, codes.astype(form.carrier))


def inner(name: str) -> str:
    return "fp64" if name == "fp64" else "fp32"


def products(a: Array, b: Array, i: int, j: int, name: str, oracle) -> list[float]:
    rows, columns = a.values.tolist(), b.values.T.tolist()
    operands = zip(rows[i], columns[j], strict=True)
    if name == "tf32":
        operands = ((oracle.nearest_or_special(x, "tf32 operand") for x in pair) for pair in operands)
    return [oracle.multiply(x, y, inner(name)) for x, y in operands]


ORDERS = {
    "fold": lambda c, p, add: add(add(add(add(add(c, p[0]), p[1]), p[2]), p[3]), p[4]),
    "pairwise": lambda c, p, add: add(add(add(add(p[0], p[1]), add(p[2], p[3])), p[4]), c),
    "ring(3)": lambda c, p, add: add(add(add(add(add(p[3], p[4]), p[0]), p[1]), p[2]), c),
    "((0 (c 4)) (2 (1 3)))": lambda c, p, add: add(add(p[0], add(c, p[4])), add(p[2], add(p[1], p[3]))),
    "((0 4) (2 (1 3)))": lambda c, p, add: add(add(add(p[0], p[4]), add(p[2], add(p[1], p[3]))), c),
}


@pytest.mark.parametrize("values", [wild, tame])
@pytest.mark.parametrize("with_addend", [False, True])
@pytest.mark.parametrize("tree", ORDERS)
@pytest.mark.parametrize("name", FLOATS)
def test_products_and_the_start_value_are_added_in_the_order_of_the_tree(name, tree, with_addend, values, oracle, rng):
    a, b = values(name, (3, 5), rng), values(name, (5, 4), rng)
    c = values(name, (3, 4), rng) if with_addend else None
    actual = matmul(a, b, addend=c, tree=Tree.parse(tree))
    assert (actual.dtype, actual.shape) == (dtype(name), (3, 4))
    expected = []
    for i in range(3):
        for j in range(4):
            start = 0.0 if c is None else float(c.values[i, j])
            total = ORDERS[tree](start, products(a, b, i, j, name, oracle), lambda x, y: oracle.add(x, y, inner(name)))
            expected.append(oracle.nearest_or_special(total, name))
    oracle.same(actual.values.ravel().tolist(), expected)


def same_bits(a: Array, b: Array) -> None:
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.to_bits() == b.to_bits()


@pytest.mark.parametrize("values", [wild, tame])
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    ("batch", "m", "k", "n"), [((), 5, 33, 7), ((2, 3), 2, 9, 3), ((), 3, 0, 2), ((), 130, 3, 140)]
)
def test_the_fast_fold_and_the_fold_as_a_tree_give_the_same_bits(name, batch, m, k, n, values, rng):
    """The first is tiled and takes its own path; the second evaluates ((c 0) 1) ... node by node."""
    a, b, c = (values(name, (*batch, *shape), rng) for shape in ((m, k), (k, n), (m, n)))
    for addend in (None, c):
        same_bits(matmul(a, b, addend=addend), matmul(a, b, addend=addend, tree=FOLD.over(k, start=True)))


def test_a_tree_over_another_number_of_products_is_refused():
    a, b = array("fp32", np.zeros((2, 3))), array("fp32", np.zeros((3, 2)))
    with pytest.raises(LeafCount, match="3 elements are reduced, the tree has 4 leaves"):
        matmul(a, b, tree=Tree.parse("(c (0 1) (2 3))"))
