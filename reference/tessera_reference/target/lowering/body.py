"""The body of a kernel that is being lowered: a builder of instructions, and the lowered form of each Tile IR value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from ...ir.builder import BlockBuilder
from ...ir.diagnostics import Location, UnsupportedConstruct
from ...ir.module import Instruction, Value
from ...ir.targets import Target
from ...ir.types import Scalar, Type
from ...numerics.formats import DTYPES, DType
from ..operations.arithmetic import Add, And, Constant, Mul, SDiv
from ..operations.registers import REGISTERS

INT32, INT64 = DTYPES["int32"], DTYPES["int64"]


@dataclass(frozen=True)
class Buffer:
    """The lowered form of a memref: a pointer to its first element."""

    pointer: Value
    shape: tuple[int, ...]
    dtype: DType
    space: str

    @property
    def index_dtype(self) -> DType:
        """The dtype in which offsets into it are computed: 32 bits where they suffice, else 64."""
        return INT32 if prod(self.shape) <= INT32.int_max else INT64


@dataclass(frozen=True)
class Share:
    """The lowered form of a fragment: the vectors of a lane, one for each of the hardware's matrices, row by row."""

    parts: tuple[Value, ...]


@dataclass(frozen=True)
class Pair:
    """The lowered form of a complex number: its parts, floats of its component dtype (AMB-LANG-221)."""

    real: Value
    imaginary: Value


Number = Value | Pair
Lowered = Number | Buffer | Share


class Body(BlockBuilder):
    """Builds the instructions of one kernel; constants and registers come first, one instruction for all uses."""

    def __init__(self, target: Target, extents: tuple[int, int, int], location: Location) -> None:
        super().__init__(location)
        self.target = target
        self.extents = extents
        self.values: dict[Value, Lowered] = {}
        self.before: list[Instruction] = []
        self._constants: dict[tuple[str, str], Value] = {}
        self._numbers: dict[Value, int] = {}
        self._known: dict[str, Value] = {}

    def unsupported(self, feature: str) -> UnsupportedConstruct:
        """The error for a construct that the Target level cannot express, at this instruction."""
        return UnsupportedConstruct(f"target.{feature}", self.location)

    @contextmanager
    def within(self, instructions: list[Instruction]) -> Iterator[None]:
        """Append instructions to another list while the context lasts."""
        outer, self.instructions = self.instructions, instructions
        try:
            yield
        finally:
            self.instructions = outer

    # Numbers

    def constant(self, value: float, dtype: DType) -> Value:
        """A constant: one instruction for all its uses."""
        key = (dtype.name, repr(value))
        if key not in self._constants:
            with self.within(self.before):
                made = self._constants[key] = self(Constant, value=value, dtype=dtype)
            if dtype.kind == "int":
                self._numbers[made] = int(value)
        return self._constants[key]

    def number_of(self, value: Value) -> int | None:
        """The integer that a value is known to hold at compile time."""
        return self._numbers.get(value)

    def index(self, value: int, dtype: DType = INT32) -> Value:
        """An integer constant, used as an index."""
        return self.constant(value, dtype)

    def plus(self, a: Value, b: Value) -> Value:
        """The sum of two indices; folded where both are constants."""
        known = self.number_of(a), self.number_of(b)
        if None not in known:
            return self.index(sum(known), _dtype(a))  # type: ignore[arg-type]  # neither is None
        if 0 in known:
            return b if known[0] == 0 else a
        return self(Add, a, b)

    def times(self, a: Value, factor: int) -> Value:
        """An index times a constant."""
        known = self.number_of(a)
        if known is not None:
            return self.index(known * factor, _dtype(a))
        return a if factor == 1 else self(Mul, a, self.index(factor, _dtype(a)))

    def over(self, a: Value, divisor: int) -> Value:
        """The quotient of an index that is not negative."""
        return a if divisor == 1 else self(SDiv, a, self.index(divisor))

    def modulo(self, a: Value, power: int) -> Value:
        """The remainder of an index that is not negative, by a power of two."""
        return self(And, a, self.index(power - 1))

    # The position of a lane

    def register(self, quantity: str, axis: int) -> Value:
        """A special register: `thread`, `block`, `block_dim` or `grid_dim`."""
        return self._once(f"{quantity}.{axis}", lambda: self(REGISTERS[self.target.vendor, quantity, axis]))

    @property
    def linear(self) -> Value:
        """The number of the thread in its block, x fastest."""
        return self._once("linear", self._linear)

    @property
    def lane(self) -> Value:
        """The number of the thread in its warp."""
        return self._once("lane", lambda: self.modulo(self.linear, self.target.warp))

    def lane_part(self, of: str, width: int, factor: int) -> Value:
        """A multiple of the quotient or remainder of the lane by a power of two."""
        split = self.over if of == "quotient" else self.modulo
        return self._once(f"{of}.{width}.{factor}", lambda: self.times(split(self.lane, width), factor))

    def _linear(self) -> Value:
        number = self.register("thread", 0)
        step = self.extents[0]
        for axis in (1, 2):
            if self.extents[axis] > 1:
                number = self.plus(number, self.times(self.register("thread", axis), step))
            step *= self.extents[axis]
        return number

    def _once(self, key: str, build: Callable[[], Value]) -> Value:
        if key not in self._known:
            with self.within(self.before):
                self._known[key] = build()
        return self._known[key]

    # Lowered forms of values

    def scalar(self, value: Value) -> Value:
        """The lowered form of a scalar that is not complex."""
        found = self.values[value]
        assert isinstance(found, Value)
        return found

    def pair(self, value: Value) -> Pair:
        """The lowered form of a complex number."""
        found = self.values[value]
        assert isinstance(found, Pair)
        return found

    def element(self, value: Value) -> Number:
        """The lowered form of any scalar."""
        found = self.values[value]
        assert isinstance(found, Value | Pair)
        return found

    def buffer(self, value: Value) -> Buffer:
        """The lowered form of a memref."""
        found = self.values[value]
        assert isinstance(found, Buffer)
        return found

    def share(self, value: Value) -> Share:
        """The lowered form of a fragment."""
        found = self.values[value]
        assert isinstance(found, Share)
        return found


def _dtype(value: Value) -> DType:
    assert isinstance(value.type, Scalar)
    return value.type.dtype


def plain(type_: Type) -> Type:
    """A type at the Target level: tf32 concerns products alone, and its scalars are fp32 (AMB-RT-28)."""
    return Scalar(type_.dtype.storage) if isinstance(type_, Scalar) else type_
