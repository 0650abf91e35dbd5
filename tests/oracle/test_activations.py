"""Activations and logsumexp: the canonical steps with the machine's own arithmetic and mpmath's functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

ONE, HALF = np.float32(1), np.float32(0.5)


def rounded(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of mpmath with 100 bits, rounded to fp64 and then to fp32: a double rounding is beyond odds here."""

    def evaluate(x: np.float32) -> np.float32:
        with mpmath.workprec(100):
            return np.float32(float(function(mpmath.mpf(float(x)))))

    return evaluate


exp, erf, tanh = rounded(mpmath.exp), rounded(mpmath.erf), rounded(mpmath.tanh)
ROOT_OF_HALF = np.float32(mpmath.sqrt(0.5))
ROOT_OF_TWO_OVER_PI = np.float32(mpmath.sqrt(2 / mpmath.pi))


def sigmoid(x: Any) -> Any:
    return ONE / (ONE + exp(-x))


def silu(x: Any) -> Any:
    return x * sigmoid(x)


def gelu(x: Any) -> Any:
    return (HALF * x) * (ONE + erf(x * ROOT_OF_HALF))


def gelu_by_tanh(x: Any) -> Any:
    inner = x + np.float32(0.044715) * ((x * x) * x)
    return (HALF * x) * (ONE + tanh(ROOT_OF_TWO_OVER_PI * inner))


@pytest.mark.parametrize("numpy_type", ["<f4", "<f2"])
@pytest.mark.parametrize(
    ("ours", "theirs", "arguments"),
    [
        (oracle.sigmoid, sigmoid, {}),
        (oracle.silu, silu, {}),
        (oracle.gelu, gelu, {}),
        (oracle.gelu, gelu_by_tanh, {"approximate": "tanh"}),
    ],
)
def test_every_step_is_rounded_in_fp32(
    draw: random.Random, ours: Any, theirs: Any, arguments: dict[str, str], numpy_type: str
) -> None:
    x = np.array([draw.gauss(0, 3) for _ in range(100)]).astype(numpy_type)
    expected = np.array([theirs(np.float32(value)) for value in x], np.float32).astype(numpy_type)
    dtype = {"<f4": "fp32", "<f2": "fp16"}[numpy_type]
    found = ours(Tensor(dtype, x.shape, x.tobytes()), **arguments)
    assert first_difference(found, Tensor(dtype, x.shape, expected.tobytes())) is None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (oracle.sigmoid, "3f000000" + "3f000000" + "3f800000" + "00000000" + "7fc00000"),
        (oracle.silu, "00000000" + "80000000" + "7f800000" + "7fc00000" + "7fc00000"),
        (oracle.gelu, "00000000" + "80000000" + "7f800000" + "7fc00000" + "7fc00000"),
        (oracle.relu, "00000000" + "00000000" + "7f800000" + "00000000" + "7fc00000"),
    ],
)
def test_special_values(function: Any, expected: str) -> None:
    """Of +0, -0, +inf, -inf and NaN; -inf times zero is what the arithmetic gives."""
    x = Tensor.from_bits("fp32", (5,), "00000000" + "80000000" + "7f800000" + "ff800000" + "7fc00000")
    assert function(x).bits() == expected


def test_relu_of_integers_and_of_infinite_fp8() -> None:
    assert oracle.relu(Tensor.from_words("int8", (3,), [0xFF, 0, 7])).words().tolist() == [0, 0, 7]
    assert oracle.relu(Tensor.from_words("fp8_e5m2", (2,), [0x7C, 0xFC])).words().tolist() == [0x7C, 0]


def test_an_unknown_approximation_is_refused() -> None:
    with pytest.raises(BadArgument, match="approximate: 'erf' is not allowed; expected none or tanh"):
        oracle.gelu(Tensor("fp32", (0,), b""), approximate="erf")  # type: ignore[arg-type]


def test_logsumexp_takes_the_canonical_steps(draw: random.Random) -> None:
    x = np.array([[draw.gauss(0, 5) for _ in range(6)] for _ in range(20)], np.float32)
    logarithm = rounded(mpmath.log)
    expected = []
    for row in x:
        top = row.max()
        p = [exp(value - top) for value in row]
        expected.append(logarithm(((p[0] + p[1]) + (p[2] + p[3])) + (p[4] + p[5])) + top)
    found = oracle.logsumexp(Tensor("fp32", x.shape, x.tobytes()))
    assert found == Tensor("fp32", (20,), np.array(expected, np.float32).tobytes())


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([-np.inf, -np.inf], "ff800000"),
        ([np.inf, 1], "7f800000"),
        ([np.inf, -np.inf], "7f800000"),
        ([np.nan, np.inf], "7fc00000"),
        ([-np.inf, 3], "40400000"),
        ([-0.0], "00000000"),
    ],
)
def test_infinite_rows(row: list[float], expected: str) -> None:
    x = np.array([row], np.float32)
    assert oracle.logsumexp(Tensor("fp32", x.shape, x.tobytes())).bits() == expected
