"""Index arithmetic of a kernel: int32 values, which are plain integers where they are known while it is built.

Indices are not negative, so that a quotient is a floor and a remainder is not negative. Constants are folded: a sum
with 0, a product with 1 and a comparison of constants emit no instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ...graph.elementwise import Add, Divide, Equal, GreaterEqual, Less, Multiply, Subtract
from ...graph.selection import Maximum, Minimum
from ...graph.term import Term
from ...ir.module import Value
from ...ir.operation import Operation
from .head import Head

Condition: TypeAlias = Term | bool
"""A bool of each lane, or one that is known."""


@dataclass(frozen=True)
class Index:
    """An int32: a number that is known, or a value of the kernel."""

    kernel: Head = field(compare=False, repr=False)
    held: int | Value

    @property
    def value(self) -> Value:
        """As an operand."""
        return self.kernel.integer(self.held) if isinstance(self.held, int) else self.held

    @property
    def term(self) -> Term:
        """As a term, to compute with."""
        return Term(self.value, self.kernel.build)

    def __add__(self, other: Index | int) -> Index:
        a, b = self.held, self._held(other)
        if isinstance(a, int) and isinstance(b, int):
            return self._index(a + b)
        if a == 0 or b == 0:
            return self._index(b if a == 0 else a)
        return self._computed(Add, other)

    def __sub__(self, other: Index | int) -> Index:
        a, b = self.held, self._held(other)
        if isinstance(a, int) and isinstance(b, int):
            return self._index(a - b)
        return self if b == 0 else self._computed(Subtract, other)

    def __mul__(self, other: Index | int) -> Index:
        a, b = self.held, self._held(other)
        if isinstance(a, int) and isinstance(b, int):
            return self._index(a * b)
        if a in (0, 1) or b in (0, 1):
            return self._index(0 if 0 in (a, b) else b if a == 1 else a)
        return self._computed(Multiply, other)

    def __floordiv__(self, divisor: int) -> Index:
        return divmod(self, divisor)[0]

    def __mod__(self, divisor: int) -> Index:
        return divmod(self, divisor)[1]

    def __divmod__(self, divisor: int) -> tuple[Index, Index]:
        if isinstance(self.held, int):
            return self._index(self.held // divisor), self._index(self.held % divisor)
        if divisor == 1:
            return self, self._index(0)
        quotient = self._computed(Divide, divisor)
        return quotient, self - quotient * divisor

    def below(self, bound: Index | int) -> Condition:
        """Whether it is less."""
        a, b = self.held, self._held(bound)
        return a < b if isinstance(a, int) and isinstance(b, int) else self._compared(Less, bound)

    def at_least(self, bound: Index | int) -> Condition:
        """Whether it is not less."""
        a, b = self.held, self._held(bound)
        return a >= b if isinstance(a, int) and isinstance(b, int) else self._compared(GreaterEqual, bound)

    def equals(self, other: Index | int) -> Condition:
        """Whether it is the same number."""
        a, b = self.held, self._held(other)
        return a == b if isinstance(a, int) and isinstance(b, int) else self._compared(Equal, other)

    def at_most(self, bound: int) -> Index:
        """The lesser of it and a number."""
        return self._index(min(self.held, bound)) if isinstance(self.held, int) else self._computed(Minimum, bound)

    def between(self, low: int, high: int) -> Index:
        """The index clamped to a range."""
        if isinstance(self.held, int):
            return self._index(max(low, min(self.held, high)))
        return self._computed(Maximum, low).at_most(high)

    def _held(self, other: Index | int) -> int | Value:
        return other.held if isinstance(other, Index) else other

    def _index(self, held: int | Value) -> Index:
        return Index(self.kernel, held)

    def _computed(self, operation: type[Operation], other: Index | int) -> Index:
        return self._index(self.kernel.build(operation, self.value, self._index(self._held(other)).value))

    def _compared(self, operation: type[Operation], other: Index | int) -> Term:
        return Term(self.kernel.build(operation, self.value, self._index(self._held(other)).value), self.kernel.build)


Position: TypeAlias = tuple[Index, ...]
"""An index for each dimension of a value; none for a scalar."""


def linear(at: Position, shape: Sequence[int]) -> Index:
    """The row-major index of a position; there is at least one dimension."""
    place = at[0]
    for index, extent in zip(at[1:], shape[1:], strict=True):
        place = place * extent + index
    return place


def unravelled(place: Index, shape: Sequence[int]) -> Position:
    """The position of a row-major index: the inverse of `linear`."""
    at: list[Index] = []
    for extent in reversed(shape[1:]):
        place, index = divmod(place, extent) if extent else (place, place)
        at.insert(0, index)
    return (place, *at) if shape else ()


def broadcast_to(at: Position, shape: Sequence[int]) -> Position:
    """The position in an operand of that shape from which broadcasting takes the element at `at`."""
    last = at[len(at) - len(shape) :]
    return tuple(index * 0 if extent == 1 else index for index, extent in zip(last, shape, strict=True))


def ceiling(extent: int, size: int) -> int:
    """How many tiles of a size cover an extent."""
    return -(-extent // size)


def power_of_two(least: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << max(least - 1, 0).bit_length()
