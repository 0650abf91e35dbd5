"""Mathematical constants to 300 bits, as rational numbers; approximations take their pieces from these."""

from __future__ import annotations

from fractions import Fraction

import mpmath.libmp as mp

from ..ziv import rational

__all__ = ["BITS", "LN2", "PI"]

BITS = 300
"""Precision of constants and table entries: far more than a pair can hold."""

LN2: Fraction = rational(mp.mpf_ln2(BITS, "n"))
PI: Fraction = rational(mp.mpf_pi(BITS, "n"))
