"""Gradients and compound operations against JAX, on the CPU in fp64: every differentiable operation, compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype

jax = pytest.importorskip("jax", reason="JAX is missing: pip install 'tessera-conformance[evidence]'")
jnp = jax.numpy
AGREEMENT = 2.0**-40


@pytest.fixture(autouse=True, scope="module")
def in_double_precision() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def numbers(shape: tuple[int, ...], low: float, high: float, seed: int) -> np.ndarray[Any, Any]:
    return np.random.Generator(np.random.PCG64([seed, *shape])).uniform(low, high, shape)


def gradients(body: str, operands: dict[str, np.ndarray[Any, Any]], helpers: str = "") -> list[np.ndarray[Any, Any]]:
    """The gradients of Y, which `body` computes from A, B and C, by each of them; I holds indices."""
    form = {"i": "int32", "f": "fp64"}
    types = {
        name: f"tensor<{'x'.join([*map(str, x.shape), form[x.dtype.kind]])}>" if x.shape else form[x.dtype.kind]
        for name, x in operands.items()
    }
    signature = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    floats = [name for name, x in operands.items() if x.dtype.kind == "f"]
    returned = ", ".join(f"op.grad(Y, {name})" for name in floats)
    source = f"module m {{ {helpers} func f({signature}) {{ {body} return {returned}; }} }}"
    inputs = {name: Array(dtype(form[x.dtype.kind]), x) for name, x in operands.items()}
    return [found.values for found in execute(compile_source(source, "t.tsr").module, "f", inputs)]


def compare(
    found: list[np.ndarray[Any, Any]], function: Callable[..., Any], operands: dict[str, Any], traced: bool = True
) -> None:
    """With JAX's gradients of the same function; it may be traced unless it branches on values."""
    floats = tuple(i for i, x in enumerate(operands.values()) if x.dtype.kind == "f")
    gradient = jax.grad(lambda *arguments: jnp.sum(function(*arguments)), argnums=floats)
    expected = (jax.jit(gradient) if traced else gradient)(*operands.values())
    for ours, theirs in zip(found, expected, strict=True):
        theirs = np.asarray(theirs)
        assert (ours.shape, theirs.dtype) == (theirs.shape, np.float64)
        assert np.abs(theirs).max() > 0
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=AGREEMENT * max(np.abs(theirs).max(), 1))


ELEMENTWISE = [
    ("op.exp(A)", lambda a: jnp.exp(a)),
    ("op.exp2(A)", lambda a: jnp.exp2(a)),
    ("op.expm1(A)", lambda a: jnp.expm1(a)),
    ("op.log(A)", lambda a: jnp.log(a)),
    ("op.log2(A)", lambda a: jnp.log2(a)),
    ("op.log1p(A)", lambda a: jnp.log1p(a)),
    ("op.sin(A)", lambda a: jnp.sin(a)),
    ("op.cos(A)", lambda a: jnp.cos(a)),
    ("op.tan(A)", lambda a: jnp.tan(a)),
    ("op.sinh(A)", lambda a: jnp.sinh(a)),
    ("op.cosh(A)", lambda a: jnp.cosh(a)),
    ("op.tanh(A)", lambda a: jnp.tanh(a)),
    ("op.erf(A)", lambda a: jax.scipy.special.erf(a)),
    ("op.sqrt(A)", lambda a: jnp.sqrt(a)),
    ("op.rsqrt(A)", lambda a: jax.lax.rsqrt(a)),
    ("op.reciprocal(A)", lambda a: 1 / a),
    ("op.sigmoid(A)", lambda a: jax.nn.sigmoid(a)),
    ("op.silu(A)", lambda a: jax.nn.silu(a)),
    ("op.gelu(A)", lambda a: jax.nn.gelu(a, approximate=False)),
    ("op.gelu(A, approximate=tanh)", lambda a: jax.nn.gelu(a, approximate=True)),
    ("op.relu(A - 1.0)", lambda a: jax.nn.relu(a - 1)),
    ("op.abs(A - 1.0)", lambda a: jnp.abs(a - 1)),
    ("-A", lambda a: -a),
    ("op.softmax(A) * A", lambda a: jax.nn.softmax(a) * a),
    ("op.softmax(A, axis=0) * A", lambda a: jax.nn.softmax(a, axis=0) * a),
    ("op.cast(op.cast(A, dtype=fp32), dtype=fp64) * A", lambda a: a.astype(jnp.float32).astype(jnp.float64) * a),
    ("op.transpose(A) @ A", lambda a: a.T @ a),
    ("op.sum(A * A, axis=0)", lambda a: jnp.sum(a * a, axis=0)),
    ("op.mean(A * A, axis=1, keepdims=true) * A", lambda a: jnp.mean(a * a, axis=1, keepdims=True) * a),
    ("op.prod(A, axis=1)", lambda a: jnp.prod(a, axis=1)),
    ("op.max(A, axis=0)", lambda a: jnp.max(a, axis=0)),
    ("op.min(A, axis=1) * A[:, 0]", lambda a: jnp.min(a, axis=1) * a[:, 0]),
    ("op.logsumexp(A, axis=1)", lambda a: jax.scipy.special.logsumexp(a, axis=1)),
    ("op.reshape(A, shape=[2, 6]) * op.reshape(A, shape=[12])[0:6]", lambda a: a.reshape(2, 6) * a.reshape(12)[:6]),
    ("op.broadcast(A[:, 0:1], shape=[2, 3, 4]) * A", lambda a: jnp.broadcast_to(a[:, :1], (2, 3, 4)) * a),
    ("op.concat(A, A[1:] * A[0], axis=0)[1:] * A[0]", lambda a: jnp.concatenate([a, a[1:] * a[0]])[1:] * a[0]),
    ("op.pad(A * A, low=[1, 0], high=[0, 2], value=2.0)[:, 1:5]", lambda a: jnp.pad(a * a, ((1, 0), (0, 2)))[:, 1:5]),
    ("op.slice(A, starts=[2, 0], stops=[0, 4], steps=[-1, 2]) * A[0:2, 1:3]", lambda a: a[2:0:-1, 0:4:2] * a[0:2, 1:3]),
]


@pytest.mark.parametrize(("expression", "function"), ELEMENTWISE, ids=[case[0] for case in ELEMENTWISE])
def test_functions_of_one_tensor(expression: str, function: Callable[..., Any]) -> None:
    a = numbers((3, 4), 0.3, 1.9, 1)
    shape = "x".join(map(str, jax.eval_shape(function, a).shape))
    compare(gradients(f"let Y: tensor<{shape}xfp64> = {expression};", {"A": a}), function, {"A": a})


BINARY = [
    ("A + B", lambda a, b: a + b),
    ("A - B * B", lambda a, b: a - b * b),
    ("A * B", lambda a, b: a * b),
    ("A / B", lambda a, b: a / b),
    ("op.pow(A, B)", lambda a, b: a**b),
    ("op.maximum(A, B) * A", lambda a, b: jnp.maximum(a, b) * a),
    ("op.minimum(A, B) * B", lambda a, b: jnp.minimum(a, b) * b),
    ("op.clamp(A, 0.8 * B, 1.2 * B)", lambda a, b: jnp.minimum(jnp.maximum(a, 0.8 * b), 1.2 * b)),
    ("op.select(A < B, A * B, A / B)", lambda a, b: jnp.where(a < b, a * b, a / b)),
]
SHAPES = [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((), (3, 4)), ((2, 1, 4), (3, 1))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize(("expression", "function"), BINARY, ids=[case[0] for case in BINARY])
def test_operators_and_their_broadcasting(
    expression: str, function: Callable[..., Any], shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    operands = {"A": numbers(shapes[0], 0.3, 1.9, 1), "B": numbers(shapes[1], 0.3, 1.9, 2)}
    shape = "x".join(map(str, np.broadcast_shapes(*shapes)))
    compare(gradients(f"let Y: tensor<{shape}xfp64> = {expression};", operands), function, operands)


@pytest.mark.parametrize("batch", [(), (2,), (2, 1, 3)], ids=str)
def test_products_of_matrices_and_of_batches(batch: tuple[int, ...]) -> None:
    operands = {"A": numbers((*batch, 2, 5), -1, 1, 1), "B": numbers((*batch, 5, 3), -1, 1, 2)}
    shape = "x".join(map(str, (*batch, 2, 3)))
    actual = gradients(f"let Y: tensor<{shape}xfp64> = op.tanh(A @ B);", operands)
    compare(actual, lambda a, b: jnp.tanh(a @ b), operands)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathering_and_scattering(axis: int) -> None:
    indices = np.array([[2, 0, 2], [1, 2, 0]], np.int32)
    operands = {"A": numbers((3, 3), -1, 1, 1), "I": indices}
    shape = {0: "2x3x3", 1: "3x2x3", -1: "3x2x3"}[axis]
    body = f"let G: tensor<{shape}xfp64> = op.gather(A, I, axis={axis}); let Y: tensor<{shape}xfp64> = G * G;"
    compare(gradients(body, operands), lambda a, i: jnp.take(a, i, axis) ** 2, operands)
    flat = {"A": numbers((4, 2), -1, 1, 1), "B": numbers((6, 2), -1, 1, 2), "I": indices.reshape(6)}
    body = "let S: tensor<4x2xfp64> = op.scatter_add(A, I, B, axis=0); let Y: tensor<4x2xfp64> = S * S;"
    compare(gradients(body, flat), lambda a, b, i: a.at[i].add(b) ** 2, flat)


def test_updates_of_slices() -> None:
    operands = {"A": numbers((4, 3), -1, 1, 1), "B": numbers((2, 3), -1, 1, 2), "C": numbers((), -1, 1, 3)}
    body = "let Y: tensor<4x3xfp64> = A; Y[0:4:2] = B * A[1]; Y[3, 1:] = C; Y[1, 0] = Y[3, 2] * Y[0, 0]; Y = Y * Y;"

    def function(a: Any, b: Any, c: Any) -> Any:
        y = a.at[0:4:2].set(b * a[1]).at[3, 1:].set(c)
        y = y.at[1, 0].set(y[3, 2] * y[0, 0])
        return y * y

    compare(gradients(body, operands), function, operands)


def test_loops_branches_and_calls() -> None:
    operands = {"A": numbers((3, 3), -1, 1, 1), "B": numbers((3,), -1, 1, 2)}
    helpers = """
        func step(X: tensor<3xfp64>, W: tensor<3x3xfp64>) -> tensor<3xfp64> {
            return op.tanh((op.reshape(X, shape=[1, 3]) @ W)[0]);
        }
    """
    body = """
        let Y: tensor<3xfp64> = B;
        for (i in 0:5) {
            if (Y[0] < Y[1]) { Y = step(Y, A); } else { Y = Y * A[i - (i / 3) * 3] + B; }
            Y[2] = Y[0] * B[1];
        }
        while (op.sum(Y * Y, axis=0) > 0.01) { Y = Y * 0.5 * op.cos(A[0]); }
    """

    def function(a: Any, b: Any) -> Any:
        y = b
        for i in range(5):
            y = jnp.tanh(y @ a) if y[0] < y[1] else y * a[i % 3] + b
            y = y.at[2].set(y[0] * b[1])
        while (y * y).sum() > 0.01:
            y = y * 0.5 * jnp.cos(a[0])
        return y

    compare(gradients(body, operands, helpers), function, operands, traced=False)


def test_a_gradient_of_a_gradient() -> None:
    operands = {"A": numbers((3, 4), 0.3, 1.9, 1)}
    body = (
        "let G: tensor<3x4xfp64> = op.grad(op.softmax(op.tanh(A) * op.log(A)) * A, A); let Y: tensor<3x4xfp64> = G * G;"
    )
    inner = jax.grad(lambda a: jnp.sum(jax.nn.softmax(jnp.tanh(a) * jnp.log(a)) * a))
    compare(gradients(body, operands), lambda a: inner(a) ** 2, operands)


Values = Any
WITHIN = 1e-13
"""The tolerance, relative to the largest number of a result: 450 units of fp64's roundoff."""


def type_of(value: Values) -> str:
    return f"tensor<{'x'.join(map(str, value.shape))}xfp64>" if value.shape else "fp64"


def results(expression: str, weights: Values, inputs: dict[str, Values]) -> list[Values]:
    """An expression and the gradients of its weighted sum with respect to every input."""
    given = {name: np.asarray(value, np.float64) for name, value in (inputs | {"W": weights}).items()}
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in given.items())
    names = ", ".join(f"op.grad(Y * W, {name})" for name in inputs)
    body = f"let Y: {type_of(weights)} = {expression}; return Y, {names};"
    source = f"module m {{ func f({parameters}) {{ {body} }} }}"
    arrays = {name: Array(DTYPES["fp64"], value) for name, value in given.items()}
    return [array.values for array in execute(compile_source(source).module, "f", arrays)]


def agree(expression: str, model: Callable[..., Values], weights: Values, **inputs: Values) -> None:
    expected = [jax.jit(model)(**inputs)]
    places = tuple(range(len(inputs)))
    names = list(inputs)

    def total(*values: Values) -> Values:
        return (model(**dict(zip(names, values, strict=True))) * weights).sum()

    expected += jax.jit(jax.grad(total, places))(*map(jnp.asarray, inputs.values()))
    found = results(expression, weights, inputs)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        theirs = np.asarray(theirs)
        assert ours.shape == theirs.shape
        assert abs(theirs).max() > 1e-3
        assert abs(ours - theirs).max() <= WITHIN * max(abs(theirs).max(), 1)


def normal(*shape: int, seed: int = 1) -> Values:
    return np.random.Generator(np.random.PCG64([seed, *shape])).standard_normal(shape)


def test_a_block_of_a_transformer() -> None:
    """Norms, attention and a residual, differentiated through all of them."""

    def model(x: Values, g: Values, a: Values, b: Values) -> Values:
        def norm(row: Values) -> Values:
            return row / jnp.sqrt((row**2).mean(-1, keepdims=True) + 1e-2) * g

        q = norm(x) @ a
        scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), q @ norm(x).T / 2, -jnp.inf)
        y = x + jax.nn.softmax(scores) @ norm(x)
        return y + jax.nn.gelu(norm(y) @ b, approximate=False)

    n = "op.rms_norm({}, g, eps=0.01)".format
    attention = f"op.flash_attention({n('x')} @ a, {n('x')}, {n('x')}, causal=true)"
    y = f"(x + {attention})"
    agree(
        f"{y} + op.gelu(op.matmul({n(y)}, b))",
        model,
        normal(6, 4, seed=2),
        x=normal(6, 4),
        g=normal(4),
        a=normal(4, 4),
        b=normal(4, 4, seed=3),
    )
