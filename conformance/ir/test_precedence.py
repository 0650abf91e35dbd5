"""Precedence and associativity, shown by the values of integer expressions (language spec, section 14.2)."""

from math import inf

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import func, module, parameters_of, returning, tensor_of
from tessera_conformance.marks import clause, level

SCALARS = {"a": 17, "b": 5, "c": 3}
MATRICES = {"A": [[1, 2], [3, 4]], "B": [[0, 1], [2, 3]], "C": [[5, -1], [1, 2]]}

LARGE, HUGE = 2.0**25, 2.0**100
"""fp32 has no odd number between 2**24 and 2**25, none that is no multiple of 4 beyond it, and no 2**200."""


def scalar_value(impl, check, expression, result="int32", **values):
    """The value of an expression in a, b and c."""
    inputs = {name: tensor_of("int32", value) for name, value in (SCALARS | values).items()}
    return value_of(impl, check, returning(expression, parameters_of("abc", "int32"), result), **inputs)


def float_value(impl, check, expression, values):
    """The value of an expression in a, b and c of fp32."""
    inputs = {name: tensor_of("fp32", value) for name, value in zip("abc", values, strict=True)}
    return value_of(impl, check, returning(expression, parameters_of("abc", "fp32"), "fp32"), **inputs)


def matrix_value(impl, check, expression):
    """The value of an expression in the matrices A, B and C."""
    inputs = {name: tensor_of("int32", rows) for name, rows in MATRICES.items()}
    return value_of(impl, check, returning(expression, parameters_of("ABC", "tensor<2x2xint32>")), **inputs)


@clause("LANG-14.2-01")
@pytest.mark.parametrize(
    ("expression", "value"),
    [("-successor(b)", -6), ("a * successor(b)", 102), ("successor(b) * a", 102), ("a - successor(b) * c", -1)],
    ids=["after-unary", "right-of-times", "left-of-times", "between"],
)
def test_a_call_binds_tighter_than_every_operator(impl, check, expression, value):
    """An operator beside a call applies to what the call returns."""
    source = module(
        func("return a + 1;", parameters="a: int32", result="int32", name="successor"),
        func(f"return {expression};", parameters=parameters_of("abc", "int32"), result="int32"),
    )
    inputs = {name: tensor_of("int32", number) for name, number in SCALARS.items()}
    check.bits(value_of(impl, check, source, **inputs), tensor_of("int32", value))


@clause("LANG-14.2-01")
def test_a_call_binds_tighter_than_the_matrix_product(impl, check):
    """`A @ twice(B) + C` multiplies A by twice(B) + C."""
    matrix = "tensor<2x2xint32>"
    source = module(
        func("return X + X;", parameters=f"X: {matrix}", result=matrix, name="twice"),
        func("return A @ twice(B) + C;", parameters=parameters_of("ABC", matrix), result=matrix),
    )
    inputs = {name: tensor_of("int32", rows) for name, rows in MATRICES.items()}
    check.bits(value_of(impl, check, source, **inputs), tensor_of("int32", [[15, 17], [35, 35]]))


@clause("LANG-14.2-02")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("-a + b", -12, id="minus-in-a-sum"),
        pytest.param("-a - b", -22, id="minus-in-a-difference"),
        pytest.param("a * -b", -85, id="minus-after-times"),
        pytest.param("a - -b", 22, id="minus-after-minus"),
        pytest.param("a / -c", -5, id="minus-after-division"),
        pytest.param("--a", 17, id="two-minuses"),
        pytest.param("-+a", -17, id="minus-plus"),
        pytest.param("+a - b", 12, id="plus-in-a-difference"),
        pytest.param("a + +b", 22, id="plus-after-plus"),
        pytest.param("+a", 17, id="plus"),
        pytest.param("-(a - b)", -12, id="minus-before-a-group"),
    ],
)
def test_unary_plus_and_minus_bind_tighter_than_binary_operators(impl, check, expression, value):
    """A sign belongs to the operand behind it (AMB-LANG-19)."""
    check.bits(scalar_value(impl, check, expression), tensor_of("int32", value))


@clause("LANG-14.2-02")
def test_unary_minus_binds_tighter_than_division(impl, check):
    """-a / b negates first: the smallest int8 is its own negative, so halving it gives -64 and not 64 (AMB-LANG-90)."""
    source = returning("-a / b", "a: int8, b: int8", "int8")
    value = value_of(impl, check, source, a=tensor_of("int8", -128), b=tensor_of("int8", 2))
    check.bits(value, tensor_of("int8", -64))


@clause("LANG-14.2-02")
@pytest.mark.parametrize("dtype", ["int32", "fp32"])
def test_unary_minus_of_a_matrix_in_a_matrix_product(impl, check, dtype):
    """A sign negates every element; `-A @ B` is the product of -A and B."""
    matrix = f"tensor<2x2x{dtype}>"
    inputs = {name: tensor_of(dtype, MATRICES[name]) for name in "AB"}
    value = value_of(impl, check, returning("-A @ B", parameters_of("AB", matrix), matrix), **inputs)
    check.bits(value, tensor_of(dtype, [[-4, -7], [-8, -15]]))


@clause("LANG-14.2-03", "LANG-02.3-30")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + b * c", 32),
        ("a * b + c", 88),
        ("a - b * c", 2),
        ("a * b - c", 82),
        ("a + b / c", 18),
        ("a / b + c", 6),
        ("a - b / c", 16),
        ("a / b - c", 0),
        ("a + b * c - b / c", 31),
    ],
    ids=[
        "plus-times",
        "times-plus",
        "minus-times",
        "times-minus",
        "plus-division",
        "division-plus",
        "minus-division",
        "division-minus",
        "all-four",
    ],
)
def test_multiplication_and_division_bind_tighter_than_addition_and_subtraction(impl, check, expression, value):
    """Products and quotients are formed before sums and differences, on either side (AMB-LANG-20)."""
    check.bits(scalar_value(impl, check, expression), tensor_of("int32", value))


@clause("LANG-14.2-03")
def test_multiplication_binds_tighter_than_addition_in_tensors(impl, check):
    """Elementwise operators on tensors have the same precedence."""
    check.bits(matrix_value(impl, check, "A + B * C"), tensor_of("int32", [[1, 1], [5, 10]]))


@clause("LANG-14.2-04", "LANG-02.3-30")
@pytest.mark.parametrize(
    ("expression", "value"),
    [("a - b + c", 15), ("a + b - c", 19), ("a - b - c", 9), ("a - b + c - b + c", 13)],
    ids=["minus-plus", "plus-minus", "minus-minus", "five-operands"],
)
def test_addition_and_subtraction_associate_to_the_left(impl, check, expression, value):
    """Sums and differences are formed from left to right, neither before the other (AMB-LANG-20)."""
    check.bits(scalar_value(impl, check, expression), tensor_of("int32", value))


@clause("LANG-14.2-04")
@level("strict", "deterministic")
@pytest.mark.parametrize(
    ("expression", "values", "value"),
    [
        pytest.param("a + b - c", (1.0, LARGE, LARGE), 0.0, id="plus-minus"),
        pytest.param("a - b + c", (1.0, LARGE, LARGE), 0.0, id="minus-plus"),
        pytest.param("a - b - c", (LARGE, 1.0, 1.0), LARGE, id="minus-minus"),
        pytest.param("a + b + c", (LARGE, 2.0, 2.0), LARGE, id="plus-plus"),
        pytest.param("a + b - c + a", (1.0, LARGE, LARGE), 1.0, id="four-operands"),
    ],
)
def test_sums_of_floats_round_from_left_to_right(impl, check, expression, values, value):
    """A grouping from the right is another number, unlike that of integers: beside 2**25 a 1 is lost."""
    check.bits(float_value(impl, check, expression, values), tensor_of("fp32", value))


STEPS = {
    "bf16-times-minus": ("bf16", "a * a - b", (1.0625, 1.125), 0.0),
    "bf16-times-plus": ("bf16", "a * a + b", (1 + 2.0**-7, 2.0**-8), 1 + 2.0**-6),
    "fp16-plus-minus": ("fp16", "a + b - a", (2048.0, 1.0), 0.0),
    "fp16-over-minus": ("fp16", "a / b - c", (1.0, 3.0, 1365 / 4096), 0.0),
    "fp32-times-minus": ("fp32", "a * a - b", (1 + 2.0**-12, 1 + 2.0**-11), 0.0),
}
"""A wider type between the operators, or a fused multiply-add, would give another number."""


@clause("LANG-02.3-61", "LANG-02.3-62", "LANG-02.3-63", "LANG-02.3-64")
@level("strict")
@pytest.mark.parametrize(("dtype", "expression", "values", "expected"), STEPS.values(), ids=STEPS)
def test_every_operator_of_an_expression_rounds(impl, check, dtype, expression, values, expected):
    """A product is rounded to its dtype before it is added, and a quotient before it is subtracted from."""
    inputs = {name: tensor_of(dtype, value) for name, value in zip("abc", values, strict=False)}
    source = returning(expression, parameters_of("".join(inputs), dtype), dtype)
    check.bits(value_of(impl, check, source, **inputs), tensor_of(dtype, expected))


@clause("LANG-14.2-08")
@level("strict", "deterministic")
@pytest.mark.parametrize(
    ("expression", "values", "value"),
    [
        pytest.param("a * b / c", (HUGE, HUGE, HUGE), inf, id="times-division"),
        pytest.param("a / b * c", (1 / HUGE, HUGE, HUGE), 0.0, id="division-times"),
        pytest.param("a / b / c", (HUGE, 1 / HUGE, HUGE), inf, id="division-division"),
        pytest.param("a * b * c", (HUGE, HUGE, 1 / HUGE), inf, id="times-times"),
    ],
)
def test_products_of_floats_round_from_left_to_right(impl, check, expression, values, value):
    """The first two operands leave the range of fp32; grouped from the right nothing does."""
    check.bits(float_value(impl, check, expression, values), tensor_of("fp32", value))


@clause("LANG-14.2-08", "LANG-02.3-30")
@pytest.mark.parametrize(
    ("expression", "value"),
    [("a / b * c", 9), ("a * b / c", 28), ("a / c / c", 1), ("a / b * c / c * b", 15)],
    ids=["division-times", "times-division", "division-division", "five-operands"],
)
def test_multiplication_and_division_associate_to_the_left(impl, check, expression, value):
    """Products and quotients are formed from left to right, neither before the other (AMB-LANG-20)."""
    check.bits(scalar_value(impl, check, expression), tensor_of("int32", value))


@clause("LANG-14.2-05", "LANG-02.3-65")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("A + B @ C", [[8, 5], [32, 9]], id="plus-before"),
        pytest.param("A @ B + C", [[11, 10], [27, 20]], id="plus-after"),
        pytest.param("A - B @ C", [[6, 1], [6, 1]], id="minus-before"),
        pytest.param("A @ B - C", [[-3, 4], [-11, 10]], id="minus-after"),
        pytest.param("A * B @ C", [[2, 4], [42, 18]], id="times-before"),
        pytest.param("A @ B * C", [[4, 11], [8, 21]], id="times-after"),
        pytest.param("A + B @ C - B @ A", [[-13, -16], [-33, -32]], id="chain"),
    ],
)
def test_the_matrix_product_binds_looser_than_addition(impl, check, expression, value):
    """`A + B @ C` is (A + B) @ C: the table of precedence puts the at-sign below plus and minus (AMB-LANG-18)."""
    check.bits(matrix_value(impl, check, expression), tensor_of("int32", value))


@clause("LANG-14.2-06")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + b == c * 7 + 1", True),
        ("a - b < b * c", True),
        ("a > b + c", True),
        ("a / c >= b", True),
        ("a - b <= c", False),
        ("-a != a", True),
        ("(a < b) == (b > a)", True),
    ],
    ids=["eq", "lt", "gt", "ge", "le", "ne", "groups"],
)
def test_comparisons_bind_looser_than_arithmetic(impl, check, expression, value):
    """Both sides of a comparison are computed first (AMB-LANG-20)."""
    check.bits(scalar_value(impl, check, expression, "bool"), tensor_of("bool", value))


@clause("LANG-14.2-06")
@pytest.mark.parametrize(
    ("expression", "value"),
    [("A @ B >= C + A", [[False, True], [True, True]]), ("C < A @ B", [[False, True], [True, True]])],
    ids=["product-left", "product-right"],
)
def test_comparisons_bind_looser_than_the_matrix_product(impl, check, expression, value):
    """The matrix product is formed before it is compared, element by element."""
    check.bits(matrix_value(impl, check, expression), tensor_of("bool", value))


COMPARISONS = ["==", "!=", "<", ">", "<=", ">="]
NAMES = ["eq", "ne", "lt", "gt", "le", "ge"]


@clause("LANG-14.2-09")
@pytest.mark.parametrize("first", COMPARISONS, ids=NAMES)
@pytest.mark.parametrize("second", COMPARISONS, ids=NAMES)
def test_no_comparison_binds_tighter_than_another(impl, check, first, second):
    """Two comparisons in a row are refused (AMB-LANG-20), though one grouping of them would have a type."""
    chains = [
        (f"a {first} b {second} c", "a: int32, b: int32, c: bool"),
        (f"a {first} b {second} c", "a: bool, b: int32, c: int32"),
        (f"a {first} b {second} c", "a: int32, b: int32, c: int32"),
    ]
    check.accepts(impl.language.verify(source=returning("(a < b) == c", "a: int32, b: int32, c: bool", "bool")))
    check.accepts(impl.language.verify(source=returning("a == (b < c)", "a: bool, b: int32, c: int32", "bool")))
    for expression, parameters in chains:
        check.rejects(
            impl.language.verify(source=returning(expression, parameters, "bool")), category=("syntax", "types")
        )
