"""NaN and infinities below the level strict, NaN as other machines have it, accumulators declared too narrow."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.check import Check, CheckFailed, OtherReading
from tessera_conformance.differences import are_nan
from tessera_conformance.dsl import returning
from tessera_conformance.oracle.formats import component_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic

Judged = Callable[[Any, str, str], Check]
Change = Callable[[Tensor], Any]

SOME = [
    "ir/softmax/fp32/nan",
    "ir/softmax/fp32/infinity",
    "ir/reductions/fp32/mean/special",
    "ir/reductions/fp32/prod/special",
    "ir/reductions/fp32/logsumexp/special",
    "ir/activations/fp32/sigmoid/edges",
    "ir/activations/fp32/silu/edges",
    "ir/activations/fp32/gelu/edges",
    "ir/fourier/complex64/fft/special",
]
"""Compositions with NaN or infinities among their operands and results."""

EXACT = [
    "ir/reductions/fp32/max/special",
    "ir/reductions/fp32/min/special",
    "ir/activations/fp32/relu/edges",
    "ir/casts/fp32-to-bf16/edges",
]


def one_for(x: Tensor, where: Any) -> Any:
    code = x.words().dtype.type(component_format(x.dtype).encode(Fraction(1)))
    return np.where(where, code, x.words())


def numbers_only(x: Tensor) -> Any:
    """1 for NaN and for infinities."""
    format_ = component_format(x.dtype)
    return one_for(x, (x.words() & (format_.sign_bit - 1)) > format_.largest_code)


def no_nan(x: Tensor) -> Any:
    """1 for NaN."""
    return one_for(x, are_nan(x))


def infinite_nan(x: Tensor) -> Any:
    """NaN for infinities."""
    format_ = component_format(x.dtype)
    return np.where((x.words() & (format_.sign_bit - 1)) > format_.largest_code, format_.nan_code, x.words())


def negative_nan(x: Tensor) -> Any:
    """The sign of NaN set, as it is on x86."""
    return np.where(are_nan(x), x.words() | component_format(x.dtype).sign_bit, x.words())


def all_half(x: Tensor) -> Any:
    """A half of what is right."""
    return np.where(x.words() >> 23 != 0, x.words() - (1 << 23), x.words())


def changed(base: type[Any], change: Change) -> type[Any]:
    """An implementation whose results are changed."""

    class Changed(base):  # type: ignore[misc]
        def fixed(self, result: dict[str, Any]) -> dict[str, Any]:
            outputs = [
                Tensor(x.dtype, x.shape, change(x).astype(x.words().dtype).tobytes()) if x.format.is_float else x
                for x in result["outputs"]
            ]
            return {**result, "outputs": outputs}

        def language_execute(self, **params: Any) -> dict[str, Any]:
            return self.fixed(super().language_execute(**params))

        def numerics_evaluate(self, **params: Any) -> dict[str, Any]:
            return self.fixed(super().numerics_evaluate(**params))

    return Changed


@pytest.mark.parametrize("vector", [*SOME, "ir/softmax/fp32/negative-infinity"])
def test_the_reference_passes(judged: Judged, vector: str) -> None:
    judged(ReferenceAdapter, "deterministic", vector)


@pytest.mark.parametrize("vector", SOME)
def test_special_values_of_compositions_are_held_at_deterministic(judged: Judged, vector: str) -> None:
    with pytest.raises(CheckFailed, match="deterministic: special values of"):
        judged(changed(ReferenceAdapter, numbers_only), "deterministic", vector)


@pytest.mark.parametrize("vector", SOME[2:5])
def test_an_infinity_is_not_nan(judged: Judged, vector: str) -> None:
    with pytest.raises(CheckFailed, match="deterministic: special values of"):
        judged(changed(ReferenceAdapter, infinite_nan), "deterministic", vector)


def test_numbers_beside_minus_infinity_are_held_at_deterministic(judged: Judged) -> None:
    with pytest.raises(CheckFailed, match="deterministic: special values of softmax"):
        judged(changed(ReferenceAdapter, all_half), "deterministic", "ir/softmax/fp32/negative-infinity")


@pytest.mark.parametrize("vector", EXACT)
def test_special_values_that_nothing_is_computed_for_are_held_at_fast(judged: Judged, vector: str) -> None:
    judged(ReferenceAdapter, "fast", vector)
    for change in (no_nan, numbers_only, infinite_nan):
        with pytest.raises((CheckFailed, OtherReading), match=r"fast: special values of|AMB-LANG-134: NaN ignored"):
            judged(changed(ReferenceAdapter, change), "fast", vector)


def test_the_sign_of_nan_is_no_difference_beside_an_element_of_another_order(honest: ModuleType, opened: Any) -> None:
    """NaN in a whole group, where element 0 has its order; the columns left over have another."""
    a, b = counted("fp32", (2, 33), 5, (0, 0)), counted("fp32", (33, 7), 6, (0, 0))
    words = a.words().copy()
    words[3] = 0x7FC00000
    a = Tensor(a.dtype, a.shape, words.tobytes())
    impl = opened(changed(honest.VectorTail, negative_nan), "deterministic")
    source = returning("op.matmul(A, B)", "A: tensor<2x33xfp32>, B: tensor<33x7xfp32>")
    check = Check()
    judge_declared(impl, check, Question("matmul", [a, b], {}), value_of(impl, check, source, A=a, B=b))


def narrow(base: type[Any], operation: str, of: str, accumulator: str) -> type[Any]:
    """One that computes in another accumulator, and says so."""

    class Other(base):  # type: ignore[misc]
        def node(self, asked: str, kind: Any) -> NodeArithmetic:
            usual: NodeArithmetic = super().node(asked, kind)
            return NodeArithmetic(dtype(accumulator)) if (asked, kind.name) == (operation, of) else usual

    return Other


@pytest.mark.parametrize(
    ("operation", "of", "accumulator", "vector"),
    [
        ("matmul", "bf16", "bf16", "ir/matmul/bf16/left-fold"),
        ("matmul", "fp32", "bf16", "ir/matmul/fp32/left-fold"),
        ("sum", "fp32", "fp16", "ir/reductions/fp32/sum/order"),
    ],
)
def test_no_narrower_accumulator_is_declared(
    honest: ModuleType, judged: Judged, operation: str, of: str, accumulator: str, vector: str
) -> None:
    said = f"the declared accumulator of {operation}, {accumulator}, is no narrower than the canon's, fp32"
    with pytest.raises(CheckFailed, match=said):
        judged(narrow(honest.OtherBits, operation, of, accumulator), "deterministic", vector)


def test_wider_accumulators_and_those_of_ranks_are_declared_freely(honest: ModuleType, judged: Judged) -> None:
    judged(narrow(honest.OtherBits, "matmul", "bf16", "fp64"), "deterministic", "ir/matmul/bf16/left-fold")
    judged(
        narrow(honest.OtherBits, "all_reduce", "bf16", "bf16"),
        "deterministic",
        "collectives/all_reduce/bf16/sum/ranks-7",
    )
