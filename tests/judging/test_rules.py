"""The rules by which the levels accept and refuse results, ordinary and special."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.check import Check, CheckFailed, OtherReading, Unanswered, are_nan
from tessera_conformance.dsl import returning
from tessera_conformance.oracle.exact import component_format
from tessera_conformance.registry import load_registry
from tessera_conformance.reports.journal import Report
from tessera_conformance.strength.matrix import level_of
from tessera_conformance.strength.violation import Violation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic

# A verdict names the rule that accepted or refused, in the records, in the report and in what people are shown.

Judged = Callable[[Any, str, str], Check]
LEFT_FOLD, EXP, PRODUCT = (
    "ir/matmul/fp32/left-fold",
    "ir/functions/fp32/exp/counted",
    "ir/elementwise/fp32/multiply/edges",
)

ACCEPTED = [
    ("strict", LEFT_FOLD, "strict: the frozen bits"),
    (
        "deterministic",
        LEFT_FOLD,
        "deterministic: the declared tree fold (products rounded, in fp32, nearest_even), replayed",
    ),
    ("deterministic", LEFT_FOLD, "deterministic: the same bits when asked again"),
    ("deterministic", EXP, "deterministic: exp correctly rounded, as declared"),
    ("deterministic", PRODUCT, "deterministic: one rounding"),
    ("deterministic", "ir/reductions/fp32/max/counted", "deterministic: one right answer"),
    (
        "deterministic",
        "ir/softmax/fp32/n-5",
        "deterministic: within the bound (softmax of 5: differences, exponentials",
    ),
    ("fast", LEFT_FOLD, "fast: within the bound (any order of"),
    ("fast", EXP, "fast: within 0.5 ulp of exp, subnormals kept or flushed"),
    ("fast", PRODUCT, "fast: within the bound (one rounding)"),
    ("fast", "ir/elementwise/fp32/less/edges", "fast: one right answer, subnormals kept or flushed"),
    ("fast", "ir/reductions/int32/sum/wrapping", "fast: one right answer"),
]

REFUSED = [
    (
        "reordered_products",
        "deterministic",
        LEFT_FOLD,
        r"deterministic: the declared tree fold \(.*\), replayed: element",
    ),
    ("NothingDeclared", "deterministic", LEFT_FOLD, "numerics.declared"),
    ("TreeOfOtherSize", "deterministic", LEFT_FOLD, "the declared order of matmul fits the operands: the tree has"),
    (
        "less_accurate",
        "deterministic",
        EXP,
        r"deterministic: within 1 ulp of exp: expected element \d+: .* found off by",
    ),
    ("special_values", "deterministic", "ir/functions/fp32/exp/edges", "deterministic: special values of exp: element"),
    ("undeclared_flush", "deterministic", PRODUCT, "deterministic: one rounding: element"),
    ("now_and_then", "deterministic", EXP, "deterministic: the same bits when asked again"),
    (
        "tf32",
        "fast",
        LEFT_FOLD,
        r"fast: within the bound \(any order of \d+ products, gamma\(\d+\)\): expected element",
    ),
    ("nan_of_a_number", "fast", EXP, "fast: within 4 ulp of exp.* not finite"),
]


def three_times(judged: Judged, adapter: Any, level: str, vector: str) -> None:
    """Some violate on a later call."""
    for _ in range(3):
        judged(adapter, level, vector)


@pytest.mark.slow
@pytest.mark.parametrize(("level", "vector", "rule"), ACCEPTED)
def test_the_rule_that_accepts_is_recorded(judged: Judged, level: str, vector: str, rule: str) -> None:
    said = [record.what for record in judged(make(), level, vector).records if record.passed]
    assert any(what.startswith(rule) for what in said), said


@pytest.mark.slow
@pytest.mark.parametrize(("violator", "level", "vector", "said"), REFUSED)
def test_the_rule_that_refuses_is_named(
    judged: Judged, violators: Mapping[str, Violation], violator: str, level: str, vector: str, said: str
) -> None:
    with violators[violator].broken() as adapter, pytest.raises((CheckFailed, Unanswered), match=said):
        three_times(judged, adapter, level, vector)


def test_every_violator_is_judged_at_the_level_that_it_claims(violators: Mapping[str, Violation]) -> None:
    registry = load_registry(clauses_directory())
    levels = {name: level_of(violation, registry) for name, violation in violators.items()}
    assert set(levels.values()) == {"deterministic", "fast"}
    assert (levels["tf32"], levels["reordered_products"]) == ("fast", "deterministic")


@pytest.mark.slow
def test_report_and_summary_show_the_rule(tmp_path: Path, run_suite: Callable[..., tuple[Report, str]]) -> None:
    """A fast implementation that claims more than it does: which rule refused, and which accepted its neighbour."""
    report, told = run_suite(
        "py:tessera_conformance.chapters.ir.variants.levels:Quick",
        "deterministic",
        tmp_path,
        "-k",
        "test_golden and fp32 and (sum or softmax)",
        "ir/test_reductions.py",
        "ir/test_softmax.py",
        "--evidence=all",
    )
    failed = [line for line in report.observations if line["verdict"] == "fail"]
    passed = [line for line in report.observations if line["verdict"] == "pass"]
    assert failed, told
    for line in failed:
        refused = [check["what"] for check in line["checks"] if not check["passed"]]
        assert line["reason"].startswith(refused[0])
        assert refused[0].startswith("deterministic: ")
    assert any("within the bound" in check["what"] for line in passed for check in line["checks"])
    assert "deterministic: the declared tree (" in " ".join(told.split())
    assert "deterministic: the same bits when asked again" in _details(tmp_path / "index.html")


def _details(page: Path) -> str:
    """Return the cases as the page of a report shows them."""
    match = re.search(r'id="details">([^<]*)<', page.read_text(encoding="utf-8"))
    assert match is not None
    return "\n".join(gzip.decompress(base64.b64decode(block)).decode() for block in match[1].split("\n"))


# NaN and infinities below the level strict, NaN as other machines have it, accumulators declared too narrow.

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
    said = f"the declared accumulator of {operation}, {accumulator}, is no narrower than the reference's, fp32"
    with pytest.raises(CheckFailed, match=said):
        judged(narrow(honest.OtherBits, operation, of, accumulator), "deterministic", vector)


def test_wider_accumulators_and_those_of_ranks_are_declared_freely(honest: ModuleType, judged: Judged) -> None:
    judged(narrow(honest.OtherBits, "matmul", "bf16", "fp64"), "deterministic", "ir/matmul/bf16/left-fold")
    judged(
        narrow(honest.OtherBits, "all_reduce", "bf16", "bf16"),
        "deterministic",
        "collectives/all_reduce/bf16/sum/ranks-7",
    )
