"""Attribute values and numeric literals: from syntax to Python values (AMB-LANG-14, -15, -21, -22, -54)."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Any, get_args, get_origin

from ..ir.operation import AttributeValue, Refusal
from ..numerics.formats import DType, dtype
from . import syntax as s
from .annotations import resolve_dtype
from .literals import number

COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})

KINDS = {DType: "a dtype", tuple: "a list", str: "a word", bool: "true or false", float: "a number", int: "an integer"}


@dataclass(frozen=True)
class Number:
    """A numeric literal with the signs before it."""

    literal: s.IntLiteral | s.FloatLiteral
    negative: bool


def as_number(expr: s.Expr | s.AttributeValue) -> Number | None:
    """The number of a literal that may stand in parentheses or behind signs."""
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
    """Whether an expression is made of numeric literals only, and so takes its dtype from its place."""
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
    """fp32 if a float literal occurs, else int32."""
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
    """What an attribute is given, as the kind that its annotation says; a float becomes one of `element`.

    Raises `Refusal`.
    """
    choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    lists = [choice for choice in choices if get_origin(choice) is tuple]
    found = None if isinstance(value, s.ListValue) else as_number(value)
    if DType in choices and isinstance(value, s.Name | s.StringLiteral):
        return resolve_dtype(word_of(value))
    if lists and isinstance(value, s.ListValue):
        inner, *_ = get_args(lists[0])
        inner = kind if inner is Any else inner
        return tuple(attribute_value(item, inner, element) for item in value.items)
    if str in choices and isinstance(value, s.Name | s.StringLiteral):
        return word_of(value)
    if bool in choices and isinstance(value, s.BoolLiteral) and (element is None or element.kind == "bool"):
        return value.value
    if found and int in choices and float not in choices and isinstance(found.literal, s.IntLiteral):
        return int(number_of(found, dtype("int64")))
    if found and float in choices:
        return number_of(found, element or dtype("fp64"))
    known = [get_origin(choice) or choice for choice in choices]
    phrase = " or ".join(word for each, word in KINDS.items() if each in known)
    raise Refusal("types", f"expected {phrase}", phrase, "LANG-02.3-13", "")


def plain_value(value: s.Expr | s.ListValue) -> AttributeValue:
    """The value of an attribute that takes any kind of value. Raises `Refusal`."""
    if isinstance(value, s.ListValue):
        return tuple(plain_value(item) for item in value.items)
    found = as_number(value)
    if found:
        return number_of(found, dtype("int64" if isinstance(found.literal, s.IntLiteral) else "fp64"))
    return attribute_value(value, str | bool)


def number_of(found: Number, wanted: DType) -> int | float:
    """A literal as a number of the dtype that its place asks for. Raises `Refusal`."""
    text = found.literal.text
    negative = found.negative != text.startswith("-")
    return number(text.lstrip("+-"), negative, isinstance(found.literal, s.FloatLiteral), wanted)


def word_of(value: object) -> str:
    """The word of an attribute value, bare or quoted; empty if it is no word."""
    if isinstance(value, s.Name):
        return value.text
    return value.value if isinstance(value, s.StringLiteral) else ""
