"""Orders that the probe reveals: known ones, elements that differ, products, names; and the search itself."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_conformance.arithmetic import FOLD, PAIRWISE, NodeArithmetic, Tree, replay, ring
from tessera_conformance.probe import Finding, NotATree, Subject
from tessera_conformance.probe.calls import STYLES, samples, stacked
from tessera_conformance.probe.pattern import abbreviated, pattern
from tessera_conformance.probe.rendering import drawing
from tessera_conformance.probe.reveal import first_wrong_pair, reveal, reveal_exact_nodes


def subject(terms: int, dtype: str = "fp32") -> Subject:
    return Subject("sum", (terms,), dtype)


def lanes_tree(terms: int, width: int = 8) -> Tree:
    steps: list[int] = []
    for step in PAIRWISE.over(width).steps:
        lane = range(step, terms, width)
        steps += [step] if step < 0 else [lane[0], *(entry for leaf in lane[1:] for entry in (leaf, -2))]
    return Tree.explicit(steps)


@pytest.mark.parametrize("dtype", ["fp32", "fp64", "fp16", "bf16"])
@pytest.mark.parametrize(
    ("name", "tree", "words"),
    [
        ("fold", FOLD.over(32), "fold"),
        ("pairwise", PAIRWISE.over(32), "pairwise"),
        ("lanes", lanes_tree(32), "8 interleaved lanes, each fold; joined: pairwise"),
    ],
)
def test_orders_of_two_at_a_time(
    name: str, tree: Tree, words: str, dtype: str, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    """numpy adds two numbers of any type with one rounding, so the accumulator is the type itself."""
    found = probed(subject(32, dtype), reduce=getattr(orders, name))
    assert found.tree == tree.canonical()
    assert found.pattern == words
    assert found.kind == "tree"
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic(dtype)
    assert (found.verdict, found.departures) == ("nothing declared", ())


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_wider_accumulator_is_recognised(dtype: str, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(20, dtype), reduce=orders.in_type(np.float32, orders.fold))
    assert found.tree == FOLD.over(20)
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")
    found = probed(subject(20, "fp32"), reduce=orders.in_type(np.float64, orders.fold))
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp64")


@pytest.mark.parametrize("terms", [2, 3, 5, 7, 13, 100])
def test_any_number_of_terms(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    assert probed(subject(terms), reduce=orders.pairwise).tree == PAIRWISE.over(terms).canonical()


@pytest.mark.parametrize("first", [0, 1, 3, 7])
def test_rings(first: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(8), reduce=orders.ring_from(first))
    assert found.tree == ring(first).over(8).canonical()
    assert found.pattern == ("fold" if first == 0 else f"ring({first})")


def test_more_terms_than_a_count_has_bits(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """bf16 counts to 256: the leaves of a longer sum are counted in parts."""
    found = probed(subject(300, "bf16"), reduce=orders.pairwise)
    assert found.tree == PAIRWISE.over(300).canonical()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "bits"), [(4, 24), (16, 24), (16, 30), (2, 26)])
def test_fused_blocks(width: int, bits: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(64), reduce=orders.blocks(width, bits))
    steps: list[int] = []
    for first in range(0, 64, width):
        steps += [*range(first, first + width), -width - (first > 0)]
    assert found.tree == Tree.explicit(steps)
    assert found.pattern == f"fold in fused blocks of {width}"
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32", alignment_bits=bits)


def test_fused_blocks_that_add_exactly(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(24), reduce=orders.blocks(4, None))
    assert found.pattern == "fold in fused blocks of 4"
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")


def test_one_exact_sum(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(40), reduce=orders.exact)
    assert found.kind == "exact sum"
    assert found.pattern == "exact sum of all terms, rounded once, in no order"


@pytest.mark.parametrize("terms", [16, 33])
def test_kahan_is_no_tree(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    """The masks see a fold; the replay of random terms shows that it is none."""
    found = probed(subject(terms), reduce=orders.kahan)
    assert found.kind == "no fixed tree"
    assert found.arithmetic is None
    assert found.evidence is not None
    assert found.evidence.proof in ("replay", "masks")
    if found.evidence.proof == "replay":
        assert found.evidence.witness["replayed"] != found.evidence.witness["found"]
        assert len(found.evidence.witness["inputs"]["terms"]) == terms
    else:
        assert found.evidence.pair is not None


@pytest.mark.parametrize("terms", [16, 64])
def test_an_order_that_varies_is_no_tree(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(terms), reduce=orders.Varying())
    assert found.kind == "no fixed tree"
    assert found.evidence is not None
    assert found.evidence.proof == "runs"
    assert found.evidence.witness["first"] != found.evidence.witness["again"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), terms=st.integers(2, 24), arity=st.integers(2, 6), exact=st.booleans())
def test_random_trees_of_random_arity(
    seed: int,
    terms: int,
    arity: int,
    exact: bool,
    probed: Callable[..., Finding],
    orders: ModuleType,
    nesting: Callable[..., Any],
    tree_of: Callable[[Any], Tree],
) -> None:
    tree = nesting(random.Random(seed), terms, arity)
    found = probed(subject(terms), seed=seed % 7, reduce=orders.nested(tree, None if exact else 26))
    assert found.tree == tree_of(tree)
    assert found.arithmetic is not None
    wide = found.tree.arity > 2
    assert found.arithmetic.model == NodeArithmetic("fp32", alignment_bits=26 if wide and not exact else None)


@pytest.mark.parametrize("shape", [(5, 16), (16, 5), (3, 16, 2)])
def test_sums_over_an_axis_of_a_larger_tensor(
    shape: tuple[int, ...], probed: Callable[..., Finding], orders: ModuleType
) -> None:
    axis = shape.index(16)
    place = tuple(extent - 1 for k, extent in enumerate(shape) if k != axis)
    found = probed(Subject("sum", shape, "fp32", axis=axis, element=place), reduce=orders.lanes)
    assert found.tree == lanes_tree(16)


def test_calls_are_counted_and_few(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(128), reduce=orders.lanes)
    assert 127 <= found.calls < 128 * 127 / 8


class Edges:
    """A product whose first column folds from the last term; the others fold from the first."""

    def __init__(self, orders: ModuleType, columns: int) -> None:
        self.orders, self.columns, self.calls = orders, columns, 0

    def __call__(self, left: Any, right: Any) -> Any:
        column = self.calls % self.columns
        self.calls += 1
        step = -1 if column == 0 else 1
        return self.orders.rounded_products(left[::step], right[::step])


def test_one_order_everywhere(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(Subject("matmul", (3, 12, 4), "fp32"), products=orders.fused_products)
    assert found.others is not None
    assert (found.others.alike, found.others.elements, found.others.first_other) == (12, 12, None)


@pytest.mark.parametrize(("element", "alike", "first"), [((0, 0), 3, (0, 1)), ((2, 3), 9, (0, 0))])
def test_another_order_at_an_edge(
    element: tuple[int, int], alike: int, first: tuple[int, int], probed: Callable[..., Finding], orders: ModuleType
) -> None:
    subject = Subject("matmul", (3, 24, 4), "fp32", element=element)
    found = probed(subject, products=Edges(orders, 4))
    assert found.pattern == ("fold from the last term" if element == (0, 0) else "fold")
    assert found.others is not None
    assert (found.others.alike, found.others.elements, found.others.first_other) == (alike, 12, first)


def test_a_single_element_has_no_others(probed: Callable[..., Finding]) -> None:
    assert probed(Subject("sum", (8,), "fp32")).others is None


def test_an_order_that_narrow_results_hide(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """Sums in fp32, results in bf16: only terms that cancel show in which order they were added."""
    edges = Edges(orders, 4)

    def products(left: Any, right: Any) -> Any:
        return edges(left.astype("float32"), right.astype("float32"))

    found = probed(Subject("matmul", (3, 24, 4), "bf16", element=(2, 3)), products=products)
    assert found.others is not None
    assert (found.others.alike, found.others.first_other) == (9, (0, 0))


def products_subject(dtype: str = "fp32", shape: tuple[int, ...] = (2, 16, 2), **options: Any) -> Subject:
    return Subject("matmul", shape, dtype, **options)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("rounded_products", NodeArithmetic("fp32")),
        ("fused_products", NodeArithmetic("fp32", "fused")),
        ("wide_products", NodeArithmetic("fp64", start="none")),
        ("flushed_products", NodeArithmetic("fp32", subnormals="flushed")),
    ],
)
def test_arithmetics_of_a_fold(
    name: str, model: NodeArithmetic, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(products_subject(), products=getattr(orders, name))
    assert found.tree == FOLD.over(16)
    assert found.arithmetic is not None
    assert found.arithmetic.model == model
    if model.accumulator == "fp32":
        assert found.arithmetic.alike == ()
    assert found.seen is not None
    assert found.seen.start == ("+0" if name != "wide_products" else "none")


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_a_matrix_unit(dtype: str, probed: Callable[..., Finding], orders: ModuleType) -> None:
    """Blocks of four exact products beside the running sum, cut at 24 bits, rounded toward zero."""
    found = probed(products_subject(dtype, (1, 16, 1), out="fp32"), products=orders.truncated_products)
    assert found.pattern == "fold in fused blocks of 4"
    assert found.arithmetic is not None
    wanted = NodeArithmetic("fp32", "fused", "toward_zero", 24)
    assert wanted in (found.arithmetic.model, *found.arithmetic.alike)


def test_the_watched_element(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(products_subject(shape=(3, 8, 2), element=(2, 1)), products=orders.fused_products)
    assert found.tree == FOLD.over(8)


def test_products_of_narrow_operands_are_exact_so_that_fusing_cannot_be_told(
    probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(
        products_subject("bf16", (1, 12, 1), out="fp32"),
        products=lambda a, b: orders.rounded_products(a.astype("float32"), b.astype("float32")),
    )
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")
    assert NodeArithmetic("fp32", "fused") in found.arithmetic.alike


def test_a_program_where_single_operations_are_not_supported(
    probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(products_subject(shape=(1, 8, 1)), by_program=True)
    assert found.tree == FOLD.over(8)
    assert probed(Subject("sum", (8,), "fp32"), by_program=True).tree == FOLD.over(8)


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_large_terms_swallow_many_units(
    dtype: str, kind: str, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    """Products of fp8 have few binades, so that units are counted in parts; fp64 does not lose a bit of fp8_e4m3."""
    products = orders.in_type  # the sum of exact products
    found = probed(
        products_subject(dtype, (1, 100, 1), out="fp32"),
        products=lambda a, b: products(kind, orders.pairwise)(a.astype("float32") * b.astype("float32")),
    )
    exact = (dtype, kind) == ("fp8_e4m3", "float64")
    assert found.kind == ("exact sum" if exact else "tree")
    assert exact or found.pattern == "pairwise"


def test_flushed_subnormals_leave_smaller_parts(probed: Callable[..., Finding], orders: ModuleType) -> None:
    def flushed(x: Any) -> Any:
        x = x.astype("float32")
        return np.where(np.abs(x) < 2.0**-6, x * 0, x)

    found = probed(
        products_subject("fp8_e4m3", (1, 64, 1), out="fp32"),
        products=lambda a, b: orders.pairwise(flushed(a) * flushed(b)),
    )
    assert found.pattern == "pairwise"


def test_an_aligned_node_beside_another(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """((0..15) 16..31) of exact products of fp8_e4m3, 24 bits kept."""
    tree = (tuple(range(16)), *range(16, 32))
    found = probed(
        products_subject("fp8_e4m3", (1, 32, 1), out="fp32"),
        products=lambda a, b: orders.nested(tree, 24)(a.astype("float32") * b.astype("float32")),
    )
    assert found.tree is not None
    assert found.tree.to_text() == f"(({' '.join(map(str, range(16)))}) {' '.join(map(str, range(16, 32)))})"


def test_the_second_of_two_fused_leaves_rounded_first(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """fma(a0, b0, a1 * b1), and on from there."""

    def swapped(left: Any, right: Any) -> Any:
        order = [1, 0, *range(2, len(left))]
        return orders.fused_products(left[order], right[order])

    found = probed(products_subject(), products=swapped)
    assert found.tree == FOLD.over(16)
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32", "fused")
    assert found.arithmetic.tree.to_text().startswith("(" * 15 + "1 0)")


def blocks(count: int, size: int) -> Tree:
    """Folds over contiguous blocks, folded."""
    steps: list[int] = []
    for block in range(count):
        first = block * size
        steps += [first, *(entry for leaf in range(first + 1, first + size) for entry in (leaf, -2))]
        steps += [-2] if block else []
    return Tree.explicit(steps)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (FOLD.over(9), "fold"),
        (PAIRWISE.over(11), "pairwise"),
        (ring(3).over(8), "ring(3)"),
        (Tree.from_text("0"), "one term"),
        (Tree.from_text("(0 1)"), "one addition"),
        (Tree.from_text("(0 1 2)"), "one fused node of 3"),
        (Tree.from_text("(((3 2) 1) 0)"), "fold from the last term"),
        (Tree.from_text("((((1 0) 4) 3) 2)"), "ring downwards from 1"),
        (Tree.from_text("(((((1 0) 3) 2) 5) 4)"), "fold, every 2 terms in reverse order"),
        (Tree.from_text("((((0 2) 4) 1) 3)"), "one term at a time, in the order 0 2 4 1 3"),
        (Tree.from_text("((0 1) (2 (3 4)))"), "recursive halving"),
        (Tree.from_text("((c 0 1 2 3) 4 5 6 7)"), "fold in fused blocks of 4"),
        (Tree.from_text("((0 1 2) 3 4)"), "fold in fused blocks of 2, 3 at first"),
        (Tree.from_text("(((0 2) 4) ((1 3) 5))"), "2 interleaved lanes, each fold; joined: one addition"),
        (blocks(4, 5), "4 blocks of 5, each fold; joined: fold"),
        (Tree.from_text("((0 5) ((1 3) (2 4) 6))"), "irregular: depth 3, nodes of at most 3"),
    ],
)
def test_names(tree: Tree, words: str) -> None:
    assert pattern(tree) == words


def test_long_trees_are_abbreviated() -> None:
    assert abbreviated(FOLD.over(5)) == "((((0 1) 2) 3) 4)"
    assert len(abbreviated(FOLD.over(500))) <= 160


@pytest.mark.parametrize("tree", [FOLD.over(2), PAIRWISE.over(64), FOLD.over(64), PAIRWISE.over(1000), FOLD.over(4096)])
def test_drawings_are_well_formed_and_bounded(tree: Tree) -> None:
    text = drawing(tree, "a < b & c")
    root = ElementTree.fromstring(text)
    shapes = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert len(text) < 60_000
    if tree.leaves <= 64:
        assert shapes.count("polygon") == 0
        assert shapes.count("circle") == tree.leaves - 1
    else:
        assert shapes.count("polygon") > 0
    assert shapes.count("line") <= 144


class Counts:
    """The pairs of a tree, or those of a table."""

    def __init__(
        self, tree: Tree | None = None, table: dict[tuple[int, int], int] | None = None, terms: int = 0
    ) -> None:
        self.terms = tree.leaves if tree is not None else terms
        self._nodes = [tuple(frozenset(child) for child in node) for node in tree.nodes()] if tree is not None else []
        self._table = table or {}

    def _meeting(self, i: int, j: int) -> tuple[frozenset[int], ...]:
        return next(node for node in self._nodes if {i, j} <= frozenset().union(*node))

    def lca(self, i: int, j: int) -> int:
        if self._table:
            return self._table[min(i, j), max(i, j)]
        return sum(map(len, self._meeting(i, j)))

    def survivors(self, i: int, j: int) -> frozenset[int]:
        met = [child for child in self._meeting(i, j) if i in child or j in child]
        return frozenset(range(self.terms)) - frozenset().union(*met)


@given(seed=st.integers(0, 2**32), terms=st.integers(2, 40), arity=st.integers(2, 7), pivots=st.integers(0, 9))
def test_both_searches_find_random_trees(
    seed: int,
    terms: int,
    arity: int,
    pivots: int,
    nesting: Callable[..., Any],
    tree_of: Callable[[Any], Tree],
) -> None:
    tree = tree_of(nesting(random.Random(seed), terms, arity))
    assert reveal(Counts(tree), pivots) == tree
    assert reveal_exact_nodes(Counts(tree), pivots) == tree
    assert first_wrong_pair(Counts(tree), tree, range(terms)) is None


@given(seed=st.integers(0, 2**32), terms=st.integers(3, 12))
def test_a_tree_is_confirmed_only_if_it_is_the_right_one(
    seed: int, terms: int, nesting: Callable[..., Any], tree_of: Callable[[Any], Tree]
) -> None:
    chance = random.Random(seed)
    one, other = (tree_of(nesting(chance, terms, 4)) for _ in range(2))
    assert (first_wrong_pair(Counts(one), other, range(terms)) is None) == (one == other)


TABLES = {
    "three leaves that meet two by two": {(0, 1): 2, (0, 2): 2, (1, 2): 2, (0, 3): 4, (1, 3): 4, (2, 3): 4},
    "no root": {(0, 1): 2, (2, 3): 2, (0, 2): 3, (0, 3): 3, (1, 2): 3, (1, 3): 3},
    "an exact sum": {(i, j): 2 for i in range(4) for j in range(i + 1, 4)},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("seed", range(8))
def test_counts_that_fit_no_tree(table: dict[tuple[int, int], int], seed: int) -> None:
    with pytest.raises(NotATree) as caught:
        reveal(Counts(table=table, terms=4), seed)
    assert caught.value.pair is not None


def test_what_a_search_accepts_agrees_with_every_count_it_asked_for() -> None:
    """Random counts: whatever tree comes out has these counts at the pairs that were measured."""
    chance = random.Random(7)
    accepted = 0
    for _ in range(4000):
        terms = chance.randint(3, 5)
        table = {(i, j): chance.randint(2, terms) for i in range(terms) for j in range(i + 1, terms)}
        counts = Asked(table, terms)
        try:
            tree = reveal(counts, chance.randrange(5))
        except NotATree:
            continue
        accepted += 1
        assert all(Counts(tree).lca(*pair) == table[pair] for pair in counts.asked)
    assert accepted > 20


class Asked(Counts):
    """Keeps the pairs asked for."""

    def __init__(self, table: dict[tuple[int, int], int], terms: int) -> None:
        super().__init__(table=table, terms=terms)
        self.asked: set[tuple[int, int]] = set()

    def lca(self, i: int, j: int) -> int:
        self.asked.add((min(i, j), max(i, j)))
        return super().lca(i, j)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "bf16", "fp16"])
def test_rows_of_ties_tell_even_from_away(dtype: str, products: bool) -> None:
    rows = [row for k, row in enumerate(samples(dtype, 32, 16, products)) if STYLES[k % len(STYLES)] == "ties"]
    left, right = stacked(rows, dtype)
    even = NodeArithmetic("fp64" if dtype == "fp64" else "fp32")
    results = [
        replay.sum(left, 1, FOLD, model) if right is None else replay.inner(left, right, FOLD, model)
        for model in (even, even.but(rounding="nearest_away"))
    ]
    assert results[0].bits() != results[1].bits()
