"""JAX's derivatives, in narrow types and by adjoints of its own, lie within the enclosures that the suite judges by."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle.bounds.derivatives import SLOPES, Model, Number, enclosed, function, sigmoid
from tessera_conformance.oracle.exact import finite
from tessera_conformance.oracle.formats import values_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import tensor

jax = pytest.importorskip("jax", reason="JAX is missing: pip install 'tessera-conformance[evidence]'")
jnp = jax.numpy

POINTS = [0.25, 0.5, 1.5, 2.25, 3, 0.03125, 1, 4]
WEIGHTS = [1, -2, 0.5, 3, -1, 4, -0.75, 2]
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
NAMED_OTHERWISE = {"erf": jax.scipy.special.erf, "rsqrt": jax.lax.rsqrt, "reciprocal": jnp.reciprocal}


def gelu(x: Number) -> Number:
    half = x.beside(Fraction(1, 2))
    return half * x * (function("erf", x * function("sqrt", half)) + x.beside(1))


OTHERS: dict[str, tuple[Callable[[Any], Any], Callable[[Number], Number]]] = {
    "sigmoid": (jax.nn.sigmoid, sigmoid),
    "silu": (jax.nn.silu, lambda x: x * sigmoid(x)),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), gelu),
}
FUNCTIONS = {name: NAMED_OTHERWISE.get(name, getattr(jnp, name, None)) for name in SLOPES if name != "pow"}


def compare(theirs: Callable[[Any], Any], model: Model, dtype: str) -> None:
    x, weights = (jnp.asarray(values, DTYPES[dtype]) for values in (POINTS, WEIGHTS))
    slopes = np.asarray(jax.grad(lambda given: jnp.sum(theirs(given) * weights))(x))
    found = Tensor(dtype, slopes.shape, slopes.tobytes())
    limits = enclosed(model, [tensor(dtype, POINTS)], tensor(dtype, WEIGHTS))
    for value, limit in zip(values_of(found), limits, strict=True):
        assert limit is not None and limit.holds(value), (finite(value), limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name: str, dtype: str) -> None:
    assert FUNCTIONS[name] is not None
    compare(FUNCTIONS[name], lambda xs: [function(name, x) for x in xs], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("theirs", "ours"), OTHERS.values(), ids=OTHERS)
def test_activations(theirs: Callable[[Any], Any], ours: Callable[[Number], Number], dtype: str) -> None:
    compare(theirs, lambda xs: [ours(x) for x in xs], dtype)
