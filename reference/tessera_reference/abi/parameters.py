"""Kernel parameters (runtime spec 9, 10.1, 10.3, Appendix B).

Names, types, the buffer that holds them, and signatures."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from ..numerics.array import nan_code
from ..numerics.formats import DTYPES, DType, shown
from ..numerics.rounding import round_exact
from .status import Failure, invalid

# Names of C (runtime spec 10.3): the names that a C program can use for a kernel or a parameter.


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas
    _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local
    """.split()
)


def is_c_identifier(name: object) -> bool:
    """True if `name` is an identifier of C17: ASCII letters, digits and underscores, and no keyword (RT-10.3-01)."""
    return isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None and name not in _KEYWORDS


# Single numbers and their codes (reference arithmetic, "formats").
#
# These are `numerics.rounding` and `numerics.encoding` for the few scalars of a launch: there a call into numpy would
# cost more than the launch. Every step is exact but the one rounding.


def code_of_float(value: float, dtype: DType) -> int:
    """Return the code of `value` rounded once to nearest even; overflow saturates in fp8, else gives infinity.

    A whole number may be of any size. Every NaN has the code of the one quiet NaN.
    """
    if type(value) is int and abs(value) > 1 << 53:  # a Python float might not hold it
        value = round_exact(Fraction(value), dtype)
    if value != value:
        return nan_code(dtype)
    negative = math.copysign(1.0, value) < 0
    code = _code_of_magnitude(abs(float(value)), dtype)
    return code | 1 << dtype.bits - 1 if negative else code


def float_of_code(code: int, dtype: DType) -> float:
    """Return the value of `code`, an unsigned number of `dtype.bits` bits."""
    fraction = code & (1 << dtype.fraction_bits) - 1
    exponent = code >> dtype.fraction_bits & (1 << dtype.exponent_bits) - 1
    if code & (1 << dtype.bits - 1) - 1 > _largest_code(dtype):
        magnitude = math.inf if dtype.has_infinity and fraction == 0 else math.nan
    else:
        hidden = 1 << dtype.fraction_bits if exponent else 0
        magnitude = math.ldexp(fraction + hidden, max(exponent, 1) - dtype.bias - dtype.fraction_bits)
    return -magnitude if code >> dtype.bits - 1 else magnitude


def _code_of_magnitude(magnitude: float, dtype: DType) -> int:
    largest = _largest_code(dtype)
    beyond = largest if dtype.bits == 8 else largest + 1  # the code of infinity
    if magnitude == 0.0:
        return 0
    if magnitude == math.inf:
        return beyond
    _, exponent = math.frexp(magnitude)
    exponent = max(exponent - 1, dtype.min_exponent)
    significand = round(math.ldexp(magnitude, dtype.fraction_bits - exponent))  # to nearest even
    # The leading bit of a normal significand carries into the exponent field, which therefore starts one lower.
    code = significand + ((exponent - dtype.min_exponent) << dtype.fraction_bits)
    return code if code <= largest else beyond


def _largest_code(dtype: DType) -> int:
    """Return the code of the largest finite value: below the infinity, or below the one NaN of fp8_e4m3."""
    if dtype.has_infinity:
        return ((1 << dtype.exponent_bits) - 1 << dtype.fraction_bits) - 1
    return nan_code(dtype) - 1


# The types of a kernel's parameters, and the bytes of a value (runtime spec 9, 10.1, Appendix B).
#
# A value is an int (pointers too), a float, a complex or a bool of Python. Aggregates by value are left out: the
# specification passes pointers and scalars only.


ParameterValue: TypeAlias = int | float | complex | bool
Stored: TypeAlias = int | bytes
"""A value for the struct module: an int, or the bytes of a complex number."""


@dataclass(frozen=True)
class ParameterType:
    """A type: its size in bytes, its letter for the struct module, and the conversions of its values.

    `store` raises ValueError, with the expected kind, for a value of another type.
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

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a name that is invalid in C, or another type.
    """

    name: str
    type: str

    def __post_init__(self) -> None:
        if not is_c_identifier(self.name):
            raise invalid("kernel parameters", f"the parameter name {shown(self.name)}", "a C identifier")
        if not isinstance(self.type, str) or self.type not in PARAMETER_TYPES:
            subject = f"parameter {self.name} of type {shown(self.type)}"
            raise invalid("kernel parameters", subject, ", ".join(PARAMETER_TYPES))

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

    return ParameterType("bool", 1, "B", store, bool)  # any nonzero byte reads as true (AMB-RT-56)


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
    **{dtype.name: _of_dtype(dtype) for dtype in DTYPES.values() if dtype.abi_id is not None},
}
"""Pointers, and every dtype that has an id (RT-10.1-05 to -07, AMB-RT-17); tf32 has none and cannot be an argument."""

# The parameter buffer (runtime spec 10.1): the place of each argument of a kernel, and packing.
#
# Arguments in declared order, each aligned to the smaller of its size and eight, little-endian, the whole rounded up to
# a multiple of eight. The buffer itself holds no names and no types: both sides know the kernel's signature.


BUFFER_ALIGNMENT = 8
"""The alignment of a parameter buffer, of which its size is a multiple (RT-09-07, RT-10.1-04)."""


@dataclass(frozen=True)
class ParameterLayout:
    """The layout of a kernel's parameters: an offset and a size for each, and the size of the buffer."""

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
        """The bytes after the last argument: zero, and never read (RT-10.1-12, AMB-RT-55)."""
        return bytes(self.size - self.end_of_last_argument)


def layout_of(parameters: Sequence[Parameter]) -> ParameterLayout:
    """Lay out parameters in their order (RT-10.1-01, -03, -04, -13). Raises `Failure` for a repeated name."""
    names: set[str] = set()
    offsets, sizes, end = [], [], 0
    for parameter in parameters:
        if parameter.name in names:
            raise invalid("kernel parameters", f"two parameters called {parameter.name}", "names that differ")
        names.add(parameter.name)
        offsets.append(_round_up(end, parameter.kind.alignment))
        sizes.append(parameter.kind.size)
        end = offsets[-1] + sizes[-1]
    return ParameterLayout(tuple(parameters), tuple(offsets), tuple(sizes), end, _round_up(end, BUFFER_ALIGNMENT))


def pack(layout: ParameterLayout, values: Sequence[ParameterValue]) -> bytes:
    """Return the buffer of `values`: padding is zero, a float is rounded once to its type.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for another number of values, or a value of another type.
    """
    parameters = layout.parameters
    if len(values) != len(parameters):
        raise invalid("pack", f"{len(values)} values", f"{len(parameters)}, one for each parameter")
    stored = []
    for parameter, value in zip(parameters, values, strict=True):
        try:
            stored.append(parameter.kind.store(value))
        except ValueError as error:
            subject = f"{shown(value)} for parameter {parameter.name} of type {parameter.type}"
            raise invalid("pack", subject, str(error)) from None
    return layout.fields.pack(*stored) + layout.padding


def unpack(layout: ParameterLayout, buffer: bytes) -> tuple[ParameterValue, ...]:
    """Return the values in `buffer`, which may hold anything in its padding and may be longer than the layout.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a buffer that ends before the last argument does (AMB-RT-16).
    """
    if len(buffer) < layout.end_of_last_argument:
        allowed = f"{layout.size}, or at least {layout.end_of_last_argument}, where the last argument ends"
        raise invalid("tessLaunch", f"argSize is {len(buffer)}", allowed)
    stored = layout.fields.unpack_from(buffer)
    return tuple(parameter.kind.value(number) for parameter, number in zip(layout.parameters, stored, strict=True))


def _round_up(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


# Kernel signatures as the specification writes them (runtime spec 10.1): `scale(X*, Y*, int n, float factor)`.
#
# A star after a name makes it a pointer; `float* x` and `const void *x` are pointers too. Scalars have a type of C or
# a dtype of the ABI. Structures, arrays and other aggregates by value are refused.


@dataclass(frozen=True)
class Signature:
    """The name of a kernel and its parameters in declared order."""

    name: str
    parameters: tuple[Parameter, ...]


_SIGNATURE = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*;?\s*", re.ASCII)
_NAMED_POINTER = re.compile(r"(\w+)\s*\*", re.ASCII)
_TYPED_POINTER = re.compile(r"(?:const\s+)?(\w+)(?:\s+const)?\s*\*\s*(\w+)", re.ASCII)
_SCALAR = re.compile(r"(?:const\s+)?(\w+)\s+(\w+)", re.ASCII)

_C_TYPES = {
    "int": "int32",
    "float": "fp32",
    "double": "fp64",
    "int8_t": "int8",
    "int16_t": "int16",
    "int32_t": "int32",
    "int64_t": "int64",
}
_SCALAR_TYPES = {**{name: name for name in PARAMETER_TYPES if name != "ptr"}, **_C_TYPES}

_FORM = "name(parameter, ...), each parameter being `X*`, `T* x` or `T x` with T one of " + ", ".join(_SCALAR_TYPES)


def parse_signature(text: str) -> Signature:
    """Read a signature. Raises `Failure` with TESS_ERR_INVALID_VALUE for malformed text.

    `layout_of` refuses a repeated name.
    """
    whole = _SIGNATURE.fullmatch(text) if isinstance(text, str) else None
    if whole is None:
        raise _refused(f"the signature {shown(text)}")
    name, inside = whole.groups()
    if not is_c_identifier(name):
        raise _refused(f"the kernel name {shown(name)}")
    declarations = [] if inside.strip() in ("", "void") else inside.split(",")
    return Signature(name, tuple(_parameter(declaration.strip()) for declaration in declarations))


def _parameter(text: str) -> Parameter:
    if match := _NAMED_POINTER.fullmatch(text):
        name, type_name = match[1], "ptr"
    elif match := _TYPED_POINTER.fullmatch(text):
        name, type_name = match[2], "ptr"
    elif (match := _SCALAR.fullmatch(text)) and match[1] in _SCALAR_TYPES:
        name, type_name = match[2], _SCALAR_TYPES[match[1]]
    else:
        raise _refused(f"the parameter {shown(text)}")
    if not is_c_identifier(name) or name in _SCALAR_TYPES:
        raise _refused(f"the parameter {shown(text)}, which has no name")
    return Parameter(name, type_name)


def _refused(actual: str) -> Failure:
    return invalid("parameter layout", actual, _FORM)
