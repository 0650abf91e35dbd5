"""Scalar and complex arithmetic of a kernel in the LLVM dialect (LANG-03.1-05, LANG-08.2-01; AMB-LANG-221, -222)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import Any, TypeVar

from ...ir.diagnostics import Location, UnsupportedConstruct
from ...ir.operation import Builder, Instruction, Operation
from ...ir.targets import Target
from ...ir.types import Scalar, Type, Value, Vector
from ...kernel_machine.block import FragmentUse, KernelOperation
from ...numerics.formats import DTYPES, DType
from ...tile.operations import AlongAxis, BlockDim, BlockId, Complex, GridDim, LaneId, Part, ThreadId, WarpId
from ..operations import llvm, memory
from ..operations.llvm import CALLEES, Add, And, Call, Mul, SDiv, conversion_symbol, symbol
from ..operations.llvm import Constant as LlvmConstant
from ..operations.vendors import REGISTERS

# The body of a kernel that is being lowered: a builder of instructions, and the lowered form of each Tile IR value.


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
L = TypeVar("L", Value, Pair, Buffer, Share)


class Body(Builder):
    """A builder of one kernel's instructions; constants and registers come first, one instruction for all uses."""

    def __init__(
        self, target: Target, extents: tuple[int, int, int], location: Location, uses: Mapping[Value, FragmentUse]
    ) -> None:
        super().__init__(location)
        self.target = target
        self.extents = extents
        self.uses = uses
        self.values: dict[Value, Lowered] = {}
        self.before: list[Instruction] = []
        self._constants: dict[tuple[str, str], Value] = {}
        self._numbers: dict[Value, int] = {}
        self._known: dict[str, Value] = {}

    def unsupported(self, feature: str) -> UnsupportedConstruct:
        """Return the error for a construct that the Target level cannot express, at this instruction."""
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
        """Return a constant: one instruction for all its uses."""
        key = (dtype.name, repr(value))
        if key not in self._constants:
            with self.within(self.before):
                constant = self._constants[key] = self(LlvmConstant, value=value, dtype=dtype)
            if dtype.kind == "int":
                self._numbers[constant] = int(value)
        return self._constants[key]

    def number_of(self, value: Value) -> int | None:
        """Return the integer that a value is known to be at compile time, or None."""
        return self._numbers.get(value)

    def index(self, value: int, dtype: DType = INT32) -> Value:
        """Return an integer constant, used as an index."""
        return self.constant(value, dtype)

    def plus(self, a: Value, b: Value) -> Value:
        """Return the sum of two indices; folded where both are constants."""
        numbers = self.number_of(a), self.number_of(b)
        if None not in numbers:
            return self.index(sum(numbers), dtype_of(a))  # type: ignore[arg-type]  # neither is None
        if 0 in numbers:
            return b if numbers[0] == 0 else a
        return self(Add, a, b)

    def times(self, a: Value, factor: int) -> Value:
        """Return an index times a constant."""
        number = self.number_of(a)
        if number is not None:
            return self.index(number * factor, dtype_of(a))
        return a if factor == 1 else self(Mul, a, self.index(factor, dtype_of(a)))

    def over(self, a: Value, divisor: int) -> Value:
        """Return the quotient of an index that is not negative."""
        return a if divisor == 1 else self(SDiv, a, self.index(divisor))

    def modulo(self, a: Value, power: int) -> Value:
        """Return the remainder of an index that is not negative, by a power of two."""
        return self(And, a, self.index(power - 1))

    # The position of a lane

    def register(self, quantity: str, axis: int) -> Value:
        """Return a special register: `thread`, `block`, `block_dim` or `grid_dim`."""
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
        """Return a multiple of the quotient or remainder of the lane by a power of two."""
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

    def form(self, value: Value, kind: type[L]) -> L:
        """Return the lowered form of a value, which is of this kind."""
        lowered = self.values[value]
        assert isinstance(lowered, kind)
        return lowered

    def scalar(self, value: Value) -> Value:
        """Return the lowered form of a scalar that is not complex."""
        return self.form(value, Value)

    def element(self, value: Value) -> Number:
        """Return the lowered form of any scalar."""
        lowered = self.values[value]
        assert isinstance(lowered, Value | Pair)
        return lowered


def plain(type_: Type) -> Type:
    """Return a type at the Target level: tf32 concerns products alone, and its scalars are fp32 (AMB-RT-28)."""
    return Scalar(type_.dtype.storage) if isinstance(type_, Scalar) else type_


@singledispatch
def lowered(operation: Operation, instruction: Instruction, body: Body) -> Lowered | None:
    """Append an operation of a kernel, and return its lowered result, if it has one. Raises `UnsupportedConstruct`."""
    if isinstance(operation, KernelOperation):
        raise body.unsupported(operation.name)
    return lowered_element(body, operation, *map(body.element, instruction.operands))


QUANTITIES: Mapping[type[AlongAxis], str] = {
    ThreadId: "thread",
    BlockId: "block",
    BlockDim: "block_dim",
    GridDim: "grid_dim",
}


@lowered.register
def _along_axis(operation: AlongAxis, instruction: Instruction, body: Body) -> Value:
    return body.register(QUANTITIES[type(operation)], operation.position)


@lowered.register
def _lane_id(operation: LaneId, instruction: Instruction, body: Body) -> Value:
    return body.lane


@lowered.register
def _warp_id(operation: WarpId, instruction: Instruction, body: Body) -> Value:
    return body.over(body.linear, body.target.warp)


# Conversions between dtypes in a kernel, each rounding once, as the reference arithmetic's cast does (LANG-03.1-05).


FP32, FP64 = DTYPES["fp32"], DTYPES["fp64"]


def dtype_of(value: Value) -> DType:
    """Return the dtype of a scalar."""
    assert isinstance(value.type, Scalar)
    return value.type.dtype


def widened(body: Body, x: Value) -> Value:
    """Return a float in a type that LLVM computes in: fp32 and fp64 unchanged, narrower ones as fp32, exactly."""
    dtype = dtype_of(x)
    if dtype.bits == 8:
        return body(Call, x, callee=conversion_symbol(dtype, FP32), returns=FP32)
    return body(llvm.FPExt, x, to=FP32) if dtype.bits == 16 else x


def narrowed(body: Body, x: Value, to: DType, overflow: str = "saturate") -> Value:
    """Return an fp32 or fp64 rounded once to a float of at most as many bits."""
    dtype = dtype_of(x)
    if dtype.bits == to.bits:
        return x
    if to.bits == 8:
        return body(Call, x, callee=conversion_symbol(dtype, to, overflow), returns=to)
    return body(llvm.FPTrunc, x, to=to)


def unrounded(body: Body, x: Value, to: DType) -> Value:
    """Return a value of the dtype, carried in fp32 or fp64, in the dtype itself: infinities stay infinite."""
    return narrowed(body, x, to, "nonfinite")


def converted(body: Body, x: Value, to: DType, overflow: str) -> Value:
    """Return the result of the reference arithmetic's cast between dtypes that are not complex."""
    dtype = dtype_of(x)
    if dtype == to and not (to.kind == "float" and to.bits == 8):  # infinities of fp8 saturate, also to their own dtype
        return x
    if to.kind == "bool":
        return truth(body, x)
    if dtype.kind == "bool":
        return _of_truth(body, x, to)
    if dtype.kind == "float":
        return _of_float(body, widened(body, x), to, overflow)
    return _of_integer(body, x, to, overflow)


def truth(body: Body, x: Value) -> Value:
    """Return True where a number differs from zero, as NaN does."""
    if dtype_of(x).kind == "int":
        return body(llvm.ICmp, x, body.constant(0, dtype_of(x)), predicate="ne")
    wide = widened(body, x)
    return body(llvm.FCmp, wide, body.constant(0.0, dtype_of(wide)), predicate="une")


def _of_truth(body: Body, x: Value, to: DType) -> Value:
    if to.kind == "int":
        return body(llvm.ZExt, x, to=to)
    return narrowed(body, body(llvm.UIToFP, x, to=FP64 if to == FP64 else FP32), to)


def _of_float(body: Body, wide: Value, to: DType, overflow: str) -> Value:
    if to.kind == "int":
        return body(llvm.FPToSISat, wide, to=to)
    if to == FP64 and dtype_of(wide) == FP32:
        return body(llvm.FPExt, wide, to=FP64)
    return narrowed(body, wide, to, overflow)


def _of_integer(body: Body, x: Value, to: DType, overflow: str) -> Value:
    """Return an integer as a narrow float, by a float type that holds it exactly; by a call for 64 bits."""
    dtype = dtype_of(x)
    if to.kind == "int":
        return body(llvm.SExt if to.bits > dtype.bits else llvm.Trunc, x, to=to)
    if to in (FP32, FP64):
        return body(llvm.SIToFP, x, to=to)
    if dtype.bits == 64:
        return body(Call, x, callee=conversion_symbol(dtype, to, overflow), returns=to)
    return narrowed(body, body(llvm.SIToFP, x, to=FP64 if dtype.bits == 32 else FP32), to, overflow)


# Complex numbers of a kernel, each two floats of its component dtype (AMB-LANG-221).
#
# LLVM has no complex type. Sums are by component; the product is the reference's, (ac - bd, ad + bc), every step a
# separate instruction (numerics.complex_numbers). Memory holds the two parts side by side, and is accessed as vectors
# of two, so that a number is read and written at once. The reference arithmetic defines no quotient.


def is_complex(operation: Operation, operands: tuple[Number, ...]) -> bool:
    """True if an elementwise operation takes or returns complex numbers."""
    stated = getattr(operation, "dtype", None)
    makes = isinstance(stated, DType) and stated.kind == "complex"
    return makes or any(isinstance(operand, Pair) for operand in operands)


def _by_parts(instruction: type[Operation]) -> Callable[..., Pair]:
    """Return a function that applies an instruction to the real and to the imaginary parts."""

    def lowered(body: Body, operation: Operation, *operands: Pair) -> Pair:
        real, imaginary = ([getattr(operand, part) for operand in operands] for part in ("real", "imaginary"))
        return Pair(body(instruction, *real), body(instruction, *imaginary))

    return lowered


def _both_parts(predicate: str, joined: type[Operation]) -> Callable[..., Value]:
    """Return a function that compares the real and the imaginary parts."""

    def lowered(body: Body, operation: Operation, x: Pair, y: Pair) -> Value:
        real = body(llvm.FCmp, x.real, y.real, predicate=predicate)
        return body(joined, real, body(llvm.FCmp, x.imaginary, y.imaginary, predicate=predicate))

    return lowered


def _product(body: Body, operation: Operation, x: Pair, y: Pair) -> Pair:
    """Return the product (ac - bd, ad + bc): six roundings."""
    real = body(llvm.FSub, body(llvm.FMul, x.real, y.real), body(llvm.FMul, x.imaginary, y.imaginary))
    imaginary = body(llvm.FAdd, body(llvm.FMul, x.real, y.imaginary), body(llvm.FMul, x.imaginary, y.real))
    return Pair(real, imaginary)


def _select_pair(body: Body, operation: Operation, condition: Value, x: Pair, y: Pair) -> Pair:
    real = body(llvm.Select, condition, x.real, y.real)
    return Pair(real, body(llvm.Select, condition, x.imaginary, y.imaginary))


def _constant_pair(body: Body, operation: Any) -> Pair:
    """Return a real constant as a complex number."""
    component = operation.dtype.component
    return Pair(body.constant(operation.value, component), body.constant(0.0, component))


def _cast_number(body: Body, operation: Any, x: Number) -> Number:
    """Return each part rounded once; a real number gets the imaginary part +0 (LANG-03.1-05)."""
    to: DType = operation.dtype
    if isinstance(x, Pair) and to.kind == "bool":
        return body(llvm.Or, truth(body, x.real), truth(body, x.imaginary))
    if isinstance(x, Pair):
        return Pair(*(converted(body, part, to.component, operation.overflow) for part in (x.real, x.imaginary)))
    return Pair(converted(body, x, to.component, operation.overflow), body.constant(0.0, to.component))


ON_COMPLEX: Mapping[str, Callable[..., Number]] = {
    "add": _by_parts(llvm.FAdd),
    "subtract": _by_parts(llvm.FSub),
    "multiply": _product,
    "negate": _by_parts(llvm.FNeg),
    "equal": _both_parts("oeq", llvm.And),
    "not_equal": _both_parts("une", llvm.Or),
    "select": _select_pair,
    "constant": _constant_pair,
    "cast": _cast_number,
    "identity": lambda body, operation, x: x,
}
"""The operations of Graph IR on elements that are defined on complex numbers, by short name; no quotient is."""


# Parts


@lowered.register
def _part(operation: Part, instruction: Instruction, body: Body) -> Value:
    pair = body.form(instruction.operands[0], Pair)
    return pair.real if operation.which == "real" else pair.imaginary


@lowered.register
def _complex(operation: Complex, instruction: Instruction, body: Body) -> Pair:
    real, imaginary = map(body.scalar, instruction.operands)
    return Pair(real, imaginary)


# Memory


def in_memory(dtype: DType) -> Vector:
    """Return the type of a complex number in memory: a vector of two."""
    return Vector(2, dtype.component)


def unpacked(body: Body, vector: Value) -> Pair:
    """Return the complex number in a vector of its two parts."""
    return Pair(*(body(memory.ExtractElement, vector, position=position) for position in (0, 1)))


def packed(body: Body, pair: Pair, dtype: DType) -> Value:
    """Return a complex number as a vector of its two parts."""
    vector = body(memory.Zero, returns=in_memory(dtype))
    for position, value in enumerate((pair.real, pair.imaginary)):
        vector = body(memory.InsertElement, vector, value, position=position)
    return vector


# Scalar arithmetic of a kernel in the LLVM dialect, with the reference's roundings (LANG-08.2-01, AMB-LANG-222).
#
# Floats of 8 or 16 bits are computed in fp32 and rounded once more: with significands of at most 11 bits the result is
# that of a single rounding (numerics.arithmetic). Functions whose bits LLVM does not fix are calls.


def lowered_element(body: Body, operation: Operation, *operands: Number) -> Number:
    """Lower an elementwise operation of Graph IR in a kernel. Raises `UnsupportedConstruct`."""
    name = operation.short_name
    if is_complex(operation, operands):
        if name not in ON_COMPLEX:
            raise body.unsupported(f"complex.{name}")
        return ON_COMPLEX[name](body, operation, *operands)
    return ON_SCALARS.get(name, _call)(body, operation, *operands)


def _either(
    on_floats: type[llvm.Binary], on_integers: type[llvm.Binary], result: Callable[[Body, Value, DType], Value]
) -> Callable[..., Value]:
    """Return a function that emits the instruction on floats, with its `result` in their dtype, or that on integers."""

    def lowered(body: Body, operation: Operation, a: Value, b: Value) -> Value:
        dtype = dtype_of(a)
        if dtype.kind != "float":
            return body(on_integers, a, b)
        return result(body, body(on_floats, widened(body, a), widened(body, b)), dtype)

    return lowered


_maximum = _either(llvm.Maximum, llvm.SMax, unrounded)
_minimum = _either(llvm.Minimum, llvm.SMin, unrounded)


def _comparison(on_floats: str, on_integers: str) -> Callable[..., Value]:
    """Return a function that emits the predicate on floats, or that on integers."""

    def lowered(body: Body, operation: Operation, a: Value, b: Value) -> Value:
        if dtype_of(a).kind != "float":
            return body(llvm.ICmp, a, b, predicate=on_integers)
        return body(llvm.FCmp, widened(body, a), widened(body, b), predicate=on_floats)

    return lowered


def _divide(body: Body, operation: Operation, a: Value, b: Value) -> Value:
    """Return the quotient. Division by -1 is a subtraction, since sdiv leaves the least integer over -1 undefined."""
    dtype = dtype_of(a)
    if dtype.kind == "float":
        return narrowed(body, body(llvm.FDiv, widened(body, a), widened(body, b)), dtype)
    if body.number_of(b) not in (None, -1):
        return body(llvm.SDiv, a, b)
    is_minus_one = body(llvm.ICmp, b, body.constant(-1, dtype), predicate="eq")
    divisor = body(llvm.Select, is_minus_one, body.constant(1, dtype), b)
    negated = body(llvm.Sub, body.constant(0, dtype), a)
    return body(llvm.Select, is_minus_one, negated, body(llvm.SDiv, a, divisor))


def _negate(body: Body, operation: Operation, x: Value) -> Value:
    dtype = dtype_of(x)
    if dtype.kind == "float":
        return unrounded(body, body(llvm.FNeg, widened(body, x)), dtype)
    return body(llvm.Sub, body.constant(0, dtype), x)


def _absolute(body: Body, operation: Operation, x: Value) -> Value:
    dtype = dtype_of(x)
    if dtype.kind == "float":
        return unrounded(body, body(llvm.FAbs, widened(body, x)), dtype)
    return body(llvm.SMax, x, body(llvm.Sub, body.constant(0, dtype), x))


def _clamp(body: Body, operation: Operation, x: Value, low: Value, high: Value) -> Value:
    return _minimum(body, operation, _maximum(body, operation, x, low), high)


def _reciprocal(body: Body, operation: Operation, x: Value) -> Value:
    wide = widened(body, x)
    return narrowed(body, body(llvm.FDiv, body.constant(1.0, dtype_of(wide)), wide), dtype_of(x))


def _call(body: Body, operation: Operation, *operands: Value) -> Value:
    """Call a library function, correctly rounded in the operands' own dtype."""
    dtype, name = dtype_of(operands[0]), operation.short_name
    if operation.attributes.get("approximate") == "tanh":
        name = "gelu_tanh"
    callee = symbol(name, dtype)
    if callee not in CALLEES:
        raise body.unsupported(name)
    return body(Call, *operands, callee=callee, returns=dtype)


ON_SCALARS: Mapping[str, Callable[..., Number]] = {
    "add": _either(llvm.FAdd, llvm.Add, narrowed),
    "subtract": _either(llvm.FSub, llvm.Sub, narrowed),
    "multiply": _either(llvm.FMul, llvm.Mul, narrowed),
    "divide": _divide,
    "maximum": _maximum,
    "minimum": _minimum,
    "equal": _comparison("oeq", "eq"),
    "not_equal": _comparison("une", "ne"),
    "less": _comparison("olt", "slt"),
    "greater": _comparison("ogt", "sgt"),
    "less_equal": _comparison("ole", "sle"),
    "greater_equal": _comparison("oge", "sge"),
    "negate": _negate,
    "abs": _absolute,
    "clamp": _clamp,
    "select": lambda body, operation, condition, a, b: body(llvm.Select, condition, a, b),
    "relu": lambda body, operation, x: _maximum(body, operation, x, body.constant(0, dtype_of(x))),
    "sqrt": lambda body, operation, x: narrowed(body, body(llvm.Sqrt, widened(body, x)), dtype_of(x)),
    "reciprocal": _reciprocal,
    "constant": lambda body, operation: body.constant(operation.value, operation.dtype.storage),
    "cast": lambda body, operation, x: converted(body, x, operation.dtype.storage, operation.overflow),
    "identity": lambda body, operation, x: x,
}
"""The operations of Graph IR on elements that become instructions, by short name; others are calls."""
