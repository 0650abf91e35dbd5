"""Gradients at corners, ties and poles, and where steps of an adjoint round; worked out by hand."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def evaluate(signature: str, body: str, **inputs: Array) -> list[Array]:
    statements = body if "return" in body else f"return {body};"
    return list(execute(compile_source(f"module m {{ func f({signature}) {{ {statements} }} }}").module, "f", inputs))


def gradient(expression: str, name: str, *values: float) -> list[float]:
    """The gradient of an expression in the tensor X with respect to X."""
    x = array(name, values)
    (found,) = evaluate(f"X: tensor<{len(values)}x{name}>", f"op.grad({expression}, X)", X=x)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    return [float(value) for value in found.values]


@pytest.mark.parametrize(
    ("expression", "points", "expected"),
    [
        ("op.relu(X)", [-1.0, -0.0, 0.0, 2.0, inf, -inf], [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]),
        ("op.abs(X)", [-1.0, -0.0, 0.0, 2.0, inf, -inf], [-1.0, 0.0, 0.0, 1.0, 1.0, -1.0]),
        ("op.max(X, axis=0)", [1.0, 3.0, 3.0, 2.0], [0.0, 1.0, 0.0, 0.0]),
        ("op.min(X, axis=0)", [3.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]),
        ("op.max(X, axis=0)", [-0.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
        ("op.min(X, axis=0)", [0.0, -0.0, -0.0], [0.0, 1.0, 0.0]),
        ("op.max(X, axis=0)", [1.0, nan, nan], [0.0, 1.0, 0.0]),
        ("op.maximum(X, X)", [1.0, -2.0], [1.0, 1.0]),
        ("op.clamp(X, -1.0, 1.0)", [-2.0, -1.0, 0.5, 1.0, 2.0], [0.0, 1.0, 1.0, 1.0, 0.0]),
        ("op.sqrt(X)", [0.0, 4.0, inf], [inf, 0.25, 0.0]),
        ("op.log(X)", [0.0, 0.25, inf], [inf, 4.0, 0.0]),
        ("op.reciprocal(X)", [0.0, -0.5, inf], [-inf, -4.0, 0.0]),
        ("op.tanh(X)", [inf, -inf, 0.0], [0.0, 0.0, 1.0]),
        ("op.sigmoid(X)", [inf, -inf, 0.0], [0.0, 0.0, 0.25]),
        ("op.exp(X)", [-inf, 0.0, inf], [0.0, 1.0, inf]),
        ("op.expm1(X)", [-inf, 0.0], [0.0, 1.0]),
        ("op.prod(X, axis=0)", [0.0, 3.0, 5.0], [15.0, 0.0, 0.0]),
        ("op.logsumexp(X, axis=0)", [-inf, 0.0, -inf], [0.0, 1.0, 0.0]),
        ("op.select(X > 0.0, X * X, -X)", [3.0, -3.0], [6.0, -1.0]),
    ],
)
def test_corners_and_poles(expression: str, points: list[float], expected: list[float]) -> None:
    assert gradient(expression, "fp32", *points) == expected


@pytest.mark.parametrize("dtype_name", ["fp32", "fp64"])
def test_operands_that_are_equal_give_everything_to_the_first(dtype_name: str) -> None:
    signature = f"A: tensor<3x{dtype_name}>, B: tensor<3x{dtype_name}>"
    inputs = {"A": array(dtype_name, [1, 2, 3]), "B": array(dtype_name, [1, 3, 2])}
    for operation, to_a in (("maximum", [1, 0, 1]), ("minimum", [1, 1, 0])):
        a, b = evaluate(
            signature,
            f"let Y: tensor<3x{dtype_name}> = op.{operation}(A, B); return op.grad(Y, A), op.grad(Y, B);",
            **inputs,
        )
        assert a.values.tolist() == to_a
        assert b.values.tolist() == [1 - partial for partial in to_a]


@pytest.mark.parametrize(
    ("a", "b", "to_a", "to_b"),
    [
        (0.0, 2.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (2.0, 0.0, 0.0, 0.6931471824645996),  # log 2 in fp32
        (-2.0, 3.0, 12.0, nan),
        (1.0, 5.0, 5.0, 0.0),
        (4.0, 0.5, 0.25, 2.7725887298583984),  # 2 log 4
    ],
)
def test_powers(a: float, b: float, to_a: float, to_b: float) -> None:
    body = "let y: fp32 = op.pow(a, b); return op.grad(y, a), op.grad(y, b);"
    actual = evaluate("a: fp32, b: fp32", body, a=array("fp32", a), b=array("fp32", b))
    np.testing.assert_array_equal([float(array.values) for array in actual], [to_a, to_b])


def test_the_slope_of_expm1_keeps_its_digits_where_expm1_is_close_to_minus_one() -> None:
    assert gradient("op.expm1(X)", "fp32", -30.0) == [float(np.float32(9.357622968840175e-14))]


def test_every_step_of_an_adjoint_rounds_in_the_operands_dtype() -> None:
    # y = tanh(1) = 195/256 in bf16; y * y = 148.5.../256 rounds to 149/256, and 1 - y * y is 107/256.
    assert gradient("op.tanh(X)", "bf16", 1.0) == [107 / 256]


def test_a_mean_of_more_elements_than_the_dtype_counts_to() -> None:
    # bf16 has no 257 and would divide by 256; 1/257 lies next to 255/65536.
    assert set(gradient("op.mean(X, axis=0)", "bf16", *[1.0] * 257)) == {255 / 65536}


def test_a_product_asked_for_in_a_wider_dtype_rounds_its_gradients_once() -> None:
    # dA = 1 * b over two columns of b: 1 + 2**-8 + 2**-9 lies above the midpoint of bf16 and rounds up.
    signature = "A: tensor<1x1xbf16>, B: tensor<1x3xbf16>"
    inputs = {"A": array("bf16", [[2.0]]), "B": array("bf16", [[1.0, 2.0**-8, 2.0**-9]])}
    (actual,) = evaluate(signature, "op.grad(op.matmul(A, B, out=fp32), A)", **inputs)
    assert (actual.dtype.name, actual.values.tolist()) == ("bf16", [[1 + 2.0**-7]])


def refused(signature: str, body: str, **inputs: Array) -> str:
    """Return the category of the one error with which a body ends."""
    with pytest.raises(Rejection) as caught:
        evaluate(signature, body, **inputs)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.phase == "execute"
    return diagnostic.category


def test_keys_that_turn_out_to_be_none_are_an_error() -> None:
    signature = "q: tensor<2x4xfp32>, k: tensor<Sx4xfp32>, v: tensor<Sx1xfp32>"
    inputs = {"q": array("fp32", np.ones((2, 4))), "k": array("fp32", np.ones((0, 4)))}
    inputs["v"] = array("fp32", np.ones((0, 1)))
    assert refused(signature, "op.flash_attention(q, k, v)", **inputs) == "shapes"


def test_the_last_element_index_is_the_largest() -> None:
    (actual,) = evaluate("", "op.uniform(shape=[2], stream=1, offset=9223372036854775805)")
    assert actual.to_bits() == oracle.uniform(seed=0, stream=1, shape=(2,), offset=2**63 - 3).data
    assert refused("", "op.uniform(shape=[9], offset=9223372036854775805)") == "numerics"
