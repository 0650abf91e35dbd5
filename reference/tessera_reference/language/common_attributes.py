"""The source form of the attributes that any operation may carry (section 5.3); `ir.common_attributes` verifies them.

`shape`, `dtype`, `layout`, `mesh_axes` (AMB-LANG-60), `precision` and `numerics_profile` (AMB-LANG-51, AMB-LANG-83).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.layouts import known_layout
from ..ir.common_attributes import PROFILES
from ..ir.diagnostics import Span
from ..ir.operation import AttributeValue, Refusal, require
from ..ir.spelling import did_you_mean
from ..numerics.formats import DType
from . import syntax as s
from .annotations import resolve_dtype
from .values import attribute_value, word_of

COMMON_ATTRIBUTES = ("shape", "dtype", "layout", "mesh_axes", "precision", "numerics_profile")


def read_common(given: Sequence[s.Keyword | s.Attribute], span: Span) -> dict[str, AttributeValue]:
    """The common attributes among what is given by name. Raises `Refusal`."""
    values: dict[str, AttributeValue] = {}
    for each in given:
        if each.name in COMMON_ATTRIBUTES:
            value = _read(each)
            require(
                values.setdefault(each.name, value) == value,
                "numerics" if each.name == "numerics_profile" else "types",
                f"{each.name} is given twice and differs",
                "one value of an attribute",
                "LANG-02.3-32",
            )
    return values


def _read(given: s.Keyword | s.Attribute) -> AttributeValue:
    match given.name:
        case "shape":
            return attribute_value(given.value, tuple[int, ...])
        case "dtype":
            return attribute_value(given.value, DType)
        case "mesh_axes":
            words = given.value.items if isinstance(given.value, s.ListValue) else (given.value,)
            return tuple(attribute_value(word, str) for word in words)
        case "layout":
            word = attribute_value(given.value, str)
            return known_layout(str(word)).text
        case "precision":
            return precision(given.value)
        case _:
            return profile(given.value)


def profile(value: s.Expr | s.ListValue) -> str:
    """A numerics profile by its name (LANG-10-04). Raises `Refusal`."""
    word = word_of(value)
    require(
        word in PROFILES,
        "numerics",
        f"{word!r} is no numerics profile" if word else "this is no numerics profile",
        f"one of {', '.join(PROFILES)}",
        "LANG-10-04",
        did_you_mean(word, PROFILES),
    )
    return word


def precision(value: s.Expr | s.ListValue) -> str:
    """The dtype that a precision annotation names (LANG-02-09, LANG-05.3-05). Raises `Refusal`."""
    try:
        held = resolve_dtype(word_of(value))
    except Refusal as refusal:
        raise Refusal("numerics", "this is no precision", "a float dtype", "LANG-02-09", refusal.remedy) from None
    require(held.kind in ("float", "complex"), "numerics", f"{held} is no precision", "a float dtype", "LANG-02-09")
    return held.name
