"""Calls of the operations of neural networks: norms, attention, random numbers, dropout."""

from __future__ import annotations

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.dtypes import is_float, is_row_major
from tessera_conformance.fuzz.expressions import Expressions, Production

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
