"""Gradients: of what, by what, of which type, and in which order contributions add up (language spec, 5.2 and 5.5).

Numbers are so small that no step of any adjoint rounds: the bits are the same at every level and in every order
(AMB-LANG-164). Functions whose derivatives round are in `test_derivatives`.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.gradient_cases import judge_gradients, judge_results
from tessera_conformance.chapters.ir.kit.programs import graph_of, verified_twins
from tessera_conformance.dsl import FIRST_STATEMENT, program, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.tensors import Tensor

DTYPES = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]


@clause("LANG-05.2-06", "LANG-05.5-01")
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradient_has_the_type_of_its_operand(impl, check, dtype):
    """x * x at 3 and -2 has the slope 6 and -4, in every float type (AMB-LANG-107)."""
    judge_gradients(impl, check, "A * A", {"A": [3, -2]}, {"A": [6, -4]}, dtype)


@clause("LANG-05.2-06", "LANG-05.5-01")
@pytest.mark.parametrize(
    ("values", "ones"),
    [(5, 1), ([5, 0, -7], [1, 1, 1]), ([[1, 2], [3, 4]], [[1, 1], [1, 1]])],
    ids=["scalar", "vector", "matrix"],
)
def test_the_gradient_of_an_operand_itself_is_ones(impl, check, values, ones):
    """The seed is ones (AMB-LANG-58)."""
    judge_gradients(impl, check, "A", {"A": values}, {"A": ones})


@clause("LANG-05.2-06", "LANG-05.5-01")
@pytest.mark.parametrize("expression", ["B", "B * B", "B * 2.0", "B - B"])
def test_the_gradient_of_what_does_not_depend_on_an_operand_is_zeros(impl, check, expression):
    """Zeros of the operand's type, whatever y is."""
    judge_gradients(impl, check, expression, {"A": [[1, 2], [3, 4]], "B": [5, 6]}, {"A": [[0, 0], [0, 0]]})


@clause("LANG-05.2-06", "LANG-05.5-01")
def test_a_constant_has_no_gradient(impl, check):
    """A constant has a gradient of zeros; an operand times a constant has the constant."""
    before = ["let C: tensor<2xfp32> = op.const_tensor() @{shape=[2], dtype=fp32, value=[3.0, -5.0]};"]
    judge_gradients(impl, check, "C", {"A": [1, 2]}, {"A": [0, 0]}, before=before)
    judge_gradients(impl, check, "C * A", {"A": [1, 2]}, {"A": [3, -5]}, before=before)


@clause("LANG-05.2-06", "LANG-05.5-01")
@feature("zero-sizes")
def test_nothing_has_a_gradient_without_elements(impl, check):
    """A tensor without elements has a gradient like itself, and adds nothing to that of a scalar."""
    empty = Tensor("fp32", (0, 3), b"")
    body = ["let Y: tensor<0x3xfp32> = A * s;", "return op.grad(Y, A), op.grad(Y, s);"]
    judge_results(impl, check, body, {"A": empty, "s": tensor_of("fp32", 2)}, [empty, tensor_of("fp32", 0)])


@clause("LANG-05.2-06")
@pytest.mark.parametrize("wrt", ["A, B, s", "s, B, A", "B", "A, A, B"])
def test_several_operands_have_a_gradient_each(impl, check, wrt):
    """`op.grad(y, a, b)` gives one gradient for each operand, of its type, in the order in which they are named."""
    operands = {"A": [1.5, 4], "B": [3, -4], "s": 2}
    gradients = {"A": [6, -8], "B": [3, 8], "s": -11.5}
    body = ["let Y: tensor<2xfp32> = A * B * s;", f"return op.grad(Y, {wrt});"]
    given = {name: tensor_of("fp32", values) for name, values in operands.items()}
    judge_results(impl, check, body, given, [tensor_of("fp32", gradients[name]) for name in wrt.split(", ")])


@clause("LANG-05.2-06", "LANG-05.5-01")
def test_an_intermediate_value_may_be_differentiated_by(impl, check):
    """With respect to z = a * a, z * b has the gradient b: not that of a."""
    before = ["let Z: tensor<2xfp32> = A * A;"]
    given = {"A": tensor_of("fp32", [3, 4]), "B": tensor_of("fp32", [5, -7])}
    body = [*before, "let Y: tensor<2xfp32> = Z * B;", "return op.grad(Y, Z);"]
    judge_results(impl, check, body, given, [tensor_of("fp32", [5, -7])])


@clause("LANG-05.2-06", "LANG-05.5-01")
@pytest.mark.parametrize("wrt", ["A, Z", "Z, A", "A, Z, B"])
def test_a_value_and_what_is_computed_from_it_have_a_gradient_each(impl, check, wrt):
    """With w = a * b and z = a * a, z * w has the gradient 3 a a b for a, and a b for z (AMB-LANG-58)."""
    given = {"A": tensor_of("fp32", [3, 4]), "B": tensor_of("fp32", [5, -7])}
    gradients = {"A": [135, -336], "Z": [15, -28], "B": [27, 64]}
    before = ["let W: tensor<2xfp32> = A * B;", "let Z: tensor<2xfp32> = A * A;"]
    body = [*before, "let Y: tensor<2xfp32> = Z * W;", f"return op.grad(Y, {wrt});"]
    judge_results(impl, check, body, given, [tensor_of("fp32", gradients[name]) for name in wrt.split(", ")])


@clause("LANG-05.2-06")
def test_graph_ir_has_an_operation_for_it(impl, check):
    """tessera.graph.grad takes the value and the operands, and yields their types (LANG-05.2-06)."""
    body = ["let Y: tensor<2xfp32> = A * s;", "return op.grad(Y, A);"]
    source = program(*body, parameters="A: tensor<2xfp32>, s: fp32", result="tensor<2xfp32>")
    check.equal(len(graph_of(impl, check, source).named("tessera.graph.grad")), 1, "the number of gradients")


# Gradients of gradients

SECOND = {
    "cube": ("op.grad(A * A * A, A)", {"A": [2, -3]}, {"A": [12, -18]}),
    "third": ("op.grad(op.grad(A * A * A * A, A), A)", {"A": [2, -3]}, {"A": [48, -72]}),
    "square-in-itself": ("op.grad(A * A, A) * A", {"A": [2, -3]}, {"A": [8, -12]}),
    "line": ("op.grad(A * 3.0, A)", {"A": [2, -3]}, {"A": [0, 0]}),
    "mixed": ("op.grad(A * A * B, A)", {"A": [2, -3], "B": [5, 7]}, {"A": [10, 14], "B": [4, -6]}),
    "quotient": ("op.grad(B / A, A)", {"A": [2, -4], "B": [8, 64]}, {"A": [2, -2], "B": [-0.25, -0.0625]}),
    "product": ("op.grad(A @ B, A)", {"A": [[1, 2]], "B": [[3], [4]]}, {"A": [[0, 0]], "B": [[1], [1]]}),
    "squared-product": (
        "op.grad((A @ B) * (A @ B), A)",
        {"A": [[1, 2]], "B": [[3], [4]]},
        {"A": [[42, 56]], "B": [[36], [50]]},
    ),
    "part": ("op.grad(A[0] * A[1] * A[1], A)", {"A": [2, 3]}, {"A": [6, 10]}),
}


@clause("LANG-05.5-01", "LANG-05.2-06")
@pytest.mark.parametrize(("expression", "operands", "expected"), SECOND.values(), ids=SECOND)
def test_gradients_of_gradients(impl, check, expression, operands, expected):
    """A gradient is a value like any other, computed from the operands, and has derivatives."""
    judge_gradients(impl, check, expression, operands, expected)


@clause("LANG-05.5-01")
def test_second_derivatives_through_a_loop(impl, check):
    """x**4 by a loop has the second derivative 12 * x**2 (AMB-LANG-29)."""
    before = ["let y: fp32 = 1.0;", "for (k in 0:4) { y = y * a; }"]
    judge_gradients(impl, check, "op.grad(y, a)", {"a": 3}, {"a": 108}, before=before)


# The order of contributions

LARGE = 2.0**24
ORDER = {
    "of-three": ("a * p + a * q + a * r", [1, LARGE, -LARGE], 0),
    "small-last": ("a * p + a * q + a * r", [LARGE, -LARGE, 1], 1),
    "small-between": ("a * p + a * q + a * r", [LARGE, 1, -LARGE], 0),
    "of-five": ("a * p + a * q + a * r + a * p + a * r", [LARGE, 1, -LARGE], 0),
    "of-five-turned": ("a * r + a * p + a * r + a * q + a * p", [LARGE, 1, -LARGE], 1),
    "of-intermediate-values": ("(a * p) * b + (a * q) * b + (a * r) * b", [1, LARGE, -LARGE], 0),
}


@clause("LANG-05.5-01")
@level("strict")
@pytest.mark.parametrize(("expression", "factors", "expected"), ORDER.values(), ids=ORDER)
def test_contributions_add_up_in_program_order(impl, check, expression, factors, expected):
    """Beside 2**24, in fp32, 1 is lost: what is left of three contributions says which two were added first.

    Contributions are added in program order of the uses (AMB-LANG-117).
    """
    operands = {"a": 1, "b": 1, **dict(zip("pqr", factors, strict=True))}
    judge_gradients(impl, check, expression, operands, {"a": expected})


@clause("LANG-05.5-01")
@level("strict")
@pytest.mark.parametrize(
    ("factors", "expected"),
    [([1, LARGE, -LARGE], 0), ([LARGE, -LARGE, 1], 1), ([LARGE, 1, -LARGE], 0)],
    ids=["small-first", "small-last", "small-between"],
)
def test_contributions_of_a_loop_add_up_turn_by_turn(impl, check, factors, expected):
    """The uses of a value in a loop follow each other as its turns do (AMB-LANG-117, AMB-LANG-29)."""
    before = ["let y: fp32 = 0.0;", "for (k in 0:3) { y = y + a * B[k]; }"]
    judge_gradients(impl, check, "y", {"a": 1, "B": factors}, {"a": expected}, before=before)


# What is refused

REFUSED = {
    "of-an-integer": ("op.grad(A * A, A)", "op.grad(I * I, A)"),
    "by-an-integer": ("op.grad(A * A, A)", "op.grad(A * A, I)"),
    "of-a-truth": ("op.grad(A, A)", "op.grad(A > A, A)"),
    "by-a-truth": ("op.grad(A * A, A)", "op.grad(A * A, m)"),
    "by-one-integer-of-two": ("op.grad(A * s, A, s)", "op.grad(A * s, A, I)"),
    "by-nothing": ("op.grad(A, A)", "op.grad(A)"),
    "of-nothing": ("op.grad(A, A)", "op.grad()"),
    "by-an-unknown-name": ("op.grad(A, A)", "op.grad(A, X)"),
    "of-a-mixture": ("op.grad(A * s, A)", "op.grad(A * i, A)"),
}


@clause("LANG-05.2-06", "LANG-11-01")
@pytest.mark.parametrize(("legal", "illegal"), REFUSED.values(), ids=REFUSED)
def test_only_floats_have_gradients(impl, check, legal, illegal):
    """An integer or bool has no derivative and none is taken by it; something is differentiated, by something."""
    parameters = "A: tensor<2xfp32>, I: tensor<2xint32>, s: fp32, i: int32, m: bool"
    sources = [program(f"return {expression};", parameters=parameters) for expression in (legal, illegal)]
    verified_twins(impl, check, sources[0], sources[1], ("types", "shapes"), at_line=FIRST_STATEMENT)


@clause("LANG-05.2-06", "LANG-02.3-51")
def test_nothing_is_differentiated_by_a_function(impl, check):
    """A function as a value is called on the way, and is no float that a derivative is taken by."""
    parameters = "s: fp32, h: fn(fp32) -> fp32"
    sources = [program(f"return op.grad(h(s), {wrt});", parameters=parameters) for wrt in ("s", "s, h")]
    verified_twins(impl, check, sources[0], sources[1], ("types", "shapes"), at_line=FIRST_STATEMENT)


@clause("LANG-05.2-06", "LANG-03.1-05")
@pytest.mark.parametrize(
    ("declared", "wrong"),
    [("tensor<2xfp32>", "tensor<2xbf16>"), ("tensor<2xfp32>", "tensor<3xfp32>"), ("tensor<2xfp32>", "fp32")],
    ids=["dtype", "extent", "rank"],
)
def test_a_gradient_is_of_the_type_of_its_operand_only(impl, check, declared, wrong):
    """The gradient of a scalar with respect to a vector is a vector."""
    legal, illegal = (
        program(f"let G: {type_} = op.grad(A[0], A);", "return G;", parameters="A: tensor<2xfp32>")
        for type_ in (declared, wrong)
    )
    verified_twins(impl, check, legal, illegal, ("types", "shapes"), at_line=FIRST_STATEMENT)
