"""Attributes in text: their spelling, their kinds, and those that any operation may carry (spec sections 5.3, 13.1)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np

from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType, NumericsFailure
from .diagnostics import did_you_mean
from .operation import AttributeValue, Refusal
from .types import Mesh, Shard, Tensor, Type, dtype_of

# Numbers of bytes with a unit, `512KiB` or `1MiB`, in attributes of collectives (AMB-COLL-01).


UNITS: Mapping[str, int] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""The size of each unit in bytes; a number without a unit counts bytes."""


class ByteCount(int):
    """A whole number of bytes, which prints with the largest unit that divides it: `1MiB` for 1048576."""

    @classmethod
    def of(cls, number: Fraction | int, unit: str) -> ByteCount:
        """Return `number` of a unit. Raises `KeyError` for an unknown unit, `ValueError` for a fraction of a byte."""
        total = Fraction(number) * UNITS[unit]
        if total.denominator != 1:
            raise ValueError(f"{number} {unit} is no whole number of bytes")
        return cls(total.numerator)

    def __str__(self) -> str:
        for name, size in sorted(UNITS.items(), key=lambda unit: -unit[1]):
            if self and size > 1 and self % size == 0:
                return f"{int(self) // size}{name}"
        return str(int(self))


# Attribute values in text: their spelling, and the kind that an operation requires (sections 5.3, 13.1).
#
# The text knows integers, floats, bools, strings, lists and dictionaries; a dtype is a string there. An operation's
# declaration determines which of these the value becomes. Every value is written exactly.


_ESCAPED = re.compile(r'\\(?:(["\\])|(n)|(t)|([0-9A-Fa-f]{2}))|[^\\]+')
_KINDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    DType: "a dtype",
    tuple: "a list",
    ByteCount: "a number of bytes such as 4096 or 512KiB",
    Shard: "a type such as !tessera.shard<axes=[dp]>",
}


class Mismatch(Exception):
    """A value is not of the required kind; by itself this is not an error."""


def attribute_text(value: AttributeValue | Mapping[str, Any]) -> str:
    """Return an attribute value as MLIR spells it; a dtype is a string, a float always shows its point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ByteCount | Shard):
        return str(value)
    if isinstance(value, int):
        return str(value) if -(1 << 63) <= value < 1 << 63 else f"{value} : i{value.bit_length() + 1}"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, DType):
        return f'"{value.name}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {attribute_text(element)}' for name, element in value.items())}}}"
    return string_text(value)


def float_text(value: float) -> str:
    """Return a float that reads back to the same bits; one that is not finite as the bits of a double, as in MLIR."""
    if not isfinite(value):
        return f"0x{struct.pack('>d', value).hex().upper()} : f64"
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


def float_of_bits(bits: int, dtype: DType) -> float:
    """Return the number of a float dtype with these bits."""
    value: float = Array.from_bits(dtype, (), bits.to_bytes(dtype.bits // 8, "little")).values.item()
    return value


def string_text(text: str) -> str:
    """Return a string in quotes, with two hexadecimal digits for each byte that is not a plain character."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(map(_character, escaped))}"'


def _character(character: str) -> str:
    if character.isprintable():
        return character
    return "".join(f"\\{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def string_of(quoted: str) -> str:
    """Return the text of a string in quotes. Raises `ValueError` for an unknown escape, or bytes that are no text."""
    inside = quoted[1:-1]
    if "\\" not in inside:
        return inside
    out, reached = bytearray(), 0
    while reached < len(inside):
        match = _ESCAPED.match(inside, reached)
        if match is None:
            raise ValueError(f"{inside[reached : reached + 3]!r} is no escape")
        plain, newline, tab, code = match.groups()
        if code:
            out.append(int(code, 16))
        else:
            out += (plain or (newline and "\n") or (tab and "\t") or match[0]).encode("utf-8", "surrogatepass")
        reached = match.end()
    return out.decode("utf-8", "surrogatepass")


def array_value(array: Array) -> AttributeValue | Mapping[str, Any]:
    """Return an array as an attribute: a number, or a dictionary of its shape and its numbers in row-major order."""
    if not array.shape and array.dtype.kind != "complex":
        scalar: AttributeValue = array.values.item()
        return scalar
    flat = np.ascontiguousarray(array.values).reshape(-1)
    if array.dtype.kind == "complex":  # real and imaginary parts in turn
        flat = flat.view(array.dtype.component.carrier)
    return {"shape": array.shape, "value": tuple(flat.tolist())}


def array_of(value: object, dtype: DType) -> Array:
    """Return the array that an attribute denotes. Raises `Mismatch` if it denotes none of this dtype."""
    number = int | float | bool
    shape: Any = ()
    if isinstance(value, Mapping):
        if value.keys() != {"shape", "value"}:
            raise Mismatch
        shape, parts = of_kind(value["shape"], tuple[int, ...]), of_kind(value["value"], tuple[number, ...])
    else:
        parts = (of_kind(value, number),)
    try:
        if dtype.kind == "complex":
            component = Array.checked(dtype.component, parts)
            return Array(dtype, component.values.view(dtype.carrier).reshape(shape))
        if any(isinstance(part, bool) != (dtype.kind == "bool") for part in parts):
            raise Mismatch
        return Array(dtype, Array.checked(dtype, parts).values.reshape(shape))
    except (NumericsFailure, ValueError, TypeError, OverflowError):
        raise Mismatch from None


def of_kind(value: object, kind: Any) -> Any:
    """Return a value of the text as its declared kind, such as `int`, `DType`, `tuple[int, ...]` or `str | None`.

    Raises `Mismatch` when it is not of that kind, and `Refusal` for a string that names no dtype.
    """
    if kind is Any:
        return _plain(value)
    if isinstance(kind, UnionType):
        return _of_any(value, get_args(kind))
    if get_origin(kind) is tuple:
        return _list_of(value, get_args(kind))
    if type(value) is kind:
        return value
    if kind is float and type(value) is int and abs(value) <= 1 << 53:
        return float(value)
    if kind is ByteCount and type(value) is int:
        return ByteCount(value)
    if kind is DType and isinstance(value, str):
        return dtype_named(value)
    raise Mismatch


OTHER_NAMES = {"half": "fp16", "float": "fp32", "double": "fp64", "int": "int32", "short": "int16", "long": "int64"}
"""Dtypes by their names in C."""


def dtype_named(name: str) -> DType:
    """Return a dtype by its name. Raises `Refusal`."""
    if name not in DTYPES:
        message = f"unknown dtype {name[:40]!r}"
        remedy = did_you_mean(OTHER_NAMES.get(name, re.sub(r"^float(?=\d)", "fp", name)), ("fp32", *DTYPES))
        raise Refusal("types", message, f"one of {', '.join(DTYPES)}", "LANG-02.3-38", remedy)
    return DTYPES[name]


def kind_text(kind: Any) -> str:
    """Return the name of a kind in a diagnostic."""
    if isinstance(kind, UnionType):
        members = [kind_text(member) for member in get_args(kind) if member is not type(None)]
        return " or ".join(dict.fromkeys(members))
    return _KINDS.get(get_origin(kind) or kind, "a value")


def _of_any(value: object, kinds: tuple[Any, ...]) -> Any:
    """Return the value as the first kind that it has as written; else as the first that it can become."""
    for kind in sorted(kinds, key=lambda kind: kind in (float, DType, ByteCount)):
        try:
            return of_kind(value, kind)
        except Mismatch:
            continue
    raise Mismatch


def _plain(value: object) -> object:
    """Return a value of any kind that an attribute of an operation may have. Raises `Mismatch`."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, int | float | str):
        return value
    raise Mismatch


def _list_of(value: object, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise Mismatch
    if kinds[-1] is Ellipsis:
        return tuple(of_kind(item, kinds[0]) for item in value)
    if len(kinds) != len(value):
        raise Mismatch
    return tuple(map(of_kind, value, kinds))


# Verification of the attributes that any operation may carry, at every level of IR (section 5.3).
#
# `shape`, `dtype` and `layout` repeat the type of the result and must agree with it; `mesh_axes` lists axes of meshes
# of the module (AMB-LANG-60); `precision` and `numerics_profile` are annotations of numerics (AMB-LANG-51,
# AMB-LANG-83).


COMMON_ATTRIBUTES: Mapping[str, Any] = {
    "shape": tuple[int, ...],
    "dtype": DType,
    "layout": str,
    "mesh_axes": tuple[str, ...],
    "precision": str,
    "numerics_profile": str,
}
"""The common attributes, each with its kind."""

PROFILES = ("fast", "deterministic", "strict")
"""Numerics profiles, the loosest first (spec section 10)."""


def check_common(values: Mapping[str, Any], results: Sequence[Type], meshes: Mapping[str, Mesh]) -> None:
    """Refuse attributes that contradict the result type, axes that no mesh has, and unknown annotations."""
    if values.get("numerics_profile") is not None:
        require_profile(str(values["numerics_profile"]))
    if values.get("precision") is not None:
        require_precision(str(values["precision"]))
    axes = [axis for mesh in meshes.values() for axis in mesh.axes]
    for axis in values.get("mesh_axes", ()):
        if axis not in axes:
            message = f"no mesh has the axis {axis!r}"
            requirement = f"one of {', '.join(axes)}" if axes else "a mesh in the module"
            raise Refusal("distributed", message, requirement, "LANG-05.3-04", did_you_mean(axis, axes))
    if values.keys() & {"shape", "dtype", "layout"}:
        _check_result(values, results[0] if results else None)


def require_profile(name: str) -> str:
    """Return a name that is a numerics profile (LANG-10-04). Raises `Refusal`."""
    if name not in PROFILES:
        message = f"{name!r} is no numerics profile" if name else "this is no numerics profile"
        raise Refusal("numerics", message, f"one of {', '.join(PROFILES)}", "LANG-10-04", did_you_mean(name, PROFILES))
    return name


def require_precision(name: str) -> str:
    """Return a name that is a dtype of floats or complex numbers (LANG-02-09, LANG-05.3-05). Raises `Refusal`."""
    if name not in DTYPES or DTYPES[name].kind not in ("float", "complex"):
        message = f"{name!r} is no precision" if name else "this is no precision"
        raise Refusal("numerics", message, "a float dtype", "LANG-02-09", did_you_mean(name, DTYPES))
    return name


def _check_result(values: Mapping[str, AttributeValue], result: Type | None) -> None:
    shape, dtype_, layout = values.get("shape"), values.get("dtype"), values.get("layout")
    actual = result.shape if isinstance(result, Tensor) else ()
    if shape is not None and (not isinstance(shape, tuple) or not _is_shape(shape, actual)):
        message = f"shape={list(shape) if isinstance(shape, tuple) else shape} is stated, the result is {result}"
        raise Refusal("shapes", message, "the shape that the result has", "LANG-05.3-01")
    if dtype_ is not None and dtype_ != dtype_of(result):
        message = f"dtype={dtype_} is stated, the result is {result}"
        raise Refusal("types", message, "the dtype that the result has", "LANG-05.3-02")
    if layout is not None and (not isinstance(result, Tensor) or result.layout.text != layout):
        message = f"layout={layout} is stated, the result is {result}"
        requirement = "the layout that the result has"
        raise Refusal("layouts", message, requirement, "LANG-05.3-03", "cast it: op.layout_cast(..., to=...)")


def _is_shape(stated: Sequence[Any], actual: Sequence[int | str]) -> bool:
    """True if a stated shape is correct; it may state any extent for a dimension that is not a number."""
    pairs = zip(stated, actual, strict=False)
    return len(stated) == len(actual) and all(have == want or isinstance(have, str) for want, have in pairs)
