"""The tape: the record of executed operations that differentiation goes back along (section 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir.builder import fields_of
from ..ir.diagnostics import Location
from ..ir.operation import Operation
from ..ir.stepwise import Stepwise
from ..ir.types import Numeric, Scalar, Tensor, Type
from ..numerics.array import Array


@dataclass(frozen=True)
class Executed:
    """An operation that was executed, with its operands and results."""

    operation: Operation
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    location: Location


def on_types_of(operation: Operation, operands: tuple[Array, ...]) -> Operation:
    """An operation with the types of the arrays that it was executed on, so that every dimension is known."""
    static = [type_ for _, type_ in operation.operand_types]
    types = tuple(actual_type(type_, array) for type_, array in zip(static, operands, strict=True))
    return replace(operation, **fields_of(type(operation), types))  # type: ignore[type-var]  # all are dataclasses


def actual_type(static: Type, array: Array) -> Type:
    """The type of an array where `static` is the type of its value: the same layout."""
    return replace(static, shape=array.shape) if isinstance(static, Tensor) else Scalar(array.dtype)


def type_of(array: Array) -> Numeric:
    """The type of an array, in the layout that every operation takes."""
    return Tensor(array.shape, array.dtype) if array.shape else Scalar(array.dtype)


class Tape:
    """The operations that one interpreter has executed, in order."""

    def __init__(self) -> None:
        self._entries: list[Executed] = []
        self._produced: dict[int, int] = {}
        self._communicates = False

    def add(self, executed: Executed) -> None:
        """Append an executed operation."""
        for result in executed.results:
            self._produced[id(result)] = len(self._entries)
        self._communicates = self._communicates or isinstance(executed.operation, Stepwise)
        self._entries.append(executed)

    def since(self, arrays: Sequence[Array]) -> tuple[Executed, ...]:
        """The entries from the one that made the first of `arrays` on: nothing before it can depend on one of them.

        All entries where ranks communicated, since every rank goes back through every collective.
        """
        first = 0 if self._communicates else min((self._produced.get(id(array), 0) for array in arrays), default=0)
        return tuple(self._entries[first:])
