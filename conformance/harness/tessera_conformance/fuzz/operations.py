"""Calls of operations, each with the types that it takes and gives, and the feature that decides whether it is used.

The core's are those that the documents name (AMB-LANG-101).
"""

from __future__ import annotations

from collections.abc import Callable

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import Expressions, Production

ELEMENTARY = "exp exp2 expm1 log log2 log1p sin cos tan sinh cosh tanh erf sqrt rsqrt reciprocal".split()
ACTIVATIONS = ("sigmoid", "silu", "gelu")
REDUCTIONS = {"float": ("sum", "mean", "max", "min", "prod", "logsumexp"), "int": ("sum", "max", "min", "prod")}

Make = Callable[[Expressions, t.Type, bool], t.Expr]


def _is_float(type_: t.Type) -> bool:
    return dtypes.kind_of(type_.dtype) == "float"


def _is_number(type_: t.Type) -> bool:
    return dtypes.kind_of(type_.dtype) in ("float", "int")


def _is_plain_tensor(type_: t.Type) -> bool:
    return bool(type_.shape) and type_.layout == "row_major"


def _of_one_float(names: tuple[str, ...] | list[str]) -> Make:
    """A function of one operand of the wanted type."""

    def made(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
        return t.Call(f"op.{make.choose.pick(names)}", (make.expr(type_, False),))

    return made


def _power(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return t.Call("op.pow", (make.expr(type_, False), make.expr(type_, False)))


def _softmax(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    rank = len(type_.shape)
    axis = make.choose.between(-rank, rank - 1)
    attributes = (_number("axis", axis),) if make.choose.below(2) else ()
    return t.Call("op.softmax", (make.expr(type_, False),), attributes)


def _reduction(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A reduction whose result is the wanted type: of a tensor with one axis more, or with more along a kept one."""
    names = REDUCTIONS[dtypes.kind_of(type_.dtype)]
    operand, attributes = _reduced(make, type_)
    return t.Call(f"op.{make.choose.pick(names)}", (make.expr(operand, False),), attributes)


def _largest(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    operand, attributes = _reduced(make, t.Type(make.scope.dtype(), type_.shape))
    return t.Call("op.argmax", (make.expr(operand, False),), attributes)


def _reduced(make: Expressions, type_: t.Type) -> tuple[t.Type, tuple[t.Attribute, ...]]:
    """The operand of a reduction to the type, and its attributes."""
    choose = make.choose
    extent = choose.between(1, 4)
    kept = [place for place, size in enumerate(type_.shape) if size == 1]
    if kept and choose.below(2):
        axis, rank = choose.pick(kept), len(type_.shape)
        shape = (*type_.shape[:axis], extent, *type_.shape[axis + 1 :])
        keep: tuple[t.Attribute, ...] = (t.Attribute("keepdims", t.Word("true")),)
    else:
        axis, rank = choose.below(len(type_.shape) + 1), len(type_.shape) + 1
        shape = (*type_.shape[:axis], extent, *type_.shape[axis:])
        keep = (t.Attribute("keepdims", t.Word("false")),) if choose.chance(4) else ()
    written = axis - rank if choose.chance(3) else axis
    return t.Type(type_.dtype, shape), (_number("axis", written), *keep)


def _transpose(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Axes reversed, or in the order of `perm`."""
    axes = list(range(len(type_.shape)))
    if make.choose.below(2):
        return t.Call("op.transpose", (make.expr(t.Type(type_.dtype, type_.shape[::-1]), False),))
    order = make.choose.shuffled(axes)
    shape = tuple(type_.shape[order.index(axis)] for axis in axes)
    attribute = t.Attribute("perm", t.Word(f"[{', '.join(map(str, order))}]"))
    return t.Call("op.transpose", (make.expr(t.Type(type_.dtype, shape), False),), (attribute,))


def _cast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """From any numeric dtype; `overflow` concerns fp8 (AMB-LANG-105)."""
    choose = make.choose
    dtype = choose.pick([each for each in dtypes.NUMBERS if each != type_.dtype])
    attributes = [t.Attribute("dtype", t.Word(type_.dtype))]
    if type_.dtype.startswith("fp8") and choose.below(2):
        attributes.append(t.Attribute("overflow", t.Word(choose.pick(('"saturate"', '"nonfinite"')))))
    return t.Call("op.cast", (make.expr(t.Type(dtype, type_.shape, type_.layout), False),), tuple(attributes))


def _wider_product(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A product of bf16 whose result is asked for in fp32 (AMB-LANG-102)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.scope.extents)
    operands = (t.Type("bf16", (*batch, m, k)), t.Type("bf16", (*batch, k, n)))
    left, right = (make.expr(operand, False) for operand in operands)
    return t.Call("op.matmul", (left, right), (t.Attribute("out", t.Word(type_.dtype)),))


def _fourier(name: str) -> Make:
    def made(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
        norms = ("ortho", "backward", "forward")
        chosen = make.choose.pick(norms)
        attributes = (t.Attribute("norm", t.Word(f'"{chosen}"')),) if make.choose.below(2) else ()
        return t.Call(f"op.{name}", (make.expr(type_, False),), attributes)

    return made


def _number(name: str, value: int) -> t.Attribute:
    return t.Attribute(name, t.Word(str(value)))


def _has_elements(type_: t.Type) -> bool:
    return _is_plain_tensor(type_) and 0 not in type_.shape


def _is_complex(type_: t.Type) -> bool:
    return _has_elements(type_) and dtypes.kind_of(type_.dtype) == "complex"


def _is_reduced(type_: t.Type) -> bool:
    small = len(type_.shape) < 3 and type_.layout == "row_major" and 0 not in type_.shape
    return small and dtypes.kind_of(type_.dtype) in REDUCTIONS


OPERATIONS = (
    Production(lambda type_: _is_float(type_) and _has_elements(type_), _softmax, 2),
    Production(_is_float, _of_one_float(ELEMENTARY), 2, "elementary-functions"),
    Production(_is_float, _power, 1, "elementary-functions"),
    Production(_is_float, _of_one_float(ACTIVATIONS), 1, "activations"),
    Production(_is_float, _of_one_float(["relu"]), 1, "tensor-ops"),
    Production(_is_reduced, _reduction, 3, "reductions"),
    Production(lambda type_: _is_reduced(type_) and type_.dtype == "int32", _largest, 1, "reductions"),
    Production(
        lambda type_: _is_plain_tensor(type_) and len(type_.shape) >= 2 and _is_number(type_),
        _transpose,
        2,
        "tensor-ops",
    ),
    Production(_is_number, _cast, 3, "casts"),
    Production(
        lambda type_: type_.dtype == "fp32" and len(type_.shape) >= 2 and type_.layout == "row_major",
        _wider_product,
        1,
        "matmul-out",
    ),
    Production(_is_complex, _fourier("fft"), 8, "extra-dtypes"),
    Production(_is_complex, _fourier("ifft"), 4, "inverse-fft"),
)
