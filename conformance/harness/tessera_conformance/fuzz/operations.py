"""Calls of operations, each with the types that it takes and gives, and the feature that decides whether it is used.

The core's are those that the documents name (AMB-LANG-101).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.dtypes import is_float, is_number, is_row_major
from tessera_conformance.fuzz.expressions import Expressions, Production
from tessera_conformance.oracle.elementary import UNARY

ACTIVATIONS = ("sigmoid", "silu", "gelu")
REDUCTIONS = {"float": ("sum", "mean", "max", "min", "prod", "logsumexp"), "int": ("sum", "max", "min", "prod")}

Make = Callable[[Expressions, t.Type, bool], t.Expr]


def _of_one(names: Sequence[str]) -> Make:
    """A function of one operand of the wanted type."""
    return lambda make, type_, typed: make.op(make.choose.pick(names), type_)


def _power(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("pow", type_, type_)


def _softmax(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    rank = len(type_.shape)
    axis = make.choose.between(-rank, rank - 1)
    return make.op("softmax", type_, axis=axis if make.choose.below(2) else None)


def _reduction(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A reduction whose result is the wanted type: of a tensor with one axis more, or with more along a kept one."""
    operand, attributes = _reduced(make, type_)
    return make.op(make.choose.pick(REDUCTIONS[dtypes.kind_of(type_.dtype)]), operand, **attributes)


def _largest(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    operand, attributes = _reduced(make, t.Type(make.scope.dtype(), type_.shape))
    return make.op("argmax", operand, **attributes)


def _reduced(make: Expressions, type_: t.Type) -> tuple[t.Type, dict[str, object]]:
    """The operand of a reduction to the type, and its attributes."""
    choose = make.choose
    extent = choose.between(1, 4)
    kept = [place for place, size in enumerate(type_.shape) if size == 1]
    keepdims: bool | None = True
    if kept and choose.below(2):
        axis, rank = choose.pick(kept), len(type_.shape)
        shape = (*type_.shape[:axis], extent, *type_.shape[axis + 1 :])
    else:
        axis, rank = choose.below(len(type_.shape) + 1), len(type_.shape) + 1
        shape = (*type_.shape[:axis], extent, *type_.shape[axis:])
        keepdims = False if choose.chance(4) else None
    written = axis - rank if choose.chance(3) else axis
    return t.Type(type_.dtype, shape), {"axis": written, "keepdims": keepdims}


def _transpose(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Axes reversed, or in the order of `perm`."""
    if make.choose.below(2):
        return make.op("transpose", t.Type(type_.dtype, type_.shape[::-1]))
    axes = range(len(type_.shape))
    order = make.choose.shuffled(axes)
    shape = tuple(type_.shape[order.index(axis)] for axis in axes)
    return make.op("transpose", t.Type(type_.dtype, shape), perm=order)


def _cast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """From any numeric dtype; `overflow` concerns fp8 (AMB-LANG-105)."""
    choose = make.choose
    dtype = choose.pick([each for each in dtypes.NUMBERS if each != type_.dtype])
    narrow = type_.dtype.startswith("fp8") and choose.below(2)
    overflow = choose.pick(('"saturate"', '"nonfinite"')) if narrow else None
    return make.op("cast", t.Type(dtype, type_.shape, type_.layout), dtype=type_.dtype, overflow=overflow)


def _wider_product(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A product of bf16 whose result is wanted in fp32 (AMB-LANG-102)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.scope.extents)
    return make.op("matmul", t.Type("bf16", (*batch, m, k)), t.Type("bf16", (*batch, k, n)), out=type_.dtype)


def _fourier(name: str) -> Make:
    """A transform, perhaps with a norm."""

    def made(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
        norm = make.choose.pick(('"ortho"', '"backward"', '"forward"'))
        return make.op(name, type_, norm=norm if make.choose.below(2) else None)

    return made


def _is_complex(type_: t.Type) -> bool:
    return is_row_major(type_) and dtypes.kind_of(type_.dtype) == "complex"


def _is_reduced(type_: t.Type) -> bool:
    small = len(type_.shape) < 3 and type_.layout == "row_major" and 0 not in type_.shape
    return small and is_number(type_)


def _is_matrix(type_: t.Type) -> bool:
    return len(type_.shape) >= 2 and type_.layout == "row_major"


OPERATIONS = (
    Production(lambda type_: is_float(type_) and is_row_major(type_), _softmax, 2),
    Production(is_float, _of_one(list(UNARY)), 2, "elementary-functions"),
    Production(is_float, _power, 1, "elementary-functions"),
    Production(is_float, _of_one(ACTIVATIONS), 1, "activations"),
    Production(is_float, _of_one(["relu"]), 1, "tensor-ops"),
    Production(_is_reduced, _reduction, 3, "reductions"),
    Production(lambda type_: _is_reduced(type_) and type_.dtype == "int32", _largest, 1, "reductions"),
    Production(lambda type_: _is_matrix(type_) and is_number(type_), _transpose, 2, "tensor-ops"),
    Production(is_number, _cast, 3, "casts"),
    Production(lambda type_: _is_matrix(type_) and type_.dtype == "fp32", _wider_product, 1, "matmul-out"),
    Production(_is_complex, _fourier("fft"), 8, "extra-dtypes"),
    Production(_is_complex, _fourier("ifft"), 4, "inverse-fft"),
)
