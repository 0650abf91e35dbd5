"""Gradients at corners and poles, and of compound operations."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def evaluate(signature: str, body: str, **inputs: Array) -> list[Array]:
    statements = body if "return" in body else f"return {body};"
    return list(execute(compile_source(f"module m {{ func f({signature}) {{ {statements} }} }}").module, "f", inputs))


def gradient(expression: str, name: str, *values: float) -> list[float]:
    """Of an expression in the tensor X with respect to it."""
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
        assert b.values.tolist() == [1 - each for each in to_a]


def test_a_clamp_whose_bounds_cross_gives_everything_to_the_upper_one() -> None:
    signature = "X: tensor<3xfp32>, L: fp32, H: fp32"
    body = "let Y: tensor<3xfp32> = op.clamp(X, L, H); return op.grad(Y, X), op.grad(Y, L), op.grad(Y, H);"
    x, low, high = evaluate(signature, body, X=array("fp32", [0, 2, 5]), L=array("fp32", 3.0), H=array("fp32", 1.0))
    assert (x.values.tolist(), float(low.values), float(high.values)) == ([0, 0, 0], 0, 3)


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
    found = evaluate("a: fp32, b: fp32", body, a=array("fp32", a), b=array("fp32", b))
    np.testing.assert_array_equal([float(each.values) for each in found], [to_a, to_b])


def test_the_slope_of_expm1_keeps_its_digits_where_expm1_is_close_to_minus_one() -> None:
    assert gradient("op.expm1(X)", "fp32", -30.0) == [float(np.float32(9.357622968840175e-14))]


def test_every_step_of_an_adjoint_rounds_in_the_operands_dtype() -> None:
    # y = tanh(1) = 195/256 in bf16; y * y = 148.5.../256 rounds to 149/256, and 1 - y * y is 107/256.
    assert gradient("op.tanh(X)", "bf16", 1.0) == [107 / 256]


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"])
def test_every_float_dtype_has_gradients_of_its_own(name: str) -> None:
    assert gradient("X * X + op.relu(X)", name, -2.0, 3.0) == [-4.0, 7.0]
    assert gradient("op.mean(X, axis=0)", name, *[1.0] * 4) == [0.25] * 4


def test_a_mean_of_more_elements_than_the_dtype_counts_to() -> None:
    # bf16 has no 257 and would divide by 256; 1/257 lies next to 255/65536.
    assert set(gradient("op.mean(X, axis=0)", "bf16", *[1.0] * 257)) == {255 / 65536}


def test_a_product_asked_for_in_a_wider_dtype_rounds_its_gradients_once() -> None:
    # dA = 1 * b over two columns of b: 1 + 2**-8 + 2**-9 lies above the midpoint of bf16 and rounds up.
    signature = "A: tensor<1x1xbf16>, B: tensor<1x3xbf16>"
    inputs = {"A": array("bf16", [[2.0]]), "B": array("bf16", [[1.0, 2.0**-8, 2.0**-9]])}
    (found,) = evaluate(signature, "op.grad(op.matmul(A, B, out=fp32), A)", **inputs)
    assert (found.dtype.name, found.values.tolist()) == ("bf16", [[1 + 2.0**-7]])


def test_gradients_of_gradients() -> None:
    assert gradient("op.grad(X * X * X, X)", "fp32", 2.0, -3.0) == [12.0, -18.0]
    assert gradient("op.grad(op.prod(X, axis=0), X)", "fp32", 2.0, 3.0, 0.0) == [3.0, 2.0, 5.0]
    assert gradient("op.grad(X[0:2] * X[2], X)", "fp32", 5.0, 7.0, 2.0) == [1.0, 1.0, 2.0]
    assert gradient("op.grad(op.pow(X, 2.0), X)", "fp32", 0.0, 3.0) == [2.0, 2.0]


def test_additions_of_one_gathered_slice_are_made_in_ascending_order() -> None:
    # To X[0]: 2**24 + 1 + 1 + (-2**24). Ascending, 1 is lost twice; any other order leaves something.
    signature = "X: tensor<2xfp32>, I: tensor<4xint32>, W: tensor<4xfp32>"
    weights = array("fp32", [2.0**24, 1.0, 1.0, -(2.0**24)])
    (found,) = evaluate(
        signature,
        "op.grad(op.gather(X, I, axis=0) * W, X)",
        X=array("fp32", [1, 1]),
        I=array("int32", [0] * 4),
        W=weights,
    )
    assert found.values.tolist() == [0.0, 0.0]


def test_an_empty_axis_has_an_empty_gradient() -> None:
    empty = Array(dtype("fp32"), np.zeros((0, 2), np.float32))
    for expression in ("op.sum(X, axis=0)", "op.mean(X, axis=0)", "op.prod(X, axis=0)", "X * X"):
        (found,) = evaluate("X: tensor<0x2xfp32>", f"op.grad({expression}, X)", X=empty)
        assert found.shape == (0, 2)


NORM_NUMBERS = np.random.Generator(np.random.PCG64(5))


NORM_X, GAMMA, BETA = NORM_NUMBERS.standard_normal((3, 2, 4)), *NORM_NUMBERS.standard_normal((2, 4))


root = np.vectorize(mpmath.sqrt, otypes=[object])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("wrt", ["x", "g", "b"])
def test_the_gradient_of_layer_norm(programs: Any, differences: Any, axis: int, wrt: str) -> None:
    def model(x: Any, g: Any, b: Any) -> Any:
        x = x if axis == 1 else x.T
        centred = x - x.sum(1, keepdims=True) / x.shape[1]
        variance = (centred * centred).sum(1, keepdims=True) / x.shape[1]
        y = centred / root(variance + mpmath.mpf(0.5)) * g + b
        return y if axis == 1 else y.T

    x, g, b = NORM_X[0], GAMMA[: NORM_X[0].shape[axis]], BETA[: NORM_X[0].shape[axis]]
    expression = f"op.layer_norm(x, g, b, axis={axis}, eps=0.5)"
    assert differences.agree(programs, expression, model, NORM_X[1], wrt, x=x, g=g, b=b)


@pytest.mark.parametrize("wrt", ["x", "g"])
def test_the_gradient_of_rms_norm(programs: Any, differences: Any, wrt: str) -> None:
    def model(x: Any, g: Any) -> Any:
        return x / root((x * x).sum(1, keepdims=True) / x.shape[1] + mpmath.mpf(0.5)) * g

    assert differences.agree(programs, "op.rms_norm(x, g, eps=0.5)", model, NORM_X[1], wrt, x=NORM_X[0], g=GAMMA)


ATTENTION_NUMBERS = np.random.Generator(np.random.PCG64(8))


Q, K = ATTENTION_NUMBERS.standard_normal((2, 2, 3, 4))


ATTENTION_V, ATTENTION_W = ATTENTION_NUMBERS.standard_normal((2, 2, 3, 2))


@pytest.mark.parametrize("wrt", "qkv")
@pytest.mark.parametrize("causal", [False, True])
def test_the_gradient_of_attention(programs: Any, differences: Any, wrt: str, causal: bool) -> None:
    def model(q: Any, k: Any, v: Any) -> Any:
        rows = []
        for head in range(2):
            for query in range(3):
                taken = query + 1 if causal else 3
                scores = (k[head, :taken] * q[head, query]).sum(1) / 2
                weights = np.vectorize(mpmath.exp, otypes=[object])(scores)
                rows.append((weights[:, None] * v[head, :taken]).sum(0) / weights.sum())
        return np.array(rows).reshape(2, 3, 2)

    call = f"op.flash_attention(q, k, v, causal={str(causal).lower()})"
    assert differences.agree(programs, call, model, ATTENTION_W, wrt, q=Q, k=K, v=ATTENTION_V)


def test_keys_that_turn_out_to_be_none_are_an_error(programs: Any) -> None:
    signature = "q: tensor<2x4xfp32>, k: tensor<Sx4xfp32>, v: tensor<Sx1xfp32>"
    given = {"q": counted("fp32", (2, 4), 1), "k": Tensor("fp32", (0, 4), b""), "v": Tensor("fp32", (0, 1), b"")}
    assert programs.failed("op.flash_attention(q, k, v)", signature, **given).category == "shapes"


STEP_NUMBERS = np.random.Generator(np.random.PCG64(7))


P, G, M, STEP_W = STEP_NUMBERS.standard_normal((4, 2, 3))


STEP_V = STEP_NUMBERS.random((2, 3)) + 0.5


def step(number: int) -> Tensor:
    return Tensor.from_words("int32", (), [number & 0xFFFFFFFF])


def test_a_loop_of_steps_minimizes_a_square(programs: Any) -> None:
    """Every turn takes the state of the one before; x goes to 3, until a step is too small to change it."""
    body = """
        let p: fp32 = x;
        let u: fp32 = 0.0;
        for (i in 0:200) {
            let g: fp32 = 2.0 * (p - 3.0);
            let next: fp32 = op.sgd(p, g, u, rate=0.05, momentum=0.5, only=velocity);
            p = op.sgd(p, g, u, rate=0.05, momentum=0.5, only=parameter);
            u = next;
        }
        return p;
    """
    (found,) = programs.run(body, x=programs.tensor(-20))
    assert abs(programs.array(found) - 3) <= 2 * 2.0**-22


@pytest.mark.parametrize("wrt", "pgm")
def test_the_gradient_of_a_step_of_sgd(programs: Any, differences: Any, wrt: str) -> None:
    def model(p: Any, g: Any, m: Any) -> Any:
        return p - (m * mpmath.mpf(0.75) + g) * mpmath.mpf(0.5)

    call = "op.sgd(p, g, m, rate=0.5, momentum=0.75, only=parameter)"
    assert differences.agree(programs, call, model, STEP_W, wrt, p=P, g=G, m=M)


@pytest.mark.parametrize("wrt", "pgmv")
def test_the_gradient_of_a_step_of_adamw(programs: Any, differences: Any, wrt: str) -> None:
    """Through the averages; with respect to the square's too, whose root is far from zero."""

    def model(p: Any, g: Any, m: Any, v: Any) -> Any:
        root = np.vectorize(mpmath.sqrt, otypes=[object])
        first, second, half = mpmath.mpf(0.75), mpmath.mpf(0.5), mpmath.mpf(0.5)
        mean = (m * first + g * (1 - first)) / (1 - first**3)
        square = (v * second + g * g * (1 - second)) / (1 - second**3)
        return p - (mean / (root(square) + half) + p * half) * half

    call = "op.adamw(p, g, m, v, 3, rate=0.5, beta1=0.75, beta2=0.5, eps=0.5, decay=0.5, only=parameter)"
    assert differences.agree(programs, call, model, STEP_W, wrt, p=P, g=G, m=M, v=STEP_V)


CALL = "op.batch_norm(x, g, b, m, v{})"


BATCH_NUMBERS = np.random.Generator(np.random.PCG64(6))


BATCH_X, BATCH_W = BATCH_NUMBERS.standard_normal((2, 3, 2, 2))


VECTORS = dict(zip("gbm", BATCH_NUMBERS.standard_normal((3, 2)), strict=True)) | {"v": np.array([0.5, 2.0])}


@pytest.mark.parametrize("wrt", "xgb")
@pytest.mark.parametrize("training", [True, False])
def test_the_gradient_of_batch_norm(programs: Any, differences: Any, wrt: str, training: bool) -> None:
    """In training through the statistics of the batch."""

    def model(x: Any, g: Any, b: Any, m: Any, v: Any) -> Any:
        count = x.shape[0] * x.shape[2]
        middle = x.sum(0).sum(1) / count if training else m
        centred = x - middle[:, None]
        spread = (centred * centred).sum(0).sum(1) / count if training else v
        root = np.vectorize(mpmath.sqrt, otypes=[object])(spread + mpmath.mpf(0.5))
        return centred / root[:, None] * g[:, None] + b[:, None]

    call = CALL.format(f", only=y, eps=0.5, training={str(training).lower()}")
    assert differences.agree(programs, call, model, BATCH_W, wrt, x=BATCH_X, **VECTORS)


def test_the_gradient_of_the_running_statistics(programs: Any) -> None:
    """(1 - momentum) times what comes in, and momentum over the count to each element of the batch."""
    given = {"x": programs.tensor([[1, -2], [3, 2]]), "g": programs.tensor([1, 1]), "m": programs.tensor([5, 6])}
    body = """
        let n: tensor<2xfp32> = op.batch_norm(x, g, g, m, g, momentum=0.25, only=mean);
        return op.grad(n * n, m, x);
    """
    # n = 0.75 m + 0.25 mean(x) = [4.25, 4.5]
    to_m, to_x = programs.run(body, **given)
    assert to_m == programs.tensor([1.5 * 4.25, 1.5 * 4.5])
    assert to_x == programs.tensor([[0.25 * 4.25, 0.25 * 4.5]] * 2)


DRAWS = {"uniform": oracle.uniform, "normal": oracle.normal}


def drawn(name: str, stream: int, shape: tuple[int, ...] = (3,)) -> Tensor:
    found: Tensor = DRAWS[name](seed=0, stream=stream, shape=shape)
    return found


# Gradients


def test_the_gradient_of_dropout_has_its_mask(programs: Any) -> None:
    """dy / (1 - rate) where the element was kept, +0 elsewhere; 1 - 0.75 is exact, so are the quotients."""
    x, w = programs.tensor(np.arange(1, 33)), programs.tensor(-np.arange(1, 33) / 8)
    body = """
        op.normal(shape=[1]);
        let y: tensor<32xfp32> = op.dropout(x, rate=0.75);
        op.normal(shape=[1]);
        return y, op.grad(y * w, x);
    """
    y, gradient = programs.run(body, x=x, w=w)
    assert y == oracle.dropout(x, rate=0.75, seed=0, stream=1)
    kept = programs.array(y) != 0
    assert 0 < kept.sum() < 32
    assert gradient == programs.tensor(np.where(kept, programs.array(w) * 4, 0))


def test_a_draw_depends_on_nothing(programs: Any) -> None:
    body = "let y: tensor<3xfp32> = x * op.uniform(shape=[3]); return op.grad(y, x);"
    assert programs.run(body, x=programs.tensor([4, 5, 6])) == (drawn("uniform", 0),)


def test_the_last_element_index_is_the_largest(programs: Any) -> None:
    last = "op.uniform(shape=[2], stream=1, offset=9223372036854775805)"
    assert programs.run(last) == (oracle.uniform(seed=0, stream=1, shape=(2,), offset=2**63 - 3),)
    assert programs.failed("op.uniform(shape=[9], offset=9223372036854775805)").category == "numerics"
