"""The tape of what was executed, on the types really met; differentiation goes back along it (section 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir.builder import fields_of
from ..ir.diagnostics import Location
from ..ir.operation import Operation, Stepwise
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


class Tape:
    """What one machine has executed, in order."""

    def __init__(self) -> None:
        self._entries: list[Executed] = []
        self._produced: dict[int, int] = {}
        self._meets = False

    def add(self, executed: Executed) -> None:
        """Note what was executed."""
        for result in executed.results:
            self._produced[id(result)] = len(self._entries)
        self._meets = self._meets or isinstance(executed.operation, Stepwise)
        self._entries.append(executed)

    def since(self, arrays: Sequence[Array]) -> tuple[Executed, ...]:
        """What was executed after the first of `arrays` was there: nothing before it can depend on one of them.

        All of it where ranks met, since every rank goes back through every meeting.
        """
        first = 0 if self._meets else min((self._produced.get(id(array), 0) for array in arrays), default=0)
        return tuple(self._entries[first:])
