"""The parameter buffer (runtime spec 10.1): where each argument of a kernel lies, and packing them.

Arguments in declared order, each aligned to the smaller of its size and eight, little-endian, the whole rounded up to a
multiple of eight. The buffer itself holds no names and no types: both sides know the kernel's signature.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..numerics.errors import shown
from .parameter_types import Parameter, ParameterValue
from .status import invalid

__all__ = ["BUFFER_ALIGNMENT", "ParameterLayout", "layout_of", "pack", "unpack"]

BUFFER_ALIGNMENT = 8
"""Bytes that a parameter buffer is aligned to, and a multiple of which it fills (RT-09-07, RT-10.1-04)."""


@dataclass(frozen=True)
class ParameterLayout:
    """Where the parameters of a kernel lie: an offset and a size for each, and the size of the buffer."""

    parameters: tuple[Parameter, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    end_of_last_argument: int
    size: int

    @cached_property
    def fields(self) -> struct.Struct:
        """The arguments with the padding between them, up to the end of the last one."""
        text, end = "<", 0
        for parameter, offset in zip(self.parameters, self.offsets, strict=True):
            text += "x" * (offset - end) + parameter.kind.letter
            end = offset + parameter.kind.size
        return struct.Struct(text)

    @cached_property
    def padding(self) -> bytes:
        """What follows the last argument; zero, and nobody reads it (RT-10.1-12, AMB-RT-55)."""
        return bytes(self.size - self.end_of_last_argument)


def layout_of(parameters: Sequence[Parameter]) -> ParameterLayout:
    """Lay out parameters in their order (RT-10.1-01, -03, -04, -13). Raises `Failure` for a name given twice."""
    seen: set[str] = set()
    offsets, sizes, end = [], [], 0
    for parameter in parameters:
        if parameter.name in seen:
            raise invalid("kernel parameters", f"two parameters called {parameter.name}", "names that differ")
        seen.add(parameter.name)
        offsets.append(_round_up(end, parameter.kind.alignment))
        sizes.append(parameter.kind.size)
        end = offsets[-1] + sizes[-1]
    return ParameterLayout(tuple(parameters), tuple(offsets), tuple(sizes), end, _round_up(end, BUFFER_ALIGNMENT))


def pack(layout: ParameterLayout, values: Sequence[ParameterValue]) -> bytes:
    """The buffer of `values`: padding is zero, a float is rounded once to its type.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for another number of values, or one that is none of its type.
    """
    parameters = layout.parameters
    if len(values) != len(parameters):
        raise invalid("pack", f"{len(values)} values", f"{len(parameters)}, one for each parameter")
    stored = []
    for parameter, value in zip(parameters, values, strict=True):
        try:
            stored.append(parameter.kind.store(value))
        except ValueError as error:
            given = f"{shown(value)} for parameter {parameter.name} of type {parameter.type}"
            raise invalid("pack", given, str(error)) from None
    return layout.fields.pack(*stored) + layout.padding


def unpack(layout: ParameterLayout, buffer: bytes) -> tuple[ParameterValue, ...]:
    """The values in `buffer`, which may hold anything in its padding and may be longer than the layout.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a buffer that ends before the last argument does (AMB-RT-16).
    """
    if len(buffer) < layout.end_of_last_argument:
        allowed = f"{layout.size}, or at least {layout.end_of_last_argument}, where the last argument ends"
        raise invalid("tessLaunch", f"argSize is {len(buffer)}", allowed)
    stored = layout.fields.unpack_from(buffer)
    return tuple(parameter.kind.value(each) for parameter, each in zip(layout.parameters, stored, strict=True))


def _round_up(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment
