"""Evaluation is pure (language spec, sections 2.3 and 4)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, value_of
from tessera_conformance.dsl import func, module, parameters_of, program, returning, tensor_of
from tessera_conformance.marks import clause, level

SQUARE = "tensor<2x2xint32>"
A = tensor_of("int32", [[1, 2], [3, 4]])
B = tensor_of("int32", [[5, 6], [7, 8]])


@clause("LANG-04-01")
def test_equal_inputs_give_equal_results(impl, check):
    """A function gives the same bits again, whatever was evaluated in between."""
    source = returning("(A @ B) + A", parameters_of("AB", SQUARE), SQUARE)
    expected = tensor_of("int32", [[20, 24], [46, 54]])
    check.bits(value_of(impl, check, source, A=A, B=B), expected)
    value_of(impl, check, source, A=B, B=A)
    value_of(impl, check, returning("A - B", parameters_of("AB", SQUARE), SQUARE), A=A, B=B)
    check.bits(value_of(impl, check, source, A=A, B=B), expected, "the bits after other evaluations")


@clause("LANG-04-01")
def test_a_result_depends_on_the_inputs_only(impl, check):
    """The same function gives other results for other inputs, in a row without reset."""
    source = returning("a * b - 1", parameters_of("ab", "int32"), "int32")
    for left, right in ((2, 3), (3, 2), (0, 5), (-4, 4), (2, 3)):
        value = value_of(impl, check, source, a=tensor_of("int32", left), b=tensor_of("int32", right))
        check.bits(value, tensor_of("int32", left * right - 1), f"{left} * {right} - 1")


@clause("LANG-04-01")
@pytest.mark.parametrize(
    "statements",
    [
        ["let P: {T} = A + B;", "let Q: {T} = A - B;"],
        ["let Q: {T} = A - B;", "let P: {T} = A + B;"],
        ["let P: {T} = A + B;", "let U: {T} = P * P;", "let Q: {T} = A - B;", "let V: {T} = Q @ U;"],
    ],
    ids=["in-order", "exchanged", "with-unused-values"],
)
def test_independent_statements_do_not_affect_each_other(impl, check, statements):
    """Order and presence of statements on which a result does not depend change nothing."""
    body = [statement.replace("{T}", SQUARE) for statement in statements]
    outputs = evaluate(impl, check, program(*body, "return P, Q;", parameters=parameters_of("AB", SQUARE)), A=A, B=B)
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], tensor_of("int32", [[6, 8], [10, 12]]))
    check.bits(outputs[1], tensor_of("int32", [[-4, -4], [-4, -4]]))


@clause("LANG-04-01", "LANG-04-02", "LANG-02.3-55")
def test_an_operation_leaves_its_operands_alone(impl, check):
    """After products, sums, negations and calls the operands still have their values."""
    source = module(
        func("return X + X;", parameters=f"X: {SQUARE}", result=SQUARE, name="twice"),
        func(
            f"let P: {SQUARE} = op.matmul(A, B);",
            f"let Q: {SQUARE} = A * B - -A;",
            f"let R: {SQUARE} = twice(A);",
            "return A, B;",
            parameters=parameters_of("AB", SQUARE),
        ),
    )
    outputs = evaluate(impl, check, source, A=A, B=B)
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], A)
    check.bits(outputs[1], B)


@clause("LANG-02.3-55", "LANG-04-01", "LANG-04-02")
def test_an_operation_as_a_statement_has_no_effect(impl, check):
    """A call of an operator whose value is not used changes no value."""
    body = ["op.matmul(A, B);", f"let C: {SQUARE} = A;", "op.matmul(C, C);", "return C;"]
    source = program(*body, parameters=parameters_of("AB", SQUARE), result=SQUARE)
    check.bits(value_of(impl, check, source, A=A, B=B), A)


@clause("LANG-02.3-55", "LANG-04-01")
@level("strict", "deterministic")
def test_two_calls_of_one_operation_give_one_value(impl, check):
    """The same operator on the same operands gives the same bits twice in a function."""
    matrix = "tensor<2x4xfp32>"
    source = program("return op.softmax(A), op.softmax(A);", parameters=f"A: {matrix}")
    outputs = evaluate(impl, check, source, A=tensor_of("fp32", [[0.5, 1, -2, 3], [7, 0, 0, -1]]))
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], outputs[1])


@clause("LANG-04-03")
def test_operations_run_after_those_they_take_values_from(impl, check):
    """A long chain of values, each made from the one before."""
    steps = [f"let v{index}: int32 = v{index - 1} * 3 - {index};" for index in range(1, 9)]
    expected = 2
    for index in range(1, 9):
        expected = expected * 3 - index
    source = program("let v0: int32 = a;", *steps, "return v8;", parameters="a: int32", result="int32")
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 2)), tensor_of("int32", expected))
