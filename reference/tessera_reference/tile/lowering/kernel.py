"""Building the body of a kernel: indices, constants, memory, loops and branches (spec sections 7.2, 8.1).

Constants, identifiers of threads and shared allocations stand once, at the beginning of the kernel, so that every
region sees them. A region is built by a function, which takes the arguments of the region and returns what it yields.
Loops of one iteration and branches whose condition is known are built without a region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeAlias

from ...graph.constant import Constant
from ...graph.selection import Select
from ...graph.term import Number, Term, constant
from ...ir.builder import fields_of
from ...ir.diagnostics import Location
from ...ir.module import Block, Function, Instruction, Value
from ...ir.operation import AttributeValue, Operation
from ...ir.targets import Target
from ...ir.types import Memref, Type
from ...numerics.formats import DTYPES, DType
from ..control import For, If
from ..fragments import ALIGNMENT
from ..indices import BlockId, LaneId, ThreadId, WarpId
from ..memory import Load, SharedAlloc, Store
from ..operation import INT32
from ..synchronization import Barrier
from .head import Head
from .index import Condition, Index, Position, ceiling

Terms: TypeAlias = Sequence[Term]
Extents: TypeAlias = tuple[int, int, int]


class KernelBuilder(Head):
    """One kernel under construction."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.shared_bytes = 0

    # What stands at the beginning

    def index(self, held: int | Value) -> Index:
        """A number or a value as an index."""
        return Index(self, held)

    def block_id(self, axis: str) -> Index:
        """The place of the block in the grid."""
        return self.index(self.once(("block", axis), BlockId, axis=axis))

    def thread_id(self) -> Index:
        """The number of the thread in its block, which has one dimension."""
        return self.index(self.once("thread", ThreadId, axis="x"))

    def lane_id(self) -> Index:
        """The place of the thread in its warp."""
        return self.index(self.once("lane", LaneId))

    def warp_id(self) -> Index:
        """The number of the warp in its block."""
        return self.index(self.once("warp", WarpId))

    def shared(self, shape: tuple[int, ...], dtype: DType) -> Value:
        """Memory of the block."""
        self.shared_bytes += ceiling(prod(shape) * dtype.storage_bytes, ALIGNMENT) * ALIGNMENT
        return self.once(object(), SharedAlloc, returns=Memref(shape, dtype, "shared"))

    # Values

    def term(self, value: Value) -> Term:
        """A value as a term, for arithmetic."""
        return Term(value, self.build)

    def number(self, number: Number, dtype: DType) -> Term:
        """A number, rounded once to a dtype."""
        return constant(self.build, number, dtype)

    def exactly(self, number: float, dtype: DType) -> Term:
        """A constant that the dtype represents exactly; of a complex dtype its real part."""
        return self.term(self.once((repr(number), dtype), Constant, value=number, dtype=dtype))

    def truth(self, condition: Condition) -> Term:
        """A condition as a value."""
        if isinstance(condition, Term):
            return condition
        return self.exactly(condition, DTYPES["bool"])

    def every(self, *conditions: Condition) -> Condition:
        """Whether all of them hold."""
        open_ = [each for each in conditions if not isinstance(each, bool)]
        if len(open_) < len(conditions) and not all(each for each in conditions if isinstance(each, bool)):
            return False
        return reduce(self._both, open_) if open_ else True

    def _both(self, a: Term, b: Term) -> Term:
        return self.chosen(a, b, self.truth(False))

    def chosen(self, condition: Condition, a: Term, b: Term) -> Term:
        """One of two values."""
        if isinstance(condition, bool):
            return a if condition else b
        return self.term(self.build(Select, condition.value, a.value, b.value))

    # Memory

    def load(self, memory: Value, at: Position) -> Term:
        """The element at a position."""
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
        carried: Terms = (),
    ) -> tuple[Term, ...]:
        """Run the body for start, start + step, ... below stop; returns the loop-carried values."""
        initial = tuple(carried)
        if isinstance(stop, Index) and isinstance(stop.held, int):
            stop = stop.held
        if isinstance(stop, int) and len(range(start, stop, step)) <= 1:
            return tuple(body(self.index(start), initial)) if start < stop else initial
        index = self.build.value(INT32)
        inner = tuple(self.build.value(term.value.type) for term in initial)
        region = self._region((index, *inner), lambda: body(self.index(index), tuple(map(self.term, inner))))
        end = stop.value if isinstance(stop, Index) else self.integer(stop)
        operands = (self.integer(start), end, self.integer(step), *(term.value for term in initial))
        return self._regional(For, operands, (region,))

    def when(
        self, condition: Condition, then: Callable[[], Terms], otherwise: Callable[[], Terms] = tuple
    ) -> tuple[Term, ...]:
        """Run one of two bodies in each lane; returns what it yields."""
        if isinstance(condition, bool):
            return tuple(then() if condition else otherwise())
        regions = self._region((), then), self._region((), otherwise)
        returns = tuple(value.type for value in regions[0].results)
        return self._regional(If, (condition.value,), regions, returns=returns)

    def _region(self, arguments: tuple[Value, ...], body: Callable[[], Terms]) -> Block:
        here, self.build.instructions = self.build.instructions, []
        results = tuple(term.value for term in body())
        made = self.build.block(arguments, results)
        self.build.instructions = here
        return made

    def _regional(
        self, operation: type[Operation], operands: tuple[Value, ...], regions: tuple[Block, ...], **hidden: Any
    ) -> tuple[Term, ...]:
        made = operation(**fields_of(operation, tuple(value.type for value in operands)), **hidden)
        results = tuple(self.build.value(type_) for type_ in made.results())
        self.build.instructions.append(Instruction(made, operands, results, self.location, regions=regions))
        return tuple(map(self.term, results))

    # The end

    def function(
        self, name: str, parameters: tuple[Value, ...], grid: Extents, threads: int, target: Target
    ) -> Function:
        """The kernel."""
        body = Block(parameters, (*self.head, *self.build.instructions), ())
        attributes: dict[str, AttributeValue] = {
            "grid": grid,
            "block": (threads, 1, 1),
            "smem_bytes": self.shared_bytes,
            "target": target.name,
        }
        return Function(name, body, (), self.location, attributes, device="tile")


def extents_of(type_: Type) -> tuple[int, ...]:
    """The extents of a value of the host, all of them known."""
    shape = getattr(type_, "shape", ())
    assert all(isinstance(extent, int) for extent in shape), f"{type_} has unknown extents"
    return tuple(shape)
