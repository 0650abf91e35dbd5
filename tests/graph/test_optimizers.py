"""sgd and adamw: the oracle's bits, steps by hand, a training loop, gradients through a step, what is refused."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
GENERATOR = np.random.Generator(np.random.PCG64(7))
P, G, M, W = GENERATOR.standard_normal((4, 2, 3))
V = GENERATOR.random((2, 3)) + 0.5


def step(number: int) -> Tensor:
    return Tensor.from_words("int32", (), [number & 0xFFFFFFFF])


def operands(dtype: str, shape: tuple[int, ...], state: str | None = None) -> dict[str, Tensor]:
    root = counted(state or dtype, shape, 4)
    return {
        "p": counted(dtype, shape, 1),
        "g": counted(dtype, shape, 2),
        "m": counted(state or dtype, shape, 3),
        "v": oracle.multiply(root, root),
    }


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), ()])
def test_sgd_has_the_oracles_bits(programs: Any, dtype: str, shape: tuple[int, ...]) -> None:
    given = operands(dtype, shape)
    given = {name: given[name] for name in "pgm"}
    by_default = programs.run("op.sgd(p, g, m, rate=0.3)", **given)
    assert by_default == oracle.sgd(*given.values(), rate=0.3, momentum=0.9)
    slower = programs.run("op.sgd(p, g, m, rate=1e-3, momentum=0.7)", **given)
    assert slower == oracle.sgd(*given.values(), rate=1e-3, momentum=0.7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), ()])
def test_adamw_has_the_oracles_bits(programs: Any, dtype: str, shape: tuple[int, ...]) -> None:
    given = operands(dtype, shape)
    by_default = programs.run("op.adamw(p, g, m, v, t, rate=0.3)", **given, t=step(1))
    defaults = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decay": 0.01}
    assert by_default == oracle.adamw(*given.values(), step(1), rate=0.3, **defaults)
    call = "op.adamw(p, g, m, v, t, rate=0.1, beta1=0.5, beta2=0.7, eps=0.25, decay=0.0)"
    expected = oracle.adamw(*given.values(), step(1000), rate=0.1, beta1=0.5, beta2=0.7, eps=0.25, decay=0.0)
    assert programs.run(call, **given, t=step(1000)) == expected


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3", "tf32"])
def test_the_state_may_be_held_in_the_accumulators_dtype(programs: Any, dtype: str) -> None:
    given = operands(dtype, (4,), state="fp32")
    found = programs.run("op.adamw(p, g, m, v, t, rate=0.3)", **given, t=step(2))
    assert [each.dtype for each in found] == [dtype, "fp32", "fp32"]
    assert found == oracle.adamw(*given.values(), step(2), rate=0.3)
    given = {name: given[name] for name in "pgm"}
    assert programs.run("op.sgd(p, g, m, rate=0.3)", **given) == oracle.sgd(*given.values(), rate=0.3)


def test_a_step_of_sgd_by_hand(programs: Any) -> None:
    """u = 8 * 0.5 + 3 = 7; 10 - 7 * 0.25 = 8.25."""
    found = programs.run(
        "op.sgd(p, g, m, rate=0.25, momentum=0.5)", p=programs.tensor(10), g=programs.tensor(3), m=programs.tensor(8)
    )
    assert found == (programs.tensor(8.25), programs.tensor(7))


def test_a_step_of_adamw_by_hand(programs: Any) -> None:
    """With betas of a half and t = 1: m' = 2, v' = 16 / 2 + 0 = 8; a = 4, b = 16; 1 - (4 / (4 + 4) + 1 * 2) / 4."""
    inputs = {"p": programs.tensor(1), "g": programs.tensor(4), "z": programs.tensor(0), "t": step(1)}
    call = "op.adamw(p, g, z, z, t, rate=0.25, beta1=0.5, beta2=0.5, eps=4.0, decay=2.0)"
    assert programs.run(call, **inputs) == tuple(programs.tensor(each) for each in (0.375, 2, 8))


@pytest.mark.parametrize(("only", "which"), [("parameter", 0), ("m", 1), ("v", 2)])
def test_one_result_alone_is_a_value(programs: Any, only: str, which: int) -> None:
    given = operands("fp32", (4,))
    body = f"let r: tensor<4xfp32> = op.adamw(p, g, m, v, t, rate=0.3, only={only}); return r;"
    expected = oracle.adamw(*given.values(), step(3), rate=0.3)[which]
    assert programs.run(body, **given, t=step(3)) == (expected,)


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


@pytest.mark.parametrize("number", [0, -1, -(2**31)])
def test_a_step_below_1_ends_execution(programs: Any, number: int) -> None:
    given = operands("fp32", (4,))
    diagnostic = programs.failed("op.adamw(p, g, m, v, t, rate=0.3)", **given, t=step(number))
    assert "adamw counts steps from 1" in diagnostic.message
    assert diagnostic.span.line == 1


@pytest.mark.parametrize("wrt", "pgm")
def test_the_gradient_of_a_step_of_sgd(programs: Any, differences: Any, wrt: str) -> None:
    def model(p: Any, g: Any, m: Any) -> Any:
        return p - (m * mpmath.mpf(0.75) + g) * mpmath.mpf(0.5)

    call = "op.sgd(p, g, m, rate=0.5, momentum=0.75, only=parameter)"
    assert differences.agree(programs, call, model, W, wrt, p=P, g=G, m=M)


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
    assert differences.agree(programs, call, model, W, wrt, p=P, g=G, m=M, v=V)


@pytest.mark.parametrize(
    ("expression", "category", "text"),
    [
        ("op.sgd(P, P, P)", "types", "op.sgd needs the attribute rate"),
        ("op.sgd(P, Q, P, rate=0.1)", "shapes", "gradient is tensor<3xfp32>, not of the shape of tensor<4xfp32>"),
        ("op.sgd(P, P, Q, rate=0.1)", "shapes", "velocity is tensor<3xfp32>"),
        ("op.sgd(P, s, P, rate=0.1)", "shapes", "gradient is fp32, not of the shape of tensor<4xfp32>"),
        ("op.sgd(P, H, P, rate=0.1)", "types", "gradient is bf16, beside fp32"),
        ("op.sgd(P, P, H, rate=0.1)", "types", "velocity is bf16, beside fp32"),
        ("op.sgd(H, P, H, rate=0.1)", "types", "gradient is fp32, beside bf16"),
        ("op.sgd(I, I, I, rate=0.1)", "types", "is not defined on int32"),
        ("op.sgd(P, P, P, rate=-0.1)", "numerics", "rate is -0.1"),
        ("op.sgd(P, P, P, rate=0.1, momentum=-1.0)", "numerics", "momentum is -1.0"),
        ("op.sgd(P, P, P, rate=0.1, only=m)", "types", "there is no result 'm'"),
        ("op.adamw(P, P, P, P, t)", "types", "op.adamw needs the attribute rate"),
        ("op.adamw(P, P, P, P, s, rate=0.1)", "types", "step is fp32, not int32"),
        ("op.adamw(P, P, P, P, I, rate=0.1)", "types", "step is tensor<4xint32>, not a scalar"),
        ("op.adamw(P, Q, P, P, t, rate=0.1)", "shapes", "gradient is tensor<3xfp32>"),
        ("op.adamw(P, P, Q, P, t, rate=0.1)", "shapes", "m is tensor<3xfp32>"),
        ("op.adamw(P, P, P, Q, t, rate=0.1)", "shapes", "v is tensor<3xfp32>"),
        ("op.adamw(P, P, P, P, t, rate=0.1, beta1=1.0)", "numerics", "beta1 is 1.0"),
        ("op.adamw(P, P, P, P, t, rate=0.1, beta2=-0.1)", "numerics", "beta2 is -0.1"),
        ("op.adamw(P, P, P, P, t, rate=0.1, eps=-0.1)", "numerics", "eps is -0.1"),
        ("op.adamw(P, P, P, P, t, rate=0.1, decay=-0.1)", "numerics", "decay is -0.1"),
        ("op.adamw(P, P, P, P, t, rate=-0.1)", "numerics", "rate is -0.1"),
    ],
)
def test_what_is_refused(programs: Any, expression: str, category: str, text: str) -> None:
    signature = "P: tensor<4xfp32>, Q: tensor<3xfp32>, H: tensor<4xbf16>, I: tensor<4xint32>, s: fp32, t: int32"
    diagnostic = programs.refused(expression, signature)
    assert (diagnostic.category, diagnostic.phase) == (category, "verify")
    assert text in diagnostic.message
