"""Level fast, element by element: what libraries compute lies within, named violations do not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.formats import float_format, values_of
from tessera_conformance.tensors import Tensor

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


def test_nothing_is_promised_beyond_the_range(fast: Any) -> None:
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
