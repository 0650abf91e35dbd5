"""erf, by Taylor series around the nearest multiple of 1/128.

With g(t) = 2/sqrt(pi) exp(-t**2), erf(c + d) = erf(c) + the integral of g from c to c + d. As g' = -2 t g, the Taylor
coefficients of g at c satisfy (n + 1) g[n+1] = -2 (c g[n] + g[n-1]).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from .. import libmp as mp
from ..double_double import Float64s, Pair, fast_two_sum, nearest, pairs_of, two_product
from ..formats import DType
from ..rounding import Overflow
from ..ziv import Approximation, Definition, Values, correctly_rounded, enclosure, rational
from .exponential import clip
from .tables import elementary_function

__all__ = ["erf"]

_STEPS, _LAST = 128, 7
"""Series in one unit of x, and the end of the table, beyond which 1 - erf(x) is below 2**-74."""

_TERMS = 10
_TABLE_BITS = 160


@elementary_function
def erf(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the error function: erf(-0) = -0, erf(+-inf) = +-1."""
    return correctly_rounded(_ERF, dtype, overflow, values)


def _approximate_erf(x: Float64s) -> Approximation:
    """Approximate erf(x) within 2**-66, relatively; a tiny x, of which erf is a multiple, is scaled up first."""
    tiny = np.abs(x) < 2.0**-500
    magnitude = np.abs(clip(np.where(tiny, x * 2.0**400, x), float(_LAST)))
    index = np.rint(_STEPS * np.where(np.isnan(magnitude), 0.0, magnitude)).astype(np.int64)
    d = magnitude - index * (1 / _STEPS)

    value, slope, rest = _coefficients()
    tail = rest[-1][index]
    for coefficient in rest[-2::-1]:
        tail = coefficient[index] + d * tail
    product, product_low = two_product(slope[0][index], d)
    high, low = fast_two_sum(value[0][index], product)
    high, low = fast_two_sum(high, low + (value[1][index] + product_low + slope[1][index] * d + d * d * tail))
    sign = np.copysign(1.0, x)
    return Approximation(sign * high, sign * low, np.where(tiny, -400, 0) if tiny.any() else None)


@cache
def _coefficients() -> tuple[Pair, Pair, list[Float64s]]:
    """Return the Taylor coefficients of erf at every multiple of 1/128: two as pairs, the others as float64."""
    rows = [_series(Fraction(i, _STEPS)) for i in range(_LAST * _STEPS + 1)]
    value, slope, *rest = zip(*rows, strict=True)
    return pairs_of(value), pairs_of(slope), [np.array([nearest(each) for each in column]) for column in rest]


def _series(c: Fraction) -> list[Fraction]:
    """Return the Taylor coefficients of erf at c."""
    point = mp.from_rational(c.numerator, c.denominator, _TABLE_BITS)
    gauss = mp.mpf_exp(mp.mpf_neg(mp.mpf_mul(point, point)), _TABLE_BITS, "n")
    scale = mp.mpf_div(mp.from_int(2), mp.mpf_sqrt(mp.mpf_pi(_TABLE_BITS), _TABLE_BITS), _TABLE_BITS, "n")
    g = [Fraction(0), rational(mp.mpf_mul(gauss, scale, _TABLE_BITS, "n"))]
    for n in range(_TERMS - 2):
        g.append(-2 * (c * g[-1] + g[-2]) / (n + 1))
    return [rational(mp.mpf_erf(point, _TABLE_BITS, "n")), *(each / (n + 1) for n, each in enumerate(g[1:]))]


def _enclosed_erf(x: Any, precision: int) -> Any:
    return mp.mpf_erf(x, precision, "n")


# erf(x) at a rational number other than 0 is not proven irrational, but no case is known in which it is a midpoint.
_ERF = Definition(_approximate_erf, 2.0**-65, enclosure(_enclosed_erf))
