"""Reading objects whose members are those of a dataclass: names, which of them must be there, and their types.

A reader takes the operation, the name of the argument and what was found, and raises `InvalidArgument`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from ..numerics.attributes import Reader, text, whole
from ..numerics.errors import InvalidArgument
from .values import names_within

__all__ = ["members_of", "number", "pair"]

number = whole(-(1 << 63), (1 << 63) - 1)
"""A whole number; the method says what it may be."""


def pair(operation: str, name: str, value: Any) -> tuple[int, int]:
    """Read two whole numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidArgument(operation, name, value, "a list of two whole numbers")
    return number(operation, f"{name}[0]", value[0]), number(operation, f"{name}[1]", value[1])


READERS: Mapping[str, Reader] = {"int": number, "str": text, "tuple[int, int]": pair}
"""By the annotation of a field."""


def members_of(dataclass: Callable[[], type[Any]]) -> Reader:
    """Return a reader of an object with the fields of a dataclass, which is found when the first object is read.

    Fields with a default may be left out.
    """

    def read(operation: str, name: str, value: Any) -> dict[str, Any]:
        declared = {field.name: field for field in fields(dataclass())}
        found = names_within(operation, name, value, declared)
        for each, field in declared.items():
            if each not in found and field.default is MISSING:
                raise InvalidArgument(operation, f"{name}.{each}", None, "a value, since it has no default")
        return {each: READERS[str(declared[each].type)](operation, f"{name}.{each}", found[each]) for each in found}

    return read
