"""The catalogue of plausible implementations: each hypothesis is a departure from the reference arithmetic.

A row has the operations to which it applies, a name, the words that an implementer reads, an advice, and a clause.
Names are those of the violators in `conformance/ir/violators` where they mean the same. Of several hypotheses that fit,
the first is named, so simple ones come before special ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tessera_conformance.diagnosis.departure import ORDERS, OWN, TRUNCATED, Departure
from tessera_conformance.diagnosis.kernels import COMPOSED, KERNELS
from tessera_conformance.oracle.elementwise import OPERATIONS as FUNCTIONS

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

FAMILIES: Mapping[str, frozenset[str]] = {
    "sums": SUMS,
    "products": PRODUCTS,
    "activations": ACTIVATIONS,
    "operators": ROUNDED_ONCE - ELEMENTARY,
    "functions": ELEMENTARY,
    "choices": CHOICES,
}
"""The operations of a table by families."""

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
    verb: str = "bits equal "
    only: str = ""
    """The dtype of the operands, if the hypothesis is about one only."""

    def applies(self, operation: str) -> bool:
        """True if it is about an operation."""
        return operation in self.operations or self.operations == ANY


def catalogue() -> Sequence[Hypothesis]:
    """Return every hypothesis, simple ones first."""
    return [
        *_orders(),
        *_formulas(),
        *_accumulators(),
        *_operands(),
        *_roundings(),
        *_ranges(),
        *_choices(),
        *_layouts(),
        *_tails(),
    ]


def _orders() -> Iterator[Hypothesis]:
    """Yield orders of addition, with the start of their sums."""
    usual = {"matmul": "fold", "flash_attention": "fold", "attention": "fold"}
    advices = {
        True: "add in a left fold from +0, or claim the level deterministic and declare this order",
        False: "add pairwise, or claim the level deterministic and declare this order",
    }
    for name, order in ORDERS.items():
        says = f"{order.words}{',' if ',' in order.words else ''} in {{accumulator}}"
        for folds, operations in ((True, PRODUCTS), (False, SUMS | {"prod"})):
            right = frozenset(operation for operation in operations if usual.get(operation, "pairwise") == name)
            if name.startswith("tensor_core"):
                right = operations - PRODUCTS
            if operations - right:
                departure = _ordered(name)
                yield Hypothesis(name, operations - right, says, advices[folds], ORDER, departure)
    says, departure = "sums that begin with the first product and not with +0", Departure(start="none")
    yield Hypothesis("unstarted", PRODUCTS, says, "begin with +0", ORDER, departure)
    says, departure = "sums that begin with +0 and not with the first term", Departure(start="zero")
    yield Hypothesis("started", SUMS, says, "begin with the first term", ORDER, departure)


def _ordered(name: str) -> Departure:
    """Return the departure of an order: numpy starts from +0, and tensor cores do not round products."""
    if name.startswith("tensor_core"):
        return Departure(order=name, product="fused")
    return Departure(order=name, start="zero" if name == "numpy" else "")


def _formulas() -> Iterator[Hypothesis]:
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
        ("from_zero", frozenset({"negate"}), "0 - x, which loses -0", "flip the sign bit", "LANG-14.2-02"),
    )  # fmt: skip
    for name, operations, says, advice, clause in rows:
        yield Hypothesis(name, operations, says, advice, clause, Departure(form=name))
    composed = frozenset(name for name, _ in COMPOSED)
    says = "the function made of other functions, every step rounded"
    yield Hypothesis("composed", composed, says, "round once", APPROXIMATION, Departure(form="composed"))
    says = f"{says} in fp32"
    departure = Departure(form="composed", accumulator="fp32")
    yield Hypothesis("composed_in_fp32", composed, says, "round the exact value", APPROXIMATION, departure)


def _accumulators() -> Iterator[Hypothesis]:
    narrow = "sums and steps rounded to the operands' own dtype"
    advice = "accumulate in {right_accumulator}"
    yield Hypothesis("own_accumulator", STEPWISE, narrow, advice, ACCUMULATION, Departure(accumulator=OWN))
    for dtype in ("fp64", "fp32", "bf16", "fp16", "int64", "int32", "int16"):
        says = f"an accumulator of {dtype}"
        departure = Departure(accumulator=dtype)
        yield Hypothesis(f"{dtype}_accumulator", STEPWISE, says, advice, ACCUMULATION, departure)
        yield from _wide_orders(dtype)
    fused = Departure(product="fused")
    says, advice = "products that are not rounded (fused multiply-add)", "round each product before it is added"
    yield Hypothesis("fused", PRODUCTS | {"multiply_add"}, says, advice, GEMM, fused)
    says, advice = "products rounded to the operands' own dtype", "round products to {right_accumulator} only"
    yield Hypothesis("own_products", PRODUCTS, says, advice, GEMM, Departure(product=OWN))
    says = "exact products added in fp64 and rounded once at the end"
    departure = Departure(product="fused", accumulator="fp64")
    yield Hypothesis("fused_fp64", PRODUCTS, says, "accumulate in {right_accumulator}", GEMM, departure)


def _wide_orders(dtype: str) -> Iterator[Hypothesis]:
    """Yield left folds in another accumulator, for sums whose right order is another one."""
    says, departure = f"a left fold in an accumulator of {dtype}", Departure(accumulator=dtype, order="fold")
    advice = "accumulate in {right_accumulator}, pairwise"
    yield Hypothesis(f"fold_in_{dtype}", SUMS | {"prod"}, says, advice, ACCUMULATION, departure)


def _operands() -> Iterator[Hypothesis]:
    for dtype in ("fp32", *NARROWER):
        says, departure = f"results rounded to {dtype} first (rounded twice)", Departure(through=dtype)
        yield Hypothesis(f"{dtype}_between", COMPUTED, says, "round once", ONE_ROUNDING, departure)
    for dtype in NARROWER:
        says, departure = f"operands rounded to {dtype} first", Departure(operands=dtype)
        operations = COMPUTED - {"cast"}
        yield Hypothesis(f"{dtype}_operands", operations, says, "take operands as they are", ONE_ROUNDING, departure)
    says, departure = "fp64 computed in fp32", Departure(operands="fp32", accumulator="fp32", through="fp32")
    operations = COMPUTED - {"cast"}
    advice = "compute fp64 in fp64"
    yield Hypothesis("fp32_for_fp64", operations, says, advice, ONE_ROUNDING, departure, only="fp64")
    says, departure = "results rounded to the operands' own dtype first (rounded twice)", Departure(through=OWN)
    yield Hypothesis("own_between", PRODUCTS, says, "round once", ONE_ROUNDING, departure)
    says, advice = "tf32 operands taken with all bits of fp32", "round the factors of tf32 to ten fraction bits"
    departure = Departure(operands="fp32")
    yield Hypothesis("tf32_unrounded", PRODUCTS, says, advice, ONE_ROUNDING, departure, only="tf32")
    says, departure = "tf32 operands cut off after ten fraction bits", Departure(operands=TRUNCATED)
    yield Hypothesis("tf32_truncated", PRODUCTS, says, advice, ONE_ROUNDING, departure, only="tf32")


def _roundings() -> Iterator[Hypothesis]:
    rows = (
        ("truncated", "toward_zero", "toward zero"),
        ("half_away", "nearest_away", "to nearest with ties away from zero"),
        ("rounded_up", "up", "up"),
        ("rounded_down", "down", "down"),
    )
    advice = "round to nearest, ties to even"
    for name, rounding, words in rows:
        says = f"results rounded {words}"
        yield Hypothesis(f"{name}_results", COMPUTED, says, advice, ONE_ROUNDING, Departure(result=rounding))  # type: ignore[arg-type]
        says = f"every step rounded {words}"
        yield Hypothesis(f"{name}_sums", STEPWISE, says, advice, ACCUMULATION, Departure(steps=rounding))  # type: ignore[arg-type]
        says, both = f"every step and the result rounded {words}", Departure(steps=rounding, result=rounding)  # type: ignore[arg-type]
        yield Hypothesis(f"{name}_everywhere", STEPWISE, says, advice, ACCUMULATION, both)


def _ranges() -> Iterator[Hypothesis]:
    advice = "keep subnormal numbers"
    for name, words in (
        ("operands", "subnormal operands taken for zero"),
        ("results", "subnormal results flushed to zero"),
        ("both", "subnormal operands and results flushed to zero"),
        ("steps", "subnormal results of every step flushed to zero"),
    ):
        operations = STEPWISE if name == "steps" else ANY
        yield Hypothesis(f"flushed_{name}", operations, words, advice, ONE_ROUNDING, Departure(flushed=name))
    says, advice = "the largest number where a result overflows to infinity", "overflow to infinity, and wrap integers"
    yield Hypothesis("saturated", COMPUTED, says, advice, ONE_ROUNDING, Departure(overflow="saturate"))
    says, departure = "the largest number where a result is infinite", Departure(overflow="saturate_all")
    yield Hypothesis("saturated_infinities", COMPUTED, says, advice, ONE_ROUNDING, departure)
    says, advice = "infinity or NaN where a result exceeds fp8", "saturate to the largest number"
    yield Hypothesis("unsaturated", COMPUTED, says, advice, ONE_ROUNDING, Departure(overflow="nonfinite"))
    says, advice = "zeros that are never negative", "keep the sign of zero"
    yield Hypothesis("lost_signs", frozenset(KERNELS), says, advice, ONE_ROUNDING, Departure(signs="results"))
    says, departure = f"{says} before the last rounding", Departure(signs="steps")
    yield Hypothesis("lost_signs_of_steps", frozenset(KERNELS), says, advice, ONE_ROUNDING, departure)


def _choices() -> Iterator[Hypothesis]:
    rows = (
        ("nan_ignored", CHOICES | {"argmax"}, "a number where NaN meets a number", "propagate NaN"),
        ("first_unless_better", CHOICES, "the first operand unless the second compares better (NaN, zeros)",
         "propagate NaN, and order -0 below +0"),
        ("second_unless_better", CHOICES, "the second operand unless the first compares better (NaN, zeros)",
         "propagate NaN, and order -0 below +0"),
        ("from_zero", frozenset({"max", "min"}), "an extreme that starts from zero", "start from the first element"),
    )  # fmt: skip
    for name, operations, says, advice in rows:
        yield Hypothesis(name, operations, says, advice, SHAPES, Departure(form=name))


def _layouts() -> Iterator[Hypothesis]:
    rows = (
        ("left", "the left operand read column by column"),
        ("right", "the right operand read column by column"),
        ("both", "both operands read column by column"),
        ("result", "the result written column by column"),
    )
    for name, says in rows:
        yield Hypothesis(f"{name}_by_columns", ANY, says, "go row by row", "LANG-05.2-02", Departure(layout=name))


def _tails() -> Iterator[Hypothesis]:
    for size in (2, *TILES):
        says, departure = f"sums without the terms beyond a multiple of {size}", Departure(tail=("terms", size))
        advice = "add the terms of the last, partial tile too"
        operations = REDUCTIONS | {"max", "min"}
        yield Hypothesis(f"terms_without_tail_of_{size}", operations, says, advice, ACCUMULATION, departure)
    for size in TILES:
        says = f"zero in the elements of each row beyond a multiple of {size}"
        departure, advice = Departure(tail=("results", size)), "write the last, partial tile too"
        yield Hypothesis(f"results_without_tail_of_{size}", ANY, says, advice, SHAPES, departure)


def catalogue_table() -> Iterator[str]:
    """Yield the hypotheses as lines of a Markdown table; those that differ in a number, such as a size, share a row."""
    yield "| hypothesis | operations | the answer has the bits of | clause |"
    yield "|---|---|---|---|"
    families: dict[tuple[str, str], list[Hypothesis]] = {}
    for departure in catalogue():
        families.setdefault((_with_n(departure.name), _with_n(departure.says)), []).append(departure)
    for (name, says), members in families.items():
        numbers = list(dict.fromkeys(number for member in members for number in _NUMBER.findall(member.name)))
        if len({member.name for member in members}) == 1:
            name, says, numbers = members[0].name, members[0].says, []
        sizes = f", N = {', '.join(numbers)}" if numbers else ""
        words = says.format(accumulator="the accumulator", right_accumulator="the accumulator")
        operations = frozenset().union(*(member.operations for member in members))
        yield f"| `{name}`{sizes} | {_operations(operations)} | {words} | {members[0].clause} |"


_NUMBER = re.compile(r"(?<![a-z\d])\d+(?![a-z\d])")


def _with_n(text: str) -> str:
    return _NUMBER.sub("N", text)


def _operations(operations: frozenset[str]) -> str:
    """Return the operations by the names of families, as far as these cover them."""
    if operations == ANY:
        return "all"
    names = []
    for name, family in FAMILIES.items():
        if family <= operations:
            names.append(name)
            operations -= family
    return ", ".join([*names, *sorted(operations)])
