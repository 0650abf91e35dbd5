"""Level fast: what libraries compute lies within the bounds, named violations do not, and nothing more is promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.arithmetic import Product, canonical, replay
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.exact import values_of
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted


def accepted(a: Tensor, b: Tensor, result: Tensor) -> bool:
    limits = bounds.enclose("matmul", [a, b], {})
    return all(limit is not None and limit.holds(x) for limit, x in zip(limits, values_of(result), strict=True))


@pytest.mark.parametrize("dtype", ["fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"])
@pytest.mark.parametrize("order", ["fold", "ring(7)", "pairwise"])
@pytest.mark.parametrize("product", ["rounded", "fused"])
def test_every_order_is_accepted(dtype: str, order: str, product: Product) -> None:
    a, b = counted(dtype, (3, 21), 1), counted(dtype, (21, 3), 2)
    assert accepted(a, b, replay.matmul(a, b, Tree.from_json(order), canonical(dtype).but(product=product)))


def test_accumulating_too_narrowly_is_refused() -> None:
    """Eight units on top of 2**8, all lost in bf16."""
    a = Tensor.from_words("bf16", (1, 9), [0x4380, *[0x3F80] * 8])
    b = Tensor.from_words("bf16", (9, 1), [0x3F80] * 9)
    assert accepted(a, b, oracle.matmul(a, b))
    assert not accepted(a, b, oracle.matmul(a, b, accumulator="bf16"))


FUNCTIONS = ["exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt"]


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(0, 3, 60).astype(np.float32)


def steps_away(array: Any, steps: int) -> Any:
    """Away from zero by a number of codes."""
    return (array.view(np.int32) + np.int32(steps)).view(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_libraries_of_the_machine_lie_within_and_a_table_of_bf16_does_not(x: Any, fast: Any, name: str) -> None:
    x = np.abs(x) if name in ("log", "log2", "log1p", "sqrt") else x
    operands = [fast.tensor(x)]
    assert fast.within(name, operands, getattr(np, name)(x))
    assert fast.within(name, operands, getattr(np, name)(x.astype(np.float64)).astype(np.float32))
    assert not fast.within(name, operands, fast.bf16(getattr(np, name)(x)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_units_are_within_and_six_are_not(x: Any, fast: Any, name: str) -> None:
    x = np.abs(x) if name in ("log", "log2", "log1p", "sqrt") else x
    operand = fast.tensor(x)
    right = np.frombuffer(oracle.FUNCTIONS[f"oracle.{name}"](operand).data, dtype="<f4")
    for steps in (-3, 3):
        assert fast.within(name, [operand], steps_away(right, steps))
    for steps in (-9, 9):  # a unit may be half as large on the other side of a power of two
        limits = bounds.enclose(name, [operand], {})
        off = values_of(fast.tensor(steps_away(right, steps)))
        assert not any(limit is None or limit.holds(value) for limit, value in zip(limits, off, strict=True))


@pytest.mark.parametrize(
    ("operator", "function"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide)],
)
def test_arithmetic_is_held_to_one_rounding(rng: np.random.Generator, fast: Any, operator: str, function: Any) -> None:
    a, b = rng.normal(0, 9, (2, 40)).astype(np.float32)
    operands = [fast.tensor(a), fast.tensor(b)]
    right = function(a, b)
    assert fast.within(operator, operands, right)
    assert not fast.within(operator, operands, steps_away(right, 2))
    assert not fast.within(operator, operands, fast.tf32(right))


def test_subnormals_may_be_flushed_but_not_in_fp8(fast: Any) -> None:
    small, one = fast.tensor(np.float32([1e-39])), fast.tensor(np.float32([1]))
    assert fast.within("multiply", [small, one], np.float32([0]))
    assert fast.within("multiply", [small, one], np.float32([1e-39]))
    assert not fast.within("multiply", [small, one], np.float32([3e-38]))
    codes = Tensor.from_words("fp8_e4m3", (1,), [0x05])
    unit = Tensor.from_words("fp8_e4m3", (1,), [0x38])
    assert fast.within("multiply", [codes, unit], codes)
    assert not fast.within("multiply", [codes, unit], Tensor.from_words("fp8_e4m3", (1,), [0x00]))


def sequential(terms: Any, start: Any = None) -> Any:
    """Down the first axis, in the terms' own type."""
    total = terms[0] if start is None else start + terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def halved(terms: Any) -> Any:
    while len(terms) > 1:
        middle = len(terms) // 2
        terms = np.concatenate([terms[:middle] + terms[middle : 2 * middle], terms[2 * middle :]])
    return terms[0]


def wide(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return (rng.normal(0, 1, shape) * np.exp2(rng.integers(-12, 13, shape))).astype(np.float32)


@pytest.mark.parametrize("length", [1, 2, 7, 64, 600])
def test_sums_in_any_order_lie_within(rng: np.random.Generator, fast: Any, length: int) -> None:
    x = wide(rng, (length, 4))
    operand, axis = [fast.tensor(x)], {"axis": 0}
    for _ in range(5):
        assert fast.within("sum", operand, sequential(x[rng.permutation(length)]), axis)
    for result in (halved(x), x.sum(0), x.astype(np.float64).sum(0).astype(np.float32)):
        assert fast.within("sum", operand, result, axis)
    for result in (x.mean(0), x.sum(0) * np.float32(1 / length), sequential(x / np.float32(length))):
        assert fast.within("mean", operand, result, axis)


def test_the_bound_of_a_known_order_is_narrower_and_refuses_another_order(fast: Any) -> None:
    """A large number first: the fold loses all the units that follow, the tree none of their sums."""
    x = np.ones((1, 64), np.float32)
    x[0, 0] = 2.0**24
    folded = sequential(x.T)
    assert folded[0] == 2.0**24
    operand, (result,) = fast.tensor(x), values_of(fast.tensor(folded))
    anything, pairs, fold = (bounds.sums(operand, 1, tree)[0] for tree in (None, "pairwise", "fold"))
    assert anything is not None and pairs is not None and fold is not None
    assert anything.holds(result) and fold.holds(result) and not pairs.holds(result)


def test_products_in_any_order_lie_within(rng: np.random.Generator, fast: Any) -> None:
    x = rng.uniform(0.5, 2, (20, 5)).astype(np.float32)
    for _ in range(5):
        shuffled = x[rng.permutation(20)]
        result = shuffled[0]
        for factor in shuffled[1:]:
            result = result * factor
        assert fast.within("prod", [fast.tensor(x)], result, {"axis": 0})
    assert not fast.within("prod", [fast.tensor(x)], np.prod(fast.tf32(x), axis=0), {"axis": 0})
    assert bounds.enclose("prod", [fast.tensor(np.float32([1e30, 1e30, 1e-30]))], {}) == [None]


def test_matrix_products_in_any_order_lie_within(rng: np.random.Generator, fast: Any) -> None:
    a, b, c = wide(rng, (3, 50)), wide(rng, (50, 4)), wide(rng, (3, 4))
    terms = (a[:, :, None] * b[None]).transpose(1, 0, 2)
    fused = np.zeros((3, 4), np.float32)
    for k in range(50):
        fused = (fused.astype(np.float64) + a[:, k : k + 1].astype(np.float64) * b[k : k + 1]).astype(np.float32)
    results = [sequential(terms[rng.permutation(50)]) for _ in range(4)]
    results += [halved(terms), fused, a @ b, (a.astype(np.float64) @ b).astype(np.float32)]
    for result in results:
        assert fast.within("matmul", [fast.tensor(a), fast.tensor(b)], result)
    operands = [fast.tensor(part) for part in (a, b, c)]
    assert fast.within("matmul", operands, sequential(terms, c))
    for result in (sequential(terms, c), a @ b + c, c + halved(terms)):
        assert fast.within("add_to_product", operands, result)
    assert not fast.within("matmul", operands, a @ b)


def test_a_verdict_names_its_rule(rng: np.random.Generator, fast: Any) -> None:
    x = fast.tensor(rng.normal(0, 1, (1, 9)).astype(np.float32))
    rules = {name: bounds.enclose(name, [x], {})[0].rule for name in ("sum", "softmax", "mean", "max")}  # type: ignore[union-attr]
    assert rules["sum"] == "any order of 9 terms, gamma(8)"
    assert rules["mean"] == "any order of 9 terms, gamma(8), and a quotient"
    assert "softmax of 9" in rules["softmax"]
    assert rules["max"].startswith("exact")
