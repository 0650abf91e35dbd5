"""layer_norm and rms_norm: the oracle's bits, special values, gradients, what is inferred and what is refused."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.vectors.building import counted

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
GENERATOR = np.random.Generator(np.random.PCG64(5))
X, GAMMA, BETA = GENERATOR.standard_normal((3, 2, 4)), *GENERATOR.standard_normal((2, 4))

root = np.vectorize(mpmath.sqrt, otypes=[object])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
def test_the_oracles_bits(programs: Any, dtype: str, axis: int) -> None:
    x = counted(dtype, (3, 4, 7), 1)
    gamma, beta = counted(dtype, (x.shape[axis],), 2), counted(dtype, (x.shape[axis],), 3)
    found = programs.run(f"op.layer_norm(x, g, b, axis={axis}, eps=0.001)", x=x, g=gamma, b=beta)
    assert found == (oracle.layer_norm(x, gamma, beta, axis=axis, eps=0.001),)
    assert programs.run(f"op.rms_norm(x, g, axis={axis})", x=x, g=gamma) == (oracle.rms_norm(x, gamma, axis=axis),)


def test_the_defaults_are_the_last_axis_and_a_small_eps(programs: Any) -> None:
    x, gamma, beta = counted("fp32", (5, 6), 1), counted("fp32", (6,), 2), counted("fp32", (6,), 3)
    by_default = programs.run("return op.layer_norm(x, g, b), op.rms_norm(x, g);", x=x, g=gamma, b=beta)
    assert by_default == (oracle.layer_norm(x, gamma, beta, eps=1e-5), oracle.rms_norm(x, gamma, eps=1e-6))
    assert by_default[0] != oracle.layer_norm(x, gamma, beta, eps=1e-6)


def test_a_special_row_stays_alone(programs: Any) -> None:
    """A row with NaN or an infinity is NaN; one of zeros is beta, since eps keeps the root finite."""
    x = programs.tensor([[np.nan, 1, 2], [np.inf, 1, 2], [0, 0, -0.0], [1, -1, 0]])
    gamma, beta = programs.tensor([1, 2, 3]), programs.tensor([5, 6, 7])
    rows = programs.array(programs.run("op.layer_norm(x, g, b)", x=x, g=gamma, b=beta)[0])
    assert np.isnan(rows[:2]).all()
    assert rows[2].tolist() == [5, 6, 7]
    assert rows[3, 2] == 7
    without = programs.array(programs.run("op.rms_norm(x, g, eps=0.0)", x=x, g=gamma)[0])
    assert np.isnan(without[2]).all()


def test_an_axis_without_elements_gives_none(programs: Any) -> None:
    x, empty = programs.tensor(np.zeros((3, 0))), programs.tensor([])
    assert programs.run("op.layer_norm(x, g, g)", x=x, g=empty) == (x,)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("wrt", ["x", "g", "b"])
def test_the_gradient_of_layer_norm(programs: Any, differences: Any, axis: int, wrt: str) -> None:
    def model(x: Any, g: Any, b: Any) -> Any:
        x = x if axis == 1 else x.T
        centred = x - x.sum(1, keepdims=True) / x.shape[1]
        variance = (centred * centred).sum(1, keepdims=True) / x.shape[1]
        y = centred / root(variance + mpmath.mpf(0.5)) * g + b
        return y if axis == 1 else y.T

    x, g, b = X[0], GAMMA[: X[0].shape[axis]], BETA[: X[0].shape[axis]]
    expression = f"op.layer_norm(x, g, b, axis={axis}, eps=0.5)"
    assert differences.agree(programs, expression, model, X[1], wrt, x=x, g=g, b=b)


@pytest.mark.parametrize("wrt", ["x", "g"])
def test_the_gradient_of_rms_norm(programs: Any, differences: Any, wrt: str) -> None:
    def model(x: Any, g: Any) -> Any:
        return x / root((x * x).sum(1, keepdims=True) / x.shape[1] + mpmath.mpf(0.5)) * g

    assert differences.agree(programs, "op.rms_norm(x, g, eps=0.5)", model, X[1], wrt, x=X[0], g=GAMMA)


def test_named_and_unknown_dimensions(programs: Any) -> None:
    body = "op.layer_norm(x, g, g)"
    (result,) = programs.compile(body, "x: tensor<?xDxbf16>, g: tensor<Dxbf16>").functions["f"].results
    assert str(result) == "tensor<?xDxbf16>"
    x, gamma = counted("bf16", (3, 4), 1), counted("bf16", (4,), 2)
    found = programs.run(body, "x: tensor<?xDxbf16>, g: tensor<Dxbf16>", x=x, g=gamma)
    assert found == (oracle.layer_norm(x, gamma, gamma),)
    diagnostic = programs.refused(body, "x: tensor<4x?xbf16>, g: tensor<?xbf16>")
    assert diagnostic.category == "shapes"


def test_one_call_meets_several_shapes(programs: Any) -> None:
    """The same instruction is run on two shapes, and on the first again."""
    x, y = counted("fp32", (3, 4), 1), counted("fp32", (2, 5), 2)
    g, h = counted("fp32", (4,), 3), counted("fp32", (5,), 4)
    body = """return normed(x, g), normed(y, h), normed(x, g); }
        func normed(x: tensor<NxDxfp32>, g: tensor<Dxfp32>) -> tensor<NxDxfp32> { return op.rms_norm(x, g);"""
    first, second = oracle.rms_norm(x, g), oracle.rms_norm(y, h)
    assert programs.run(body, x=x, g=g, y=y, h=h) == (first, second, first)


@pytest.mark.parametrize(
    ("expression", "category", "text"),
    [
        ("op.layer_norm(X, h, g)", "types", "gamma is bf16, beside fp32"),
        ("op.layer_norm(X, g, h)", "types", "beta is bf16, beside fp32"),
        ("op.layer_norm(X, X, g)", "shapes", "gamma is tensor<2x3xfp32>, and axis -1 of tensor<2x3xfp32> has extent 3"),
        ("op.layer_norm(X, g, k)", "shapes", "beta is tensor<2xfp32>, and axis -1"),
        ("op.layer_norm(X, g, g, axis=0)", "shapes", "gamma is tensor<3xfp32>, and axis 0"),
        ("op.layer_norm(X, g, g, axis=2)", "shapes", "axis 2 is out of range for rank 2"),
        ("op.layer_norm(X, g, g, eps=-1.0)", "numerics", "eps is -1.0"),
        ("op.layer_norm(X, g)", "types", "takes 3 operands, 2 given"),
        ("op.layer_norm(I, i, i)", "types", "is not defined on int32"),
        ("op.rms_norm(X, h)", "types", "gamma is bf16, beside fp32"),
        ("op.rms_norm(X, k)", "shapes", "gamma is tensor<2xfp32>"),
        ("op.rms_norm(X, g, eps=-1e-9)", "numerics", "eps is -1e-09"),
        ("op.rms_norm(X, g, axis=-3)", "shapes", "axis -3 is out of range for rank 2"),
        ("op.rms_norm(I, i)", "types", "is not defined on int32"),
    ],
)
def test_what_is_refused(programs: Any, expression: str, category: str, text: str) -> None:
    signature = (
        "X: tensor<2x3xfp32>, g: tensor<3xfp32>, h: tensor<3xbf16>, k: tensor<2xfp32>, I: tensor<2x3xint32>, "
        "i: tensor<3xint32>"
    )
    diagnostic = programs.refused(expression, signature)
    assert (diagnostic.category, diagnostic.phase) == (category, "verify")
    assert text in diagnostic.message
