"""Calls of the operations that layers of networks are made of: norms, attention, random numbers, dropout."""

from __future__ import annotations

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import Expressions, Production

DRAWN = ("fp32", "bf16", "fp16", "fp64")
"""Dtypes that random numbers are drawn in."""


def _norm(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """op.layer_norm or op.rms_norm along an axis (AMB-LANG-170)."""
    choose, rank = make.choose, len(type_.shape)
    axis = choose.between(-rank, -1)
    vector = t.Type(type_.dtype, (type_.shape[axis],))
    operands = [type_, vector, vector][: 3 if choose.below(2) else 2]
    attributes = [t.Attribute("axis", t.Word(str(axis)))] if axis != -1 or choose.below(2) else []
    if choose.chance(3):
        attributes.append(t.Attribute("eps", t.Word("1e-3")))
    name = "op.layer_norm" if len(operands) == 3 else "op.rms_norm"
    return t.Call(name, tuple(make.expr(each, False) for each in operands), tuple(attributes))


def _attention(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """op.flash_attention of the result's length, over one to three keys (AMB-LANG-177)."""
    choose = make.choose
    *batch, length, width = type_.shape
    causal = choose.chance(3)
    keys, depth = length if causal else choose.between(1, 3), choose.between(1, 3)
    shapes = ((*batch, length, depth), (*batch, keys, depth), (*batch, keys, width))
    attributes = [t.Attribute("causal", t.Word("true"))] if causal else []
    if choose.chance(3):
        attributes.append(t.Attribute("block", t.Word("2")))
    if choose.chance(3):
        attributes.append(t.Attribute("scale", t.Word("0.5")))
    operands = tuple(make.expr(t.Type(type_.dtype, shape), False) for shape in shapes)
    return t.Call("op.flash_attention", operands, tuple(attributes))


def _drawn(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Random numbers of the wanted shape, from the next stream or from one that is named (AMB-LANG-171)."""
    shape = t.Attribute("shape", t.Word(f"[{', '.join(map(str, type_.shape))}]"))
    attributes = (shape, t.Attribute("dtype", t.Word(type_.dtype)), *_source(make))
    return t.Call(make.choose.pick(("op.uniform", "op.normal")), (), attributes)


def _dropout(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    rate = t.Attribute("rate", t.Word(make.choose.pick(("0.5", "0.1", "0.0"))))
    return t.Call("op.dropout", (make.expr(type_, False),), (rate, *_source(make)))


def _source(make: Expressions) -> tuple[t.Attribute, ...]:
    if not make.choose.chance(3):
        return ()
    return (t.Attribute("seed", t.Word("7")), t.Attribute("stream", t.Word("3")))


def _is_float_tensor(type_: t.Type) -> bool:
    plain = bool(type_.shape) and type_.layout == "row_major" and 0 not in type_.shape
    return plain and dtypes.kind_of(type_.dtype) == "float"


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
