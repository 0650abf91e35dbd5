"""batch_norm: the oracle's bits, its statistics, its state, gradients, what is refused."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
CALL = "op.batch_norm(x, g, b, m, v{})"
GENERATOR = np.random.Generator(np.random.PCG64(6))
X, W = GENERATOR.standard_normal((2, 3, 2, 2))
VECTORS = dict(zip("gbm", GENERATOR.standard_normal((3, 2)), strict=True)) | {"v": np.array([0.5, 2.0])}


def operands(dtype: str, shape: tuple[int, ...], axis: int, state: str | None = None) -> dict[str, Tensor]:
    """Counted numbers, the variance not negative; the state in a dtype of its own."""
    channels = (shape[axis],)
    spread = counted(state or dtype, channels, 5)
    return {
        "x": counted(dtype, shape, 1),
        "g": counted(dtype, channels, 2),
        "b": counted(dtype, channels, 3),
        "m": counted(state or dtype, channels, 4),
        "v": oracle.multiply(spread, spread),
    }


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "axis"), [((5, 3), 1), ((2, 3, 4, 3), 1), ((2, 3, 5), -1), ((3, 4), 0)])
@pytest.mark.parametrize("training", [True, False])
def test_the_oracles_bits(programs: Any, dtype: str, shape: tuple[int, ...], axis: int, training: bool) -> None:
    given = operands(dtype, shape, axis)
    call = CALL.format(f", axis={axis}, momentum=0.3, eps=0.01, training={str(training).lower()}")
    expected = oracle.batch_norm(*given.values(), axis=axis, momentum=0.3, eps=0.01, training=training)
    assert programs.run(call, **given) == expected


def test_the_defaults(programs: Any) -> None:
    given = operands("fp32", (4, 3, 2), 1)
    assert programs.run(CALL.format(""), **given) == oracle.batch_norm(*given.values())


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e5m2", "tf32"])
def test_statistics_may_be_held_in_the_accumulators_dtype(programs: Any, dtype: str) -> None:
    given = operands(dtype, (4, 3), 1, state="fp32")
    found = programs.run(CALL.format(""), **given)
    assert [each.dtype for each in found] == [dtype, "fp32", "fp32"]
    assert found == oracle.batch_norm(*given.values())


def test_without_training_the_state_stays(programs: Any) -> None:
    given = operands("fp32", (4, 3), 1)
    assert programs.run(CALL.format(", training=false"), **given)[1:] == (given["m"], given["v"])


def test_a_momentum_of_0_keeps_and_of_1_replaces(programs: Any) -> None:
    """Two channels of two elements: means 2 and 0, mean squares of what is centred 1 and 4; all of it is exact."""
    given = {"x": programs.tensor([[1, -2], [3, 2]]), "g": programs.tensor([1, 1]), "b": programs.tensor([0, 0])}
    given |= {"m": programs.tensor([5, 6]), "v": programs.tensor([7, 8])}
    assert programs.run(CALL.format(", momentum=0.0"), **given)[1:] == (given["m"], given["v"])
    replaced = programs.run(CALL.format(", momentum=1.0, eps=0.0"), **given)
    expected = [[[-1, -1], [1, 1]], [2, 0], [1, 4]]
    assert replaced == tuple(programs.tensor(each) for each in expected)


@pytest.mark.parametrize(("only", "which"), [("y", 0), ("mean", 1), ("variance", 2)])
def test_one_result_alone_is_a_value(programs: Any, only: str, which: int) -> None:
    given = operands("fp32", (4, 3), 1)
    expected = oracle.batch_norm(*given.values())[which]
    kind = "4x3xfp32" if only == "y" else "3xfp32"
    body = f"let R: tensor<{kind}> = {CALL.format(f', only={only}')}; return R;"
    assert programs.run(body, **given) == (expected,)


def test_all_results_are_no_value(programs: Any) -> None:
    signature = "x: tensor<4x3xfp32>, g: tensor<3xfp32>"
    diagnostic = programs.refused("let y: tensor<4x3xfp32> = op.batch_norm(x, g, g, g, g); return y;", signature)
    assert (diagnostic.category, "returns 3 values" in diagnostic.message) == ("types", True)


@pytest.mark.parametrize("wrt", "xgb")
@pytest.mark.parametrize("training", [True, False])
def test_the_gradient(programs: Any, differences: Any, wrt: str, training: bool) -> None:
    """In training through the statistics of the batch."""

    def model(x: Any, g: Any, b: Any, m: Any, v: Any) -> Any:
        count = x.shape[0] * x.shape[2]
        middle = x.sum(0).sum(1) / count if training else m
        centred = x - middle[:, None]
        spread = (centred * centred).sum(0).sum(1) / count if training else v
        root = np.vectorize(mpmath.sqrt, otypes=[object])(spread + mpmath.mpf(0.5))
        return centred / root[:, None] * g[:, None] + b[:, None]

    call = CALL.format(f", only=y, eps=0.5, training={str(training).lower()}")
    assert differences.agree(programs, call, model, W, wrt, x=X, **VECTORS)


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


@pytest.mark.parametrize(
    ("arguments", "category", "text"),
    [
        ("X, g, g, g, g, axis=2", "shapes", "axis 2 is out of range for rank 2"),
        ("X, k, g, g, g", "shapes", "gamma is tensor<4xfp32>, and axis 1 of tensor<4x3xfp32> has extent 3"),
        ("X, g, k, g, g", "shapes", "beta is tensor<4xfp32>"),
        ("X, g, g, k, g", "shapes", "running_mean is tensor<4xfp32>"),
        ("X, g, g, g, k", "shapes", "running_variance is tensor<4xfp32>"),
        ("X, h, g, g, g", "types", "gamma is bf16, beside fp32"),
        ("X, g, h, g, g", "types", "beta is bf16, beside fp32"),
        ("X, g, g, h, g", "types", "running_mean is bf16, beside fp32"),
        ("X, g, g, g, h", "types", "running_variance is bf16, beside fp32"),
        ("Y, h, g, h, h", "types", "beta is fp32, beside bf16"),
        ("X, g, g, g, g, momentum=1.5", "numerics", "momentum is 1.5"),
        ("X, g, g, g, g, eps=-1.0", "numerics", "eps is -1.0"),
        ("X, g, g, g, g, only=z", "types", "there is no result 'z'"),
        ("X, g, g, g", "types", "takes 5 operands, 4 given"),
    ],
)
def test_what_is_refused(programs: Any, arguments: str, category: str, text: str) -> None:
    signature = "X: tensor<4x3xfp32>, Y: tensor<4x3xbf16>, g: tensor<3xfp32>, h: tensor<3xbf16>, k: tensor<4xfp32>"
    diagnostic = programs.refused(f"op.batch_norm({arguments})", signature)
    assert (diagnostic.category, diagnostic.phase) == (category, "verify")
    assert text in diagnostic.message
