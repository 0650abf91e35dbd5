"""Compound operations and their gradients against JAX's, in fp64 on the CPU.

JAX differentiates the textbook formulas by itself. Both sides round some hundred times, each by 2**-53 of numbers that
stay near 1, and neither in the other's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES

INSTALL = "JAX is missing: pip install 'tessera-conformance[evidence]'"
jax = pytest.importorskip("jax", reason=INSTALL)
jnp = pytest.importorskip("jax.numpy", reason=INSTALL)

Values = Any
WITHIN = 1e-13
"""Of the largest number of a result: 450 units of fp64's roundoff."""


@pytest.fixture(autouse=True)
def in_fp64() -> Iterator[None]:
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        yield


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
    return [each.values for each in execute(compile_source(source).module, "f", arrays)]


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


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_layer_norm(axis: int) -> None:
    def model(x: Values, g: Values, b: Values) -> Values:
        moved = jnp.moveaxis(x, axis, -1)
        centred = moved - moved.mean(-1, keepdims=True)
        y = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-2) * g + b
        return jnp.moveaxis(y, -1, axis)

    x = normal(4, 5, 6)
    g, b = normal(2, x.shape[axis])
    agree(f"op.layer_norm(x, g, b, axis={axis}, eps=0.01)", model, normal(4, 5, 6, seed=2), x=x, g=g, b=b)


def test_rms_norm() -> None:
    def model(x: Values, g: Values) -> Values:
        return x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-2) * g

    agree("op.rms_norm(x, g, eps=0.01)", model, normal(4, 6, seed=2), x=normal(4, 6), g=normal(6))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training: bool) -> None:
    def model(x: Values, g: Values, b: Values, m: Values, v: Values) -> Values:
        mean = x.mean((0, 2, 3)) if training else m
        variance = x.var((0, 2, 3)) if training else v
        shaped = [each[None, :, None, None] for each in (mean, variance, g, b)]
        # The running statistics are operands in either mode; where they take no part their gradient is zero.
        return (x - shaped[0]) / jnp.sqrt(shaped[1] + 1e-2) * shaped[2] + shaped[3] + (m + v).sum()

    inputs = {"x": normal(3, 2, 4, 5), "g": normal(2), "b": normal(2, seed=3), "m": normal(2, seed=4)}
    inputs["v"] = abs(normal(2, seed=5)) + 0.5
    call = f"op.batch_norm(x, g, b, m, v, eps=0.01, only=y, training={str(training).lower()})"
    agree(f"{call} + op.sum(m + v, axis=0)", model, normal(3, 2, 4, 5, seed=2), **inputs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention(causal: bool, scale: float | None) -> None:
    """jax.nn.dot_product_attention, heads behind positions, takes its softmax in fp32; the formula is beside it."""

    def model(q: Values, k: Values, v: Values) -> Values:
        scores = q @ k.swapaxes(-1, -2) * (0.5 if scale is None else scale)
        seen = jnp.tril(jnp.ones((6, 6), bool)) if causal else True
        return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v

    q, k, v = (normal(2, 3, 6, 4, seed=seed) for seed in (1, 2, 3))
    scaled = "" if scale is None else f", scale={scale}"
    call = f"op.flash_attention(q, k, v{scaled}, causal={str(causal).lower()}, block=2)"
    weights = normal(2, 3, 6, 4, seed=4)
    agree(call, model, weights, q=q, k=k, v=v)
    turned = [each.swapaxes(1, 2) for each in (q, k, v)]
    own = jax.nn.dot_product_attention(*turned, scale=scale, is_causal=causal).swapaxes(1, 2)
    assert abs(results(call, weights, {"q": q, "k": k, "v": v})[0] - np.asarray(own)).max() < 2.0**-20


def test_dropout_by_its_mask() -> None:
    """The mask is read off a dropout of ones: JAX has another generator."""
    kept = results("op.dropout(x, rate=0.4, seed=9, stream=2)", np.ones((8, 8)), {"x": np.ones((8, 8))})[0] != 0
    assert 20 < kept.sum() < 58

    def model(x: Values) -> Values:
        return jnp.where(kept, x / (1 - 0.4), 0.0)

    agree("op.dropout(x, rate=0.4, seed=9, stream=2)", model, normal(8, 8, seed=2), x=normal(8, 8))


def test_a_step_of_adamw() -> None:
    def model(p: Values, g: Values, m: Values, v: Values) -> Values:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        change = (m / (1 - 0.9**3)) / (jnp.sqrt(v / (1 - 0.99**3)) + 1e-3) + 0.1 * p
        return p - 0.5 * change

    call = "op.adamw(p, g, m, v, 3, rate=0.5, beta2=0.99, eps=1e-3, decay=0.1, only=parameter)"
    inputs = {name: normal(3, 4, seed=seed) for seed, name in enumerate("pgm")}
    agree(call, model, normal(3, 4, seed=7), **inputs, v=abs(normal(3, 4, seed=8)) + 0.5)


def test_a_block_of_a_transformer() -> None:
    """Norms, attention and a residual, differentiated through all of them."""

    def model(x: Values, g: Values, a: Values, b: Values) -> Values:
        def norm(each: Values) -> Values:
            return each / jnp.sqrt((each**2).mean(-1, keepdims=True) + 1e-2) * g

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
