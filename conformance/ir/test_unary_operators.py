"""Unary operators where their place shows in a bit: signs of zeros, and the tree that is printed (language spec, 14.2).

A sign that is taken off zero, or put before a product instead of its first factor, leaves +0 where -0 belongs.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import lowered, results_of_text
from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import func, module, parameters_of, tensor_of
from tessera_conformance.marks import clause, feature

DTYPES = ["fp64", "fp32", "fp16", "bf16"]
SCALARS = {"a": 0.0, "b": 2.0, "c": -0.0}
MATRICES = {"M": [[0.0, 0.0], [1.0, 0.0]], "N": [[1.0, 2.0], [0.0, 1.0]]}
INF = float("inf")

SCALAR_VALUES = {
    "-a": -0.0,
    "-c": 0.0,
    "+c": -0.0,
    "+a": 0.0,
    "--a": 0.0,
    "--c": -0.0,
    "-+a": -0.0,
    "+-a": -0.0,
    "++c": -0.0,
    "-a + a": 0.0,
    "a + -a": 0.0,
    "-a - a": -0.0,
    "c - -c": -0.0,
    "c + +c": -0.0,
    "-a * b": -0.0,
    "a * -b": -0.0,
    "-a / b": -0.0,
    "a / -b": -0.0,
    "b / -a": -INF,
    "-b / c": INF,
    "-(a + c)": -0.0,
    "-(a * b)": -0.0,
    "-(c * b) + c": 0.0,
    "-zero(b)": -0.0,
    "+zero(-b)": 0.0,
    "-0.0": -0.0,
    "+0.0 * -b": -0.0,
    "-0.0 + c": -0.0,
    "-(0.0) + c": -0.0,
    "c + -0.0": -0.0,
}
"""Values for a = +0, b = 2 and c = -0; `zero` returns +0."""

MATRIX_VALUES = {
    "-M": [[-0.0, -0.0], [-1.0, -0.0]],
    "-M @ N": [[0.0, 0.0], [-1.0, -2.0]],
    "-(M @ N)": [[-0.0, -0.0], [-1.0, -2.0]],
    "M @ -N": [[0.0, 0.0], [-1.0, -2.0]],
    "-M + M": [[0.0, 0.0], [0.0, 0.0]],
    "-M[0:1, 0:2]": [[-0.0, -0.0]],
    "+(-M)": [[-0.0, -0.0], [-1.0, -0.0]],
}


WORDS = {"-": "minus ", "+": "plus ", "*": "times ", "/": "by ", "@": "at ", "(": "of "}


def name_of(expression):
    """An expression as a case is called: the signs in words."""
    kept = (WORDS.get(token, token if token.isalnum() or token == "." else " ") for token in expression)
    return "-".join("".join(kept).split())


def scalar_program(expression, dtype):
    """A function of a, b and c beside one that returns zero."""
    return module(
        func("return x - x;", parameters=f"x: {dtype}", result=dtype, name="zero"),
        func(f"return {expression};", parameters=parameters_of("abc", dtype), result=dtype),
    )


def matrix_program(expression, dtype):
    """A function of the matrices M and N."""
    return module(func(f"return {expression};", parameters=parameters_of("MN", f"tensor<2x2x{dtype}>")))


def tensors(dtype, values):
    """Operands by their names."""
    return {name: tensor_of(dtype, value) for name, value in values.items()}


@clause("LANG-14.2-02")
@pytest.mark.parametrize("expression", SCALAR_VALUES, ids=name_of)
def test_a_sign_belongs_to_its_operand_in_the_sign_of_zero(impl, check, expression):
    """Scalars that are signed zeros, in every type with infinities that arithmetic reaches."""
    for dtype in DTYPES:
        value = value_of(impl, check, scalar_program(expression, dtype), **tensors(dtype, SCALARS))
        check.bits(value, tensor_of(dtype, SCALAR_VALUES[expression]), f"{expression} in {dtype}")


@clause("LANG-14.2-02")
@pytest.mark.parametrize("expression", MATRIX_VALUES, ids=name_of)
def test_a_sign_belongs_to_its_matrix_in_the_signs_of_zeros(impl, check, expression):
    """A product adds up from +0: the sign before a factor leaves +0 there, the one before the product does not."""
    for dtype in DTYPES:
        value = value_of(impl, check, matrix_program(expression, dtype), **tensors(dtype, MATRICES))
        check.bits(value, tensor_of(dtype, MATRIX_VALUES[expression]), f"{expression} in {dtype}")


@clause("LANG-14.2-02")
@feature("graph-ir-text")
@pytest.mark.parametrize("expression", [*SCALAR_VALUES, *MATRIX_VALUES], ids=name_of)
def test_a_sign_stands_at_its_operand_in_the_printed_tree(impl, check, expression):
    """The Graph IR that is printed for an expression, executed, has its value and the sign of its zero."""
    scalar = expression in SCALAR_VALUES
    source = scalar_program(expression, "fp32") if scalar else matrix_program(expression, "fp32")
    inputs = tensors("fp32", SCALARS if scalar else MATRICES)
    text = lowered(impl, check, source, "graph").text
    outputs = results_of_text(impl, check, text, "graph", **inputs)
    check.equal(len(outputs), 1, "the number of values")
    check.bits(outputs[0], tensor_of("fp32", (SCALAR_VALUES | MATRIX_VALUES)[expression]))
