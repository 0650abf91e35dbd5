"""Reading the values that the protocol's messages have and JSON has not: bytes, versions, axes, launch configurations.

A reader takes the operation, the name of the argument and what was found, and raises `InvalidArgument`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..abi.version import AbiVersion
from ..mesh.axes import MeshAxes
from ..numerics.attributes import Reader, text, whole
from ..numerics.errors import InvalidArgument

if TYPE_CHECKING:
    from ..runtime.launches import LaunchConfig

__all__ = [
    "axes",
    "config",
    "data",
    "list_of",
    "mapping",
    "memory",
    "names_within",
    "object_of",
    "texts_by_name",
    "version",
]

AXES = tuple(field.name for field in fields(MeshAxes))
CONFIG = ("grid", "block", "shmemBytes", "flags")


def data(operation: str, name: str, value: Any) -> bytes:
    """Read bytes: lower-case hexadecimal digits, two a byte, in order of address."""
    try:
        found = bytes.fromhex(text(operation, name, value))
    except ValueError:
        found = None
    if found is None or found.hex() != value:
        raise InvalidArgument(operation, name, value, "lower-case hexadecimal digits, two a byte")
    return found


def memory(operation: str, name: str, value: Any) -> bytes | int | None:
    """Read bytes, or the address where they are; None is NULL."""
    if value is None or type(value) is int:
        return value
    return data(operation, name, value)


def mapping(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read an object: names and their values."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidArgument(operation, name, value, "an object")
    return value


def object_of(member: Reader | None) -> Reader:
    """Return a reader of an object whose values `member` reads."""

    def read(operation: str, name: str, value: Any) -> Mapping[str, Any]:
        found = mapping(operation, name, value)
        return found if member is None else {each: member(operation, f"{name}.{each}", found[each]) for each in found}

    return read


def names_within(operation: str, name: str, value: Any, allowed: Collection[str]) -> Mapping[str, Any]:
    """Read an object that holds no names but those allowed."""
    found = mapping(operation, name, value)
    for each in found:
        if each not in allowed:
            raise InvalidArgument(operation, f"{name}, a name in it,", each, "one of " + ", ".join(allowed))
    return found


def texts_by_name(operation: str, name: str, value: Any) -> Mapping[str, str]:
    """Read an object whose values are texts."""
    found = mapping(operation, name, value)
    for each, member in found.items():
        if not isinstance(member, str):
            raise InvalidArgument(operation, f"{name}.{each}", member, "a text")
    return found


def list_of(kind: type, allowed: str) -> Reader:
    """Return a reader of a list whose items are of exactly one type."""

    def read(operation: str, name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list | tuple) or not all(type(each) is kind for each in value):
            raise InvalidArgument(operation, name, value, allowed)
        return value

    return read


def version(operation: str, name: str, value: Any) -> AbiVersion:
    """Read major and minor."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidArgument(operation, name, value, "a list of major and minor")
    number = whole(0, 0xFFFF)
    return number(operation, f"{name}[0]", value[0]), number(operation, f"{name}[1]", value[1])


def axes(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read the axes of a mesh, some or all."""
    return names_within(operation, name, value, AXES)


def config(operation: str, name: str, value: Any) -> LaunchConfig:
    """Read the configuration of a launch."""
    from ..runtime.launches import LaunchConfig

    given = mapping(operation, name, value)
    for each in CONFIG:
        if each not in given:
            raise InvalidArgument(operation, f"{name}.{each}", None, "a value, since it has no default")
    return LaunchConfig(**{each: given[each] for each in CONFIG})
