"""Attribute values in text: how they are written, and of which kind an operation wants them (sections 5.3, 13.1).

The text knows integers, floats, bools, strings, lists and dictionaries; a dtype is a string there. What an operation
declares says which of these it is to become. Every value is written exactly.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from math import isfinite
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np

from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from ..numerics.formats import DTYPES, DType
from .byte_count import ByteCount
from .operation import AttributeValue, Refusal
from .spelling import did_you_mean
from .types import Shard

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
    """A value is not of the wanted kind; not an error by itself."""


def attribute_text(value: AttributeValue | Mapping[str, Any]) -> str:
    """An attribute value as MLIR spells it; a dtype is a string, a float always shows its point."""
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
        return f"{{{', '.join(f'{name} = {attribute_text(each)}' for name, each in value.items())}}}"
    return string_text(value)


def float_text(value: float) -> str:
    """A float that reads back to the same bits; one that is not finite as the bits of a double, as MLIR has it."""
    if not isfinite(value):
        return f"0x{struct.pack('>d', value).hex().upper()} : f64"
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


def float_of_bits(bits: int) -> float:
    """The double with these bits."""
    value: float = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    return value


def string_text(text: str) -> str:
    """A string in quotes, with two hexadecimal digits for each byte that is no plain character."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(map(_character, escaped))}"'


def _character(each: str) -> str:
    if each.isprintable():
        return each
    return "".join(f"\\{byte:02X}" for byte in each.encode("utf-8", "surrogatepass"))


def string_of(quoted: str) -> str:
    """What a string in quotes says. Raises `ValueError` for an escape that is none, or bytes that are no text."""
    inside = quoted[1:-1]
    if "\\" not in inside:
        return inside
    out, reached = bytearray(), 0
    while reached < len(inside):
        found = _ESCAPED.match(inside, reached)
        if found is None:
            raise ValueError(f"{inside[reached : reached + 3]!r} is no escape")
        plain, newline, tab, code = found.groups()
        if code:
            out.append(int(code, 16))
        else:
            out += (plain or (newline and "\n") or (tab and "\t") or found[0]).encode("utf-8", "surrogatepass")
        reached = found.end()
    return out.decode("utf-8", "surrogatepass")


def array_value(array: Array) -> AttributeValue | Mapping[str, Any]:
    """An array as an attribute: a number, or a dictionary of its shape and its numbers in row-major order."""
    if not array.shape and array.dtype.kind != "complex":
        scalar: AttributeValue = array.values.item()
        return scalar
    flat = np.ascontiguousarray(array.values).reshape(-1)
    if array.dtype.kind == "complex":  # real and imaginary parts in turn
        flat = flat.view(array.dtype.component.carrier)
    return {"shape": array.shape, "value": tuple(flat.tolist())}


def array_of(value: object, dtype: DType) -> Array:
    """The array that an attribute says. Raises `Mismatch` when it is none of this dtype."""
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
    """A value of the text as what is declared: an annotation such as `int`, `DType`, `tuple[int, ...]`, `str | None`.

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


def dtype_named(name: str) -> DType:
    """A dtype by its name. Raises `Refusal`."""
    if name not in DTYPES:
        raise Refusal(
            "types",
            f"unknown dtype {name[:40]!r}",
            f"one of {', '.join(DTYPES)}",
            "LANG-02.3-38",
            did_you_mean(name, DTYPES),
        )
    return DTYPES[name]


def kind_text(kind: Any) -> str:
    """What a kind is called in a diagnostic."""
    if isinstance(kind, UnionType):
        return " or ".join(dict.fromkeys(kind_text(each) for each in get_args(kind) if each is not type(None)))
    return _KINDS.get(get_origin(kind) or kind, "a value")


def _of_any(value: object, kinds: tuple[Any, ...]) -> Any:
    """The first kind that the value is as it stands; else the first that it can become."""
    for kind in sorted(kinds, key=lambda kind: kind in (float, DType, ByteCount)):
        try:
            return of_kind(value, kind)
        except Mismatch:
            continue
    raise Mismatch


def _plain(value: object) -> object:
    """A value of any kind that an attribute of an operation may have."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, int | float | str):
        return value
    raise Mismatch


def _list_of(value: object, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise Mismatch
    if kinds[-1] is Ellipsis:
        return tuple(of_kind(each, kinds[0]) for each in value)
    if len(kinds) != len(value):
        raise Mismatch
    return tuple(map(of_kind, value, kinds))
