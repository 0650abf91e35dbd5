"""What a kernel's parameters may be, and how one value becomes its bytes (runtime spec 9, 10.1, Appendix B).

A value is an int (pointers too), a float, a complex or a bool of Python. Aggregates by value are left out: the
specification passes pointers and scalars only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..numerics.errors import shown
from ..numerics.formats import DTYPES, DType
from .float_codes import code_of_float, float_of_code
from .identifiers import is_c_identifier
from .status import invalid

__all__ = ["PARAMETER_TYPES", "Parameter", "ParameterType", "ParameterValue"]

ParameterValue: TypeAlias = int | float | complex | bool
Stored: TypeAlias = int | bytes
"""What the struct module is given for a value: an int, or the bytes of a complex number."""


@dataclass(frozen=True)
class ParameterType:
    """A type: its size in bytes, its letter for the struct module, and the way from a value to it and back.

    `store` raises ValueError, with what it expects, for a value that is none of the type.
    """

    name: str
    size: int
    letter: str
    store: Callable[[ParameterValue], Stored]
    value: Callable[[Stored], ParameterValue]

    @property
    def alignment(self) -> int:
        """The smaller of the size and eight (RT-10.1-03, AMB-RT-15)."""
        return min(self.size, 8)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel; `type` is "ptr" or a dtype of the ABI.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a name that C has not, or another type.
    """

    name: str
    type: str

    def __post_init__(self) -> None:
        if not is_c_identifier(self.name):
            raise invalid("kernel parameters", f"the parameter name {shown(self.name)}", "a C identifier")
        if not isinstance(self.type, str) or self.type not in PARAMETER_TYPES:
            given = f"parameter {self.name} of type {shown(self.type)}"
            raise invalid("kernel parameters", given, ", ".join(PARAMETER_TYPES))

    @property
    def kind(self) -> ParameterType:
        """The type itself."""
        return PARAMETER_TYPES[self.type]


def _whole_number(name: str, size: int, letter: str, low: int, high: int) -> ParameterType:
    def store(value: ParameterValue) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError(f"a whole number from {low} to {high}")

    return ParameterType(name, size, letter, store, _itself)


def _floating(dtype: DType) -> ParameterType:
    def store(value: ParameterValue) -> int:
        if type(value) is float or type(value) is int:
            return code_of_float(value, dtype)
        raise ValueError("a number")

    def value(stored: Stored) -> float:
        assert isinstance(stored, int)
        return float_of_code(stored, dtype)

    return ParameterType(dtype.name, dtype.storage_bytes, _UNSIGNED[dtype.storage_bytes], store, value)


def _complex(dtype: DType) -> ParameterType:
    part = dtype.component
    both = struct.Struct("<" + 2 * _UNSIGNED[part.storage_bytes])

    def store(value: ParameterValue) -> bytes:
        if type(value) is complex:
            return both.pack(code_of_float(value.real, part), code_of_float(value.imag, part))
        raise ValueError("a complex number")

    def value(stored: Stored) -> complex:
        assert isinstance(stored, bytes)
        real, imaginary = both.unpack(stored)
        return complex(float_of_code(real, part), float_of_code(imaginary, part))

    return ParameterType(dtype.name, both.size, f"{both.size}s", store, value)


def _boolean() -> ParameterType:
    def store(value: ParameterValue) -> int:
        if type(value) is bool:
            return int(value)
        raise ValueError("true or false")

    return ParameterType("bool", 1, "B", store, bool)  # any byte but zero reads as true (AMB-RT-56)


def _itself(stored: Stored) -> int:
    assert isinstance(stored, int)
    return stored


def _of_dtype(dtype: DType) -> ParameterType:
    match dtype.kind:
        case "float":
            return _floating(dtype)
        case "complex":
            return _complex(dtype)
        case "bool":
            return _boolean()
        case "int":
            letter = _UNSIGNED[dtype.storage_bytes].lower()
            return _whole_number(dtype.name, dtype.storage_bytes, letter, dtype.int_min, dtype.int_max)


_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}

PARAMETER_TYPES: dict[str, ParameterType] = {
    "ptr": _whole_number("ptr", 8, "Q", 0, (1 << 64) - 1),
    **{each.name: _of_dtype(each) for each in DTYPES.values() if each.abi_id is not None},
}
"""Pointers, and every dtype that has an id (RT-10.1-05 to -07, AMB-RT-17); tf32 has none and is no argument."""
