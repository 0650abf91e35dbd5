"""Arithmetic, comparisons, conversions and calls in the LLVM dialect (LANG-08-01, LANG-10-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from ...graph.constant import Constant as GraphConstant
from ...ir.diagnostics import did_you_mean
from ...ir.operation import Attribute, Operand, Operands, Refusal, Stated, operation
from ...ir.types import Scalar, Vector
from ...kernel_machine.block import BlockState
from ...numerics import activations, arithmetic, elementary
from ...numerics.array import Array
from ...numerics.formats import DTYPES, DType
from ...numerics.rounding import Overflow, cast
from ..operation import (
    CLAUSES,
    NAMES,
    SUFFIXES,
    Conversion,
    TargetOperation,
    Writer,
    declared,
    literal,
    require_alike,
    require_dtype,
)

# Arithmetic of lanes: one rounding, in the type that the instruction names (LANG-08-01).
#
# Floats are fp32 and fp64. Narrower ones are extended before and truncated after, which rounds as once, since twice
# their significand and two bits fit into 24 (numerics.arithmetic). Integers wrap, so no instruction has nsw or nuw, and
# none a fast-math flag: neither reassociation nor contraction is allowed.


FLOATS = ("fp32", "fp64", "tf32")
INTEGERS = ("int8", "int16", "int32", "int64")
LOGICAL = ("bool", *INTEGERS)


@operation("llvm.mlir.constant", clauses=CLAUSES)
class Constant(TargetOperation):
    """One number, the same in every lane."""

    value: Attribute[int | float | bool]
    dtype: Stated[DType]

    is_total = True

    def infer(self) -> Scalar:
        return GraphConstant(value=self.value, dtype=self.dtype).infer()

    def run(self, block: BlockState) -> Array:
        return block.uniform(self.value, self.dtype)

    def emit(self, text: Writer) -> str:
        """Return the number, which is written where it is used."""
        return literal(self.value, self.dtype)


@dataclass(frozen=True)
class Binary(TargetOperation):
    """Base of instructions with two operands of one dtype; the LLVM instruction has the operation's name."""

    a: Operand[Scalar]
    b: Operand[Scalar]

    dtypes: ClassVar[tuple[str, ...]]

    def infer(self) -> Scalar:
        require_alike(self.a, self.b)
        require_dtype(self.a.dtype, self.dtypes)
        return self.a

    def emit(self, text: Writer, a: str, b: str) -> str:
        return text.value(f"{self.mnemonic} {text.type(self.a)} {a}, {b}")


@dataclass(frozen=True)
class Lanes(Binary):
    """Base of instructions that cannot fail, so that they run in every lane, active or not."""

    compute: ClassVar[Callable[[Array, Array], Array]]
    is_total = True

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        return type(self).compute(a, b)


def _binary(name: str, meaning: str, dtypes: tuple[str, ...], compute: Callable[..., Any]) -> type[Lanes]:
    """Return the class of an instruction; `compute` on integers is a function of numpy, which wraps."""

    def of_arrays(a: Array, b: Array) -> Array:
        return Array(a.dtype, compute(a.values, b.values))

    return declared(
        Lanes, f"llvm.{name}", meaning, dtypes=dtypes, compute=staticmethod(compute if dtypes is FLOATS else of_arrays)
    )


FAdd = _binary("fadd", "a + b, rounded once.", FLOATS, arithmetic.add)
FSub = _binary("fsub", "a - b, rounded once.", FLOATS, arithmetic.subtract)
FMul = _binary("fmul", "a * b, rounded once.", FLOATS, arithmetic.multiply)
FDiv = _binary("fdiv", "a / b, rounded once.", FLOATS, arithmetic.divide)
Add = _binary("add", "a + b, wrapping.", INTEGERS, np.add)
Sub = _binary("sub", "a - b, wrapping.", INTEGERS, np.subtract)
Mul = _binary("mul", "a * b, wrapping.", INTEGERS, np.multiply)
And = _binary("and", "Bitwise and.", LOGICAL, np.bitwise_and)
Or = _binary("or", "Bitwise or.", LOGICAL, np.bitwise_or)
Xor = _binary("xor", "Bitwise exclusive or.", LOGICAL, np.bitwise_xor)


@operation("llvm.sdiv", clauses=CLAUSES)
class SDiv(Binary):
    """a / b truncated toward zero. LLVM leaves the least integer over -1 undefined; lowering never divides by -1."""

    dtypes = INTEGERS

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """Return the quotient in the active lanes; inactive lanes may hold a zero divisor."""
        active = (Array(operand.dtype, operand.values[block.active]) for operand in (a, b))
        return Array(a.dtype, block.spread(arithmetic.divide(*active).values))

    def emit(self, text: Writer, a: str, b: str) -> str:
        """Write the instruction; on a host, which would trap, record a zero divisor and replace it by 1."""
        if text.entry.is_host and b.startswith("%"):
            type_ = text.type(self.b)
            is_zero = text.value(f"icmp eq {type_} {b}, 0")
            noted = text.value(f"load i32, ptr {text.entry.hidden['fault']}, align 4")
            code = text.value(f"select i1 {is_zero}, i32 1, i32 {noted}")
            text.do(f"store i32 {code}, ptr {text.entry.hidden['fault']}, align 4")
            b = text.value(f"select i1 {is_zero}, {type_} 1, {type_} {b}")
        return super().emit(text, a, b)


@dataclass(frozen=True)
class Extremum(Lanes):
    """Intrinsics named after the operation and the type."""

    def emit(self, text: Writer, a: str, b: str) -> str:
        """Write a call of `llvm.maximum.f32` or similar."""
        type_ = text.type(self.a)
        name = f"llvm.{self.mnemonic}.{SUFFIXES[self.a.dtype.name]}"
        return text.call(type_, name, f"{type_} {a}", f"{type_} {b}")


def _extremum(name: str, meaning: str, dtypes: tuple[str, ...], compute: Callable[..., Array]) -> type[Extremum]:
    return declared(Extremum, f"llvm.intr.{name}", meaning, dtypes=dtypes, compute=staticmethod(compute))


Maximum = _extremum("maximum", "The larger float; NaN wins, -0 is below +0.", FLOATS, arithmetic.maximum)
Minimum = _extremum("minimum", "The smaller float; NaN wins, -0 is below +0.", FLOATS, arithmetic.minimum)
SMax = _extremum("smax", "The larger integer.", INTEGERS, arithmetic.maximum)
SMin = _extremum("smin", "The smaller integer.", INTEGERS, arithmetic.minimum)


@dataclass(frozen=True)
class Unary(TargetOperation):
    """Base of instructions with one float operand."""

    x: Operand[Scalar]

    compute: ClassVar[Callable[[Array], Array]]

    def infer(self) -> Scalar:
        require_dtype(self.x.dtype, FLOATS)
        return self.x

    def run(self, block: BlockState, x: Array) -> Array:
        return type(self).compute(x)

    def emit(self, text: Writer, x: str) -> str:
        """Write the instruction, or a call of the intrinsic of the type: `llvm.sqrt.f32` or similar."""
        type_ = text.type(self.x)
        if self.name == f"llvm.{self.mnemonic}":
            return text.value(f"{self.mnemonic} {type_} {x}")
        return text.call(type_, f"llvm.{self.mnemonic}.{SUFFIXES[self.x.dtype.name]}", f"{type_} {x}")


_root = partial(elementary.apply, "sqrt")
FNeg = declared(Unary, "llvm.fneg", "-x: the sign flipped.", compute=staticmethod(arithmetic.negate))
FAbs = declared(Unary, "llvm.intr.fabs", "|x|: the sign cleared.", compute=staticmethod(arithmetic.absolute))
Sqrt = declared(Unary, "llvm.intr.sqrt", "The square root, correctly rounded.", compute=staticmethod(_root))


# Comparisons, and the selection that follows one (LANG-08-01).


BOOL = DTYPES["bool"]

PREDICATES = {
    "eq": arithmetic.equal,
    "ne": arithmetic.not_equal,
    "lt": arithmetic.less,
    "gt": arithmetic.greater,
    "le": arithmetic.less_equal,
    "ge": arithmetic.greater_equal,
}
"""The comparisons by the last two letters of LLVM's predicates."""


@dataclass(frozen=True)
class Comparison(TargetOperation):
    """Base of both comparisons; the predicate is LLVM's."""

    a: Operand[Scalar]
    b: Operand[Scalar]
    predicate: Attribute[str]

    dtypes: ClassVar[tuple[str, ...]]
    predicates: ClassVar[tuple[str, ...]]

    def infer(self) -> Scalar:
        require_alike(self.a, self.b)
        require_dtype(self.a.dtype, self.dtypes)
        if self.predicate not in self.predicates:
            message = f"there is no predicate {self.predicate!r}"
            raise Refusal("types", message, f"one of {', '.join(self.predicates)}", "LANG-11-01")
        return Scalar(BOOL)

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """Return the comparison; in a signed one, a bool is an i1, whose true is -1."""
        if a.dtype is BOOL and self.predicate.startswith("s"):
            a, b = (Array(DTYPES["int8"], -operand.values.astype(np.int8)) for operand in (a, b))
        return PREDICATES[self.predicate[-2:]](a, b)

    def emit(self, text: Writer, a: str, b: str) -> str:
        return text.value(f"{self.mnemonic} {self.predicate} {text.type(self.a)} {a}, {b}")


_OF_INTEGERS, _OF_FLOATS = ("eq", "ne", "slt", "sgt", "sle", "sge"), ("oeq", "une", "olt", "ogt", "ole", "oge")
_FCMP = "A comparison of floats: ordered, except `une`, which is true for NaN."
ICmp = declared(Comparison, "llvm.icmp", "A comparison of integers.", dtypes=LOGICAL, predicates=_OF_INTEGERS)
FCmp = declared(Comparison, "llvm.fcmp", _FCMP, dtypes=FLOATS, predicates=_OF_FLOATS)


@operation("llvm.select", clauses=CLAUSES)
class Select(TargetOperation):
    """`a` in the lanes where the condition holds, `b` in the others."""

    condition: Operand[Scalar]
    a: Operand[Scalar | Vector]
    b: Operand[Scalar | Vector]

    moved = (1, 2)

    def infer(self) -> Scalar | Vector:
        require_dtype(self.condition.dtype, ("bool",), "condition")
        require_alike(self.a, self.b)
        return self.a

    def run(self, block: BlockState, condition: Array, a: Array, b: Array) -> Array:
        holds = condition.values.reshape(condition.shape + (1,) * (a.rank - condition.rank))
        return Array(a.dtype, np.where(holds, a.values, b.values))

    def emit(self, text: Writer, condition: str, a: str, b: str) -> str:
        type_ = text.type(self.a)
        return text.value(f"select i1 {condition}, {type_} {a}, {type_} {b}")


# Conversions between dtypes, each rounding at most once (LANG-08-01).
#
# These are the conversions that LLVM has; others, such as those of fp8 and of 64-bit integers to 16-bit floats, are
# calls (`operations.calls`).


WIDE = ("fp64", "fp32", "tf32")
CONVERTIBLE_FLOATS = (*WIDE, "fp16", "bf16")
CONVERTIBLE_INTEGERS = ("int64", "int32", "int16", "int8")


@dataclass(frozen=True)
class Cast(Conversion):
    """Base of conversions: the reference arithmetic's cast, emitted as the LLVM instruction of the operation's name."""

    sources: ClassVar[tuple[str, ...]]
    targets: ClassVar[tuple[str, ...]]
    growth: ClassVar[Literal["more", "fewer"] | None] = None
    """The widths that it converts to, where it converts between some only."""

    def infer(self) -> Scalar:
        require_dtype(self.x.dtype, self.sources)
        require_dtype(self.to, self.targets, "result")
        before, after = self.x.dtype.bits, self.to.bits
        grows, shrinks = self.growth != "fewer" and before < after, self.growth != "more" and before > after
        if self.growth is not None and not grows and not shrinks:
            raise Refusal("types", f"{before} bits become {after}", f"{self.growth} bits", "LANG-11-01")
        return Scalar(self.to)

    def run(self, block: BlockState, x: Array) -> Array:
        return cast(x, self.to)

    def emit(self, text: Writer, x: str) -> str:
        return text.value(f"{self.mnemonic} {text.type(self.x)} {x} to {text.type(Scalar(self.to))}")


@operation("llvm.fpext", clauses=CLAUSES)
class FPExt(Cast):
    """The same number in a wider float."""

    sources, targets, growth = CONVERTIBLE_FLOATS, WIDE, "more"

    def emit(self, text: Writer, x: str) -> str:
        """Write the instruction; on a host a bfloat becomes the upper half of a float, without arithmetic."""
        if not text.entry.is_host or self.x.dtype.name != "bf16":
            return super().emit(text, x)
        short = text.value(f"bitcast bfloat {x} to i16")
        code = text.value(f"zext i16 {short} to i32")
        shifted = text.value(f"shl i32 {code}, 16")
        wide = text.value(f"bitcast i32 {shifted} to float")
        return text.value(f"fpext float {wide} to double") if self.to.bits == 64 else wide


@operation("llvm.fptrunc", clauses=CLAUSES)
class FPTrunc(Cast):
    """The nearest number of a narrower float."""

    sources, targets, growth = WIDE, CONVERTIBLE_FLOATS, "fewer"

    def emit(self, text: Writer, x: str) -> str:
        """Write the instruction; on a host, which would round 16-bit results twice, write integer instructions."""
        if text.entry.is_host and self.to.bits == 16:
            return narrowed(text, x, self.x.dtype.bits, self.to.name)
        return super().emit(text, x)


def narrowed(text: Writer, x: str, bits: int, to: str) -> str:
    """Round a float or double to 16 bits on a host: to odd in fp32 first, so that only the second rounding counts."""
    if bits == 64:
        x = _to_odd(text, x)
    return _to_bf16(text, x) if to == "bf16" else text.value(f"fptrunc float {x} to half")


def _to_odd(text: Writer, x: str) -> str:
    """Return a double rounded to odd in fp32: an inexact result goes to the neighbour whose last bit is 1."""
    nearest = text.value(f"fptrunc double {x} to float")
    again = text.value(f"fpext float {nearest} to double")
    code = text.value(f"bitcast float {nearest} to i32")
    size, size_again = (text.call("double", "llvm.fabs.f64", f"double {number}") for number in (x, again))
    above = text.value(f"fcmp ogt double {size_again}, {size}")
    less = text.value(f"zext i1 {above} to i32")
    toward_zero = text.value(f"sub i32 {code}, {less}")
    odd = text.value(f"or i32 {toward_zero}, 1")
    inexact = text.value(f"fcmp one double {again}, {x}")
    chosen = text.value(f"select i1 {inexact}, i32 {odd}, i32 {code}")
    return text.value(f"bitcast i32 {chosen} to float")


def _to_bf16(text: Writer, x: str) -> str:
    """Return a float as a bfloat, to nearest even: the increment is added to the code; NaN becomes canonical."""
    code = text.value(f"bitcast float {x} to i32")
    upper = text.value(f"lshr i32 {code}, 16")
    even = text.value(f"and i32 {upper}, 1")
    half = text.value(f"add i32 {even}, 32767")
    rounded = text.value(f"add i32 {code}, {half}")
    high = text.value(f"lshr i32 {rounded}, 16")
    is_nan = text.value(f"fcmp uno float {x}, {x}")
    chosen = text.value(f"select i1 {is_nan}, i32 32704, i32 {high}")
    short = text.value(f"trunc i32 {chosen} to i16")
    return text.value(f"bitcast i16 {short} to bfloat")


@operation("llvm.intr.fptosi.sat", clauses=CLAUSES)
class FPToSISat(Cast):
    """A float truncated toward zero; a number that is too large becomes the largest, NaN 0."""

    sources, targets = WIDE, CONVERTIBLE_INTEGERS

    def emit(self, text: Writer, x: str) -> str:
        """Write a call of `llvm.fptosi.sat.i32.f32` or similar."""
        result = text.type(Scalar(self.to))
        name = f"llvm.fptosi.sat.{result}.{SUFFIXES[self.x.dtype.name]}"
        return text.call(result, name, f"{text.type(self.x)} {x}")


def _cast(
    name: str, meaning: str, sources: tuple[str, ...], targets: tuple[str, ...], growth: str | None = None
) -> type[Cast]:
    return declared(Cast, f"llvm.{name}", meaning, sources=sources, targets=targets, growth=growth)


SIToFP = _cast("sitofp", "The nearest float to an integer.", CONVERTIBLE_INTEGERS, WIDE)
UIToFP = _cast("uitofp", "A bool as 1 or 0.", ("bool",), WIDE)
SExt = _cast("sext", "The same integer in more bits.", CONVERTIBLE_INTEGERS, CONVERTIBLE_INTEGERS, "more")
ZExt = _cast("zext", "A bool as 1 or 0.", ("bool",), CONVERTIBLE_INTEGERS)
Trunc = _cast("trunc", "The low bits of an integer.", CONVERTIBLE_INTEGERS, CONVERTIBLE_INTEGERS, "fewer")


# Calls of the functions of the reference arithmetic: `@tss_exp_f32` and similar, each rounded once (LANG-10-11).
#
# Machines approximate such functions differently, so kernels call a library by these names; the reference's numerics
# implements it (AMB-LANG-222). Floats of 16 bits and fp8 are passed in their own dtype.


MODES: tuple[Overflow, ...] = ("saturate", "nonfinite")
PREFIX = "tss_"
"""The prefix of all the library's symbols (LANG-16-01)."""


@dataclass(frozen=True)
class Callee:
    """A function of the library."""

    operands: tuple[DType, ...]
    result: DType
    compute: Callable[..., Array]


def symbol(function: str, dtype: DType) -> str:
    """Return the name of a function for a dtype: `tss_exp_f32`."""
    return f"{PREFIX}{function}_{SUFFIXES[dtype.name]}"


def conversion_symbol(source: DType, to: DType, overflow: str = "saturate") -> str:
    """Return the name of a conversion: `tss_f32_to_e4m3`; the other overflow mode is named."""
    mode = "" if overflow == "saturate" or to.bits != 8 else f"_{overflow}"
    return f"{PREFIX}{SUFFIXES[source.name]}_to_{SUFFIXES[to.name]}{mode}"


def _functions() -> Iterator[tuple[str, Callee]]:
    floats = [DTYPES[name] for name in ("fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2")]
    computing: dict[str, Callable[..., Array]] = {
        name: partial(elementary.apply, name) for name in elementary.FUNCTIONS
    }
    computing |= {"sigmoid": activations.sigmoid, "silu": activations.silu, "gelu": activations.gelu}
    computing["gelu_tanh"] = partial(activations.gelu, approximate="tanh")
    for name, compute in computing.items():
        for dtype in floats:
            yield symbol(name, dtype), Callee((dtype,) * (2 if name == "pow" else 1), dtype, compute)


def _conversions() -> Iterator[tuple[str, Callee]]:
    small = [DTYPES[name] for name in ("fp8_e4m3", "fp8_e5m2")]
    for source in (DTYPES[name] for name in ("fp64", "fp32")):
        for to in small:
            for mode in MODES:
                yield conversion_symbol(source, to, mode), Callee((source,), to, partial(cast, dtype=to, overflow=mode))
    for source in small:
        wide = DTYPES["fp32"]
        yield conversion_symbol(source, wide), Callee((source,), wide, partial(cast, dtype=wide))
    long = DTYPES["int64"]
    for to in (DTYPES["fp16"], DTYPES["bf16"], *small):
        for mode in MODES[: 2 if to.bits == 8 else 1]:
            yield conversion_symbol(long, to, mode), Callee((long,), to, partial(cast, dtype=to, overflow=mode))


CALLEES: dict[str, Callee] = {**dict(_functions()), **dict(_conversions())}
"""Every function of the library by its symbol. tf32 is fp32 here."""


@operation("llvm.call", clauses=("LANG-08-01", "LANG-10-11"))
class Call(TargetOperation):
    """A call of a function of the library."""

    arguments: Operands[Scalar]
    callee: Attribute[str]
    returns: Stated[DType]

    def infer(self) -> Scalar:
        """Return the function's result type, after checking the operands against its declaration."""
        if self.callee not in CALLEES:
            message = f"there is no function @{self.callee}"
            requirement = "a function of the library"
            raise Refusal("types", message, requirement, "LANG-08-01", did_you_mean(self.callee, CALLEES))
        callee = CALLEES[self.callee]
        types = tuple(type_.dtype.storage for type_ in self.arguments)
        if types != callee.operands or self.returns.storage != callee.result:
            message = f"@{self.callee} is given ({', '.join(map(str, types))}) for {self.returns}"
            requirement = f"({', '.join(map(str, callee.operands))}) -> {callee.result}"
            raise Refusal("types", message, requirement, "LANG-11-01")
        return Scalar(self.returns)

    def run(self, block: BlockState, *arguments: Array) -> Array:
        plain = (Array(argument.dtype.storage, argument.values) for argument in arguments)
        return Array(self.returns, CALLEES[self.callee].compute(*plain).values)

    def emit(self, text: Writer, *arguments: str) -> str:
        """Write a call; on a host it passes 16-bit floats as integers, whose convention is the same everywhere."""
        callee = CALLEES[self.callee]
        pairs = list(zip(callee.operands, arguments, strict=True))
        if not text.entry.is_host:
            typed = [f"{NAMES[dtype.name]} {argument}" for dtype, argument in pairs]
            return text.call(NAMES[callee.result.name], self.callee, *typed)
        passed = [_as_passed(text, dtype, argument) for dtype, argument in pairs]
        result = text.call(passed_type(callee.result), self.callee, *passed)
        if callee.result.bits != 16:
            return result
        return text.value(f"bitcast i16 {result} to {NAMES[callee.result.name]}")


def passed_type(dtype: DType) -> str:
    """Return the LLVM type in which a value of a dtype is passed to a function on a host."""
    return "i16" if dtype.bits == 16 else NAMES[dtype.name]


def _as_passed(text: Writer, dtype: DType, value: str) -> str:
    if dtype.bits == 16 and dtype.kind == "float":
        return f"i16 {text.value(f'bitcast {NAMES[dtype.name]} {value} to i16')}"
    return f"{NAMES[dtype.name]} {value}"
