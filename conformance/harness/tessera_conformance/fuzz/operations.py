"""Calls of operations, each with the types that it takes and gives and the feature that makes it legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tessera_conformance.fuzz import scope
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import Expressions, Production
from tessera_conformance.fuzz.scope import is_float, is_number, is_row_major
from tessera_conformance.oracle.elementwise import UNARY

# Calls of operations, each with the types that it takes and gives, and the feature that decides whether it is used.
#
# The core's are those that the documents name (AMB-LANG-101).


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
    return make.op(make.choose.pick(REDUCTIONS[scope.kind_of(type_.dtype)]), operand, **attributes)


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
    dtype = choose.pick([each for each in scope.NUMBERS if each != type_.dtype])
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
    return is_row_major(type_) and scope.kind_of(type_.dtype) == "complex"


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

# Calls of the operations of neural networks: norms, attention, random numbers, dropout.


DRAWN = ("fp32", "bf16", "fp16", "fp64")
"""Dtypes that random numbers are drawn in."""


def _norm(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """op.layer_norm or op.rms_norm along an axis (AMB-LANG-170)."""
    choose = make.choose
    axis = choose.between(-len(type_.shape), -1)
    vector = t.Type(type_.dtype, (type_.shape[axis],))
    name, vectors = ("layer_norm", (vector, vector)) if choose.below(2) else ("rms_norm", (vector,))
    written = axis if axis != -1 or choose.below(2) else None
    return make.op(name, type_, *vectors, axis=written, eps="1e-3" if choose.chance(3) else None)


def _attention(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """op.flash_attention of the result's length, over one to three keys (AMB-LANG-177)."""
    choose = make.choose
    *batch, length, width = type_.shape
    causal = choose.chance(3)
    keys, depth = length if causal else choose.between(1, 3), choose.between(1, 3)
    shapes = ((*batch, length, depth), (*batch, keys, depth), (*batch, keys, width))
    block, scale = 2 if choose.chance(3) else None, 0.5 if choose.chance(3) else None
    operands = (t.Type(type_.dtype, shape) for shape in shapes)
    return make.op("flash_attention", *operands, causal=causal or None, block=block, scale=scale)


def _drawn(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Random numbers of the wanted shape, from the next stream or from one that is named (AMB-LANG-171)."""
    name = make.choose.pick(("uniform", "normal"))
    return make.op(name, shape=type_.shape, dtype=type_.dtype, **_source(make))


def _dropout(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("dropout", type_, rate=make.choose.pick(("0.5", "0.1", "0.0")), **_source(make))


def _source(make: Expressions) -> dict[str, object]:
    return {"seed": 7, "stream": 3} if make.choose.chance(3) else {}


def _is_float_tensor(type_: t.Type) -> bool:
    return is_row_major(type_) and is_float(type_)


def _can_be_attended(type_: t.Type) -> bool:
    return _is_float_tensor(type_) and len(type_.shape) >= 2 and type_.is_static


def _can_be_drawn(type_: t.Type) -> bool:
    return _is_float_tensor(type_) and type_.is_static and type_.dtype in DRAWN


LAYERS = (
    Production(_is_float_tensor, _norm, 2, "normalization"),
    Production(_can_be_attended, _attention, 1, "fused-attention"),
    Production(_can_be_drawn, _drawn, 1, "random-ops"),
    Production(_is_float_tensor, _dropout, 1, "random-ops"),
)

# Calls of operations that choose among elements or move them, beside those of `operations` (AMB-LANG-165).


FEATURE = "tensor-ops"


def _absolute(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("abs", type_)


def _extreme(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """The larger or smaller of two, or one kept between two bounds."""
    if make.choose.chance(3):
        return make.op("clamp", type_, type_, type_)
    return make.op(make.choose.pick(("maximum", "minimum")), type_, type_)


def _select(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("select", t.Type("bool", type_.shape, type_.layout), type_, type_)


def _reshape(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """From the flat tensor, or from one with an axis of one element more; one extent may be left open."""
    extents = list(_extents(type_))
    operand = (prod(extents),) if make.choose.below(2) else (*extents, 1)
    if make.choose.chance(3):
        extents[make.choose.below(len(extents))] = -1
    return make.op("reshape", t.Type(type_.dtype, operand), shape=extents)


def _broadcast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    whole = _extents(type_)
    small = [1 if make.choose.below(2) else extent for extent in whole][make.choose.below(len(whole) + 1) :]
    return make.op("broadcast", t.Type(type_.dtype, tuple(small)), shape=whole)


def _concat(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Two parts along an axis."""
    axis = make.choose.below(len(type_.shape))
    extent = _extents(type_)[axis]
    first = make.choose.between(1, max(extent - 1, 1))
    extents = (first, extent - first) if extent > 1 else (1,)
    return make.op("concat", *(_with_extent(type_, axis, each) for each in extents), axis=axis)


def _pad(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A frame of zeros around something smaller."""
    low, high, inner = [], [], []
    for extent in _extents(type_):
        low.append(make.choose.below(min(extent, 2)))
        high.append(make.choose.below(min(extent - low[-1], 2)))
        inner.append(extent - low[-1] - high[-1])
    return make.op("pad", t.Type(type_.dtype, tuple(inner)), low=low, high=high)


def _iota(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("iota", shape=type_.shape, axis=make.choose.below(len(type_.shape)), dtype=type_.dtype)


def _gather(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """As many slices as the result has, from a tensor of one to three."""
    axis = make.choose.below(len(type_.shape))
    source = _with_extent(type_, axis, make.choose.between(1, 3))
    return make.op("gather", source, t.Type("int32", (type_.shape[axis],)), axis=axis)


def _scatter_add(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """One or two slices added along an axis."""
    axis, count = make.choose.below(len(type_.shape)), make.choose.between(1, 2)
    return make.op("scatter_add", type_, t.Type("int32", (count,)), _with_extent(type_, axis, count), axis=axis)


def _slice(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A part of a tensor with one or two elements more along every axis."""
    starts, stops, whole = [], [], []
    for extent in _extents(type_):
        starts.append(make.choose.below(2))
        stops.append(starts[-1] + extent)
        whole.append(stops[-1] + make.choose.below(2))
    steps = [1] * len(whole) if make.choose.below(2) else None
    return make.op("slice", t.Type(type_.dtype, tuple(whole)), starts=starts, stops=stops, steps=steps)


def _extents(type_: t.Type) -> list[int]:
    """The extents of a type without names."""
    return [extent for extent in type_.shape if isinstance(extent, int)]


def _with_extent(type_: t.Type, axis: int, extent: int) -> t.Type:
    """The type with another extent along an axis."""
    return t.Type(type_.dtype, (*type_.shape[:axis], extent, *type_.shape[axis + 1 :]))


def _is_plain(type_: t.Type) -> bool:
    """A row-major tensor of numbers whose extents are known, none of them 0."""
    return is_row_major(type_) and type_.is_static and is_number(type_)


MOVEMENT = (
    Production(is_number, _absolute, 1, FEATURE),
    Production(is_number, _extreme, 2, FEATURE),
    Production(is_number, _select, 2, FEATURE),
    *(
        Production(_is_plain, make, 1, FEATURE)
        for make in (_reshape, _broadcast, _concat, _pad, _iota, _gather, _scatter_add, _slice)
    ),
)
