"""Conversions between dtypes, each rounding at most once (LANG-08-01).

Here are the conversions that LLVM has; others, such as those of fp8 and of 64-bit integers to 16-bit floats, are calls
(`operations.calls`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...ir.operation import operation, require
from ...ir.types import Scalar
from ...numerics.array import Array
from ...numerics.rounding import cast
from ...tile.block import BlockState
from ..emission.types import SUFFIXES
from ..emission.writer import Writer
from ..operation import CLAUSES, Conversion, require_dtype

WIDE = ("fp64", "fp32", "tf32")
FLOATS = (*WIDE, "fp16", "bf16")
INTEGERS = ("int64", "int32", "int16", "int8")


@dataclass(frozen=True)
class Cast(Conversion):
    """Base of conversions: the canon's cast, emitted as the LLVM instruction of the operation's name."""

    sources: ClassVar[tuple[str, ...]]
    targets: ClassVar[tuple[str, ...]]

    def infer(self) -> Scalar:
        """A scalar of the stated dtype."""
        require_dtype(self.x.dtype, self.sources)
        require_dtype(self.to, self.targets, "result")
        self.check(self.x.dtype.bits, self.to.bits)
        return Scalar(self.to)

    def check(self, given: int, made: int) -> None:
        """Refuse widths that the instruction does not convert between."""

    def run(self, block: BlockState, x: Array) -> Array:
        """The conversion by the canon."""
        return cast(x, self.to)

    def emit(self, text: Writer, x: str) -> str:
        """The instruction."""
        return text.value(f"{self.mnemonic} {text.type(self.x)} {x} to {text.type(Scalar(self.to))}")


def _require_growth(given: int, made: int, grows: bool) -> None:
    require(
        given < made if grows else given > made,
        "types",
        f"{given} bits become {made}",
        f"{'more' if grows else 'fewer'} bits",
        "LANG-11-01",
    )


@operation("llvm.fpext", clauses=CLAUSES)
class FPExt(Cast):
    """The same number in a wider float."""

    sources, targets = FLOATS, WIDE

    def check(self, given: int, made: int) -> None:
        """More bits."""
        _require_growth(given, made, grows=True)

    def emit(self, text: Writer, x: str) -> str:
        """The instruction; on a host a bfloat becomes the upper half of a float, without arithmetic."""
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

    sources, targets = WIDE, FLOATS

    def check(self, given: int, made: int) -> None:
        """Fewer bits."""
        _require_growth(given, made, grows=False)

    def emit(self, text: Writer, x: str) -> str:
        """The instruction; on a host, which would round 16-bit results twice, integer instructions."""
        if text.entry.is_host and self.to.bits == 16:
            return narrowed(text, x, self.x.dtype.bits, self.to.name)
        return super().emit(text, x)


def narrowed(text: Writer, x: str, bits: int, to: str) -> str:
    """Round a float or double to 16 bits on a host: to odd in fp32 first, so that only the second rounding counts."""
    if bits == 64:
        x = _to_odd(text, x)
    return _to_bf16(text, x) if to == "bf16" else text.value(f"fptrunc float {x} to half")


def _to_odd(text: Writer, x: str) -> str:
    """A double rounded to odd in fp32: an inexact result goes to the neighbour whose last bit is 1."""
    nearest = text.value(f"fptrunc double {x} to float")
    again = text.value(f"fpext float {nearest} to double")
    code = text.value(f"bitcast float {nearest} to i32")
    size, size_again = (text.call("double", "llvm.fabs.f64", f"double {each}") for each in (x, again))
    above = text.value(f"fcmp ogt double {size_again}, {size}")
    less = text.value(f"zext i1 {above} to i32")
    toward_zero = text.value(f"sub i32 {code}, {less}")
    odd = text.value(f"or i32 {toward_zero}, 1")
    inexact = text.value(f"fcmp one double {again}, {x}")
    chosen = text.value(f"select i1 {inexact}, i32 {odd}, i32 {code}")
    return text.value(f"bitcast i32 {chosen} to float")


def _to_bf16(text: Writer, x: str) -> str:
    """A float as a bfloat, to nearest even: the increment is added to the code; NaN becomes canonical."""
    code = text.value(f"bitcast float {x} to i32")
    kept = text.value(f"lshr i32 {code}, 16")
    even = text.value(f"and i32 {kept}, 1")
    half = text.value(f"add i32 {even}, 32767")
    rounded = text.value(f"add i32 {code}, {half}")
    high = text.value(f"lshr i32 {rounded}, 16")
    is_nan = text.value(f"fcmp uno float {x}, {x}")
    chosen = text.value(f"select i1 {is_nan}, i32 32704, i32 {high}")
    short = text.value(f"trunc i32 {chosen} to i16")
    return text.value(f"bitcast i16 {short} to bfloat")


@operation("llvm.sitofp", clauses=CLAUSES)
class SIToFP(Cast):
    """The nearest float to an integer."""

    sources, targets = INTEGERS, WIDE


@operation("llvm.uitofp", clauses=CLAUSES)
class UIToFP(Cast):
    """A bool as 1 or 0."""

    sources, targets = ("bool",), WIDE


@operation("llvm.intr.fptosi.sat", clauses=CLAUSES)
class FPToSISat(Cast):
    """A float truncated toward zero; what is too large becomes the largest, NaN 0."""

    sources, targets = WIDE, INTEGERS

    def emit(self, text: Writer, x: str) -> str:
        """A call of `llvm.fptosi.sat.i32.f32` and its like."""
        result = text.type(Scalar(self.to))
        name = f"llvm.fptosi.sat.{result}.{SUFFIXES[self.x.dtype.name]}"
        return text.call(result, name, f"{text.type(self.x)} {x}")


@operation("llvm.sext", clauses=CLAUSES)
class SExt(Cast):
    """The same integer in more bits."""

    sources, targets = INTEGERS, INTEGERS

    def check(self, given: int, made: int) -> None:
        """More bits."""
        _require_growth(given, made, grows=True)


@operation("llvm.zext", clauses=CLAUSES)
class ZExt(Cast):
    """A bool as 1 or 0."""

    sources, targets = ("bool",), INTEGERS


@operation("llvm.trunc", clauses=CLAUSES)
class Trunc(Cast):
    """The low bits of an integer."""

    sources, targets = INTEGERS, INTEGERS

    def check(self, given: int, made: int) -> None:
        """Fewer bits."""
        _require_growth(given, made, grows=False)
