"""How large a chunk is: in bytes, as a number or as text with a unit, or in rows or columns (COLL-02.3-01, -02, -07).

`chunk` and `chunk_bytes` are two names of one attribute (AMB-COLL-01); units, fractions and what excludes each other
are AMB-COLL-35.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from ..abi.status import Failure, invalid
from ..ir.byte_count import UNITS
from ..numerics.errors import shown

__all__ = ["MOST", "UNITS", "ChunkSize", "Measure", "read_chunk_size"]

Measure: TypeAlias = Literal["bytes", "rows", "columns"]

MOST = (1 << 63) - 1
"""The largest number of bytes, rows or columns."""

RANGE = f"a whole number from 1 to {MOST}"
ALLOWED = f"bytes, as {RANGE} or as text like 512KiB, in {', '.join(UNITS)}; or rows or columns, as {{rows: 64}}"
AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """At most so many bytes, rows or columns a chunk."""

    measure: Measure
    amount: int


def read_chunk_size(function: str, chunk: Any = None, chunk_bytes: Any = None) -> ChunkSize:
    """Read the attributes `chunk`, of any measure, and `chunk_bytes`, in bytes.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for neither, for two that differ, and for an impossible chunk.
    """
    if chunk is None and chunk_bytes is None:
        raise invalid(function, "neither chunk nor chunk_bytes is given", f"chunk: {ALLOWED}")
    sizes = [] if chunk is None else [_size(function, chunk)]
    if chunk_bytes is not None:
        sizes.append(ChunkSize("bytes", _bytes(function, "chunk_bytes", chunk_bytes)))
    if sizes[0] != sizes[-1]:
        given = f"chunk is {shown(chunk)} and chunk_bytes is {shown(chunk_bytes)}"
        raise invalid(function, given, "one of them, or the same number of bytes in both (AMB-COLL-01)")
    return sizes[0]


def _size(function: str, chunk: Any) -> ChunkSize:
    if not isinstance(chunk, dict):
        return ChunkSize("bytes", _bytes(function, "chunk", chunk))
    if len(chunk) == 1:
        if "rows" in chunk:
            return ChunkSize("rows", _whole(function, "chunk.rows", chunk["rows"]))
        if "columns" in chunk:
            return ChunkSize("columns", _whole(function, "chunk.columns", chunk["columns"]))
    raise invalid(function, f"chunk has the members {shown(list(chunk))}", "rows or columns, one of the two")


def _bytes(function: str, name: str, value: Any) -> int:
    if not isinstance(value, str):
        return _whole(function, name, value, ALLOWED)
    match = AMOUNT.fullmatch(value)
    if match is None or match[2] not in UNITS:
        raise invalid(function, f"{name} is {shown(value)}", ALLOWED)
    amount = Fraction(match[1]) * UNITS[match[2]]
    if amount.denominator != 1:
        raise invalid(function, f"{name} is {shown(value)}, {float(amount)} bytes", RANGE)
    return _whole(function, name, amount.numerator)


def _whole(function: str, name: str, value: Any, allowed: str = RANGE) -> int:
    if type(value) is not int or not 1 <= value <= MOST:
        raise _refused(function, name, value, allowed)
    return value


def _refused(function: str, name: str, value: Any, allowed: str) -> Failure:
    return invalid(function, f"{name} is {shown(value)}", allowed)
