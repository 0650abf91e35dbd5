"""Calls of operations that choose among elements or move them, beside those of `operations` (AMB-LANG-165)."""

from __future__ import annotations

from math import prod

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.dtypes import is_number, is_row_major
from tessera_conformance.fuzz.expressions import Expressions, Production

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
