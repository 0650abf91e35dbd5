"""Gradients through parts of tensors, assignments, branches, loops and calls (language spec, sections 2.3 and 5.5).

Numbers are so small that no step of any adjoint rounds: the bits are the same at every level and in every order
(AMB-LANG-164). Functions whose derivatives round are in `test_derivatives`.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.gradient_cases import judge_gradients, judge_results
from tessera_conformance.dsl import func, tensor_of
from tessera_conformance.marks import clause

A = [[1, 2, 3], [4, 5, 6]]

# Parts of tensors


PARTS = {
    "element": ("A[1] * 3.0", [0, 3, 0, 0]),
    "slice": ("A[1:3] * 3.0", [0, 3, 3, 0]),
    "strided": ("A[0:4:2] * 3.0", [3, 0, 3, 0]),
    "downwards": ("A[2:0:-1] * B", [0, 7, 5, 0]),
    "whole": ("A[:] * 3.0", [3, 3, 3, 3]),
    "overlapping": ("A[0:3] * A[1:4]", [2, 4, 6, 3]),
    "twice-the-same": ("A[1] * A[1]", [0, 4, 0, 0]),
    "computed": ("A[i] * 5.0", [0, 0, 5, 0]),
    "computed-slice": ("A[i - 1:i + 1] * 5.0", [0, 5, 5, 0]),
    "of-a-slice": ("A[1:4][1] * 5.0", [0, 0, 5, 0]),
}


@clause("LANG-05.5-01", "LANG-02.3-31")
@pytest.mark.parametrize(("expression", "expected"), PARTS.values(), ids=PARTS)
def test_indices_and_slices(impl, check, expression, expected):
    """The elements taken get their gradient in their place; the others get zero."""
    operands = {"A": [1, 2, 3, 4], "B": [5, 7], "i": tensor_of("int32", 2)}
    judge_gradients(impl, check, expression, operands, {"A": expected})


@clause("LANG-05.5-01", "LANG-02.3-31")
def test_rows_and_columns(impl, check):
    """A column of a matrix, and one element of a row."""
    operands = {"A": A, "V": [1, -2]}
    judge_gradients(impl, check, "A[:, 1] * V", operands, {"A": [[0, 1, 0], [0, -2, 0]], "V": [2, 5]})
    judge_gradients(impl, check, "A[1, 0:2] * V", operands, {"A": [[0, 0, 0], [1, -2, 0]], "V": [4, 5]})
    judge_gradients(impl, check, "A[0, :][2] * V", operands, {"A": [[0, 0, -1], [0, 0, 0]], "V": [3, 3]})


ASSIGNED = {
    "element": (["Y[1] = B[0];"], [2, 0, 6, 8], [4, 0, 0]),
    "literal": (["Y[1:3] = 7.0;"], [2, 0, 0, 8], [0, 0, 0]),
    "slice": (["Y[1:4] = B;"], [2, 0, 0, 0], [4, 4, 4]),
    "scalar-fills": (["Y[1:4] = B[2];"], [2, 0, 0, 0], [0, 0, 12]),
    "computed-place": (["Y[i] = B[0] * B[1];"], [2, 4, 0, 8], [16, 16, 0]),
    "of-itself": (["Y[0] = Y[1];"], [0, 8, 6, 8], [0, 0, 0]),
    "overwritten-again": (["Y[0] = B[0];", "Y[0] = B[1];"], [0, 4, 6, 8], [0, 4, 0]),
    "in-a-loop": (["for (k in 1:4) { Y[k] = Y[k - 1] * 2.0; }"], [170, 0, 0, 0], [0, 0, 0]),
}


@clause("LANG-05.5-01", "LANG-02.3-19", "LANG-02.3-20")
@pytest.mark.parametrize(("statements", "to_a", "to_b"), ASSIGNED.values(), ids=ASSIGNED)
def test_assigning_to_a_slice(impl, check, statements, to_a, to_b):
    """The value that is assigned gets the gradient of its place; the value that was there before gets none of it.

    The end of a range does not count (AMB-LANG-29).
    """
    operands = {"A": [1, 2, 3, 4], "B": [2, 2, 2], "i": tensor_of("int32", 2)}
    before = ["let Y: tensor<4xfp32> = A;", *statements]
    judge_gradients(impl, check, "Y * Y", operands, {"A": to_a, "B": to_b}, before=before)


# Control flow

EITHER = pytest.mark.parametrize("holds", [True, False], ids=["true", "false"])


@clause("LANG-05.5-01", "LANG-02-08")
@EITHER
def test_the_branch_that_was_taken(impl, check, holds):
    """Each branch has its own derivative, and the other one has no part in it."""
    before = ["let y: fp32 = a;", "if (c) { y = a * a * b; } else { y = b - a; }"]
    operands = {"a": 3, "b": 5, "c": tensor_of("bool", holds)}
    expected = {"a": 30, "b": 9} if holds else {"a": -1, "b": 1}
    judge_gradients(impl, check, "y", operands, expected, before=before)


@clause("LANG-05.5-01", "LANG-02-08")
@pytest.mark.parametrize(("value", "slope"), [(3, 6), (-3, -1), (0, 0)], ids=["above", "below", "equal"])
def test_a_condition_on_the_operand(impl, check, value, slope):
    """The branch follows from the operand; its derivative is that of what was computed in it."""
    before = [
        "let y: fp32 = 7.0;",
        "if (a > 0.0) { y = a * a; }",
        "if (a < 0.0) { y = 2.0 - a; }",
    ]
    judge_gradients(impl, check, "y", {"a": value}, {"a": slope}, before=before)


@clause("LANG-05.5-01", "LANG-02-08")
@EITHER
def test_a_branch_without_else_leaves_the_value_its_gradient(impl, check, holds):
    """A value computed before the if has a gradient where the branch did not replace it."""
    before = ["let y: fp32 = a * 4.0;", "if (c) { y = y * a; }"]
    operands = {"a": 3, "c": tensor_of("bool", holds)}
    judge_gradients(impl, check, "y", operands, {"a": 24 if holds else 4}, before=before)


@clause("LANG-05.5-01", "LANG-02-10")
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_every_turn_of_a_loop(impl, check, turns):
    """x**n by a loop has the slope n * x**(n - 1): none for no turn, and more than that of one turn for five.

    The end of a range does not count (AMB-LANG-29, AMB-LANG-94).
    """
    before = ["let y: fp32 = 1.0;", "for (k in 0:n) { y = y * a; }"]
    operands = {"a": 3, "n": tensor_of("int32", turns)}
    judge_gradients(impl, check, "y", operands, {"a": turns * 3 ** (turns - 1) if turns else 0}, before=before)


@clause("LANG-05.5-01", "LANG-02-10")
def test_a_loop_that_carries_two_values(impl, check):
    """(p, q) becomes (p + q, p * a) three times: both ways count (AMB-LANG-29)."""
    before = [
        "let p: fp32 = a;",
        "let q: fp32 = b;",
        "for (k in 0:3) { let r: fp32 = p; p = p + q; q = r * a; }",
    ]
    # p, q: (a, b) (a + b, a a) (a + b + a a, a a + a b) (a + b + 2 a a + a b, ...)
    judge_gradients(impl, check, "p", {"a": 2, "b": 5}, {"a": 14, "b": 3}, before=before)


@clause("LANG-05.5-01", "LANG-02-11")
@pytest.mark.parametrize(("limit", "slope"), [(1, 1), (10, 4), (100, 32)], ids=["no-turn", "two-turns", "five-turns"])
def test_a_while_loop_as_often_as_it_ran(impl, check, limit, slope):
    """Doubling until a limit is reached: the slope is the power of two by which it was multiplied."""
    before = ["let y: fp32 = a;", "while (y < m) { y = y * 2.0; }"]
    value = {1: 3, 10: 3, 100: 3.5}[limit]
    operands = {"a": value, "m": limit}
    judge_gradients(impl, check, "y", operands, {"a": slope, "m": 0}, before=before)


@clause("LANG-05.5-01", "LANG-02-10", "LANG-02-08")
def test_branches_in_loops(impl, check):
    """Even turns add, odd turns multiply: ((a * b + a) * b + a) * b (AMB-LANG-29)."""
    before = [
        "let y: fp32 = 0.0;",
        "for (k in 0:6) { if (k - k / 2 * 2 == 0) { y = y + a; } else { y = y * b; } }",
    ]
    judge_gradients(impl, check, "y", {"a": 2, "b": 3}, {"a": 39, "b": 68}, before=before)


@clause("LANG-05.5-01", "LANG-02-10")
def test_rows_in_a_loop(impl, check):
    """A sum of squares, row by row, through slices of a matrix (AMB-LANG-29)."""
    before = ["let s: tensor<3xfp32> = A[0, :] * 0.0;", "for (k in 0:2) { s = s + A[k, :] * A[k, :]; }"]
    judge_gradients(impl, check, "s", {"A": A}, {"A": [[2, 4, 6], [8, 10, 12]]}, before=before)


@clause("LANG-05.5-01", "LANG-02.3-32")
def test_calls_of_functions(impl, check):
    """The gradient of a call, and of calls within it, is that of the function's body in its place."""
    helpers = [
        func("return p * p * q;", parameters="p: fp32, q: fp32", result="fp32", name="cone"),
        func("return cone(p, 2.0) + cone(q, p);", parameters="p: fp32, q: fp32", result="fp32", name="two"),
    ]
    # two(a, b) = 2 a a + b b a; y = two(a, b) * two(b, a)
    operands = {"a": 2, "b": 3}
    judge_gradients(impl, check, "two(a, b)", operands, {"a": 17, "b": 12}, helpers=helpers)
    judge_gradients(
        impl,
        check,
        "two(a, b) * two(b, a)",
        operands,
        {"a": 17 * 30 + 26 * 12, "b": 12 * 30 + 26 * 16},
        helpers=helpers,
    )


@clause("LANG-05.5-01", "LANG-02-08")
@EITHER
def test_an_early_return_of_a_function(impl, check, holds):
    """The gradient is that of the value returned."""
    helpers = [
        func("if (c) { return p * 5.0; }", "return p * p;", parameters="p: fp32, c: bool", result="fp32", name="either")
    ]
    operands = {"a": 3, "c": tensor_of("bool", holds)}
    judge_gradients(impl, check, "either(a, c)", operands, {"a": 5 if holds else 6}, helpers=helpers)


@clause("LANG-05.5-01", "LANG-05.2-06")
def test_gradients_within_functions(impl, check):
    """A function may differentiate what it was given and what it computed."""
    helpers = [
        func(
            "let y: fp32 = p * p * p;",
            "return op.grad(y, p);",
            parameters="p: fp32",
            result="fp32",
            name="slope",
        )
    ]
    statements = ["return slope(a), slope(a + 1.0) * 2.0;"]
    expected = [tensor_of("fp32", 12), tensor_of("fp32", 54)]
    judge_results(impl, check, statements, {"a": tensor_of("fp32", 2)}, expected, helpers=helpers)


@clause("LANG-05.5-01", "LANG-05.2-06")
def test_gradients_in_a_loop(impl, check):
    """Descent: three steps down the square of x, each of which halves it (AMB-LANG-29)."""
    statements = [
        "let x: fp32 = a;",
        "for (k in 0:3) { let y: fp32 = x * x; x = x - 0.25 * op.grad(y, x); }",
        "return x;",
    ]
    judge_results(impl, check, statements, {"a": tensor_of("fp32", 24)}, [tensor_of("fp32", 3)])


@clause("LANG-05.5-01", "LANG-05.2-06")
@EITHER
def test_gradients_in_a_branch(impl, check, holds):
    """Differentiated on one path only."""
    statements = ["let y: fp32 = a * a;", "let g: fp32 = 1.0;", "if (c) { g = op.grad(y, a); }", "return g;"]
    given = {"a": tensor_of("fp32", 3), "c": tensor_of("bool", holds)}
    judge_results(impl, check, statements, given, [tensor_of("fp32", 6 if holds else 1)])


@clause("LANG-05.5-01", "LANG-04-01")
def test_differentiating_changes_nothing(impl, check):
    """Values are what they were without it, before and after."""
    statements = [
        "let Y: tensor<2xfp32> = A * A;",
        "let G: tensor<2xfp32> = op.grad(Y, A);",
        "Y[0] = 9.0;",
        "return A, Y, G, op.grad(Y, A);",
    ]
    expected = [tensor_of("fp32", values) for values in ([3, 5], [9, 25], [6, 10], [0, 10])]
    judge_results(impl, check, statements, {"A": tensor_of("fp32", [3, 5])}, expected)


@clause("LANG-05.5-01")
def test_a_name_that_was_assigned_again_is_another_value(impl, check):
    """A value computed from the old one does not depend on the new one, which has its own gradients."""
    statements = [
        "let x: fp32 = a * 2.0;",
        "let y: fp32 = x * x;",
        "x = a * 5.0;",
        "let z: fp32 = x * y;",
        "return op.grad(y, x), op.grad(z, x), op.grad(z, a);",
    ]
    expected = [tensor_of("fp32", value) for value in (0, 36, 540)]
    judge_results(impl, check, statements, {"a": tensor_of("fp32", 3)}, expected)
