"""Whole tensors, on the exact and on the fast path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tessera_conformance.arithmetic import FOLD, PAIRWISE, NodeArithmetic, Tree, canonical, fast_sums, replay, ring
from tessera_conformance.tensors import Tensor

TREES = [
    FOLD,
    PAIRWISE,
    ring(3),
    Tree.from_text("((c 0 1 2 3) 4 5 6 7)"),
    Tree.from_text("((0 1) (2 (3 4)) 5 (6 7))"),
]
ROUNDINGS = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
MODELS = [
    NodeArithmetic(accumulator, product_, rounding, bits, kept)  # type: ignore[arg-type]
    for accumulator, product_, rounding, bits, kept in product(
        ("fp32", "fp64"), ("rounded", "fused"), ROUNDINGS, (24,), ("kept", "flushed")
    )
]
MODELS += [model.but(start="none") for model in MODELS]


def hard(numbers: Any, scale: float) -> Any:
    """Rows of ordinary, tiny, cancelling, zero and infinite numbers."""
    numbers = numbers.copy()
    numbers[0] *= numbers.dtype.type(scale)
    numbers[1, 1:4] = 0, -0.0, 0
    numbers[2] = -0.0
    numbers[3, 1::2] = -numbers[3, 0::2]
    numbers[4, 2] = np.inf
    numbers[5, 5] = np.nan
    numbers[6] = np.round(numbers[6]) * numbers.dtype.type(np.finfo(numbers.dtype).eps / 2)
    numbers[6, 0] = 1
    return numbers


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_the_fast_path_gives_the_bits_of_the_exact_one(
    kind: type, tree: Tree, wide: Callable[..., Any], tensor: Callable[[Any], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = hard(wide((7, 8), kind), 1e-38 if kind is np.float32 else 1e-307)
    b = wide((8, 2), kind)
    b[3, 0], b[4, 1] = 0, -0.0
    dtype = tensor(a).dtype
    fast = [model for model in MODELS if fast_sums.can(tree.with_start(8), model, dtype)]
    assert fast or tree.arity > 2
    quick = [(replay.matmul(tensor(a), tensor(b), tree, m), replay.sum(tensor(a), 1, tree, m)) for m in fast]
    monkeypatch.setattr(fast_sums, "can", lambda *_: False)
    for model, (products, sums) in zip(fast, quick, strict=True):
        assert replay.matmul(tensor(a), tensor(b), tree, model).bits() == products.bits(), model
        assert replay.sum(tensor(a), 1, tree, model).bits() == sums.bits(), model


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "tf32"])
@pytest.mark.parametrize("out", [None, "fp32", "bf16"])
def test_narrow_operands_take_both_paths_to_the_same_bits(
    dtype: str, out: str | None, draw: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    width = {"fp16": 2, "bf16": 2, "tf32": 4}.get(dtype, 1)
    a, b = Tensor(dtype, (5, 6), draw.bytes(30 * width)), Tensor(dtype, (6, 4), draw.bytes(24 * width))
    models = [canonical(dtype), canonical(dtype).but(product="fused", subnormals="flushed")]
    tree = Tree.from_text("((c 0 1 2) 3 4 5)")
    models += [model.but(alignment_bits=25, rounding="toward_zero") for model in models]
    chosen = [(tree_, model) for tree_ in (FOLD, tree) for model in models]
    quick = [replay.matmul(a, b, tree_, model, out).bits() for tree_, model in chosen]
    monkeypatch.setattr(fast_sums, "can", lambda *_: False)
    assert [replay.matmul(a, b, tree_, model, out).bits() for tree_, model in chosen] == quick


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fused_products_are_those_of_the_c_library(
    kind: type, wide: Callable[..., Any], tensor: Callable[[Any], Tensor], fused: dict[type, Any]
) -> None:
    for spread in (8, 60) if kind is np.float32 else (8, 500):
        a, b = wide((40, 3), kind, spread), wide((3, 5), kind, spread)
        wanted = np.zeros((40, 5), kind)
        for row, column in product(range(40), range(5)):
            for k in range(3):
                wanted[row, column] = fused[kind](a[row, k], b[k, column], wanted[row, column])
        model = canonical(tensor(a).dtype).but(product="fused")
        assert replay.matmul(tensor(a), tensor(b), FOLD, model).bits() == tensor(wanted).bits()


def test_a_loop_of_products_and_sums(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    a, b = wide((2, 4, 9)), wide((2, 9, 3))
    wanted = np.zeros((2, 4, 3), np.float32)
    for k in range(9):
        wanted = wanted + a[:, :, k, None] * b[:, None, k, :]
    assert replay.matmul(tensor(a), tensor(b), FOLD, canonical("fp32")).bits() == tensor(wanted).bits()


def test_a_start_operand(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    a, b, c = wide((3, 5)), wide((5, 2)), wide((3, 2))
    wanted = c
    for k in range(5):
        wanted = wanted + a[:, k, None] * b[None, k, :]
    found = replay.matmul(tensor(a), tensor(b), FOLD, canonical("fp32"), start=tensor(c))
    assert found.bits() == tensor(wanted).bits()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sums_over_each_axis(axis: int, wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    x = wide((4, 6))
    rows = np.moveaxis(x, axis, 0)
    wanted = rows[0]
    for row in rows[1:]:
        wanted = wanted + row
    found = replay.sum(tensor(x), axis, FOLD, canonical("fp32"))
    assert (found.shape, found.bits()) == (wanted.shape, tensor(wanted).bits())
    kept = replay.sum(tensor(x), axis, FOLD, canonical("fp32"), keepdims=True)
    assert kept.shape == tuple(1 if place == axis % 2 else extent for place, extent in enumerate(x.shape))


def test_all_reduce_adds_over_ranks(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    ranks = [wide((5,)) for _ in range(4)]
    wanted = ((ranks[2] + ranks[3]) + ranks[0]) + ranks[1]
    found = replay.all_reduce([tensor(rank) for rank in ranks], ring(2), canonical("fp32"))
    assert found.bits() == tensor(wanted).bits()


def test_rows_of_inner_products(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    a, b = wide((6, 7)), wide((6, 7))
    rows = [replay.matmul(tensor(a[k : k + 1]), tensor(b[k, :, None]), PAIRWISE, canonical("fp32")) for k in range(6)]
    assert replay.inner(tensor(a), tensor(b), PAIRWISE, canonical("fp32")).bits() == "".join(r.bits() for r in rows)


def test_tf32_operands_lose_thirteen_bits() -> None:
    a = Tensor("tf32", (1, 1), np.float32(1 + 2**-11 + 2**-12).tobytes())
    one = Tensor("tf32", (1, 1), np.float32(1).tobytes())
    assert replay.matmul(a, one, FOLD, canonical("tf32")).words().view(np.float32)[0] == np.float32(1 + 2**-10)


def test_integers_wrap_in_the_accumulator_and_again_in_the_result() -> None:
    a = Tensor("int8", (1, 2), np.array([[100, 100]], np.int8).tobytes())
    b = Tensor("int8", (2, 1), np.array([[2], [3]], np.int8).tobytes())
    assert replay.matmul(a, b, FOLD, canonical("int8"), "int32").words()[0] == 500
    assert replay.matmul(a, b, FOLD, canonical("int8")).words()[0] == 500 % 256


def test_empty_sums() -> None:
    empty = Tensor("fp32", (0, 3), b"")
    assert replay.sum(empty, 0, PAIRWISE, canonical("fp32")).bits() == "00000000" * 3
    none = Tensor("fp32", (2, 0), b"")
    assert replay.matmul(none, empty, FOLD, canonical("fp32")).bits() == "00000000" * 6


def test_an_environment_that_flushes_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_sums, "environment_is_sound", lambda: False)
    assert not fast_sums.can(FOLD.over(2), canonical("fp32"), "fp32")


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda x, i: replay.sum(x, 2, FOLD, canonical("fp32")), "axis"),
        (lambda x, i: replay.sum(i, 0, FOLD, canonical("fp32")), "x"),
        (lambda x, i: replay.sum(x, 0, FOLD, canonical("int8")), "x"),
        (lambda x, i: replay.matmul(x, i, FOLD, canonical("fp32")), "b"),
        (lambda x, i: replay.matmul(x, x, FOLD, canonical("fp32")), "b"),
        (lambda x, i: replay.all_reduce([], FOLD, canonical("fp32")), "inputs"),
        (lambda x, i: replay.sum(Tensor("complex64", (1,), bytes(8)), 0, FOLD, canonical("fp32")), "x"),
    ],
)
def test_operands_that_do_not_fit(call: Callable[[Tensor, Tensor], Tensor], argument: str) -> None:
    x, i = Tensor("fp32", (2, 3), bytes(24)), Tensor("int8", (3, 2), bytes(6))
    with pytest.raises(replay.ReplayError, match=f"^{argument}: ") as caught:
        call(x, i)
    assert caught.value.argument == argument


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_product_may_start_from_its_first_term(tree: Tree, tensor: Callable[[Any], Tensor]) -> None:
    """A sum of negative zeros is then negative, but one of no terms is +0; a C operand enters all the same."""
    model = canonical("fp32").but(start="none")
    a, b = tensor(np.full((1, 8), -0.0, np.float32)), tensor(np.ones((8, 1), np.float32))
    assert replay.matmul(a, b, tree, canonical("fp32")).bits() == "00000000"
    assert replay.matmul(a, b, tree, model).bits() == "80000000"
    assert replay.matmul(a, b, tree, model.but(product="fused")).bits() == "80000000"
    c = tensor(np.ones((1, 1), np.float32))
    assert replay.matmul(a, b, tree, model, start=c).bits() == "3f800000"
    nothing = tensor(np.ones((1, 0), np.float32)), tensor(np.ones((0, 1), np.float32))
    assert replay.matmul(*nothing, FOLD, model).bits() == "00000000"
