"""Indices and slices: `X[i, a:b:s]`, to read and to assign (spec section 2.3; AMB-LANG-23, AMB-LANG-96)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ir.module import Value
from ..ir.types import Scalar
from ..numerics.formats import DType, dtype
from . import syntax as s
from .scope import Findings
from .values import as_number

LowerExpression = Callable[[s.Expr, DType], Value | None]
"""Gives the value of an expression; literals in it get the dtype. None after a reported error."""


@dataclass(frozen=True)
class Slices:
    """What stands in the brackets: a text for each dimension, in which `$k` is the k-th of `bounds`."""

    spec: tuple[str, ...]
    bounds: tuple[Value, ...]


def lower_slices(lower: LowerExpression, findings: Findings, slices: Sequence[s.Expr | s.SliceRange]) -> Slices | None:
    """Indices and slices as `graph.slicing` takes them; None after a reported error."""
    bounds: list[Value] = []
    spec = []
    for each in slices:
        if isinstance(each, s.SliceRange):
            parts = [_part(lower, findings, part, bounds) for part in (each.start, each.stop, each.step)]
            spec.append(None if None in parts else ":".join(str(part) for part in parts).removesuffix(":"))
        else:
            spec.append(_part(lower, findings, each, bounds))
    texts = tuple(text for text in spec if text is not None)
    return Slices(texts, tuple(bounds)) if len(texts) == len(spec) else None


def _part(lower: LowerExpression, findings: Findings, expr: s.Expr | None, bounds: list[Value]) -> str | None:
    """One number of an index or slice: digits where it is a literal, a bound where it is computed."""
    if expr is None:
        return ""
    found = as_number(expr)
    digits = found.literal.text.lstrip("0") or "0" if found and isinstance(found.literal, s.IntLiteral) else ""
    if found and 0 < len(digits) <= 18:
        return f"{'-' if found.negative and digits != '0' else ''}{digits}"
    value = lower(expr, dtype("int32"))
    if value is None:
        return None
    if value.type != Scalar(dtype("int32")):
        findings.report(
            "types",
            f"an index is {value.type}, not int32",
            expr.span,
            requirement="an int32 scalar",
            clause="AMB-LANG-96",
            remedy="cast it with op.cast",
        )
        return None
    bounds.append(value)
    return f"${len(bounds) - 1}"
