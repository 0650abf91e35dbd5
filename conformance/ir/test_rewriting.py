"""No expression is replaced by one that equals it for real numbers only (language spec, sections 2.3, 8.2 and 10).

Compilers know the identities of algebra: x + 0 is x, x - x is 0, a cast and its opposite are nothing. Each fails for
some value of a dtype: a zero with a sign, an infinity, a NaN, a number that a step rounds. The rows have such a value.
"""

from __future__ import annotations

from math import inf, nan

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import program, tensor_of, type_of
from tessera_conformance.marks import clause, feature, level

HUGE, TINY = 2.0**100, 2.0**-100
STEP = 2.0**-23
"""The distance of 1 from the next number of fp32."""

PLUS, MINUS, TIMES, OVER = (f"LANG-02.3-{number}" for number in (61, 62, 63, 64))

OPERATORS = {
    "times-zero": (TIMES, "a * 0.0", [inf], nan),
    "times-zero-of-a-negative": (TIMES, "a * 0.0", [-1.0], -0.0),
    "plus-zero": (PLUS, "a + 0.0", [-0.0], 0.0),
    "from-zero": (MINUS, "0.0 - a", [0.0], 0.0),
    "minus-itself": (MINUS, "a - a", [inf], nan),
    "over-itself": (OVER, "a / a", [0.0], nan),
    "over-a-number": (OVER, "a / 3.0", [5.0], 13981013 * STEP),
    "plus-two-numbers": (PLUS, "a + 1.0 + 1.0", [2.0**24], 2.0**24),
    "plus-a-product": (PLUS, "a * b + c", [1 + 2.0**-12, 1 + 2.0**-12, -1 - 2.0**-11], 0.0),
    "minus-a-product": (MINUS, "c - a * b", [1 + 2.0**-12, 1 + 2.0**-12, 1 + 2.0**-11], 0.0),
    "common-factor": (PLUS, "a * b + a * c", [HUGE, HUGE, -HUGE], nan),
    "negated-difference": ("LANG-14.2-02", "-(a - b)", [1.0, 1.0], -0.0),
    "equal-to-itself": ("LANG-02.3-66", "a == a", [nan], False),
    "unequal-to-itself": ("LANG-02.3-67", "a != a", [nan], True),
    "at-most-itself": ("LANG-02.3-70", "a <= a", [nan], False),
    "at-least-itself": ("LANG-02.3-71", "a >= a", [nan], False),
}
"""The clause, an expression of scalars a, b and c of fp32, their values, and the result."""

FUNCTIONS = {
    "log-of-exp": ("op.log(op.exp(a))", [100.0], inf),
    "root-of-a-square": ("op.sqrt(a * a)", [HUGE], inf),
    "product-of-exponentials": ("op.exp(a) * op.exp(b)", [100.0, -200.0], nan),
    "power-of-a-half": ("op.pow(a, 0.5)", [-inf], inf),
    "power-of-a-half-of-zero": ("op.pow(a, 0.5)", [-0.0], 0.0),
    "third-power": ("op.pow(a, 3.0)", [1 + 149 * 2.0**-20], 8392185 * STEP),
    "one-over-a-root": ("1.0 / op.sqrt(a)", [6.0], 13698539 * 2.0**-25),
}
"""An expression of scalars a and b of fp32, their values, and the result."""

TWICE = "op.cast(op.cast(a, dtype=fp32), dtype=bf16)"
CASTS = {
    "there-and-back": ("fp32", "op.cast(op.cast(a, dtype=bf16), dtype=fp32)", 1 + 2.0**-10, 1.0),
    "through-a-range": ("fp32", "op.cast(op.cast(a, dtype=fp16), dtype=fp32)", 2.0**20, inf),
    "to-an-integer-and-back": ("fp32", "op.cast(op.cast(a, dtype=int32), dtype=fp32)", -2.5, -2.0),
    "to-nothing-and-back": ("fp32", "op.cast(op.cast(a, dtype=int32), dtype=fp32)", -0.5, 0.0),
    "two-roundings": ("fp64", f"op.cast({TWICE}, dtype=fp64)", 1 + 2.0**-8 + 2.0**-40, 1.0),
}
"""The dtype of a scalar a and of the result, an expression, the value of a, and the result."""

INTEGERS = {"halves": ("a / 2", -7, -3), "quarters": ("a / 4", -1, 0), "sixteenths": ("a / 16", -33, -2)}
"""An expression of a scalar a of int32, its value, and the result: no shift of bits."""


def gives(impl, check, expression, dtype, values, expected):
    """Check the value of an expression of scalars a, b and c."""
    inputs = {name: tensor_of(dtype, value) for name, value in zip("abc", values, strict=False)}
    result = tensor_of("bool" if isinstance(expected, bool) else dtype, expected)
    parameters = ", ".join(f"{name}: {dtype}" for name in inputs)
    source = program(f"return {expression};", parameters=parameters, result=type_of(result))
    check.bits(value_of(impl, check, source, **inputs), result, expression)


@level("strict")
@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [pytest.param(*row, id=name, marks=clause(tag)) for name, (tag, *row) in OPERATORS.items()],
)
def test_operators_are_applied_as_written(impl, check, expression, values, expected):
    """A literal or an equal operand removes no operator, and no two of them become one."""
    gives(impl, check, expression, "fp32", values, expected)


@clause("LANG-02.3-64")
@pytest.mark.parametrize(("expression", "value", "expected"), INTEGERS.values(), ids=INTEGERS)
def test_an_integer_over_a_power_of_two_is_truncated(impl, check, expression, value, expected):
    """The quotient of a negative integer by a literal goes toward zero (AMB-LANG-55)."""
    gives(impl, check, expression, "int32", [value], expected)


@clause("LANG-10-11", "LANG-02-04")
@level("strict")
@feature("elementary-functions")
@pytest.mark.parametrize(("expression", "values", "expected"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_are_applied_as_written(impl, check, expression, values, expected):
    """Neither inverse functions nor powers are replaced, and each function rounds."""
    gives(impl, check, expression, "fp32", values, expected)


@clause("LANG-02-04", "LANG-03.1-05")
@level("strict", "deterministic")
@feature("casts")
@pytest.mark.parametrize(("dtype", "expression", "value", "expected"), CASTS.values(), ids=CASTS)
def test_a_cast_of_a_cast_is_two(impl, check, dtype, expression, value, expected):
    """The dtype between them rounds or truncates (AMB-LANG-105)."""
    gives(impl, check, expression, dtype, [value], expected)


@clause("LANG-10-11", "LANG-02-04")
@level("strict")
@feature("elementary-functions")
def test_a_root_times_itself_is_no_inverse(impl, check):
    """The root of a negative number is NaN, and so is its square."""
    source = program("let s: fp32 = op.sqrt(a);", "return s * s;", parameters="a: fp32", result="fp32")
    check.bits(value_of(impl, check, source, a=tensor_of("fp32", -1.0)), tensor_of("fp32", nan))


@clause("LANG-02-04", "LANG-02.3-68")
@level("strict", "deterministic")
@feature("tensor-ops")
@pytest.mark.parametrize(
    ("left", "right"), [(nan, 1.0), (1.0, nan), (0.0, -0.0)], ids=["nan-first", "nan-last", "zeros"]
)
def test_a_choice_by_a_comparison_is_no_minimum(impl, check, left, right):
    """Nothing is less than a NaN, nor -0 less than +0: the second number is chosen (AMB-LANG-90)."""
    gives(impl, check, "op.select(a < b, a, b)", "fp32", [left, right], right)


TRANSPOSED = "op.transpose(op.transpose(X, perm=[1, 2, 0]), perm=[0, 2, 1])"
SUMMED = "op.sum(op.broadcast(X, shape=[11]), axis=0)"


def on_tensors(impl, check, expression, expected, **inputs):
    """Check the value of an expression of tensors."""
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = program(f"return {expression};", parameters=parameters, result=type_of(expected))
    check.bits(value_of(impl, check, source, **inputs), expected)


@clause("LANG-02-04", "LANG-03.2-01")
@feature("tensor-ops")
def test_a_transpose_of_a_transpose_is_two(impl, check):
    """Three axes in turn, then the last two: axis i of the result is axis perm[i] of the operand."""
    rows = [[[100 * i + 10 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
    expected = [[[100 * i + 10 * j + k for k in range(4)] for i in range(2)] for j in range(3)]
    on_tensors(impl, check, TRANSPOSED, tensor_of("int32", expected), X=tensor_of("int32", rows))


@clause("LANG-10-06", "LANG-14.2-05")
@level("strict")
def test_a_product_of_three_matrices_is_formed_from_the_left(impl, check):
    """The first product leaves the range of fp32; grouped from the right none does."""
    a, b, c = (tensor_of("fp32", [[value]]) for value in (HUGE, HUGE, TINY))
    on_tensors(impl, check, "A @ B @ C", tensor_of("fp32", [[inf]]), A=a, B=b, C=c)


@clause("LANG-10-06", "LANG-02-04")
@level("strict")
@feature("reductions", "tensor-ops")
def test_a_sum_of_equal_numbers_is_no_product(impl, check):
    """Eleven times 1 + u in pairs: 3 + 3u becomes 3 + 4u, and 11 + 12u becomes 11 + 16u; 11 + 11u would be 11 + 8u."""
    on_tensors(impl, check, SUMMED, tensor_of("fp32", 11 + 16 * STEP), X=tensor_of("fp32", [1 + STEP]))
