"""The bytes in messages to and from a runtime: elements of memory, and parameter buffers (runtime spec, 10.1)."""

from __future__ import annotations

import struct

FORMATS = {
    "ptr": "Q",
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "fp16": "e",
    "fp32": "f",
    "fp64": "d",
}
"""The types that Python packs itself, with their formats."""


def packed(*arguments: tuple[str, float]) -> bytes:
    """Return a parameter buffer: each argument aligned to min(its size, 8), the whole rounded up to 8, padding zero."""
    buffer = b""
    for type_name, value in arguments:
        data = elements(type_name, value)
        buffer += bytes(-len(buffer) % min(len(data), 8)) + data
    return buffer + bytes(-len(buffer) % 8)


def elements(type_name: str, *values: float) -> bytes:
    """Little-endian elements of a tensor, fp32 rounded once."""
    return struct.pack(f"<{len(values)}{FORMATS[type_name]}", *values)


def wrapped(number: int) -> int:
    """Return the int32 with the low 32 bits of a number."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def values_of(type_name: str, data: bytes) -> list[float]:
    """Return the elements in bytes of memory."""
    form = FORMATS[type_name]
    return [value for (value,) in struct.iter_unpack(f"<{form}", data)]
