"""The discrete Fourier transform in a fixed order (language spec sections 5 and 15; reference arithmetic, "fft").

For each k, the canonical tree over j of x[j] * w[jk mod n]. Here w[m] = exp(-2 pi i m / n) with both parts correctly
rounded, or its conjugate for the inverse; the scale is multiplied last. Every length from 1 is allowed, and costs n
squared: this is the definition, since an algorithm of fewer steps would round differently. A real operand is the
complex one with imaginary parts +0 (AMB-LANG-116).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import isqrt
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from . import arithmetic
from .array import Array
from .errors import AxisOutOfRange, EmptyAxis, InvalidArgument, TooLarge
from .formats import DTYPES, DType, UnsupportedDType
from .rounding import cast, round_exact
from .trees import pairwise
from .ziv import mp, rational

Norm: TypeAlias = Literal["ortho", "backward", "forward"]
Values: TypeAlias = npt.NDArray[Any]

MOST_PRODUCTS = 1 << 34
"""The most products of a whole transform: a quarter of an hour."""

_CHUNK = 1 << 16
"""The number of products handled at once, so that they stay in cache; no result depends on it."""


def fft(x: Array, norm: Norm = "ortho") -> Array:
    """Return the transform along the last axis: same shape, the complex dtype of `result_dtype`.

    Scaled by 1/sqrt(n) for "ortho", by 1/n for "forward", not at all for "backward". Raises `UnsupportedDType`,
    `AxisOutOfRange`, `EmptyAxis`, `InvalidArgument`, and `TooLarge` beyond `MOST_PRODUCTS`.
    """
    return _transform("fft", x, norm, unscaled="backward", inverse=False)


def ifft(x: Array, norm: Norm = "ortho") -> Array:
    """Return the inverse transform along the last axis: same shape, the complex dtype of `result_dtype`.

    Scaled by 1/sqrt(n) for "ortho", by 1/n for "backward", not at all for "forward". Raises as `fft` does.
    """
    return _transform("ifft", x, norm, unscaled="forward", inverse=True)


def result_dtype(dtype: DType) -> DType:
    """Return the dtype of a transform: a complex one itself, complex128 of fp64, complex64 of any narrower float."""
    if dtype.kind == "complex":
        return dtype
    return DTYPES["complex128" if dtype.name == "fp64" else "complex64"]


@lru_cache(8)
def twiddles(n: int, component: DType) -> arithmetic.Parts:
    """Return the real and imaginary parts of exp(-2 pi i m / n), m < n, each correctly rounded to `component`.

    They are +0, +-1/2 and +-1 exactly where the value is.
    """
    cosines = [_cosine_of_turn(Fraction(m, n), component) for m in range(n)]
    sines = [_cosine_of_turn(Fraction(m, n) + Fraction(1, 4), component) for m in range(n)]  # -sin(t) = cos(t + pi/2)
    real, imaginary = (np.array(part, component.carrier) for part in (cosines, sines))
    real.flags.writeable = imaginary.flags.writeable = False
    return real, imaginary


def _transform(operation: str, x: Array, norm: Norm, unscaled: Norm, inverse: bool) -> Array:
    if x.dtype.kind not in ("complex", "float"):
        raise UnsupportedDType(operation, x.dtype)
    if norm not in get_args(Norm):
        raise InvalidArgument(operation, "norm", norm, "one of " + ", ".join(get_args(Norm)))
    if x.rank == 0:
        raise AxisOutOfRange(operation, -1, 0)
    n, dtype = x.shape[-1], result_dtype(x.dtype)
    if n == 0:
        raise EmptyAxis(operation, -1)
    if x.values.size * n > MOST_PRODUCTS:
        raise TooLarge(operation, "products", x.values.size * n, MOST_PRODUCTS)
    x, component = cast(x, dtype), dtype.component
    if x.values.size == 0:
        return x
    real, imaginary = twiddles(n, component)
    turned = (real, np.where(imaginary == 0, imaginary, np.negative(imaginary)) if inverse else imaginary)
    flat = x.values.reshape(-1, n)
    result = np.empty(flat.shape, x.dtype.carrier)
    with np.errstate(all="ignore"):
        for rows, outputs in _chunks(*flat.shape):
            result[rows, outputs] = arithmetic.join(*_outputs(flat[rows], outputs, turned))
        if norm != unscaled:
            factor = _scale(n, norm, component)
            result = arithmetic.join(result.real * factor, result.imag * factor)
    return Array(x.dtype, result.reshape(x.shape))


def _outputs(x: Values, outputs: slice, turned: arithmetic.Parts) -> arithmetic.Parts:
    """Return the sums of x[j] * w[jk mod n] for k in `outputs`: (rows, n) to (rows, outputs)."""
    n = x.shape[-1]
    steps = np.arange(n)[:, None] * np.arange(outputs.start, outputs.stop) % n
    operands = x.T[:, :, None]
    terms = arithmetic.product(arithmetic.parts(operands), (turned[0][steps][:, None], turned[1][steps][:, None]))
    real, imaginary = (pairwise(part, 0) for part in terms)
    return real, imaginary


def _chunks(rows: int, n: int) -> Iterator[tuple[slice, slice]]:
    """Cover (rows, outputs) by blocks of at most about `_CHUNK` products, n for each output."""
    width = min(n, max(_CHUNK // n, 1))
    height = max(_CHUNK // (n * width), 1)
    for i in range(0, rows, height):
        for k in range(0, n, width):
            yield slice(i, i + height), slice(k, min(k + width, n))


def _scale(n: int, norm: Norm, component: DType) -> npt.NDArray[Any]:
    """Return 1/sqrt(n) for "ortho", else 1/n, correctly rounded."""
    factor = Fraction(1, n)
    if norm == "ortho":
        root = isqrt(n)
        factor = Fraction(1, root) if root * root == n else _irrational_root(factor)
    return np.array(round_exact(factor, component), component.carrier)


def _irrational_root(square: Fraction) -> Fraction:
    """Return a number that rounds as the square root does: in the same interval between multiples of 2**-200."""
    return Fraction(2 * isqrt((square.numerator << 400) // square.denominator) + 1, 1 << 201)


def _cosine_of_turn(turn: Fraction, component: DType) -> float:
    """Return cos(2 pi turn), correctly rounded; a zero is +0.

    The angle is brought into the first eighth of a turn, where neither function comes near zero but sin at angle 0.
    By Niven's theorem the cosines that are rational are 0, +-1/2 and +-1; any other is distinguished from the numbers
    and midpoints of `component` by enough digits.
    """
    turn %= 1
    turn = min(turn, 1 - turn)  # cos is even
    negative = turn > Fraction(1, 4)
    if negative:
        turn = Fraction(1, 2) - turn
    rational_values = {Fraction(0): 1.0, Fraction(1, 6): 0.5, Fraction(1, 4): 0.0}
    size = rational_values[turn] if turn in rational_values else _irrational_cosine(turn, component)
    return -size if negative and size else size


def _irrational_cosine(turn: Fraction, component: DType) -> float:
    """Return cos(2 pi turn), correctly rounded, for a turn between 0 and 1/4."""
    of_sine = turn > Fraction(1, 8)
    halves = 2 * (Fraction(1, 4) - turn if of_sine else turn)
    for doublings in count():
        precision = 120 << doublings
        angle = mp().from_rational(halves.numerator, halves.denominator, precision, "n")
        near = rational((mp().mpf_sin_pi if of_sine else mp().mpf_cos_pi)(angle, precision, "n"))
        slack = near * Fraction(1, 1 << (precision - 8))
        lower, upper = (round_exact(bound, component) for bound in (near - slack, near + slack))
        if lower == upper:
            return lower
    raise AssertionError("unreachable")
