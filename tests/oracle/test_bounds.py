"""Level fast: what libraries compute lies within the bounds, named violations do not, and nothing more is promised."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.compositions import error_units
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_ZERO, float_format, values_of
from tessera_conformance.oracle.products import Order
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted


def accepted(a: Tensor, b: Tensor, result: Tensor) -> bool:
    limits = bounds.matmul(a, b)
    return all(limit is not None and limit.holds(x) for limit, x in zip(limits, values_of(result), strict=True))


@pytest.mark.parametrize("dtype", ["fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"])
@pytest.mark.parametrize("order", ["fold", "backward", "pairwise"])
@pytest.mark.parametrize("fused", [False, True])
def test_every_order_is_accepted(dtype: str, order: Order, fused: bool) -> None:
    a, b = counted(dtype, (3, 21), 1), counted(dtype, (21, 3), 2)
    assert accepted(a, b, oracle.matmul(a, b, order=order, fused=fused))


def test_accumulating_too_narrowly_is_refused() -> None:
    """Eight units on top of 2**8, all lost in bf16."""
    a = Tensor.from_words("bf16", (1, 9), [0x4380, *[0x3F80] * 8])
    b = Tensor.from_words("bf16", (9, 1), [0x3F80] * 9)
    assert accepted(a, b, oracle.matmul(a, b))
    assert not accepted(a, b, oracle.matmul(a, b, accumulator="bf16"))


def test_the_bound_is_sharp_within_a_small_factor() -> None:
    """For K = 1 in fp32 the error is at most that of a product and a final rounding that changes nothing."""
    one = Tensor.from_bits("fp32", (1, 1), "3f800000")
    (limit,) = bounds.matmul(one, one)
    assert limit is not None
    assert limit.exact == 1
    assert Fraction(1, 1 << 24) < limit.error < Fraction(3, 1 << 24)


@pytest.mark.parametrize("code", [0x7F800000, 0x7FC00000, 0x7F7FFFFF])
def test_nothing_is_promised_beyond_the_range(code: int) -> None:
    a = Tensor.from_words("fp32", (1, 2), [code, code])
    assert bounds.matmul(a, Tensor.from_words("fp32", (2, 1), [0x3F800000] * 2)) == [None]


def test_only_finite_values_lie_within() -> None:
    limit = bounds.Enclosure(Fraction(0), Fraction(1))
    assert limit.holds(NEGATIVE_ZERO)
    assert not limit.holds(INFINITY)
    assert not limit.holds(NAN)


def test_an_infinite_factor_promises_nothing():
    left, right = Tensor.from_words("fp8_e5m2", (1, 2), [0x7C, 0x3C]), Tensor.from_words("fp8_e5m2", (2, 1), [0x3C] * 2)
    assert bounds.matmul(left, right) == [None]


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


def test_the_limit_is_named(fast: Any) -> None:
    (limit,) = bounds.enclose("oracle.exp", [fast.tensor(np.float32([1]))], {})
    assert limit is not None
    assert limit.rule == "4 ulp of exp"
    assert abs(float(limit.exact) - math.e) < 1e-15
    assert 0 <= limit.error / Fraction(1, 1 << 20) - 1 < Fraction(1, 1 << 100)


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


def test_rounding_twice_lies_within(fast: Any) -> None:
    """fp64 to bf16 through fp32: just above a tie, the first rounding makes it the tie, the second goes down."""
    value = 1 + 2.0**-8 + 2.0**-40
    x = fast.tensor(np.array([value]))
    once = oracle.cast(x, dtype="bf16")
    twice = fast.tensor(np.array([value]).astype(np.float32), "bf16")
    assert once != twice
    for result in (once, twice):
        assert fast.within("cast", [x], result, {"dtype": "bf16"})


def test_subnormals_may_be_flushed_but_not_in_fp8(fast: Any) -> None:
    small, one = fast.tensor(np.float32([1e-39])), fast.tensor(np.float32([1]))
    assert fast.within("multiply", [small, one], np.float32([0]))
    assert fast.within("multiply", [small, one], np.float32([1e-39]))
    assert not fast.within("multiply", [small, one], np.float32([3e-38]))
    codes = Tensor.from_words("fp8_e4m3", (1,), [0x05])
    unit = Tensor.from_words("fp8_e4m3", (1,), [0x38])
    assert fast.within("multiply", [codes, unit], codes)
    assert not fast.within("multiply", [codes, unit], Tensor.from_words("fp8_e4m3", (1,), [0x00]))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -1.0, 0.0, 1e-40])
def test_nothing_is_promised_of_a_logarithm_that_is_no_number(fast: Any, value: float) -> None:
    assert bounds.enclose("log", [fast.tensor(np.float32([value]))], {}) == [None]


def test_nothing_is_promised_beyond_the_range_of_elementwise(fast: Any) -> None:
    assert bounds.enclose("exp", [fast.tensor(np.float32([88.8]))], {}) == [None]
    big = fast.tensor(np.float32([3e38]))
    assert bounds.enclose("add", [big, big], {}) == [None]


def erf(x: Any) -> Any:
    return np.array([math.erf(value) for value in x.astype(np.float64)])


def erfc(x: Any) -> Any:
    return np.array([math.erfc(value) for value in x.astype(np.float64)])


def test_every_common_way_to_gelu_lies_within(rng: np.random.Generator, fast: Any) -> None:
    x = np.concatenate([rng.normal(0, 2, 60), [0, -5, 5, -9, 9]]).astype(np.float32)
    root = np.float32(math.sqrt(0.5))
    canonical = np.float32(0.5) * x * (1 + erf(x * root).astype(np.float32))
    direct = (x * 0.5 * erfc(-x.astype(np.float64) * math.sqrt(0.5))).astype(np.float32)
    for result in (canonical, direct):
        assert fast.within("gelu", [fast.tensor(x)], result)


def by_tanh(x: Any, factor: float = 0.044715) -> Any:
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(factor) * x * x * x)
    return np.float32(0.5) * x * (1 + np.tanh(inner))


def test_the_approximation_of_gelu_is_another_function(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 2, 60).astype(np.float32)
    assert fast.within("gelu", [fast.tensor(x)], by_tanh(x), {"approximate": "tanh"})
    assert not fast.within("gelu", [fast.tensor(x)], by_tanh(x))
    assert not fast.within("gelu", [fast.tensor(x)], by_tanh(x, 0.0447), {"approximate": "tanh"})


def test_a_gelu_whose_tail_is_cut_off_is_refused(fast: Any) -> None:
    """At -4 it is -1.27e-4, and not zero."""
    x = np.float32([-4])
    assert not fast.within("gelu", [fast.tensor(x)], np.float32([0]))
    assert not fast.within("gelu", [fast.tensor(x)], np.float32([-4]))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_sigmoid_and_silu_in_both_forms(rng: np.random.Generator, fast: Any, dtype: str) -> None:
    x = np.concatenate([rng.normal(0, 4, 50), [-100, 100, 0]]).astype(np.float32)
    x = fast.bf16(x) if dtype == "bf16" else x
    operand = fast.tensor(x, dtype)
    with np.errstate(over="ignore"):
        powers = np.exp(-x)
        forms = [
            1 / (1 + powers),
            np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), 1 / (1 + powers)),
        ]
    for sigmoid in forms:
        assert fast.within("sigmoid", [operand], fast.tensor(sigmoid.astype(np.float32), dtype))
        assert fast.within("silu", [operand], fast.tensor((x * sigmoid).astype(np.float32), dtype))
    hard = np.clip(x / 6 + 0.5, 0, 1).astype(np.float32)
    assert not fast.within("sigmoid", [operand], fast.tensor(hard, dtype))


def test_a_sigmoid_that_cancels_in_its_tail_is_refused(fast: Any) -> None:
    """(1 + tanh(x/2)) / 2 loses three digits at -10."""
    x = np.float32([-10.3])
    cancelled = np.float32(0.5) * (1 + np.tanh(x / 2))
    assert not fast.within("sigmoid", [fast.tensor(x)], cancelled)


def test_fused_or_not_a_product_and_a_sum_lie_within(rng: np.random.Generator, fast: Any) -> None:
    a, b, c = rng.normal(0, 1, (3, 50)).astype(np.float32)
    operands = [fast.tensor(part) for part in (a, b, c)]
    fused = (a.astype(np.float64) * b + c).astype(np.float32)
    assert fast.within("multiply_add", operands, a * b + c)
    assert fast.within("multiply_add", operands, fused)
    assert not fast.within("multiply_add", operands, fast.tf32(a) * fast.tf32(b) + c)


def test_dropout_scales_what_it_keeps(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 1, 64).astype(np.float32)
    arguments = {"rate": 0.3, "seed": 4}
    kept = np.frombuffer(oracle.dropout(fast.tensor(x), **arguments).data, dtype="<f4") != 0
    scaled = np.where(kept, x * np.float32(1 / 0.7), 0).astype(np.float32)
    assert fast.within("dropout", [fast.tensor(x)], scaled, arguments)
    assert not fast.within("dropout", [fast.tensor(x)], np.where(kept, x, 0).astype(np.float32), arguments)
    assert not fast.within("dropout", [fast.tensor(x)], np.roll(scaled, 1), arguments)


def test_normal_numbers_may_be_drawn_in_fp32(fast: Any) -> None:
    arguments = {"seed": 7, "shape": (200,), "dtype": "fp32"}
    words = oracle.philox(seed=7, shape=(400,)).words().astype(np.float64)
    first, second = (words[::2] + 1) * 2.0**-32, words[1::2] * 2.0**-32
    radius = np.sqrt(-2 * np.log(first.astype(np.float32)))
    single = radius * np.cos(np.float32(2 * math.pi) * second.astype(np.float32))
    assert fast.within("normal", [], fast.tensor(single.astype(np.float32)), arguments)
    sines = np.sqrt(-2 * np.log(first)) * np.sin(2 * math.pi * second)
    assert not fast.within("normal", [], fast.tensor(sines.astype(np.float32)), arguments)


def test_quantisation_by_a_reciprocal_lies_within_and_another_largest_value_does_not(
    rng: np.random.Generator, fast: Any
) -> None:
    x = rng.normal(0, 3, (2, 32)).astype(np.float32)
    arguments = {"wire": "fp8_e4m3", "block": 16}
    target = float_format("fp8_e4m3")

    def codes(largest: float) -> Tensor:
        scales = np.abs(x.reshape(4, 16)).max(1, keepdims=True) * np.float32(1 / largest)
        scaled = x.reshape(4, 16) * (np.float32(1) / scales)
        words = [target.encode(value) for value in values_of(fast.tensor(scaled))]
        return Tensor.from_words("fp8_e4m3", x.shape, words)

    assert fast.within("quantize", [fast.tensor(x)], codes(448), arguments)
    assert not fast.within("quantize", [fast.tensor(x)], codes(240), arguments)


SINGLE = float_format("fp32")


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


def test_a_sum_without_its_last_term_or_in_bf16_is_refused(rng: np.random.Generator, fast: Any) -> None:
    x = rng.uniform(1, 2, (33, 4)).astype(np.float32)
    operand, axis = [fast.tensor(x)], {"axis": 0}
    assert not fast.within("sum", operand, x[:-1].sum(0), axis)
    assert not fast.within("sum", operand, fast.bf16(x).sum(0), axis)
    assert not fast.within("sum", operand, fast.tf32(x).sum(0), axis)
    narrow = np.zeros(4, np.float32)
    for term in fast.bf16(x):
        narrow = fast.bf16(narrow + term)
    assert not fast.within("sum", [fast.tensor(x, "bf16")], fast.tensor(narrow, "bf16"), axis)
    assert fast.within("sum", [fast.tensor(x, "bf16")], fast.tensor(fast.bf16(x).sum(0), "bf16"), axis)


def test_the_bound_of_a_known_order_is_narrower_and_refuses_another_order(fast: Any) -> None:
    """A large number first: the fold loses all the units that follow, the tree none of their sums."""
    x = np.ones((1, 64), np.float32)
    x[0, 0] = 2.0**24
    folded = sequential(x.T)
    assert folded[0] == 2.0**24
    operand, tree = [fast.tensor(x)], {"tree": "pairwise"}
    assert fast.within("sum", operand, folded, tree)
    assert not fast.within("sum", operand, folded, tree, known_order=True)
    assert not fast.within("sum", operand, folded, {"order": "kahan"}, known_order=True)
    assert fast.within("sum", operand, folded, {"tree": "fold"}, known_order=True)


def test_the_running_bound_holds_and_is_the_narrowest(rng: np.random.Generator) -> None:
    x = wide(rng, (100,))
    total, nodes = x[0], []
    for term in x[1:]:
        total = total + term
        nodes.append(Fraction(float(total)))
    values = [Fraction(float(term)) for term in x]
    error = abs(Fraction(float(total)) - sum(values))
    running = intervals.running(nodes, SINGLE)
    weighted = intervals.along_tree("fold", values, SINGLE)
    anything = intervals.any_order(intervals.terms_of(values, SINGLE), SINGLE)
    assert error <= running < weighted < anything


def test_depths_are_the_nodes_above_a_leaf() -> None:
    """Over [1, 2, 4, 8] in ((0 1) 2 3): two roundings for the first two, one for the others."""
    values = [Fraction(1), Fraction(2), Fraction(4), Fraction(8)]
    unit = Fraction(1, 1 << 24)
    expected = ((1 + unit) ** 2 - 1) * 3 + unit * 12
    assert 0 <= intervals.along_tree("((0 1) 2 3)", values, SINGLE) / expected - 1 < Fraction(1, 1 << 100)
    assert intervals.along_tree([[0, 1], 2, 3], values, SINGLE) == intervals.along_tree("((0 1) 2 3)", values, SINGLE)


def test_products_have_one_rounding_more() -> None:
    values = [Fraction(1), Fraction(2), Fraction(4)]
    plain, products = (intervals.along_tree("fold", values, SINGLE, products=more) for more in (False, True))
    assert Fraction(7, 1 << 24) < products - plain < Fraction(8, 1 << 24)
    few = intervals.terms_of(values, SINGLE)
    assert intervals.any_order(few, SINGLE) < intervals.any_order(few, SINGLE, products=True)


def test_a_subnormal_factor_may_be_flushed_before_it_is_multiplied(fast: Any) -> None:
    a, b = np.float32([[1e-39, 1]]), np.float32([[1e30], [1e-9]])
    for result in (a @ b, np.float32([[1e-9]])):
        assert fast.within("matmul", [fast.tensor(a), fast.tensor(b)], result)
    assert not fast.within("matmul", [fast.tensor(a), fast.tensor(b)], np.float32([[4e-9]]))


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


def test_tf32_in_place_of_fp32_is_refused_on_wide_data(fast: Any) -> None:
    """One product outweighs the others, and its factors have bits that tf32 drops."""
    a = np.full((1, 64), 2.0**-12, np.float32)
    a[0, 0] = 1 + 2.0**-12
    b = np.full((64, 1), 2.0**-12, np.float32)
    b[0, 0] = 1 + 2.0**-12
    operands = [fast.tensor(a), fast.tensor(b)]
    assert fast.within("matmul", operands, a @ b)
    assert not fast.within("matmul", operands, fast.tf32(a) @ fast.tf32(b))


def test_a_product_without_its_tail_is_refused(rng: np.random.Generator, fast: Any) -> None:
    a, b = (rng.uniform(1, 2, shape).astype(np.float32) for shape in ((3, 33), (33, 3)))
    assert not fast.within("matmul", [fast.tensor(a), fast.tensor(b)], a[:, :32] @ b[:32])


def test_half_products_may_be_kept_wider_but_not_narrower(rng: np.random.Generator, fast: Any) -> None:
    a, b = (rng.uniform(1, 2, shape).astype(np.float16) for shape in ((3, 200), (200, 3)))
    operands = [fast.tensor(a), fast.tensor(b)]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert fast.within("matmul", operands, exact.astype(np.float16))
    narrow = sequential((a[:, :, None] * b[None]).transpose(1, 0, 2))
    assert narrow.dtype == np.float16
    assert not fast.within("matmul", operands, narrow)


def online(x: Any, exp: Any = np.exp) -> Any:
    """One pass, rescaling the sum so far at every new maximum."""
    top, total = x[:, 0], np.ones(len(x), np.float32)
    for column in x.T[1:]:
        higher = np.maximum(top, column)
        total = total * exp(top - higher) + exp(column - higher)
        top = higher
    return exp(x - top[:, None]) / total[:, None]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("spread", [1, 30])
def test_every_stable_softmax_lies_within(rng: np.random.Generator, fast: Any, dtype: str, spread: int) -> None:
    x = rng.normal(0, spread, (6, 40)).astype(np.float32)
    x = fast.bf16(x) if dtype == "bf16" else x
    shifted = x - x.max(1, keepdims=True)
    powers = np.exp(shifted)
    by_two = np.exp2(shifted * np.float32(math.log2(math.e)))
    double = np.exp(shifted.astype(np.float64))
    results = [powers / powers.sum(1, keepdims=True), by_two * (1 / sequential(by_two.T))[:, None], online(x)]
    results += [np.exp(shifted - np.log(powers.sum(1, keepdims=True)))] if spread == 1 else []
    results += [(double / double.sum(1, keepdims=True)).astype(np.float32)]
    for result in results:
        assert fast.within("softmax", [fast.tensor(x, dtype)], fast.tensor(result, dtype))
    ascending = np.sort(x)
    assert fast.within("softmax", [fast.tensor(ascending, dtype)], fast.tensor(online(ascending), dtype))


def test_a_softmax_in_one_pass_may_rescale_at_every_element(fast: Any) -> None:
    """Each element is a new maximum, and each exponential three units too large."""
    x = np.arange(200, dtype=np.float32)[None] * np.float32(2.0**-10)
    result = online(x, lambda power: np.exp(power) * np.float32(1 + 3 * 2.0**-23))
    assert fast.within("softmax", [fast.tensor(x)], result)
    assert not fast.within("softmax", [fast.tensor(x)], result * np.float32(1 + 2.0**-10))


def test_exponentials_may_be_powers_of_two_of_scaled_differences(rng: np.random.Generator, fast: Any) -> None:
    """The rounding of a difference of -80 times log2(e) alone is worth 40 units of roundoff."""
    x = np.stack([np.zeros(60), rng.uniform(-85, -64, 60)], 1).astype(np.float32)
    powers = np.exp2(x * np.float32(math.log2(math.e)))
    assert fast.within("softmax", [fast.tensor(x)], powers / powers.sum(1, keepdims=True))


def test_softmax_without_the_maximum_is_refused_where_it_overflows(fast: Any) -> None:
    x = np.float32([[100, 99, 98], [-200, -201, -202]])
    with np.errstate(all="ignore"):
        unstable = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert np.isnan(unstable).all()
    for row in range(2):
        assert not fast.within("softmax", [fast.tensor(x[row : row + 1])], unstable[row : row + 1])


def test_wrong_softmaxes_are_refused(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 2, (4, 17)).astype(np.float32)
    operand = [fast.tensor(x)]

    def softmax(x: Any, axis: int = 1) -> Any:
        powers = np.exp(x - x.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)

    powers = np.exp(x - x.max(1, keepdims=True))
    violations = [
        softmax(x, 0),
        softmax(fast.tf32(x)),
        fast.tf32(softmax(x)),
        powers / powers[:, :-1].sum(1, keepdims=True),
        powers / (powers.sum(1, keepdims=True) + np.float32(1e-4)),
    ]
    for violation in violations:
        assert not fast.within("softmax", operand, violation)


def test_the_logarithm_of_a_sum_of_exponentials(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 5, (6, 30)).astype(np.float32)
    top = x.max(1)
    total = np.exp(x - top[:, None]).sum(1)
    assert fast.within("logsumexp", [fast.tensor(x)], np.log(total) + top)
    assert fast.within(
        "logsumexp", [fast.tensor(x)], np.logaddexp.reduce(x.astype(np.float64), axis=1).astype(np.float32)
    )
    assert not fast.within("logsumexp", [fast.tensor(x)], top)
    assert not fast.within("logsumexp", [fast.tensor(x)], np.log(total[::-1]) + top)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_attention_fused_or_in_steps(rng: np.random.Generator, fast: Any, dtype: str) -> None:
    q, k, v = (rng.normal(0, 1, (12, 16)).astype(np.float32) for _ in range(3))
    if dtype == "bf16":
        q, k, v = map(fast.bf16, (q, k, v))
    operands, arguments = [fast.tensor(part, dtype) for part in (q, k, v)], {"factor": "0.25"}

    def attend(rounded: Any, factor: float = 0.25, keys: int = 12) -> Any:
        scores = rounded(rounded(q @ k[:keys].T) * np.float32(factor))
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return rounded(powers / powers.sum(1, keepdims=True)) @ v[:keys]

    for rounded in (lambda part: part, fast.bf16 if dtype == "bf16" else np.float32):
        assert fast.within("attention", operands, fast.tensor(attend(rounded), dtype), arguments)
    for violation in (attend(np.float32, 1.0), attend(np.float32, 0.25, 11)):
        assert not fast.within("attention", operands, fast.tensor(violation, dtype), arguments)
    if dtype == "fp32":
        assert not fast.within("attention", operands, attend(fast.bf16), arguments)


def cooley_tukey(x: Any) -> Any:
    if len(x) == 1:
        return x
    even, odd = cooley_tukey(x[::2]), cooley_tukey(x[1::2])
    twisted = np.exp(-2j * np.pi * np.arange(len(odd)) / len(x)).astype(np.complex64) * odd
    return np.concatenate([even + twisted, even - twisted])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 17, 32])
def test_transforms_by_any_algorithm_lie_within(rng: np.random.Generator, fast: Any, n: int) -> None:
    x = (rng.normal(0, 1, n) + 1j * rng.normal(0, 1, n)).astype(np.complex64)
    operand = [fast.tensor(x)]
    roots = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n).astype(np.complex64)
    results = [np.fft.fft(x.astype(np.complex128)).astype(np.complex64), sequential((roots * x).T)]
    results += [np.fft.fft(x).astype(np.complex64)] + ([cooley_tukey(x)] if n & (n - 1) == 0 else [])
    for result in results:
        assert fast.within("fft", operand, result, {"norm": "backward"})
        assert fast.within("fft", operand, result * np.float32(1 / math.sqrt(n)), {})
    if n > 2:
        assert not fast.within("fft", operand, np.fft.ifft(x, norm="ortho").astype(np.complex64), {})
        assert not fast.within("ifft", operand, np.fft.fft(x, norm="ortho").astype(np.complex64), {})
        assert not fast.within("fft", operand, np.fft.fft(x).astype(np.complex64), {})


def test_an_impulse_errs_by_every_product_on_its_way(rng: np.random.Generator, fast: Any) -> None:
    """The sum of the moduli is one modulus here, and six butterflies show."""
    x = np.zeros(64, np.complex64)
    x[63] = complex(*rng.uniform(1, 2, 2))
    assert fast.within("fft", [fast.tensor(x)], cooley_tukey(x), {"norm": "backward"})


@pytest.mark.parametrize(("n", "units"), [(1, 5), (5, 9), (8, 18), (12, 19), (13, 17), (17, 3 * 5 * 7 * 6)])
def test_the_units_of_a_transform(n: int, units: int) -> None:
    """The definition in any order, mixed radices, and Bluestein's three transforms for a large prime."""
    assert error_units(n) == units


def test_roots_of_unity_in_tf32_are_refused(rng: np.random.Generator, fast: Any) -> None:
    x = (rng.normal(0, 1, 16) + 1j * rng.normal(0, 1, 16)).astype(np.complex64)
    roots = np.exp(-2j * np.pi * np.outer(np.arange(16), np.arange(16)) / 16)
    narrow = fast.tf32(roots.real.astype(np.float32)) + 1j * fast.tf32(roots.imag.astype(np.float32))
    result = (narrow @ x.astype(np.complex128)).astype(np.complex64)
    assert not fast.within("fft", [fast.tensor(x)], result, {"norm": "backward"})


def test_a_narrow_all_reduce_may_be_rounded_at_every_rank(rng: np.random.Generator, fast: Any) -> None:
    ranks = [fast.bf16(rng.uniform(1, 2, 20).astype(np.float32)) for _ in range(6)]
    operands = [fast.tensor(rank, "bf16") for rank in ranks]
    travelling = ranks[3]
    for rank in (4, 5, 0, 1, 2):
        travelling = fast.bf16(travelling + ranks[rank])
    for result in (travelling, sequential(np.array(ranks))):
        assert fast.within("all_reduce", operands, fast.tensor(result, "bf16"), {"op": "sum"})
    assert not fast.within("all_reduce", operands, fast.tensor(travelling - ranks[5], "bf16"), {"op": "sum"})
    assert not fast.within("all_reduce", operands, fast.tensor(travelling / 6, "bf16"), {"op": "sum"})


def test_a_verdict_names_its_rule(rng: np.random.Generator, fast: Any) -> None:
    x = fast.tensor(rng.normal(0, 1, (1, 9)).astype(np.float32))
    rules = {name: bounds.enclose(name, [x], {})[0].rule for name in ("sum", "softmax", "mean", "max")}  # type: ignore[union-attr]
    assert rules["sum"] == "any order of 9 terms, gamma(8)"
    assert rules["mean"] == "any order of 9 terms, gamma(8), and a quotient"
    assert "softmax of 9" in rules["softmax"]
    assert rules["max"].startswith("exact")


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "softmax", "logsumexp", "max"])
def test_nothing_is_promised_of_a_row_with_an_infinity(fast: Any, name: str) -> None:
    x = fast.tensor(np.float32([[1, np.inf, 2], [1, 1, 2]]))
    limits = bounds.enclose(name, [x], {})
    rows = len(limits) // 2
    assert limits[:rows] == [None] * rows
    assert None not in limits[rows:]


def test_values_of_flushed_rows_are_allowed(fast: Any) -> None:
    x = np.float32([[1e-39, 1e-39, 1e-39]])
    assert fast.within("sum", [fast.tensor(x)], np.float32([0]))
    assert values_of(fast.tensor(x))[0] != 0
    assert isinstance(fast.tensor(x), Tensor)
