"""The last rule that catches a violation, the limits of the rules, and the rule of gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.chapters.ir.kit.gradient_cases import judge_gradients, without_signed_zeros
from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.chapters.ir.kit.statistics import judge_errors, rules_of_products
from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.dsl import returning, tensor_of, type_of
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.bounds.operations import settled
from tessera_conformance.oracle.exact import values_of
from tessera_conformance.session import Implementation, Session
from tessera_conformance.strength.violation import Violation
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, Result, flushed, judge_flushing

# What the levels can tell and what they cannot: the last rule that catches a violation, and what no rule does.

Judged = Callable[[Any, str, str], Check]
Violators = Mapping[str, Violation]
TERMS = 512


def positive(x: Tensor) -> Tensor:
    return Tensor(x.dtype, x.shape, (x.words() & 0x7FFFFFFF).astype("<u4").tobytes())


def held(function: str, inputs: list[Tensor], found: Tensor, **arguments: Any) -> bool:
    """True if every result lies within the bound of any order."""
    limits = bounds.enclose(function, inputs, arguments)
    return all(limit is not None and limit.holds(value) for limit, value in zip(limits, values_of(found), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("violator", "one_sign", "rule"),
    [("truncated_sums", True, "variance"), ("sums_rounded_down", False, "bias, squared")],
)
def test_sums_rounded_to_one_side_lie_within_the_bound(
    opened: Any, violators: Violators, violator: str, one_sign: bool, rule: str
) -> None:
    """Every single sum is acceptable in any order; one rule over all of them refuses."""
    x = counted("fp32", (256, TERMS), 403, (0, 0))
    x = positive(x) if one_sign else x
    source = returning("op.sum(X, axis=1, keepdims=true)", f"X: tensor<256x{TERMS}xfp32>")
    with violators[violator].broken() as adapter:
        actual = value_of(opened(adapter, "fast"), Check(), source, X=x)
    assert held("sum", [x], actual, axis=1)
    rules = rules_of_products(x, tensor_of("fp32", [[1.0]] * TERMS), actual, unbiased=not one_sign)
    assert [entry.name for entry in rules if not entry.accepted] == [rule], rules


def test_the_statistics_of_another_shape_are_a_failure() -> None:
    factors = (counted("fp32", (2, 3), 1), counted("fp32", (3, 1), 2))
    with pytest.raises(CheckFailed, match="dtype and shape"):
        judge_errors(Check(), factors, counted("fp32", (2,), 3), "fast", unbiased=False)


def test_an_element_is_held_to_its_own_declaration(honest: ModuleType, judged: Judged) -> None:
    """Columns left over are folded and declared so; declared as the others are, they fail."""

    class SilentAboutTails(honest.VectorTail):  # type: ignore[name-defined,misc]
        def declared_order(self, operation: str, kind: Any, terms: int, shapes: Any, element: int) -> Any:
            return self.order(operation, kind, terms)

    judged(honest.VectorTail, "deterministic", "ir/matmul/fp32/k-13")
    with pytest.raises(CheckFailed, match=r"the declared tree .*replayed: element"):
        judged(SilentAboutTails, "deterministic", "ir/matmul/fp32/k-13")


def test_a_declared_accuracy_is_never_worse_than_four_units(judged: Judged, violators: Violators) -> None:
    """64 units are refused although the Hello says 100 (AMB-LANG-136)."""
    with violators["far_off"].broken() as adapter:
        adapter.claim["functions"] = {"exp": 100.0}  # type: ignore[attr-defined]
        with pytest.raises(CheckFailed, match="within 4 ulp of exp"):
            judged(adapter, "fast", "ir/functions/fp32/exp/counted")


# Accuracy and special values

TINY, NAN, INFINITE = 2.0**-140, float("nan"), float("inf")


def fp32(*values: float) -> Tensor:
    return Tensor("fp32", (len(values),), np.array(values, "<f4").tobytes())


@pytest.mark.parametrize(
    ("name", "values", "flushes", "expected"),
    [
        ("exp", [NAN, INFINITE, 1000.0, 88.72284, 1.0], False, [True, True, True, False, False]),
        ("log", [0.0, -1.0, TINY, 2.0], False, [True, True, False, False]),
        ("log", [0.0, -TINY, TINY, 2.0], True, [True, False, False, False]),
        ("reciprocal", [0.0, -0.0, TINY, 2.0], False, [True, True, True, False]),
    ],
)
def test_where_no_accuracy_leaves_a_choice(name: str, values: list[float], flushes: bool, expected: list[bool]) -> None:
    """Special values and overflow, but not what a few units take beyond the range, nor what flushing moves."""
    assert settled(name, fp32(*values), ulps=4, flushes=flushes) == expected


@pytest.mark.parametrize(("ulps", "units", "within"), [(0.5, 0, True), (0.5, 1, False), (1, 1, True), (1, 2, False)])
def test_an_enclosure_is_as_wide_as_the_declared_accuracy(ulps: float, units: int, within: bool) -> None:
    """1 / 3 is a third of a unit below its nearest number of fp32."""
    (enclosure,) = bounds.function("reciprocal", fp32(3.0), ulps=ulps, flushes=False)
    assert enclosure is not None
    nearest = Fraction(round(Fraction(1 << 25, 3)), 1 << 25)
    assert enclosure.holds(nearest - Fraction(units, 1 << 25)) == within
    assert enclosure.rule == f"{ulps:g} ulp of reciprocal"


# Subnormals where there is one right answer


def test_subnormals_are_flushed_to_zeros_of_their_sign_but_for_fp8() -> None:
    assert flushed(fp32(TINY, -TINY, 1.0, -0.0)).words().tolist() == [0, 0x80000000, 0x3F800000, 0x80000000]
    narrow = Tensor.from_words("fp8_e4m3", (2,), [0x01, 0x81])
    assert flushed(narrow) == narrow
    numbers = Tensor.from_words("int32", (2,), [1, 2])
    assert flushed(numbers) == numbers


@pytest.mark.parametrize(
    ("found", "accepted"),
    [
        ([2 * TINY, TINY + 1], True),  # kept
        ([0.0, 1.0], True),  # operands flushed
        ([0.0, TINY + 1], True),  # the result flushed
        ([TINY, 1.0], False),
        ([-0.0, 1.0], False),
    ],
)
def test_each_element_may_keep_or_flush(found: list[float], accepted: bool) -> None:
    a, b = fp32(TINY, TINY), fp32(TINY, 1.0)
    frozen, check = fp32(2 * TINY, 1.0), Check()
    try:
        judge_flushing(Result(check, "fast", Question("add", [a, b], {}), fp32(*found), frozen), "fast: one rounding")
    except CheckFailed:
        assert not accepted
    else:
        assert accepted


# Gradients are judged by every bit but the sign of a zero.


class Constant(Adapter):
    """Answers every program with the same tensors, and keeps the program."""

    def __init__(self, *outputs: Tensor) -> None:
        self.outputs = list(outputs)
        self.source = ""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "constant", "version": "1"},
            "documents": ["language_ir"],
            "capabilities": {},
            "arithmetic": {"level": "strict"},
        }

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        self.source = source
        return {"outputs": self.outputs}


def judge_constant(adapter: Constant, expected: Mapping[str, Any]) -> None:
    implementation = Implementation(Session(DirectTransport(lambda: adapter, "constant")), "strict")
    judge_gradients(implementation, Check(), "A * b", {"A": [1, 2], "b": 3}, expected, before=["A[0] = 1.0;"])


def test_the_program_and_its_types() -> None:
    adapter = Constant(tensor_of("fp32", [3, 3]), tensor_of("fp32", 3))
    judge_constant(adapter, {"A": [3, 3], "b": 3})
    assert adapter.source.split("\n")[1:7] == [
        "  func f(A: tensor<2xfp32>, b: fp32) {",
        "    A[0] = 1.0;",
        "    let GradA: tensor<2xfp32> = op.grad(A * b, A);",
        "    let Gradb: fp32 = op.grad(A * b, b);",
        "    return GradA, Gradb;",
        "  }",
    ]


@pytest.mark.parametrize("found", [[-0.0, 0], [0, -0.0]])
def test_the_sign_of_a_zero_is_left_out(found: list[float]) -> None:
    judge_constant(Constant(tensor_of("fp32", found)), {"A": [0, 0]})


@pytest.mark.parametrize(
    "outputs",
    [
        [tensor_of("fp32", [0, 1])],
        [tensor_of("fp32", [[0, 0]])],
        [tensor_of("bf16", [0, 0])],
        [tensor_of("fp32", [0, 0]), tensor_of("fp32", 0)],
        [],
    ],
    ids=["value", "shape", "dtype", "too-many", "none"],
)
def test_anything_else_is_not(outputs: list[Tensor]) -> None:
    with pytest.raises(CheckFailed):
        judge_constant(Constant(*outputs), {"A": [0, 0]})


def test_only_zeros_lose_their_sign() -> None:
    given = Tensor.from_words("bf16", (4,), [0x8000, 0xBF80, 0x8001, 0])
    assert without_signed_zeros(given).words().tolist() == [0, 0xBF80, 0x8001, 0]
    assert without_signed_zeros(tensor_of("int8", [-128])) == tensor_of("int8", [-128])
    assert without_signed_zeros("nothing") == "nothing"


def test_types_as_they_are_written() -> None:
    assert [type_of(tensor_of("bf16", values)) for values in (1, [1], [[1, 2]])] == [
        "bf16",
        "tensor<1xbf16>",
        "tensor<1x2xbf16>",
    ]
