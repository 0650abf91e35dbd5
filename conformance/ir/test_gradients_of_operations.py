"""Gradients of every operation whose derivative may be exact (language spec, sections 5.2 and 5.5; AMB-LANG-59).

Numbers are so small that no step of any adjoint rounds: the bits are the same at every level and in every order
(AMB-LANG-164). Functions whose derivatives round are in `test_derivatives`.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.gradient_cases import judge_gradients, without_signed_zeros
from tessera_conformance.chapters.ir.kit.programs import evaluate
from tessera_conformance.dsl import program, tensor_of
from tessera_conformance.marks import clause, feature, level

POINTWISE = {
    "plus": ("A + B", [1, 2, -4], [1, 2, -4]),
    "minus": ("A - B", [1, 2, -4], [-1, -2, 4]),
    "times": ("A * B", [2, -8, -4], [3, 10, 28]),
    "over": ("A / B", [0.5, -0.5, -4], [-0.75, -0.625, -28]),
    "negative": ("-A", [-1, -2, 4], [0, 0, 0]),
    "with-literals": ("2.0 * A - 3.0 + A / 4.0", [2.25, 4.5, -9], [0, 0, 0]),
    "literal-over": ("8.0 / B", [0, 0, 0], [-2, -1, 32]),
    "literal-minus": ("1.0 - A", [-1, -2, 4], [0, 0, 0]),
    "cube": ("A * A * A", [27, 150, -588], [0, 0, 0]),
    "difference-of-squares": ("(A + B) * (A - B)", [6, 20, 56], [-4, 16, 8]),
    "minus-itself": ("A - A", [0, 0, 0], [0, 0, 0]),
    "over-itself": ("B / B", [0, 0, 0], [0, 0, 0]),
    "twice": ("A + A", [2, 4, -8], [0, 0, 0]),
}


@clause("LANG-05.5-01", "LANG-05.5-02")
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize(("expression", "to_a", "to_b"), POINTWISE.values(), ids=POINTWISE)
def test_operators(impl, check, expression, to_a, to_b, dtype):
    """Every element for itself, times the weight of its result; a value used twice gets both contributions."""
    operands = {"A": [3, 5, -7], "B": [2, -4, 1], "W": [1, 2, -4]}
    judge_gradients(impl, check, f"({expression}) * W", operands, {"A": to_a, "B": to_b}, dtype)


SCALARS = {
    "times": ("A * s", [4, 4, 4], 1),
    "plus": ("s + A", [1, 1, 1], 3),
    "minus": ("s - A", [-1, -1, -1], 3),
    "over": ("A / s", [0.25, 0.25, 0.25], -0.0625),
    "under": ("s / C", [0, 0, 0], 1.25),
    "both": ("s * A * s", [16, 16, 16], 8),
}


@clause("LANG-05.5-01", "LANG-05.5-02")
@pytest.mark.parametrize(("expression", "to_tensor", "to_scalar"), SCALARS.values(), ids=SCALARS)
def test_a_scalar_beside_a_tensor_gets_the_sum(impl, check, expression, to_tensor, to_scalar):
    """A scalar is combined with every element, so that its gradient is the sum over the elements."""
    operands = {"A": [3, 5, -7], "C": [2, 4, 2], "s": 4}
    judge_gradients(impl, check, expression, operands, {"A": to_tensor, "s": to_scalar})


STRETCHED = {
    "row": ("A * R", [[1, 2, 3], [1, 2, 3]], {"R": [5, 7, 9]}),
    "column": ("A * C", [[4, 4, 4], [5, 5, 5]], {"C": [[6], [15]]}),
    "row-and-column": ("R * C", [[0, 0, 0], [0, 0, 0]], {"R": [9, 9, 9], "C": [[6], [6]]}),
    "row-minus": ("R - A", [[-1, -1, -1], [-1, -1, -1]], {"R": [2, 2, 2]}),
    "matrix-of-one": ("A * O", [[2, 2, 2], [2, 2, 2]], {"O": [[21]]}),
    "new-axis": ("N + A", [[2, 2, 2], [2, 2, 2]], {"N": [[[3], [3]], [[3], [3]]]}),
    "middle-axis": (
        "N * M",
        [[0, 0, 0], [0, 0, 0]],
        {"N": [[[6], [6]], [[15], [15]]], "M": [[[3, 3, 3]], [[7, 7, 7]]]},
    ),
}


@clause("LANG-05.5-01", "LANG-03.2-02")
@feature("broadcasting-ops")
@pytest.mark.parametrize(("expression", "to_matrix", "others"), STRETCHED.values(), ids=STRETCHED)
def test_what_was_stretched_gets_sums(impl, check, expression, to_matrix, others):
    """The gradient of an operand that was broadcast is summed over the axes along which it was, and has its shape."""
    operands = {
        "A": [[1, 2, 3], [4, 5, 6]],
        "R": [1, 2, 3],
        "C": [[4], [5]],
        "O": [[2]],
        "N": [[[1], [2]], [[3], [4]]],
        "M": [[[1, 2, 3]], [[4, 5, 6]]],
    }
    judge_gradients(impl, check, expression, operands, {"A": to_matrix, **others})


@clause("LANG-05.5-01", "LANG-05.2-02")
@pytest.mark.parametrize("product", ["A @ B", "op.matmul(A, B)"], ids=["at-sign", "matmul"])
@pytest.mark.parametrize("dtype", ["bf16", "tf32", "fp32"])
def test_products(impl, check, product, dtype):
    """dA is dY times B transposed, dB is A transposed times dY: of shapes that leave no other order."""
    operands = {"A": [[1, 2, 3], [-1, 0, 2]], "B": [[2, -1], [0, 1], [1, 3]], "W": [[1, 2], [-3, 4]]}
    expected = {"A": [[0, 2, 7], [-10, 4, 9]], "B": [[4, -2], [2, 4], [-3, 14]]}
    judge_gradients(impl, check, f"({product}) * W", operands, expected, dtype)


@clause("LANG-05.5-01", "LANG-05.2-02")
def test_batched_products(impl, check):
    """Each product of a batch has gradients of its own."""
    operands = {"A": [[[1, 2]], [[3, 4]]], "B": [[[5], [6]], [[7], [8]]], "W": [[[1]], [[2]]]}
    expected = {"A": [[[5, 6]], [[14, 16]]], "B": [[[1], [2]], [[6], [8]]]}
    judge_gradients(impl, check, "(A @ B) * W", operands, expected)


@clause("LANG-05.5-01", "LANG-05.2-02")
def test_products_of_a_batch_of_batches(impl, check):
    """Two equal axes of batches stay in their order."""
    operands = {
        "A": [[[[1, 2]], [[3, 4]]], [[[5, 6]], [[7, 8]]]],
        "B": [[[[2], [1]], [[4], [3]]], [[[6], [5]], [[8], [7]]]],
        "W": [[[[1]], [[2]]], [[[-1]], [[4]]]],
    }
    expected = {
        "A": [[[[2, 1]], [[8, 6]]], [[[-6, -5]], [[32, 28]]]],
        "B": [[[[1], [2]], [[6], [8]]], [[[-5], [-6]], [[28], [32]]]],
    }
    judge_gradients(impl, check, "(A @ B) * W", operands, expected)


@clause("LANG-05.5-01", "LANG-05.2-02")
def test_a_square_of_matrices(impl, check):
    """A @ A: the left and the right operand are one value, which gets both gradients."""
    operands = {"A": [[1, 2], [3, 4]], "W": [[1, 0], [0, 0]]}
    judge_gradients(impl, check, "(A @ A) * W", operands, {"A": [[2, 3], [2, 0]]})


@clause("LANG-05.5-01", "LANG-05.2-03")
@level("strict")
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32", "fp64"])
def test_softmax_of_equal_elements(impl, check, dtype):
    """Halves, whose slopes are quarters: p * (w - the mean of w)."""
    operands = {"A": [[2, 2], [-1, -1]], "W": [[1, 0], [8, -8]]}
    judge_gradients(impl, check, "op.softmax(A) * W", operands, {"A": [[0.25, -0.25], [4, -4]]}, dtype)


# Operations of features

A, B, W = [[1, 2, 3], [4, 5, 6]], [[6, 5, 4], [3, 2, 1]], [[1, 2, 4], [8, 16, 32]]
SIGNED, BOOLS = [[-1, 2, -3], [4, -5, 6]], tensor_of("bool", [[True, False, True], [False, False, True]])
INDICES = tensor_of("int32", [1, 0, 1])
TURNED = [[1, 2], [3, 4], [5, 6]]
MATRICES = {"A": A, "B": B, "W": W}
UPPER, LOWER = [[0, 0, 0], [8, 16, 32]], [[1, 2, 4], [0, 0, 0]]
"""The weights where the elements of A are the larger ones, and where those of B are."""

MOVED = {
    "transpose": ("op.transpose(A) * V", {"A": A, "V": TURNED}, {"A": [[1, 3, 5], [2, 4, 6]]}),
    "permuted": (
        "op.transpose(A) @{perm=[1, 2, 0]} * V",
        {"A": [[[1, 2, 3]], [[4, 5, 6]]], "V": [TURNED]},
        {"A": [[[1, 3, 5]], [[2, 4, 6]]]},
    ),
    "reshape": ("op.reshape(A) @{shape=[3, 2]} * V", {"A": A, "V": TURNED}, {"A": [[1, 2, 3], [4, 5, 6]]}),
    "reshape-of-three-axes": (
        "op.reshape(A) @{shape=[6]} * V",
        {"A": [[[1], [2], [3]], [[4], [5], [6]]], "V": [1, 2, 4, 8, 16, 32]},
        {"A": [[[1], [2], [4]], [[8], [16], [32]]]},
    ),
    "broadcast-middle-axis": (
        "op.broadcast(A) @{shape=[2, 2, 3]} * V",
        {"A": [[[3, 5, 7]], [[2, 4, 6]]], "V": [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]},
        {"A": [[[5, 7, 9]], [[17, 19, 21]]]},
    ),
    "broadcast": ("op.broadcast(A) @{shape=[2, 3]} * W", {"A": [[3], [5]], "W": W}, {"A": [[7], [56]]}),
    "broadcast-new-axis": ("op.broadcast(A) @{shape=[2, 3]} * W", {"A": [3, 5, 7], "W": W}, {"A": [9, 18, 36]}),
    "concat": (
        "op.concat(A, B, C) @{axis=1} * V",
        {"A": [[1], [2]], "B": [[3, 4], [5, 6]], "C": [[7], [8]], "V": [[1, 2, 3, 9], [4, 5, 6, 7]]},
        {"A": [[1], [4]], "B": [[2, 3], [5, 6]], "C": [[9], [7]]},
    ),
    "concat-of-itself": ("op.concat(A, A) @{axis=0} * V", {"A": [1, 2], "V": [1, 2, 4, 8]}, {"A": [5, 10]}),
    "pad": (
        "op.pad(A) @{low=[1, 0], high=[0, 2], value=5.0} * V",
        {"A": [[1, 2]], "V": [[1, 2, 3, 4], [5, 6, 7, 8]]},
        {"A": [[5, 6]]},
    ),
    "slice": (
        "op.slice(A) @{starts=[0, 2], stops=[2, 0], steps=[1, -1]} * V",
        {"A": A, "V": [[1, 2], [3, 4]]},
        {"A": [[0, 2, 1], [0, 4, 3]]},
    ),
    "gather": ("op.gather(A, I) @{axis=1} * W", {"A": A, "I": INDICES, "W": W}, {"A": [[2, 5, 0], [16, 40, 0]]}),
    "gather-one": (
        "op.gather(A, i) @{axis=0} * V",
        {"A": A, "i": tensor_of("int32", 1), "V": [1, 2, 3]},
        {"A": [[0, 0, 0], [1, 2, 3]]},
    ),
    "scatter_add": (
        "op.scatter_add(A, I, B) @{axis=1} * W",
        {**MATRICES, "I": INDICES},
        {"A": W, "B": [[2, 1, 2], [16, 8, 16]]},
    ),
    "select": (
        "op.select(M, A, B) * W",
        {**MATRICES, "M": BOOLS},
        {"A": [[1, 0, 4], [0, 0, 32]], "B": [[0, 2, 0], [8, 16, 0]]},
    ),
    "select-by-true": (
        "op.select(m, A, B) * W",
        {**MATRICES, "m": tensor_of("bool", True)},
        {"A": W, "B": [[0, 0, 0], [0, 0, 0]]},
    ),
    "select-by-false": (
        "op.select(m, A, B) * W",
        {**MATRICES, "m": tensor_of("bool", False)},
        {"A": [[0, 0, 0], [0, 0, 0]], "B": W},
    ),
    "select-by-value": (
        "op.select(A > B, A * A, B) * W",
        MATRICES,
        {"A": [[0, 0, 0], [64, 160, 384]], "B": LOWER},
    ),
    "select-of-scalars": ("op.select(M, a, b) * W", {"M": BOOLS, "a": 3, "b": 5, "W": W}, {"a": 37, "b": 26}),
    "maximum": ("op.maximum(A, B) * W", MATRICES, {"A": UPPER, "B": LOWER}),
    "minimum": ("op.minimum(A, B) * W", MATRICES, {"A": LOWER, "B": UPPER}),
    "clamp": (
        "op.clamp(A, a, b) * W",
        {"A": SIGNED, "a": -2, "b": 3, "W": W},
        {"A": [[1, 2, 0], [0, 0, 0]], "a": 20, "b": 40},
    ),
    "abs": ("op.abs(A) * W", {"A": SIGNED, "W": W}, {"A": [[-1, 2, -4], [8, -16, 32]]}),
    "relu": ("op.relu(A) * W", {"A": SIGNED, "W": W}, {"A": [[0, 2, 0], [8, 0, 32]]}),
}


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("tensor-ops")
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize(("expression", "operands", "expected"), MOVED.values(), ids=MOVED)
def test_movement_and_choice(impl, check, expression, operands, expected, dtype):
    """Each weight goes back to where its element came from: twice taken is twice given, never taken is zero."""
    judge_gradients(impl, check, expression, operands, expected, dtype)


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("elementary-functions")
@level("strict")
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
def test_powers_of_negative_numbers(impl, check, dtype):
    """The slope of a power with a whole exponent has the sign of one power less."""
    operands = {"A": [-2, -3, 2, -1], "B": [2, 3, 3, 4], "W": [1, 2, 1, 4]}
    judge_gradients(impl, check, "op.pow(A, B) * W", operands, {"A": [-4, 54, 12, -16]}, dtype)


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("layout-casts")
def test_layout_casts(impl, check):
    """A cast there and back moves nothing, and neither does its gradient (AMB-LANG-157)."""
    expression = "op.layout_cast(op.layout_cast(A) @{to=col_major} * 3.0) @{to=row_major} * W"
    judge_gradients(impl, check, expression, {"A": A, "W": W}, {"A": [[3, 6, 12], [24, 48, 96]]})


ROWS, PAIR = [[1, 2, 4, 8], [3, -1, 2, -2]], [2, -4]
REDUCED = {
    "sum": ("op.sum(A) @{axis=1} * V", {"A": ROWS, "V": PAIR}, {"A": [[2] * 4, [-4] * 4]}),
    "sum-of-columns": ("op.sum(A) @{axis=0} * V", {"A": ROWS, "V": [1, 2, 3, 4]}, {"A": [[1, 2, 3, 4]] * 2}),
    "sum-kept": ("op.sum(A) @{axis=1, keepdims=true} * V", {"A": ROWS, "V": [[2], [-4]]}, {"A": [[2] * 4, [-4] * 4]}),
    "mean": ("op.mean(A) @{axis=-1} * V", {"A": ROWS, "V": PAIR}, {"A": [[0.5] * 4, [-1] * 4]}),
    "prod": ("op.prod(A) @{axis=1} * V", {"A": ROWS, "V": PAIR}, {"A": [[128, 64, 32, 16], [-16, 48, -24, 24]]}),
    "prod-with-zero": ("op.prod(A) @{axis=0}", {"A": [2, 0, 5]}, {"A": [0, 10, 0]}),
    "prod-with-zeros": ("op.prod(A) @{axis=0}", {"A": [2, 0, 0]}, {"A": [0, 0, 0]}),
    "max": ("op.max(A) @{axis=1} * V", {"A": ROWS, "V": PAIR}, {"A": [[0, 0, 0, 2], [-4, 0, 0, 0]]}),
    "min": ("op.min(A) @{axis=1} * V", {"A": ROWS, "V": PAIR}, {"A": [[2, 0, 0, 0], [0, 0, 0, -4]]}),
    "max-of-columns": ("op.max(A) @{axis=0, keepdims=true}", {"A": ROWS}, {"A": [[0, 1, 1, 1], [1, 0, 0, 0]]}),
}  # fmt: skip


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("reductions")
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize(("expression", "operands", "expected"), REDUCED.values(), ids=REDUCED)
def test_reductions(impl, check, expression, operands, expected, dtype):
    """The gradient of an element is its contribution to the result of its line."""
    judge_gradients(impl, check, expression, operands, expected, dtype)


@clause("LANG-05.5-01", "LANG-05.5-02", "LANG-03.1-05")
@feature("casts")
def test_casts_between_floats(impl, check):
    """A gradient is cast back to the type of its operand (AMB-LANG-163)."""
    operands = {"A": tensor_of("bf16", [1, 2]), "B": tensor_of("fp32", [3, -5]), "C": tensor_of("fp64", [0.5, 4])}
    expression = "op.cast(A) @{dtype=fp64} * op.cast(B) @{dtype=fp64} * C"
    judge_gradients(impl, check, expression, operands, {"A": [1.5, -20], "B": [0.5, 8], "C": [3, -10]})


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("random-ops")
def test_dropout_is_differentiated_with_its_mask(impl, check):
    """Kept elements have been doubled, and so is their gradient; the others have none (AMB-LANG-172)."""
    powers = tensor_of("fp32", [float(2 ** (place % 8)) for place in range(64)])
    dropped = "let Y: tensor<64xfp32> = op.dropout(A) @{rate=0.5, seed=7};"
    body = [dropped, "return Y, op.grad(Y, A), op.grad(Y, A) * A;"]
    dropped, slopes, product = evaluate(impl, check, program(*body, parameters="A: tensor<64xfp32>"), A=powers)
    check.bits(without_signed_zeros(product), without_signed_zeros(dropped), "the slope times the operand")
    actual = set(without_signed_zeros(slopes).words().tolist())
    check.equal(sorted(actual), [0, 0x40000000], "the slopes: 0 and 2")


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("stateful-ops")
def test_a_step_down_a_gradient(impl, check):
    """p - (u / 2 + g) / 4: a step of an optimizer is differentiated like any expression."""
    expression = "op.sgd(P, G, U) @{rate=0.25, momentum=0.5, only=parameter} * W"
    operands = {"P": [1, 2], "G": [3, 4], "U": [5, 6], "W": [8, -16]}
    judge_gradients(impl, check, expression, operands, {"P": [8, -16], "G": [-2, 4], "U": [-1, 2]})
