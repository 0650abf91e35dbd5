"""Estimates of functions of fp32 numbers in plain float64, within 2**-45, relatively.

Ziv's test leaves one or two elements of a million to the definitions in pairs. Each estimate is a reduction to an
argument of few bits or of small size, a table, and a short Taylor series. It takes fp32 numbers in float64; where it
does not know the function, as out of its domain, it gives NaN. "e" below is an error in units of 2**-53.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..kernels import take
from ..ziv import (
    Float64s,
    Int64s,
    fast_two_sum,
    leading_bits,
    mp,
    nearest,
    pairs_of,
    rational,
    split,
)
from .tables import BITS, LN2, PI

Bools: TypeAlias = npt.NDArray[np.bool_]

_TO_WHOLE = 1.5 * 2.0**52
"""The number whose addition rounds a float64 to a whole number, which is left in the low bits of the sum."""

_LN2, _STEPS_A_RADIAN = nearest(LN2), nearest(256 / PI)


def clip(x: Float64s, limit: float) -> Float64s:
    """Move numbers beyond the limit to it, where the function rounds as everywhere beyond it; NaN stays."""
    return x if (np.abs(x) <= limit).all() else np.where(x > limit, limit, np.where(x < -limit, -limit, x))


def _within(domain: Bools, near: Float64s) -> Float64s:
    return near if domain.all() else np.where(domain, near, np.nan)


# exp, exp2, expm1, sinh, cosh, tanh.
#
# x = k ln2/1024 + r, |r| <= ln2/2048, and exp(x) = 2**(k // 1024) * 2**((k % 1024) / 1024) * (1 + r + r**2/2 + r**3/6):
# of r, the rounded step and the product with it err by 2 |x| e; the series by r**4/24 < 2**-50; each rounding by e.
# For |x| <= 105 that is 2**-45. expm1 has one term more, and the table's second parts, so that its error is in
# proportion to x down to 0. The others are made of expm1(|x|) and exp(|x|) by sums of one sign.

_STEP, _INVERSE = nearest(LN2 / 1024), nearest(Fraction(1024) / LN2)
_CODE_OF_ONE = 1023 << 52
_LIMIT = 105.0
"""The limit beyond which exp overflows fp32, or is less than half its smallest number."""


def exp(x: Float64s) -> Float64s:
    """Estimate e to the power of x."""
    power, _, r = _power(clip(x, _LIMIT))
    return power + power * (r * (1.0 + r * (1 / 2 + r * (1 / 6))))


def exp2(x: Float64s) -> Float64s:
    """Estimate 2 to the power of x: the reduced argument is exact but for its factor ln2."""
    x = clip(x, 152.0)
    shifted = x * 1024.0 + _TO_WHOLE
    r = (x - (shifted - _TO_WHOLE) * (1 / 1024)) * _LN2
    power = _power_of_two(shifted.view(np.int64))
    return power + power * (r * (1.0 + r * (1 / 2 + r * (1 / 6))))


def expm1(x: Float64s) -> Float64s:
    """Estimate exp(x) - 1; -0 stays."""
    return np.copysign(_expm1(clip(x, _LIMIT)), x)


def sinh(x: Float64s) -> Float64s:
    """Estimate (M + M / (M + 1)) / 2, M = expm1(|x|)."""
    m = _expm1(np.abs(clip(x, _LIMIT)))
    return np.copysign(0.5 * (m + m / (m + 1.0)), x)


def cosh(x: Float64s) -> Float64s:
    """Estimate (E + 1/E) / 2, E = exp(|x|)."""
    e = exp(np.abs(x))
    return 0.5 * (e + 1.0 / e)


def tanh(x: Float64s) -> Float64s:
    """Estimate M / (M + 2), M = expm1(2|x|); from 12 on it rounds to 1."""
    m = _expm1(2.0 * np.abs(clip(x, 12.0)))
    return np.copysign(m / (m + 2.0), x)


def _expm1(x: Float64s) -> Float64s:
    power, k, r = _power(x)
    low = take(_powers()[1], k & 1023) * (((k >> 10) << 52) + _CODE_OF_ONE).view(np.float64)
    return (power - 1.0) + (low + power * (r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24))))))


def _power(x: Float64s) -> tuple[Float64s, Int64s, Float64s]:
    """Return 2**(k/1024), k and r."""
    shifted = x * _INVERSE + _TO_WHOLE
    r = x - (shifted - _TO_WHOLE) * _STEP
    k = shifted.view(np.int64)
    return _power_of_two(k), k, r


def _power_of_two(k: Int64s) -> Float64s:
    """Return 2**(k/1024); other high bits of k are shifted out."""
    return (take(_powers()[0], k & 1023) + ((k >> 10) << 52)).view(np.float64)


@cache
def _powers() -> tuple[Int64s, Float64s]:
    """Return the codes of 2**(j/1024) for j < 1024, and the residuals of these numbers."""
    ln2 = mp().mpf_ln2(BITS)
    exponents = (mp().mpf_mul(ln2, mp().from_rational(j, 1024, BITS)) for j in range(1024))
    high, low = pairs_of(rational(mp().mpf_exp(exponent, BITS, "n")) for exponent in exponents)
    return high.view(np.int64), low


# log, log2, log1p.
#
# x = 2**e * m, m between 0.69 and 1.39, and c a number of 20 bits near 1/m by the first 9 bits of m, which is 1 for
# those beside 1: r = m c - 1 is exact for the 24 bits of x, and for the 33 bits of 1 + x from |x| = 2**-10 on; below
# that log1p takes x itself. Then log(x) = e ln2 - log(c) + log1p(r), |r| <= 2**-9, by five terms, of which the next is
# below 2**-47 r. No sum loses more than two bits.

_FIRST = 0x3FE6200000000000
"""The code of the least m, 0.69140625; it begins one of the table's intervals."""


def log(x: Float64s) -> Float64s:
    """Estimate the natural logarithm of positive numbers."""
    e, minus_log, r, _ = _reduced(x)
    return _within((x > 0.0) & (x < np.inf), e * _LN2 + (minus_log + _log1p(r)))


def log2(x: Float64s) -> Float64s:
    """Estimate the logarithm to base 2 of positive numbers; of powers of 2 it is exact."""
    e, minus_log, r, _ = _reduced(x)
    return _within((x > 0.0) & (x < np.inf), e + (minus_log + _log1p(r)) * (1 / _LN2))


def log1p(x: Float64s) -> Float64s:
    """Estimate log(1 + x) of numbers above -1; -0 stays."""
    e, minus_log, r, _ = _reduced(1.0 + x)
    near = e * _LN2 + (minus_log + _log1p(np.where(np.abs(x) < 2.0**-10, x, r)))
    return _within((x > -1.0) & (x < np.inf), np.copysign(near, x))


def pow(x: Float64s, y: Float64s) -> Float64s:
    """Estimate x to the power of y for positive x: log(x) in a pair within 2**-62, relatively, and exp of y log(x)."""
    e, minus_log, r, place = _reduced(x)
    ln2, ln2_low = ln2_pieces()
    total, first = fast_two_sum(e * ln2, minus_log)
    total, second = fast_two_sum(total, r)
    tail = r * r * (-1 / 2 + r * (1 / 3 + r * (-1 / 4 + r * (1 / 5 + r * (-1 / 6)))))
    low = first + (second + (tail + (e * ln2_low + take(_inverses()[2], place))))
    high, rest = split(total)
    exponent, exponent_low = fast_two_sum(y * high, y * (rest + low))  # y * high is exact
    clipped = clip(exponent, _LIMIT)
    power, _, r = _power(clipped)
    r = r + (exponent_low if clipped is exponent else np.where(clipped == exponent, exponent_low, 0.0))
    near = power + power * (r * (1.0 + r * (1 / 2 + r * (1 / 6))))
    return _within((x > 0.0) & (x < np.inf) & (np.abs(y) < np.inf), near)


def _reduced(x: Float64s) -> tuple[Float64s, Float64s, Float64s, Int64s]:
    """Return e, -log(c), r, and the place of c."""
    code = x.view(np.int64)
    above = code - _FIRST
    e = above >> 52
    inverses, minus_logs, _ = _inverses()
    place = (above >> 43) & 511
    r = (code - (e << 52)).view(np.float64) * take(inverses, place) - 1.0
    return e.astype(np.float64), take(minus_logs, place), r, place


def _log1p(r: Float64s) -> Float64s:
    return r * (1.0 + r * (-1 / 2 + r * (1 / 3 + r * (-1 / 4 + r * (1 / 5)))))


@cache
def ln2_pieces() -> tuple[float, float]:
    """Return ln2 in two pieces, of which the first has 42 bits, so that its product with e is exact."""
    first = leading_bits(LN2, 42)
    return float(first), nearest(LN2 - first)


@cache
def _inverses() -> tuple[Float64s, Float64s, Float64s]:
    """Return for each of 512 intervals from the least m on, of equal steps of its code, c and -log(c), a pair."""
    edges = (np.arange(513, dtype=np.int64) << 43) + _FIRST
    ends = [Fraction(edge) for edge in edges.view(np.float64).tolist()]
    middles = [Fraction(1) if 1 in pair else 2 / sum(pair, Fraction()) for pair in pairwise(ends)]
    inverses = [round(middle * (1 << 19)) for middle in middles]
    logs = (rational(mp().mpf_log(mp().from_rational(c, 1 << 19, BITS), BITS, "n")) for c in inverses)
    return np.array([c * 2.0**-19 for c in inverses]), *pairs_of(-log for log in logs)


# sin, cos, tan.
#
# x = k pi/256 + r, |r| <= pi/512 and |k| < 2**22, the step in three pieces of which k times the first two is exact. The
# differences are exact where they are small, so that r errs by e. Sine and cosine of k pi/256 come from a table, in
# which those of quarters of the circle are exact, those of r from three terms.


def sin(x: Float64s) -> Float64s:
    """Estimate the sine of numbers below 50,000; -0 stays."""
    sine, cosine, of_r, less_one = _angle(x)
    return _odd(x, _within(np.abs(x) < _FARTHEST, sine + (cosine * of_r + sine * less_one)))


def cos(x: Float64s) -> Float64s:
    """Estimate the cosine of numbers below 50,000."""
    sine, cosine, of_r, less_one = _angle(x)
    return _within(np.abs(x) < _FARTHEST, cosine + (cosine * less_one - sine * of_r))


def tan(x: Float64s) -> Float64s:
    """Estimate the tangent of numbers below 50,000; -0 stays."""
    sine, cosine, of_r, less_one = _angle(x)
    quotient = (sine + (cosine * of_r + sine * less_one)) / (cosine + (cosine * less_one - sine * of_r))
    return _odd(x, _within(np.abs(x) < _FARTHEST, quotient))


def _odd(x: Float64s, near: Float64s) -> Float64s:
    """Put the zeros of x, which keep their sign, into an estimate."""
    zero = x == 0.0
    return np.where(zero, x, near) if zero.any() else near


_FARTHEST = 50000.0


def _angle(x: Float64s) -> tuple[Float64s, Float64s, Float64s, Float64s]:
    """Return the sine and cosine of k pi/256, sin(r) and cos(r) - 1."""
    first, second, third, sines = _circle()
    shifted = x * _STEPS_A_RADIAN + _TO_WHOLE
    k = shifted - _TO_WHOLE
    r = ((x - k * first) - k * second) - k * third
    place = shifted.view(np.int64) & 511
    square = r * r
    of_r = r * (1.0 + square * (-1 / 6 + square * (1 / 120)))
    return take(sines, place), take(sines, place + 128), of_r, square * (-1 / 2 + square * (1 / 24))


@cache
def _circle() -> tuple[float, float, float, Float64s]:
    """Return pi/256 in three pieces, and sin(i pi/256) for i < 640."""
    step = PI / 256
    first = leading_bits(step, 31)
    second = leading_bits(step - first, 31)
    angles = (mp().mpf_mul(mp().mpf_pi(BITS), mp().from_rational(i, 256, BITS)) for i in range(129))
    quarter = np.array([nearest(rational(mp().mpf_sin(angle, BITS, "n"))) for angle in angles])
    half = np.concatenate([quarter, quarter[-2::-1]])[:256]
    whole = np.concatenate([half, 0.0 - half, half[:128]])
    return float(first), float(second), nearest(step - first - second), whole


# erf(c + d), c = i/1024, |d| <= 1/2048, by five terms of the Taylor series at c, in which erf'' = -2 c erf'.


def erf(x: Float64s) -> Float64s:
    """Estimate the error function; from 4 on it rounds to 1; -0 stays."""
    magnitude = np.abs(clip(x, 4.0))
    shifted = magnitude * 1024.0 + _TO_WHOLE
    c = (shifted - _TO_WHOLE) * (1 / 1024)
    place = np.minimum(shifted.view(np.int64) & 8191, 4096)  # integers
    d = magnitude - c
    values, slopes = _gauss()
    square = c * c
    fourth = d * (1 / 10 + square * (-2 / 5 + square * (2 / 15)))
    bend = d * (-c + d * ((square * (2 / 3) - 1 / 3) + d * (c * (1 / 2 - square * (1 / 3)) + fourth)))
    return np.copysign(take(values, place) + take(slopes, place) * (d + d * bend), x)


@cache
def _gauss() -> tuple[Float64s, Float64s]:
    """Return erf(i/1024) and its slope there, up to 4."""
    scale = mp().mpf_div(mp().from_int(2), mp().mpf_sqrt(mp().mpf_pi(80), 80), 80, "n")
    points = [mp().from_rational(i, 1024, 80) for i in range(4097)]
    slopes = (mp().mpf_mul(mp().mpf_exp(mp().mpf_neg(mp().mpf_mul(c, c)), 80, "n"), scale) for c in points)
    values = (mp().mpf_erf(c, 80, "n") for c in points)
    return np.array([nearest(rational(v)) for v in values]), np.array([nearest(rational(s)) for s in slopes])
