"""Literals, type annotations and attribute values: from syntax to Python values (spec sections 2.2, 3, 5.3)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import UnionType
from typing import Any, get_args, get_origin

from ..ir.attributes import COMMON_ATTRIBUTES, dtype_named, require_precision, require_profile
from ..ir.diagnostics import Category, did_you_mean
from ..ir.operation import AttributeValue, Refusal
from ..ir.text import read_extent, read_layout, sound_fragment, sound_layout, sound_memref, sound_mesh
from ..ir.types import ROW_MAJOR, Dim, Fragment, FunctionType, Layout, Memref, Mesh, Scalar, Tensor, Type
from ..numerics.formats import DTYPES, DType, dtype
from ..numerics.rounding import round_exact
from . import syntax as s

# Literals: from decimal digits to a number of the type of its place (AMB-LANG-54; usage, "Literals").
#
# The decimal value is taken exactly and rounded once. Digits and exponents may be of any length.


_DECADES = 400
"""The decades beyond all formats: none reaches 10**400, or rounds 10**-400 to anything but zero."""

_DIGITS = 1200
"""More digits than any midpoint between two values of fp64 has; one sticky digit replaces the rest."""


def exact(text: str) -> Fraction:
    """Return the value of an unsigned decimal literal; far beyond every format, any value equally far beyond."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Fraction(0)
    scale = _clamped(exponent) - len(fraction)
    if not -_DECADES <= len(digits) + scale <= _DECADES:
        return Fraction(10) ** (_DECADES if scale > 0 or len(digits) + scale > 0 else -_DECADES)
    significant = digits if len(digits) <= _DIGITS else f"{digits[:_DIGITS]}{int(bool(digits[_DIGITS:].strip('0')))}"
    return int(significant) * Fraction(10) ** (scale + len(digits) - len(significant))


def _clamped(exponent: str) -> int:
    sign, digits = re.fullmatch(r"([+-]?)0*([0-9]*)", exponent).groups()  # type: ignore[union-attr]
    return int(f"{sign}{digits if len(digits) <= 9 else '9' * 9}" if digits else 0)


def shown(text: str, negative: bool) -> str:
    """Return a literal in a message, its middle left out when it is long."""
    short = text if len(text) <= 40 else f"{text[:20]}...{text[-10:]}"
    return f"-{short}" if negative else short


def integer(text: str, negative: bool, dtype: DType) -> int:
    """Return an integer literal as an integer dtype. Refuse one that does not fit."""
    digits = text.lstrip("0") or "0"
    value = int(digits) if len(digits) <= 20 else 10**20
    value = -value if negative else value
    if not dtype.int_min <= value <= dtype.int_max:
        message = f"{shown(text, negative)} does not fit {dtype}"
        raise Refusal("types", message, f"a value from {dtype.int_min} to {dtype.int_max}", "AMB-LANG-54")
    return value


def floating(text: str, negative: bool, dtype: DType) -> float:
    """Return a literal as a float dtype, rounded once. Refuse one that rounds beyond the largest finite value."""
    value = round_exact(exact(text), dtype, overflow="nonfinite")
    if not math.isfinite(value):
        message = f"{shown(text, negative)} does not fit {dtype}"
        raise Refusal("types", message, f"a magnitude up to {dtype.storage.max_finite!r}", "AMB-LANG-54")
    return -value if negative else value


def number(text: str, negative: bool, is_float: bool, dtype: DType) -> int | float:
    """Return a numeric literal as `dtype`. Refuse a dtype that such a literal cannot become."""
    if dtype.kind == "float":
        return floating(text, negative, dtype)
    if dtype.kind != "int" or is_float:
        message = f"{'a float' if is_float else 'an integer'} literal is in the place of {dtype}"
        requirement = "a literal of the kind that its place asks for"
        remedy = "did you mean true or false?" if dtype.kind == "bool" else ""
        raise Refusal("types", message, requirement, "AMB-LANG-54", remedy)
    return integer(text, negative, dtype)


# Type annotations: from syntax to types, or a `Refusal` with the fault (spec sections 2.2, 3.1, 3.3).


Aliases = Mapping[str, Type]
"""The types named in a module, by name."""


def resolve_type(type_: s.TypeExpr, aliases: Aliases) -> Type:
    """Return the type that an annotation names. Raises `Refusal`."""
    match type_:
        case s.NamedType():
            return _resolve_name(type_.name, aliases)
        case s.TensorType():
            shape = tuple(resolve_dim(dim) for dim in type_.shape)
            dtype = dtype_named(type_.dtype)
            return Tensor(shape, dtype, resolve_layout(type_.layout) if type_.layout else ROW_MAJOR)
        case s.MemrefType():
            return _resolve_memref(type_)
        case s.FragmentType():
            return _resolve_fragment(type_)
        case s.MeshType():
            return resolve_mesh(type_)
        case s.FunctionType():
            parameters = tuple(resolve_type(parameter, aliases) for parameter in type_.parameters)
            return FunctionType(parameters, resolve_type(type_.result, aliases))


def _resolve_name(name: str, aliases: Aliases) -> Type:
    """Return a dtype, or an alias declared above (AMB-LANG-50, AMB-LANG-99)."""
    if name in aliases:
        return aliases[name]
    if name not in DTYPES and aliases:
        allowed = f"a dtype, or a type declared above: {', '.join(aliases)}"
        remedy = did_you_mean(name, [*DTYPES, *aliases])
        raise Refusal("types", f"unknown type {name!r}", allowed, "AMB-LANG-50", remedy)
    return Scalar(dtype_named(name))


def _resolve_memref(type_: s.MemrefType) -> Memref:
    shape = tuple(resolve_dim(dim) for dim in type_.shape)
    return sound_memref(shape, dtype_named(type_.dtype), type_.address_space or "global")


def _resolve_fragment(type_: s.FragmentType) -> Fragment:
    m, n, k = (read_extent(text) for text in (type_.m, type_.n, type_.k))
    layout = resolve_layout(type_.layout) if type_.layout else None
    return sound_fragment(m, n, k, dtype_named(type_.dtype), layout)


def resolve_mesh(type_: s.MeshType) -> Mesh:
    """Return a mesh with one extent for each of its distinct axes (LANG-09-01, AMB-LANG-82)."""
    return sound_mesh(type_.axes, tuple(map(read_extent, type_.shape)))


def resolve_dim(dim: s.Dimension) -> Dim:
    """Return an extent, a name or `?`."""
    return read_extent(dim.text) if dim.text.isdecimal() else dim.text


def resolve_layout(spec: s.LayoutSpec) -> Layout:
    """Return a known layout with exactly its parameters (LANG-02.3-39, -40, -81, -82)."""
    return sound_layout(spec.name, [(name, read_extent(text)) for name, text in spec.parameters])


# Attribute values and numeric literals: from syntax to Python values (AMB-LANG-14, -15, -21, -22, -54).


COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})

KINDS = {DType: "a dtype", tuple: "a list", str: "a word", bool: "true or false", float: "a number", int: "an integer"}


@dataclass(frozen=True)
class Number:
    """A numeric literal with the signs before it."""

    literal: s.IntLiteral | s.FloatLiteral
    negative: bool


def as_number(expr: s.Expr | s.AttributeValue) -> Number | None:
    """Return the number of a literal, which may be in parentheses or after signs; else None."""
    negative = False
    while True:
        match expr:
            case s.IntLiteral() | s.FloatLiteral():
                return Number(expr, negative)
            case s.Group():
                expr = expr.inner
            case s.Unary():
                negative = negative != (expr.operator == "-")
                expr = expr.operand
            case _:
                return None


def is_untyped(expr: s.Expr) -> bool:
    """True if an expression consists of numeric literals only, and so takes its dtype from its place."""
    match expr:
        case s.Group():
            return is_untyped(expr.inner)
        case s.Unary():
            return is_untyped(expr.operand)
        case s.Binary():
            arithmetic = expr.operator not in COMPARISONS and expr.operator != "@"
            return arithmetic and is_untyped(expr.right) and is_untyped(expr.left)
    return isinstance(expr, s.IntLiteral | s.FloatLiteral)


def default_dtype(*exprs: s.Expr) -> DType:
    """Return fp32 if a float literal occurs, else int32."""
    return dtype("fp32" if any(map(_has_float, exprs)) else "int32")


def _has_float(expr: s.Expr) -> bool:
    match expr:
        case s.Group():
            return _has_float(expr.inner)
        case s.Unary():
            return _has_float(expr.operand)
        case s.Binary():
            return _has_float(expr.right) or _has_float(expr.left)
    return isinstance(expr, s.FloatLiteral)


def attribute_value(value: s.Expr | s.ListValue, kind: Any, element: DType | None = None) -> AttributeValue:
    """Return the value of an attribute, as the kind that its annotation states; a float becomes one of `element`.

    Raises `Refusal`.
    """
    choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    lists = [choice for choice in choices if get_origin(choice) is tuple]
    numeral = None if isinstance(value, s.ListValue) else as_number(value)
    if DType in choices and isinstance(value, s.Name | s.StringLiteral):
        return dtype_named(word_of(value))
    if lists and isinstance(value, s.ListValue):
        inner, *_ = get_args(lists[0])
        inner = kind if inner is Any else inner
        return tuple(attribute_value(item, inner, element) for item in value.items)
    if str in choices and isinstance(value, s.Name | s.StringLiteral):
        return word_of(value)
    if bool in choices and isinstance(value, s.BoolLiteral) and (element is None or element.kind == "bool"):
        return value.value
    if numeral and int in choices and float not in choices and isinstance(numeral.literal, s.IntLiteral):
        return int(number_of(numeral, dtype("int64")))
    if numeral and float in choices:
        return number_of(numeral, element or dtype("fp64"))
    kinds = [get_origin(choice) or choice for choice in choices]
    phrase = " or ".join(word for accepted, word in KINDS.items() if accepted in kinds)
    raise Refusal("types", f"expected {phrase}", phrase, "LANG-02.3-13", "")


def element_like(operand: DType, value: s.Expr | s.ListValue, kind: Any) -> DType | None:
    """Return the dtype of a number beside an operand, such as op.pad's `value`: the operand's, if the number fits."""
    numeral = None if isinstance(value, s.ListValue) else as_number(value)
    choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if numeral is None or not {int, float} <= set(choices):
        return None
    if operand.kind == "int":
        return operand if isinstance(numeral.literal, s.IntLiteral) else None
    if operand.kind == "complex":
        return operand.component
    return operand if operand.kind == "float" else None


def plain_value(value: s.Expr | s.ListValue) -> AttributeValue:
    """Return the value of an attribute that takes any kind of value. Raises `Refusal`."""
    if isinstance(value, s.ListValue):
        return tuple(plain_value(item) for item in value.items)
    numeral = as_number(value)
    if numeral:
        return number_of(numeral, dtype("int64" if isinstance(numeral.literal, s.IntLiteral) else "fp64"))
    return attribute_value(value, str | bool)


def number_of(numeral: Number, dtype: DType) -> int | float:
    """Return a literal as a number of its place's dtype. Raises `Refusal`."""
    text = numeral.literal.text
    negative = numeral.negative != text.startswith("-")
    return number(text.lstrip("+-"), negative, isinstance(numeral.literal, s.FloatLiteral), dtype)


def word_of(value: object) -> str:
    """Return the word of an attribute value, bare or quoted, or ""."""
    if isinstance(value, s.Name):
        return value.text
    return value.value if isinstance(value, s.StringLiteral) else ""


# The source form of the attributes that any operation may carry (section 5.3); `ir.common_attributes` verifies them.
#
# `shape`, `dtype`, `layout`, `mesh_axes` (AMB-LANG-60), `precision` and `numerics_profile` (AMB-LANG-51, AMB-LANG-83).


def read_common(entries: Sequence[s.Keyword | s.Attribute]) -> dict[str, AttributeValue]:
    """Return the common attributes among the entries given by name. Raises `Refusal`."""
    values: dict[str, AttributeValue] = {}
    for key in entries:
        if key.name in COMMON_ATTRIBUTES:
            value = _read(key)
            if values.setdefault(key.name, value) != value:
                category: Category = "numerics" if key.name == "numerics_profile" else "types"
                message = f"{key.name} is given twice and differs"
                raise Refusal(category, message, "one value of an attribute", "LANG-02.3-32")
    return values


def _read(entry: s.Keyword | s.Attribute) -> AttributeValue:
    match entry.name:
        case "mesh_axes" if not isinstance(entry.value, s.ListValue):
            return (attribute_value(entry.value, str),)
        case "layout":
            return read_layout(str(attribute_value(entry.value, str))).text
        case "precision":
            return require_precision(word_of(entry.value))
        case "numerics_profile":
            return require_profile(word_of(entry.value))
        case _:
            return attribute_value(entry.value, COMMON_ATTRIBUTES[entry.name])
