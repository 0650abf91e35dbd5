"""Mathematical constants to 300 bits, as rational numbers; approximations take their pieces from these."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["BITS", "LN2", "PI"]

BITS = 300
"""Precision of constants and table entries: far more than a pair can hold."""

LN2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF40F343267298B62D8A0D175B8BAAFA2BE7B876206DF, 1 << BITS)
PI = Fraction(0xC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3, 1 << BITS - 2)
