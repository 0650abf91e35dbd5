"""Numbers of bytes with a unit, `512KiB` or `1MiB`, as attributes of collectives have them (AMB-COLL-01)."""

from __future__ import annotations

from collections.abc import Mapping

UNITS: Mapping[str, int] = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""Each in bytes; a number without a unit counts bytes."""


class ByteCount(int):
    """A whole number of bytes, which prints with the largest unit that measures it: `1MiB` for 1048576."""

    @classmethod
    def of(cls, number: int, unit: str) -> ByteCount:
        """So many of a unit. Raises `KeyError` for what is no unit."""
        return cls(number * UNITS[unit])

    def __str__(self) -> str:
        for name, size in sorted(UNITS.items(), key=lambda unit: -unit[1]):
            if self and self % size == 0:
                return f"{int(self) // size}{name}"
        return str(int(self))
