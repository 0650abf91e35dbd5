"""Calls of operations that choose among elements or move them, beside those of `operations` (AMB-LANG-165)."""

from __future__ import annotations

from math import prod

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import Expressions, Production

FEATURE = "tensor-ops"


def _absolute(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return t.Call("op.abs", (make.expr(type_, False),))


def _extreme(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """The larger or smaller of two, or one kept between two bounds."""
    choose = make.choose
    if choose.chance(3):
        return t.Call("op.clamp", tuple(make.expr(type_, False) for _ in range(3)))
    name = choose.pick(("op.maximum", "op.minimum"))
    return t.Call(name, (make.expr(type_, False), make.expr(type_, False)))


def _select(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    condition = t.Type("bool", type_.shape, type_.layout)
    parts = (make.expr(condition, False), make.expr(type_, False), make.expr(type_, False))
    return t.Call("op.select", parts)


def _reshape(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """From the flat tensor, or from one with an axis of one element more; one extent may be left open."""
    whole = [extent for extent in type_.shape if isinstance(extent, int)]
    operand = (prod(whole),) if make.choose.below(2) else (*whole, 1)
    extents = list(whole)
    if make.choose.chance(3):
        extents[make.choose.below(len(extents))] = -1
    return t.Call("op.reshape", (make.expr(t.Type(type_.dtype, operand), False),), (_extents("shape", extents),))


def _broadcast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    whole = [extent for extent in type_.shape if isinstance(extent, int)]
    small = [1 if make.choose.below(2) else extent for extent in whole][make.choose.below(len(whole) + 1) :]
    return t.Call("op.broadcast", (make.expr(t.Type(type_.dtype, tuple(small)), False),), (_extents("shape", whole),))


def _concat(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Two parts along an axis."""
    axis = make.choose.below(len(type_.shape))
    extent = type_.shape[axis]
    assert isinstance(extent, int)
    first = make.choose.between(1, max(extent - 1, 1))
    extents = (first, extent - first) if extent > 1 else (1,)
    parts = [t.Type(type_.dtype, (*type_.shape[:axis], each, *type_.shape[axis + 1 :])) for each in extents]
    return t.Call("op.concat", tuple(make.expr(part, False) for part in parts), (_number("axis", axis),))


def _pad(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A frame of zeros around something smaller."""
    low, high, inner = [], [], []
    for extent in type_.shape:
        assert isinstance(extent, int)
        before = make.choose.below(min(extent, 2))
        after = make.choose.below(min(extent - before, 2))
        low.append(before)
        high.append(after)
        inner.append(extent - before - after)
    operand = make.expr(t.Type(type_.dtype, tuple(inner)), False)
    return t.Call("op.pad", (operand,), (_extents("low", low), _extents("high", high)))


def _iota(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    whole = [extent for extent in type_.shape if isinstance(extent, int)]
    attributes = (_extents("shape", whole), _number("axis", make.choose.below(len(whole))))
    return t.Call("op.iota", (), (*attributes, t.Attribute("dtype", t.Word(type_.dtype))))


def _gather(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """As many slices as the result has, from a tensor of one to three."""
    axis = make.choose.below(len(type_.shape))
    source = (*type_.shape[:axis], make.choose.between(1, 3), *type_.shape[axis + 1 :])
    indices = t.Type("int32", (type_.shape[axis],))
    parts = (make.expr(t.Type(type_.dtype, source), False), make.expr(indices, False))
    return t.Call("op.gather", parts, (_number("axis", axis),))


def _scatter_add(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """One or two slices added along an axis."""
    axis, count = make.choose.below(len(type_.shape)), make.choose.between(1, 2)
    updates = t.Type(type_.dtype, (*type_.shape[:axis], count, *type_.shape[axis + 1 :]))
    operands = (type_, t.Type("int32", (count,)), updates)
    return t.Call("op.scatter_add", tuple(make.expr(each, False) for each in operands), (_number("axis", axis),))


def _slice(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A part of a tensor with one or two elements more along every axis."""
    starts, stops, whole = [], [], []
    for extent in type_.shape:
        assert isinstance(extent, int)
        starts.append(make.choose.below(2))
        stops.append(starts[-1] + extent)
        whole.append(stops[-1] + make.choose.below(2))
    operand = make.expr(t.Type(type_.dtype, tuple(whole)), False)
    steps = (_extents("steps", [1] * len(whole)),) if make.choose.below(2) else ()
    return t.Call("op.slice", (operand,), (_extents("starts", starts), _extents("stops", stops), *steps))


def _extents(name: str, extents: list[int]) -> t.Attribute:
    return t.Attribute(name, t.Word(f"[{', '.join(map(str, extents))}]"))


def _number(name: str, value: int) -> t.Attribute:
    return t.Attribute(name, t.Word(str(value)))


def _is_number(type_: t.Type) -> bool:
    return dtypes.kind_of(type_.dtype) in ("float", "int")


def _is_plain(type_: t.Type) -> bool:
    """A row-major tensor of numbers whose extents are known, none of them 0."""
    known = bool(type_.shape) and type_.is_static and type_.layout == "row_major" and 0 not in type_.shape
    return known and _is_number(type_)


MOVEMENT = (
    Production(_is_number, _absolute, 1, FEATURE),
    Production(_is_number, _extreme, 2, FEATURE),
    Production(_is_number, _select, 2, FEATURE),
    Production(_is_plain, _reshape, 1, FEATURE),
    Production(_is_plain, _broadcast, 1, FEATURE),
    Production(_is_plain, _concat, 1, FEATURE),
    Production(_is_plain, _pad, 1, FEATURE),
    Production(_is_plain, _iota, 1, FEATURE),
    Production(_is_plain, _gather, 1, FEATURE),
    Production(_is_plain, _scatter_add, 1, FEATURE),
    Production(_is_plain, _slice, 1, FEATURE),
)
