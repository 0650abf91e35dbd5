"""Fourier transforms against the definition with the machine's arithmetic, and known transforms by hand."""

from __future__ import annotations

import random
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

PARTS = {"complex64": np.float32, "complex128": np.float64}


def tensor(x: Any) -> Tensor:
    return Tensor(x.dtype.name, x.shape, np.ascontiguousarray(x).tobytes())


def unit(m: int, n: int, part: Any) -> tuple[Any, Any]:
    """exp(-2 pi i m / n) by mpmath; what vanishes is +0."""
    with mpmath.workprec(200):
        angle = 2 * mpmath.pi * (m % n) / n
        parts = [mpmath.cos(angle), -mpmath.sin(angle)]
        return tuple(part(0) if abs(value) < 1e-40 else part(str(mpmath.nstr(value, 50))) for value in parts)  # type: ignore[return-value]


def definition(x: Any, *, inverse: bool = False) -> Any:
    part, n = PARTS[x.dtype.name], len(x)
    found = np.zeros(n, x.dtype)
    for k in range(n):
        real, imaginary = [], []
        for j in range(n):
            a, b, (c, d) = x[j].real, x[j].imag, unit(-j * k if inverse else j * k, n, part)
            real.append(a * c - b * d)
            imaginary.append(a * d + b * c)
        for terms in (real, imaginary):
            while len(terms) > 1:
                terms[:] = [p + q for p, q in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
        found[k] = complex(real[0], imaginary[0])
    return found


def drawn(draw: random.Random, n: int, dtype: str) -> Any:
    return np.array([complex(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(n)], dtype)


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12])
def test_the_transform_is_its_definition(draw: random.Random, n: int, dtype: str) -> None:
    x = drawn(draw, n, dtype)
    assert oracle.fft(tensor(x), norm="backward") == tensor(definition(x))
    assert oracle.ifft(tensor(x), norm="forward") == tensor(definition(x, inverse=True))


@pytest.mark.parametrize(
    ("norm", "direction"), [("backward", "ifft"), ("forward", "fft"), ("ortho", "fft"), ("ortho", "ifft")]
)
def test_the_scale_comes_last(draw: random.Random, norm: str, direction: str) -> None:
    n = 6
    x = drawn(draw, n, "complex64")
    other = {"fft": "backward", "ifft": "forward"}[direction]
    plain = np.frombuffer(oracle.FUNCTIONS[f"oracle.{direction}"](tensor(x), norm=other).data, "<f4")
    factor = np.float32(1 / 6) if norm != "ortho" else np.float32(1 / np.sqrt(6.0))
    found = oracle.FUNCTIONS[f"oracle.{direction}"](tensor(x), norm=norm)
    assert found.data == (plain * factor).tobytes()


def test_known_transforms() -> None:
    ones = np.ones((2, 4), np.complex64)
    assert oracle.fft(tensor(ones), norm="backward") == tensor(np.array([[4, 0, 0, 0]] * 2, np.complex64))
    impulse = np.array([0, 1, 0, 0], np.complex64)
    expected = np.array([complex(1, 0), complex(0, -1), complex(-1, 0), complex(0, 1)], np.complex64)
    assert oracle.fft(tensor(impulse), norm="backward") == tensor(expected)
    assert oracle.ifft(tensor(impulse), norm="forward") == tensor(expected.conj() + 0)
    assert oracle.fft(tensor(ones)) == tensor(np.array([[2, 0, 0, 0]] * 2, np.complex64))


@pytest.mark.parametrize(("floats", "result"), [("fp64", "complex128"), ("fp32", "complex64")])
def test_a_float_has_the_imaginary_part_zero(floats: str, result: str) -> None:
    values = np.array([0.5, -0.0, 3, -7], {"fp64": "<f8", "fp32": "<f4"}[floats])
    whole = np.zeros(4, {"complex64": "<c8", "complex128": "<c16"}[result])
    whole.real = values
    assert oracle.fft(Tensor(floats, (4,), values.tobytes())) == oracle.fft(Tensor(result, (4,), whole.tobytes()))


def test_what_cannot_be_transformed_is_refused() -> None:
    with pytest.raises(BadArgument, match="norm"):
        oracle.fft(Tensor("complex64", (1,), bytes(8)), norm="none")  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="dtype"):
        oracle.fft(Tensor("int32", (1,), bytes(4)))
    with pytest.raises(BadArgument, match="shape"):
        oracle.fft(Tensor("complex64", (2, 0), b""))
