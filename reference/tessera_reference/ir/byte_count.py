"""Numbers of bytes with a unit, `512KiB` or `1MiB`, as attributes of collectives have them (AMB-COLL-01)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

UNITS: Mapping[str, int] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""Each in bytes; a number without a unit counts bytes."""


class ByteCount(int):
    """A whole number of bytes, which prints with the largest unit that measures it: `1MiB` for 1048576."""

    @classmethod
    def of(cls, number: Fraction | int, unit: str) -> ByteCount:
        """So many of a unit. Raises `KeyError` for what is no unit, `ValueError` for no whole number of bytes."""
        total = Fraction(number) * UNITS[unit]
        if total.denominator != 1:
            raise ValueError(f"{number} {unit} is no whole number of bytes")
        return cls(total.numerator)

    def __str__(self) -> str:
        for name, size in sorted(UNITS.items(), key=lambda unit: -unit[1]):
            if self and size > 1 and self % size == 0:
                return f"{int(self) // size}{name}"
        return str(int(self))
