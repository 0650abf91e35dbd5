"""Arithmetic of lanes: one rounding, in the type that the instruction names (LANG-08-01).

Floats are fp32 and fp64; narrower ones are extended before and truncated after, which rounds as once, since twice their
significand and two bits fit into 24 (numerics.arithmetic). Integers wrap, so no instruction bears nsw or nuw, and no
instruction a fast-math flag: neither reassociation nor contraction is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...graph.constant import Constant as GraphConstant
from ...ir.operation import Attribute, Hidden, Operand, Shown, operation
from ...ir.types import Scalar
from ...numerics import arithmetic, elementary
from ...numerics.array import Array
from ...numerics.formats import DType
from ...tile.block import BlockState
from ..emission.types import SUFFIXES, literal
from ..emission.writer import Writer
from ..operation import CLAUSES, TargetOperation, require_alike, require_dtype, scalar_shown

FLOATS = ("fp32", "fp64", "tf32")
INTEGERS = ("int8", "int16", "int32", "int64")
LOGICAL = ("bool", *INTEGERS)


@operation("llvm.mlir.constant", clauses=CLAUSES)
class Constant(TargetOperation):
    """One number, the same in every lane."""

    value: Attribute[int | float | bool]
    dtype: Hidden[DType]

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The dtype is that of the result."""
        return {"dtype": scalar_shown(cls.name, shown).dtype}

    def infer(self) -> Scalar:
        """A scalar, which holds the number exactly."""
        return GraphConstant(value=self.value, dtype=self.dtype).infer()

    def run(self, block: BlockState) -> Array:
        """The number for each lane."""
        return block.uniform(self.value, self.dtype)

    def emit(self, text: Writer) -> str:
        """Written where it is used."""
        return literal(self.value, self.dtype)


@dataclass(frozen=True)
class Binary(TargetOperation):
    """Base of instructions with two operands of one dtype; the LLVM instruction has the operation's name."""

    a: Operand[Scalar]
    b: Operand[Scalar]

    dtypes: ClassVar[tuple[str, ...]]

    def infer(self) -> Scalar:
        """The operands' type."""
        require_alike(self.a, self.b)
        require_dtype(self.a.dtype, self.dtypes)
        return self.a

    def emit(self, text: Writer, a: str, b: str) -> str:
        """The instruction, without flags."""
        return text.value(f"{self.mnemonic} {text.type(self.a)} {a}, {b}")


@dataclass(frozen=True)
class IntegerBinary(Binary):
    """Base of instructions on integers and bits, which numpy computes as the canon defines."""

    compute: ClassVar[Any]
    """The function of numpy."""

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The result in every lane, active or not: no value makes it fail."""
        return Array(a.dtype, self.compute(a.values, b.values))


@operation("llvm.fadd", clauses=CLAUSES)
class FAdd(Binary):
    """a + b, rounded once."""

    dtypes = FLOATS

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The sum."""
        return arithmetic.add(a, b)


@operation("llvm.fsub", clauses=CLAUSES)
class FSub(Binary):
    """a - b, rounded once."""

    dtypes = FLOATS

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The difference."""
        return arithmetic.subtract(a, b)


@operation("llvm.fmul", clauses=CLAUSES)
class FMul(Binary):
    """a * b, rounded once."""

    dtypes = FLOATS

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The product."""
        return arithmetic.multiply(a, b)


@operation("llvm.fdiv", clauses=CLAUSES)
class FDiv(Binary):
    """a / b, rounded once."""

    dtypes = FLOATS

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The quotient."""
        return arithmetic.divide(a, b)


@operation("llvm.add", clauses=CLAUSES)
class Add(IntegerBinary):
    """a + b, wrapping."""

    dtypes = INTEGERS
    compute = np.add


@operation("llvm.sub", clauses=CLAUSES)
class Sub(IntegerBinary):
    """a - b, wrapping."""

    dtypes = INTEGERS
    compute = np.subtract


@operation("llvm.mul", clauses=CLAUSES)
class Mul(IntegerBinary):
    """a * b, wrapping."""

    dtypes = INTEGERS
    compute = np.multiply


@operation("llvm.sdiv", clauses=CLAUSES)
class SDiv(Binary):
    """a / b truncated toward zero. LLVM leaves the least integer over -1 undefined; lowering never divides by -1."""

    dtypes = INTEGERS

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The quotient in the active lanes; inactive lanes may hold a zero divisor."""
        active = (Array(each.dtype, each.values[block.active]) for each in (a, b))
        return Array(a.dtype, block.spread(arithmetic.divide(*active).values))

    def emit(self, text: Writer, a: str, b: str) -> str:
        """The instruction; on a host, which would trap, a zero divisor is recorded and replaced by 1."""
        if text.entry.is_host and b.startswith("%"):
            type_ = text.type(self.b)
            is_zero = text.value(f"icmp eq {type_} {b}, 0")
            noted = text.value(f"load i32, ptr {text.entry.hidden['fault']}, align 4")
            seen = text.value(f"select i1 {is_zero}, i32 1, i32 {noted}")
            text.do(f"store i32 {seen}, ptr {text.entry.hidden['fault']}, align 4")
            b = text.value(f"select i1 {is_zero}, {type_} 1, {type_} {b}")
        return super().emit(text, a, b)


@operation("llvm.and", clauses=CLAUSES)
class And(IntegerBinary):
    """Bitwise and."""

    dtypes = LOGICAL
    compute = np.bitwise_and


@operation("llvm.or", clauses=CLAUSES)
class Or(IntegerBinary):
    """Bitwise or."""

    dtypes = LOGICAL
    compute = np.bitwise_or


@operation("llvm.xor", clauses=CLAUSES)
class Xor(IntegerBinary):
    """Bitwise exclusive or."""

    dtypes = LOGICAL
    compute = np.bitwise_xor


@dataclass(frozen=True)
class Extremum(Binary):
    """Intrinsics named after the operation and the type."""

    def emit(self, text: Writer, a: str, b: str) -> str:
        """A call of `llvm.maximum.f32` and its like."""
        type_ = text.type(self.a)
        name = f"llvm.{self.mnemonic}.{SUFFIXES[self.a.dtype.name]}"
        return text.call(type_, name, f"{type_} {a}", f"{type_} {b}")

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """The larger or the smaller, by the canon's order."""
        compute = arithmetic.maximum if self.mnemonic in ("maximum", "smax") else arithmetic.minimum
        return compute(a, b)


@operation("llvm.intr.maximum", clauses=CLAUSES)
class Maximum(Extremum):
    """The larger float; NaN wins, -0 is below +0."""

    dtypes = FLOATS


@operation("llvm.intr.minimum", clauses=CLAUSES)
class Minimum(Extremum):
    """The smaller float; NaN wins, -0 is below +0."""

    dtypes = FLOATS


@operation("llvm.intr.smax", clauses=CLAUSES)
class SMax(Extremum):
    """The larger integer."""

    dtypes = INTEGERS


@operation("llvm.intr.smin", clauses=CLAUSES)
class SMin(Extremum):
    """The smaller integer."""

    dtypes = INTEGERS


@dataclass(frozen=True)
class Unary(TargetOperation):
    """Base of instructions with one float operand."""

    x: Operand[Scalar]

    def infer(self) -> Scalar:
        """The operand's type."""
        require_dtype(self.x.dtype, FLOATS)
        return self.x


@operation("llvm.fneg", clauses=CLAUSES)
class FNeg(Unary):
    """-x: the sign flipped."""

    def run(self, block: BlockState, x: Array) -> Array:
        """The sign flipped."""
        return arithmetic.negate(x)

    def emit(self, text: Writer, x: str) -> str:
        """The instruction."""
        return text.value(f"fneg {text.type(self.x)} {x}")


@dataclass(frozen=True)
class Intrinsic(Unary):
    """Intrinsics named after the operation and the type."""

    def emit(self, text: Writer, x: str) -> str:
        """A call of `llvm.sqrt.f32` and its like."""
        type_ = text.type(self.x)
        return text.call(type_, f"llvm.{self.mnemonic}.{SUFFIXES[self.x.dtype.name]}", f"{type_} {x}")


@operation("llvm.intr.fabs", clauses=CLAUSES)
class FAbs(Intrinsic):
    """|x|: the sign cleared."""

    def run(self, block: BlockState, x: Array) -> Array:
        """The sign cleared."""
        return arithmetic.absolute(x)


@operation("llvm.intr.sqrt", clauses=CLAUSES)
class Sqrt(Intrinsic):
    """The square root, correctly rounded."""

    def run(self, block: BlockState, x: Array) -> Array:
        """The square root."""
        return elementary.apply("sqrt", x)
