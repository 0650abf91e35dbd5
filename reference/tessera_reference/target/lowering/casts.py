"""Conversions between dtypes in a kernel, each rounding once, as the canon's cast does (LANG-03.1-05)."""

from __future__ import annotations

from ...ir.module import Value
from ...ir.types import Scalar
from ...numerics.formats import DTYPES, DType
from ..operations import comparisons, conversions
from ..operations.calls import Call, conversion_symbol
from .body import Body

FP32, FP64 = DTYPES["fp32"], DTYPES["fp64"]


def dtype_of(value: Value) -> DType:
    """The dtype of a scalar."""
    assert isinstance(value.type, Scalar)
    return value.type.dtype


def widened(body: Body, x: Value) -> Value:
    """A float in a type that LLVM computes in: fp32 and fp64 unchanged, narrower ones as fp32, exactly."""
    held = dtype_of(x)
    if held.bits == 8:
        return body(Call, x, callee=conversion_symbol(held, FP32), returns=FP32)
    return body(conversions.FPExt, x, to=FP32) if held.bits == 16 else x


def narrowed(body: Body, x: Value, to: DType, overflow: str = "saturate") -> Value:
    """An fp32 or fp64 rounded to a float of at most as many bits, once."""
    held = dtype_of(x)
    if held.bits == to.bits:
        return x
    if to.bits == 8:
        return body(Call, x, callee=conversion_symbol(held, to, overflow), returns=to)
    return body(conversions.FPTrunc, x, to=to)


def unrounded(body: Body, x: Value, to: DType) -> Value:
    """A value of the dtype, held in fp32 or fp64, in the dtype: infinities stay infinite."""
    return narrowed(body, x, to, "nonfinite")


def converted(body: Body, x: Value, to: DType, overflow: str) -> Value:
    """The canon's cast between dtypes that are not complex."""
    held = dtype_of(x)
    if held == to and not (to.kind == "float" and to.bits == 8):  # infinities of fp8 saturate, also to their own dtype
        return x
    if to.kind == "bool":
        return truth(body, x)
    if held.kind == "bool":
        return _of_truth(body, x, to)
    if held.kind == "float":
        return _of_float(body, widened(body, x), to, overflow)
    return _of_integer(body, x, to, overflow)


def truth(body: Body, x: Value) -> Value:
    """Whether a number differs from zero; NaN does."""
    if dtype_of(x).kind == "int":
        return body(comparisons.ICmp, x, body.constant(0, dtype_of(x)), predicate="ne")
    wide = widened(body, x)
    return body(comparisons.FCmp, wide, body.constant(0.0, dtype_of(wide)), predicate="une")


def _of_truth(body: Body, x: Value, to: DType) -> Value:
    if to.kind == "int":
        return body(conversions.ZExt, x, to=to)
    return narrowed(body, body(conversions.UIToFP, x, to=FP64 if to == FP64 else FP32), to)


def _of_float(body: Body, wide: Value, to: DType, overflow: str) -> Value:
    if to.kind == "int":
        return body(conversions.FPToSISat, wide, to=to)
    if to == FP64 and dtype_of(wide) == FP32:
        return body(conversions.FPExt, wide, to=FP64)
    return narrowed(body, wide, to, overflow)


def _of_integer(body: Body, x: Value, to: DType, overflow: str) -> Value:
    """An integer to a narrow float through a float type that holds it exactly; a call for 64 bits, which none holds."""
    held = dtype_of(x)
    if to.kind == "int":
        return body(conversions.SExt if to.bits > held.bits else conversions.Trunc, x, to=to)
    if to in (FP32, FP64):
        return body(conversions.SIToFP, x, to=to)
    if held.bits == 64:
        return body(Call, x, callee=conversion_symbol(held, to, overflow), returns=to)
    return narrowed(body, body(conversions.SIToFP, x, to=FP64 if held.bits == 32 else FP32), to, overflow)
