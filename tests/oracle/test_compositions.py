"""Transforms of the oracle by their definition and published words of Philox."""

from __future__ import annotations

import random
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle import compositions
from tessera_conformance.oracle.compositions import philox4x32
from tessera_conformance.oracle.exact import NAN, BadArgument, values_of
from tessera_conformance.tensors import Tensor

# Bounds


PARTS = {"complex64": np.float32, "complex128": np.float64}


def fourier_tensor(x: Any) -> Tensor:
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
    assert oracle.fft(fourier_tensor(x), norm="backward") == fourier_tensor(definition(x))
    assert oracle.ifft(fourier_tensor(x), norm="forward") == fourier_tensor(definition(x, inverse=True))


def test_known_transforms() -> None:
    ones = np.ones((2, 4), np.complex64)
    sums = np.array([[4, 0, 0, 0]] * 2, np.complex64)
    assert oracle.fft(fourier_tensor(ones), norm="backward") == fourier_tensor(sums)
    impulse = np.array([0, 1, 0, 0], np.complex64)
    expected = np.array([complex(1, 0), complex(0, -1), complex(-1, 0), complex(0, 1)], np.complex64)
    assert oracle.fft(fourier_tensor(impulse), norm="backward") == fourier_tensor(expected)
    assert oracle.ifft(fourier_tensor(impulse), norm="forward") == fourier_tensor(expected.conj() + 0)
    assert oracle.fft(fourier_tensor(ones)) == fourier_tensor(np.array([[2, 0, 0, 0]] * 2, np.complex64))


KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Answers of philox4x32-10 from the distribution of Random123."""


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter: Any, key: Any, answer: Any) -> None:
    assert philox4x32(counter, key) == answer


def test_the_largest_of_what_is_no_number_are_none() -> None:
    x = np.array([1, np.nan], np.float32)
    with pytest.raises(BadArgument, match="NaN"):
        oracle.top_k(Tensor("fp32", x.shape, x.tobytes()), k=1)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_a_normalization_refuses_more_factors_than_a_row_has_elements(norm: str) -> None:
    """A source of vectors with such operands is wrong, and must not be confirmed."""
    x, gamma, beta = (np.ones(shape, np.float32) for shape in ((2, 2), 3, 2))
    operands = [Tensor("fp32", a.shape, a.tobytes()) for a in (x, gamma, *([beta] if norm == "layer_norm" else []))]
    with pytest.raises(ValueError, match="zip"):
        getattr(compositions, norm)(*operands)


def test_an_empty_batch_leaves_no_number_in_the_running_statistics() -> None:
    """The mean of no elements is 0/0."""
    empty, one = (Tensor("fp32", shape, np.ones(shape, np.float32).tobytes()) for shape in ((0, 1), (1,)))
    _, *running = compositions.batch_norm(empty, one, one, one, one)
    assert list(map(values_of, running)) == [[NAN], [NAN]]


@pytest.mark.parametrize(
    ("program", "inputs", "factor"),
    [("multiply_add", 4, ""), ("add_to_product", 3, "2"), ("attention", 2, "2"), ("scale", 1, "")],
)
def test_a_program_refuses_other_operands_than_its_own(program: str, inputs: int, factor: str) -> None:
    """A source of vectors with such operands is wrong, and must not be confirmed."""
    one = Tensor("fp32", (1, 1), np.ones(1, np.float32).tobytes())
    with pytest.raises(TypeError, match=f"^{program} takes the operands"):
        oracle.FUNCTIONS[f"oracle.{program}"](*[one] * inputs, factor=factor)
