"""The tape of what was executed, on the types really met; differentiation goes back along it (section 5.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.builder import fields_of
from ..ir.diagnostics import Location
from ..ir.operation import Operation
from ..ir.types import Numeric, Scalar, Tensor, Type
from ..numerics.array import Array


@dataclass(frozen=True)
class Executed:
    """An operation that was executed, on the types it really met."""

    operation: Operation
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    location: Location


def on_types_of(operation: Operation, operands: tuple[Array, ...]) -> Operation:
    """An operation with the types of what it was really given, so that every dimension is known."""
    static = [type_ for _, type_ in operation.operand_types]
    types = tuple(actual_type(type_, array) for type_, array in zip(static, operands, strict=True))
    return replace(operation, **fields_of(type(operation), types))  # type: ignore[type-var]  # all are dataclasses


def actual_type(static: Type, array: Array) -> Type:
    """The type of an array where `static` is the type of its value: the same layout."""
    return replace(static, shape=array.shape) if isinstance(static, Tensor) else Scalar(array.dtype)


def type_of(array: Array) -> Numeric:
    """The type of an array, in the layout that every operation takes."""
    return Tensor(array.shape, array.dtype) if array.shape else Scalar(array.dtype)
