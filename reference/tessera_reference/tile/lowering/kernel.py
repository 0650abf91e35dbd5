"""Building the body of a kernel: index arithmetic, constants, memory, loops (spec sections 7.2, 8.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from operator import eq, ge, lt
from typing import Any, TypeAlias

from ...graph.constant import Constant
from ...graph.elementwise import Add, Divide, Equal, GreaterEqual, Less, Maximum, Minimum, Multiply, Select, Subtract
from ...graph.term import Number, Term, constant
from ...ir.diagnostics import Location
from ...ir.operation import AttributeValue, Block, Builder, Function, Instruction, Operation, fields_of
from ...ir.targets import Target
from ...ir.types import Memref, Type, Value
from ...kernel_machine.block import INDEX_TYPE
from ...numerics.formats import DTYPES, DType
from ..fragments import ALIGNMENT
from ..operations import Barrier, BlockId, For, If, LaneId, Load, SharedAlloc, Store, ThreadId, WarpId

# The head of a kernel under construction: instructions that appear once, visible to every region.


class Head:
    """The instructions at the beginning of a kernel, and the builder of those that follow."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.build = Builder(location)
        self.head: list[Instruction] = []
        self._first: dict[object, Value] = {}

    def integer(self, number: int) -> Value:
        """Return an int32 constant."""
        return self.once(number, Constant, value=number, dtype=INDEX_TYPE.dtype)

    def once(self, key: object, operation: type[Operation], **fields: Any) -> Value:
        """Return the result of an instruction at the kernel's beginning, the same result for the same key."""
        if key not in self._first:
            here, self.build.instructions = self.build.instructions, self.head
            self._first[key] = self.build(operation, **fields)
            self.build.instructions = here
        return self._first[key]


# Index arithmetic of a kernel: int32 values, or plain integers where they are known while building.
#
# Indices are not negative, so that a quotient is a floor and a remainder is not negative. Constants are folded: a sum
# with 0, a product with 1 and a comparison of constants emit no instruction.


Condition: TypeAlias = Term | bool
"""A bool of each lane, or a known one."""


@dataclass(frozen=True)
class Index:
    """An int32: a known number, or a value of the kernel."""

    kernel: Head = field(compare=False, repr=False)
    held: int | Value

    @property
    def value(self) -> Value:
        """The index as an operand."""
        return self.kernel.integer(self.held) if isinstance(self.held, int) else self.held

    @property
    def term(self) -> Term:
        """The index as a term, to compute with."""
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
        """Return the condition that it is less than the bound."""
        return self._compared(Less, lt, bound)

    def at_least(self, bound: Index | int) -> Condition:
        """Return the condition that it is at least the bound."""
        return self._compared(GreaterEqual, ge, bound)

    def equals(self, other: Index | int) -> Condition:
        """Return the condition that it equals the other index."""
        return self._compared(Equal, eq, other)

    def at_most(self, bound: int) -> Index:
        """Return the smaller of the index and a number."""
        return self._index(min(self.held, bound)) if isinstance(self.held, int) else self._computed(Minimum, bound)

    def between(self, low: int, high: int) -> Index:
        """Return the index clamped to a range."""
        if isinstance(self.held, int):
            return self._index(max(low, min(self.held, high)))
        return self._computed(Maximum, low).at_most(high)

    def _held(self, other: Index | int) -> int | Value:
        return other.held if isinstance(other, Index) else other

    def _index(self, number: int | Value) -> Index:
        return Index(self.kernel, number)

    def _computed(self, operation: type[Operation], other: Index | int) -> Index:
        return self._index(self.kernel.build(operation, self.value, self._index(self._held(other)).value))

    def _compared(self, operation: type[Operation], known: Callable[[int, int], bool], other: Index | int) -> Condition:
        a, b = self.held, self._held(other)
        return known(a, b) if isinstance(a, int) and isinstance(b, int) else self._computed(operation, other).term


Position: TypeAlias = tuple[Index, ...]
"""An index for each dimension of a value; none for a scalar."""


def linear(at: Position, shape: Sequence[int]) -> Index:
    """Return the row-major index of a position; there is at least one dimension."""
    place = at[0]
    for index, extent in zip(at[1:], shape[1:], strict=True):
        place = place * extent + index
    return place


def unravelled(place: Index, shape: Sequence[int]) -> Position:
    """Return the position of a row-major index: the inverse of `linear`."""
    at: list[Index] = []
    for extent in reversed(shape[1:]):
        place, index = divmod(place, extent) if extent else (place, place)
        at.insert(0, index)
    return (place, *at) if shape else ()


def broadcast_to(at: Position, shape: Sequence[int]) -> Position:
    """Return the position from which broadcasting takes the element at `at`, in an operand of that shape."""
    last = at[len(at) - len(shape) :]
    return tuple(index * 0 if extent == 1 else index for index, extent in zip(last, shape, strict=True))


def ceiling(extent: int, size: int) -> int:
    """Return the number of tiles of a size that cover an extent."""
    return -(-extent // size)


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is at least `least`."""
    return 1 << max(least - 1, 0).bit_length()


# Building the body of a kernel: indices, constants, memory, loops and branches (spec sections 7.2, 8.1).
#
# Constants, identifiers of threads and shared allocations appear once, at the beginning of the kernel, so that every
# region sees them. A function builds a region: it takes the arguments of the region and returns what the region yields.
# Loops of one iteration and branches with a known condition are built without a region.


Terms: TypeAlias = Sequence[Term] | None
"""The values that a body yields; None for no values."""
Extents: TypeAlias = tuple[int, int, int]


class KernelBuilder(Head):
    """A builder of one kernel."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.shared_bytes = 0

    # The beginning

    def index(self, number: int | Value) -> Index:
        """Return a number or a value as an index."""
        return Index(self, number)

    def block_id(self, axis: str) -> Index:
        """Return the place of the block in the grid."""
        return self.index(self.once(("block", axis), BlockId, axis=axis))

    def thread_id(self) -> Index:
        """Return the number of the thread in its block, which has one dimension."""
        return self.index(self.once("thread", ThreadId, axis="x"))

    def lane_id(self) -> Index:
        """Return the place of the thread in its warp."""
        return self.index(self.once("lane", LaneId))

    def warp_id(self) -> Index:
        """Return the number of the warp in its block."""
        return self.index(self.once("warp", WarpId))

    def shared(self, shape: tuple[int, ...], dtype: DType) -> Value:
        """Return memory of the block."""
        self.shared_bytes += ceiling(prod(shape) * dtype.storage_bytes, ALIGNMENT) * ALIGNMENT
        return self.once(object(), SharedAlloc, returns=Memref(shape, dtype, "shared"))

    # Values

    def term(self, value: Value) -> Term:
        """Return a value as a term, for arithmetic."""
        return Term(value, self.build)

    def number(self, number: Number, dtype: DType) -> Term:
        """Return a number, rounded once to a dtype."""
        return constant(self.build, number, dtype)

    def exactly(self, number: float, dtype: DType) -> Term:
        """Return a constant that the dtype represents exactly; in a complex dtype, its real part."""
        return self.term(self.once((repr(number), dtype), Constant, value=number, dtype=dtype))

    def truth(self, condition: Condition) -> Term:
        """Return a condition as a value."""
        return condition if isinstance(condition, Term) else self.exactly(condition, DTYPES["bool"])

    def every(self, *conditions: Condition) -> Condition:
        """Return the condition that all of these hold."""
        if not all(condition for condition in conditions if isinstance(condition, bool)):
            return False
        open_ = [condition for condition in conditions if not isinstance(condition, bool)]
        return reduce(lambda a, b: self.chosen(a, b, self.truth(False)), open_) if open_ else True

    def chosen(self, condition: Condition, a: Term, b: Term) -> Term:
        """Return one of two values."""
        if isinstance(condition, bool):
            return a if condition else b
        return self.term(self.build(Select, condition.value, a.value, b.value))

    # Memory

    def load(self, memory: Value, at: Position) -> Term:
        """Return the element at a position."""
        return self.term(self.build(Load, memory, *(index.value for index in at)))

    def store(self, value: Term, memory: Value, at: Position) -> None:
        """Write the element at a position."""
        self.build.all(Store, value.value, memory, *(index.value for index in at))

    def barrier(self, label: str = "") -> None:
        """Synchronize all threads of the block."""
        self.build.all(Barrier, label=label)

    # Control

    def loop(
        self,
        start: int,
        stop: Index | int,
        step: int,
        body: Callable[[Index, tuple[Term, ...]], Terms],
        carried: Sequence[Term] = (),
    ) -> tuple[Term, ...]:
        """Run the body for start, start + step, ... below stop; return the loop-carried values."""
        initial = tuple(carried)
        if isinstance(stop, Index) and isinstance(stop.held, int):
            stop = stop.held
        if isinstance(stop, int) and len(range(start, stop, step)) <= 1:
            return tuple(body(self.index(start), initial) or ()) if start < stop else initial
        index = self.build.value(INDEX_TYPE)
        inner = tuple(self.build.value(term.value.type) for term in initial)
        region = self._region((index, *inner), lambda: body(self.index(index), tuple(map(self.term, inner))))
        end = stop.value if isinstance(stop, Index) else self.integer(stop)
        operands = (self.integer(start), end, self.integer(step), *(term.value for term in initial))
        return self._regional(For, operands, (region,))

    def when(
        self, condition: Condition, then: Callable[[], Terms], otherwise: Callable[[], Terms] = tuple
    ) -> tuple[Term, ...]:
        """Run one of two bodies in each lane; return the values it yields."""
        if isinstance(condition, bool):
            return tuple((then() if condition else otherwise()) or ())
        regions = self._region((), then), self._region((), otherwise)
        returns = tuple(value.type for value in regions[0].results)
        return self._regional(If, (condition.value,), regions, returns=returns)

    def _region(self, arguments: tuple[Value, ...], body: Callable[[], Terms]) -> Block:
        here, self.build.instructions = self.build.instructions, []
        results = tuple(term.value for term in body() or ())
        block = self.build.block(arguments, results)
        self.build.instructions = here
        return block

    def _regional(
        self, operation: type[Operation], operands: tuple[Value, ...], regions: tuple[Block, ...], **hidden: Any
    ) -> tuple[Term, ...]:
        instance = operation(**fields_of(operation, tuple(value.type for value in operands)), **hidden)
        results = tuple(self.build.value(type_) for type_ in instance.results())
        self.build.instructions.append(Instruction(instance, operands, results, self.location, regions=regions))
        return tuple(map(self.term, results))

    # The end

    def function(
        self, name: str, parameters: tuple[Value, ...], grid: Extents, threads: int, target: Target
    ) -> Function:
        """Return the kernel."""
        body = Block(parameters, (*self.head, *self.build.instructions), ())
        attributes: dict[str, AttributeValue] = {
            "grid": grid,
            "block": (threads, 1, 1),
            "smem_bytes": self.shared_bytes,
            "target": target.name,
        }
        return Function(name, body, (), self.location, attributes, device="tile")


def extents_of(type_: Type) -> tuple[int, ...]:
    """Return the extents of a value of the host, all of them known."""
    shape = getattr(type_, "shape", ())
    assert all(isinstance(extent, int) for extent in shape), f"{type_} has unknown extents"
    return tuple(shape)
