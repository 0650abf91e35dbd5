"""sin, cos and tan, of arguments of any size.

Argument reduction after Payne and Hanek (1983), in integers: |x| = m * 2**e with m of 53 bits, and 2**e * 2/pi modulo
4 comes from a table of 192-bit fractions, one for each e, so that |x| = (q + f) pi/2 with |f| <= 1/2 is known to
2**-136, while no float64 has |f| below 2**-62 (Muller, Elementary Functions, 11.3). The sine of f pi/2 then comes from
a table at multiples of 1/256 and short Taylor series of the rest (Gal, Bachelis, 1991, and Tang, 1991).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..kernels import take
from ..ziv import (
    Approximation,
    Definition,
    Float64s,
    Int64s,
    Pair,
    by_mpmath,
    divide,
    fast_two_sum,
    mp,
    multiply,
    nearest_pair,
    pairs_of,
    rational,
    two_product,
    two_sum,
    where,
)
from . import estimates
from .tables import BITS, PI, rounded_function

_LIMBS, _LIMB_MASK = 6, np.uint64(0xFFFFFFFF)
_HALF_LIMB = np.uint64(32)


def _approximate_sin(x: Float64s) -> Approximation:
    high, low = _sine(*_reduce(x))
    sign = np.copysign(1.0, x)
    return Approximation(np.where(x == 0.0, x, sign * high), sign * low)


def _approximate_cos(x: Float64s) -> Approximation:
    quarter, angle = _reduce(x)
    return Approximation(*_sine(quarter + 1, angle))


def _approximate_tan(x: Float64s) -> Approximation:
    quarter, angle = _reduce(x)
    high, low = divide(_sine(quarter, angle), _sine(quarter + 1, angle))
    sign = np.copysign(1.0, x)
    return Approximation(np.where(x == 0.0, x, sign * high), sign * low)


def _sine(quarter: Int64s, angle: Pair) -> Pair:
    """Approximate sin(quarter * pi/2 + angle) within 2**-69, relatively, for |angle| <= pi/4.

    With angle = c + d, |d| <= 1/512: sin(c + d) = sin(c) cos(d) + cos(c) sin(d), and cos(c + d) likewise.
    """
    negative = np.signbit(angle[0])
    magnitude = np.abs(angle[0])
    index = np.rint(256.0 * np.where(np.isnan(magnitude), 0.0, magnitude)).astype(np.int64)
    d, d_low = fast_two_sum(magnitude - index * (1 / 256), np.where(negative, -angle[1], angle[1]))
    square = d * d
    sine_low = d_low * (1.0 - 0.5 * square) + d * square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040)))
    cosine_less_one = square * (-1 / 2 + square * (1 / 24 + square * (-1 / 720))) - d * d_low

    odd = (quarter & 1) == 1
    sine, cosine = ((take(high, index), take(low, index)) for high, low in _sines_and_cosines())
    of_cosine, of_sine = where(odd, cosine, sine), where(odd, (-sine[0], -sine[1]), cosine)
    product, product_low = two_product(of_sine[0], d)
    high, low = two_sum(of_cosine[0], product)
    rest = of_cosine[1] + product_low + of_sine[1] * d + of_cosine[0] * cosine_less_one + of_sine[0] * sine_low
    high, low = fast_two_sum(high, low + rest)
    sign = np.where(((quarter & 2) == 2) != (negative & ~odd), -1.0, 1.0)
    return sign * high, sign * low


def _reduce(x: Float64s) -> tuple[Int64s, Pair]:
    """Return q and the pair a, |a| <= pi/4, with |x| = q pi/2 + a; NaN where x is not finite."""
    magnitude = np.abs(x)
    small = magnitude <= 0.785
    if small.all():
        return np.zeros(x.shape, np.int64), (magnitude, np.zeros_like(x))
    turns = _quarter_turns(np.where(np.isfinite(x), magnitude, 1.0))
    quarter = (turns[-1] + np.uint64(1 << 29)) >> np.uint64(30)  # the top limb has two bits before the point
    turns[-1] = (turns[-1] - (quarter << np.uint64(30))) & _LIMB_MASK
    negative = turns[-1] >= np.uint64(1 << 31)
    flip = np.where(negative, _LIMB_MASK, np.uint64(0))  # -f less one unit of the last place
    angle = multiply(_pair_of_limbs([limb ^ flip for limb in turns]), nearest_pair(PI / 2))
    sign = np.where(negative, -1.0, 1.0)
    high = np.where(small, magnitude, sign * angle[0])
    high = np.where(np.isfinite(x), high, np.nan)
    return np.where(small, 0, quarter.astype(np.int64)), (high, np.where(small, 0.0, sign * angle[1]))


def _quarter_turns(magnitude: Float64s) -> list[Any]:
    """Return x * 2/pi modulo 4, times 2**190, as limbs of 32 bits from the lowest; for x >= 1/2."""
    fraction, exponent = np.frexp(magnitude)
    significand = (fraction * 2.0**53).astype(np.uint64)
    factors = significand & _LIMB_MASK, significand >> _HALF_LIMB
    row = np.maximum(exponent, 0)  # integers
    table = [take(column, row) for column in _two_over_pi()]
    limbs: list[Any] = []
    pending: list[list[Any]] = [[] for _ in range(_LIMBS + 2)]
    carry: Any = np.uint64(0)
    for i in range(_LIMBS):
        for j, factor in enumerate(factors):
            product = table[i] * factor
            pending[i + j].append(product & _LIMB_MASK)
            pending[i + j + 1].append(product >> _HALF_LIMB)
        for part in pending[i]:
            carry = carry + part
        limbs.append(carry & _LIMB_MASK)
        carry = carry >> _HALF_LIMB
    return limbs


def _pair_of_limbs(limbs: list[Any]) -> Pair:
    """Return the number with these limbs, from the lowest, as a pair; the top limb counts quarters of 2**32."""
    high: Any = 0.0
    low: Any = 0.0
    for place, limb in enumerate(reversed(limbs)):
        high, low = fast_two_sum(high, low + limb.astype(np.float64) * 2.0 ** (-30 - 32 * place))
    return high, low


@cache
def _two_over_pi() -> tuple[Any, ...]:
    """Return for each exponent e >= 0 of frexp 2**(e - 53) * 2/pi modulo 4, as limbs of 32 bits from the lowest."""
    bits = 32 * _LIMBS
    precise = bits + 1100
    _, mantissa, exponent, _ = mp().mpf_div(mp().from_int(2), mp().mpf_pi(precise + 20), precise + 10, "d")
    rows = []
    for e in range(1025):
        shift = exponent + e - 53 + bits - 2
        turns = int(mantissa) << shift if shift >= 0 else int(mantissa) >> -shift
        rows.append([(turns >> (32 * limb)) & 0xFFFFFFFF for limb in range(_LIMBS)])
    table = np.array(rows, np.uint64)
    return tuple(np.ascontiguousarray(table[:, limb]) for limb in range(_LIMBS))


@cache
def _sines_and_cosines() -> tuple[Pair, Pair]:
    """Return sin(i/256) and cos(i/256), for i/256 up to pi/4 and a little more."""
    points = [mp().mpf_cos_sin(mp().from_rational(i, 256, BITS), BITS, "n") for i in range(202)]
    return pairs_of(rational(sine) for _, sine in points), pairs_of(rational(cosine) for cosine, _ in points)


# By Hermite and Lindemann, sin, cos and tan of a rational number other than 0 are irrational: no exact cases.
_SIN = Definition(_approximate_sin, 2.0**-68, by_mpmath("mpf_sin"), estimates.sin)
sin = rounded_function("sin", _SIN, "The sine: sin(-0) = -0, sin(+-inf) = NaN.")
_COS = Definition(_approximate_cos, 2.0**-68, by_mpmath("mpf_cos"), estimates.cos)
cos = rounded_function("cos", _COS, "The cosine: cos(+-inf) = NaN.")
_TAN = Definition(_approximate_tan, 2.0**-67, by_mpmath("mpf_tan"), estimates.tan)
tan = rounded_function("tan", _TAN, "The tangent: tan(-0) = -0, tan(+-inf) = NaN.")
