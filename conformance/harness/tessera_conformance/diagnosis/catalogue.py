"""The catalogue of plausible implementations: each hypothesis is a departure from the reference arithmetic.

A row has the operations to which it applies, a name, the words that an implementer reads, an advice, and a clause.
Names are those of the violators in `conformance/ir/violators` where they mean the same. Of several hypotheses that fit,
the first is named, so simple ones come before special ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tessera_conformance.diagnosis.departure import ORDERS, OWN, TRUNCATED, Departure
from tessera_conformance.diagnosis.kernels import COMPOSED, KERNELS
from tessera_conformance.oracle.elementwise import OPERATIONS as FUNCTIONS
from tessera_conformance.oracle.exact import Rounding

SUMS = frozenset({"sum", "mean", "softmax", "logsumexp", "layer_norm", "rms_norm", "all_reduce"})
PRODUCTS = frozenset({"matmul", "flash_attention", "attention"})
REDUCTIONS = SUMS | PRODUCTS | {"prod"}
NORMALIZATIONS = frozenset({"layer_norm", "rms_norm"})
WITH_SOFTMAX = frozenset({"softmax", "flash_attention", "attention"})
ACTIVATIONS = frozenset({"sigmoid", "silu", "gelu"})
ELEMENTARY = frozenset(FUNCTIONS)
ROUNDED_ONCE = frozenset({"add", "subtract", "multiply", "divide", "scale", "multiply_add", "cast"}) | ELEMENTARY
CHOICES = frozenset({"max", "min", "maximum", "minimum", "relu"})
STEPWISE = REDUCTIONS | ACTIVATIONS
COMPUTED = STEPWISE | ROUNDED_ONCE
ANY: frozenset[str] = frozenset()
"""Every operation of the oracle."""

ORDER, ACCUMULATION, MAXIMUM, ONE_ROUNDING = "LANG-10-06", "LANG-10-01", "LANG-10-03", "LANG-02-04"
SHAPES, APPROXIMATION = "LANG-02-04", "LANG-10-11"
GEMM = "LANG-10-02"

ACROSS_OPERATIONS = (ORDER, ACCUMULATION, MAXIMUM, APPROXIMATION, GEMM)
"""Clauses about many operations, whose cases need not be tagged with them."""

NARROWER = ("fp16", "bf16", "tf32", "fp8_e5m2", "fp8_e4m3")
TILES = (4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Hypothesis:
    """A plausible implementation of some operations; `says` ends a sentence that begins with `verb`."""

    name: str
    operations: frozenset[str]
    says: str
    advice: str
    clause: str
    departure: Departure
    only: str = ""
    """The dtype of the operands, if the hypothesis is about one only."""
    verb: str = "bits equal "

    def applies(self, operation: str) -> bool:
        """True if it is about an operation."""
        return operation in self.operations or self.operations == ANY


def catalogue() -> Sequence[Hypothesis]:
    """Return every hypothesis, simple ones first."""
    families = (_orders, _formulas, _accumulators, _operands, _roundings, _ranges, _choices, _layouts, _tails)
    return [Hypothesis(*row) for family in families for row in family()]


Rows: TypeAlias = Iterable[tuple[Any, ...]]
"""The fields of hypotheses."""


def _orders() -> Rows:
    """Yield orders of addition, with the start of their sums."""
    declare = "or claim the level deterministic and declare this order"
    for name, order in ORDERS.items():
        says = f"{order.words}{',' if ',' in order.words else ''} in {{accumulator}}"
        is_tensor_core = name.startswith("tensor_core")
        # numpy starts from +0, and tensor cores do not round products
        start, product = "zero" if name == "numpy" else "", "fused" if is_tensor_core else ""
        departure = Departure(order=name, start=start, product=product)
        if name != "fold":
            yield name, PRODUCTS, says, f"add in a left fold from +0, {declare}", ORDER, departure
        if name != "pairwise" and not is_tensor_core:
            yield name, SUMS | {"prod"}, says, f"add pairwise, {declare}", ORDER, departure
    says = "sums that begin with the first product and not with +0"
    yield "unstarted", PRODUCTS, says, "begin with +0", ORDER, Departure(start="none")
    says = "sums that begin with +0 and not with the first term"
    yield "started", SUMS, says, "begin with the first term", ORDER, Departure(start="zero")


def _formulas() -> Rows:
    rows = (
        ("no_maximum", WITH_SOFTMAX | {"logsumexp"}, "exponentials of which no maximum is subtracted",
         "subtract the maximum of each row", MAXIMUM),
        ("maximum_of_all", frozenset({"softmax"}), "exponentials less the maximum of the whole tensor",
         "subtract the maximum of each row", MAXIMUM),
        ("times_reciprocal", WITH_SOFTMAX | NORMALIZATIONS | {"mean", "divide"},
         "a product with the rounded reciprocal instead of a quotient", "divide", ACCUMULATION),
        ("exp_by_exp2", WITH_SOFTMAX, "exp(x) taken as exp2(x log2 e), every step rounded in {accumulator}",
         "round the exponential once", APPROXIMATION),
        ("last_axis", frozenset({"softmax"}) | NORMALIZATIONS, "the last axis whatever axis is asked for",
         "go along the axis of the call", SHAPES),
        ("first_axis", frozenset({"softmax"}) | NORMALIZATIONS, "the first axis whatever axis is asked for",
         "go along the axis of the call", SHAPES),
        ("mean_of_squares", frozenset({"layer_norm"}), "the mean of squares less the square of the mean as variance",
         "take the mean of squared differences", ACCUMULATION),
        ("unbiased", NORMALIZATIONS, "a variance divided by n - 1", "divide by the number of elements", SHAPES),
        ("epsilon_outside", NORMALIZATIONS, "an epsilon that is added to the root", "add it below the root", SHAPES),
        ("divided", NORMALIZATIONS, "a quotient by sqrt(variance + epsilon)", "multiply by rsqrt", APPROXIMATION),
        ("root_then_reciprocal", NORMALIZATIONS, "1 / sqrt(variance + epsilon), rounded twice",
         "round rsqrt once", APPROXIMATION),
        ("floor", frozenset({"divide"}), "integer quotients rounded down", "truncate toward zero", "LANG-02.3-64"),
        ("wide_literal", frozenset({"scale"}), "a literal factor that is not rounded to the operands' dtype",
         "round the literal to the operands' dtype first", "LANG-02.3-63"),
        ("fp32_literal", frozenset({"scale"}), "a literal factor rounded to fp32", "round it to the operands' dtype",
         "LANG-02.3-63"),
        ("nearest", frozenset({"cast"}), "floats rounded to the nearest integer", "truncate toward zero", SHAPES),
        ("floor", frozenset({"cast"}), "floats rounded down to integers", "truncate toward zero", SHAPES),
        ("wraps", frozenset({"cast"}), "floats beyond an integer's range wrapped", "take the nearest end", SHAPES),
        ("of_positive_power", frozenset({"sigmoid", "silu"}), "exp(x) / (1 + exp(x))", "compute 1 / (1 + exp(-x))",
         ONE_ROUNDING),
        ("by_tanh", frozenset({"sigmoid", "silu"}), "0.5 (1 + tanh(x / 2))", "compute 1 / (1 + exp(-x))", ONE_ROUNDING),
        ("divided", frozenset({"silu"}), "x / (1 + exp(-x))", "compute x * sigmoid(x)", ONE_ROUNDING),
        ("other_form", frozenset({"gelu"}), "the other form of gelu, tanh for erf or erf for tanh",
         "take the form that is asked for", ONE_ROUNDING),
        ("by_logarithm", frozenset({"pow"}), "exp(y log x), every step rounded", "round once", APPROXIMATION),
        ("last", frozenset({"argmax"}), "the last of several largest elements", "take the first", SHAPES),
        ("equal_zeros", frozenset({"argmax"}), "-0 and +0 as equal", "order -0 below +0", SHAPES),
        ("last_of_equal_zeros", frozenset({"argmax"}), "the last of several largest elements, -0 and +0 as equal",
         "take the first, and order -0 below +0", SHAPES),
        ("from_zero", frozenset({"negate"}), "0 - x, which loses -0", "flip the sign bit", "LANG-14.2-02"),
    )  # fmt: skip
    for name, operations, says, advice, clause in rows:
        yield name, operations, says, advice, clause, Departure(form=name)
    composed = frozenset(name for name, form in COMPOSED if form == "composed")
    says = "the function made of other functions, every step rounded"
    yield "composed", composed, says, "round once", APPROXIMATION, Departure(form="composed")
    departure = Departure(form="composed", accumulator="fp32")
    yield "composed_in_fp32", composed, f"{says} in fp32", "round the exact value", APPROXIMATION, departure


def _accumulators() -> Rows:
    advice, folds = "accumulate in {right_accumulator}", "accumulate in {right_accumulator}, pairwise"
    own = "sums and steps rounded to the operands' own dtype"
    yield "own_accumulator", STEPWISE, own, advice, ACCUMULATION, Departure(accumulator=OWN)
    for dtype in ("fp64", "fp32", "bf16", "fp16", "int64", "int32", "int16"):
        says = f"an accumulator of {dtype}"
        yield f"{dtype}_accumulator", STEPWISE, says, advice, ACCUMULATION, Departure(accumulator=dtype)
        says, departure = f"a left fold in {says}", Departure(accumulator=dtype, order="fold")
        yield f"fold_in_{dtype}", SUMS | {"prod"}, says, folds, ACCUMULATION, departure
    yield from (
        ("fused", PRODUCTS | {"multiply_add"}, "products that are not rounded (fused multiply-add)",
         "round each product before it is added", GEMM, Departure(product="fused")),
        ("own_products", PRODUCTS, "products rounded to the operands' own dtype",
         "round products to {right_accumulator} only", GEMM, Departure(product=OWN)),
        ("fused_fp64", PRODUCTS, "exact products added in fp64 and rounded once at the end", advice, GEMM,
         Departure(product="fused", accumulator="fp64")),
    )  # fmt: skip


def _operands() -> Rows:
    as_they_are, uncast = "take operands as they are", COMPUTED - {"cast"}
    for dtype in ("fp32", *NARROWER):
        says = f"results rounded to {dtype} first (rounded twice)"
        yield f"{dtype}_between", COMPUTED, says, "round once", ONE_ROUNDING, Departure(through=dtype)
    for dtype in NARROWER:
        says, departure = f"operands rounded to {dtype} first", Departure(operands=dtype)
        yield f"{dtype}_operands", uncast, says, as_they_are, ONE_ROUNDING, departure
    ten_bits = "round the factors of tf32 to ten fraction bits"
    yield from (
        ("fp32_for_fp64", uncast, "fp64 computed in fp32", "compute fp64 in fp64", ONE_ROUNDING,
         Departure(operands="fp32", accumulator="fp32", through="fp32"), "fp64"),
        ("own_between", PRODUCTS, "results rounded to the operands' own dtype first (rounded twice)", "round once",
         ONE_ROUNDING, Departure(through=OWN)),
        ("tf32_unrounded", PRODUCTS, "tf32 operands taken with all bits of fp32", ten_bits, ONE_ROUNDING,
         Departure(operands="fp32"), "tf32"),
        ("tf32_truncated", PRODUCTS, "tf32 operands cut off after ten fraction bits", ten_bits, ONE_ROUNDING,
         Departure(operands=TRUNCATED), "tf32"),
    )  # fmt: skip


def _roundings() -> Rows:
    rows: tuple[tuple[str, Rounding, str], ...] = (
        ("truncated", "toward_zero", "toward zero"),
        ("half_away", "nearest_away", "to nearest with ties away from zero"),
        ("rounded_up", "up", "up"),
        ("rounded_down", "down", "down"),
    )
    advice = "round to nearest, ties to even"
    for name, to, words in rows:
        yield f"{name}_results", COMPUTED, f"results rounded {words}", advice, ONE_ROUNDING, Departure(result=to)
        yield f"{name}_sums", STEPWISE, f"every step rounded {words}", advice, ACCUMULATION, Departure(steps=to)
        says, both = f"every step and the result rounded {words}", Departure(steps=to, result=to)
        yield f"{name}_everywhere", STEPWISE, says, advice, ACCUMULATION, both


def _ranges() -> Rows:
    for name, words in (
        ("operands", "subnormal operands taken for zero"),
        ("results", "subnormal results flushed to zero"),
        ("both", "subnormal operands and results flushed to zero"),
        ("steps", "subnormal results of every step flushed to zero"),
    ):
        operations = STEPWISE if name == "steps" else ANY
        yield f"flushed_{name}", operations, words, "keep subnormal numbers", ONE_ROUNDING, Departure(flushed=name)
    overflow, signs = "overflow to infinity, and wrap integers", "keep the sign of zero"
    positive = "zeros that are never negative"
    yield from (
        ("saturated", COMPUTED, "the largest number where a result overflows to infinity", overflow, ONE_ROUNDING,
         Departure(overflow="saturate")),
        ("saturated_infinities", COMPUTED, "the largest number where a result is infinite", overflow, ONE_ROUNDING,
         Departure(overflow="saturate_all")),
        ("unsaturated", COMPUTED, "infinity or NaN where a result exceeds fp8", "saturate to the largest number",
         ONE_ROUNDING, Departure(overflow="nonfinite")),
        ("lost_signs", frozenset(KERNELS), positive, signs, ONE_ROUNDING, Departure(signs="results")),
        ("lost_signs_of_steps", frozenset(KERNELS), f"{positive} before the last rounding", signs, ONE_ROUNDING,
         Departure(signs="steps")),
    )  # fmt: skip


def _choices() -> Rows:
    better, propagate = "compares better (NaN, zeros)", "propagate NaN, and order -0 below +0"
    rows = (
        ("nan_ignored", CHOICES | {"argmax"}, "a number where NaN meets a number", "propagate NaN"),
        ("first_unless_better", CHOICES, f"the first operand unless the second {better}", propagate),
        ("second_unless_better", CHOICES, f"the second operand unless the first {better}", propagate),
        ("from_zero", frozenset({"max", "min"}), "an extreme that starts from zero", "start from the first element"),
    )
    for name, operations, says, advice in rows:
        yield name, operations, says, advice, SHAPES, Departure(form=name)


def _layouts() -> Rows:
    for name, says in (
        ("left", "the left operand read column by column"),
        ("right", "the right operand read column by column"),
        ("both", "both operands read column by column"),
        ("result", "the result written column by column"),
    ):
        yield f"{name}_by_columns", ANY, says, "go row by row", "LANG-05.2-02", Departure(layout=name)


def _tails() -> Rows:
    for size in (2, *TILES):
        says, departure = f"sums without the terms beyond a multiple of {size}", Departure(tail=("terms", size))
        advice, operations = "add the terms of the last, partial tile too", REDUCTIONS | {"max", "min"}
        yield f"terms_without_tail_of_{size}", operations, says, advice, ACCUMULATION, departure
    for size in TILES:
        says = f"zero in the elements of each row beyond a multiple of {size}"
        departure, advice = Departure(tail=("results", size)), "write the last, partial tile too"
        yield f"results_without_tail_of_{size}", ANY, says, advice, SHAPES, departure
