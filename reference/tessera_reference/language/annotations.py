"""Type annotations: from syntax to types, with what is wrong about them (spec sections 2.2, 3.1, 3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ..ir.operation import require
from ..ir.types import LAYOUTS, ROW_MAJOR, Dim, Layout, Scalar, Tensor, Type
from ..numerics.formats import DTYPES, DType
from . import syntax as s

LARGEST_EXTENT = 2**63 - 1
"""Extents are 64-bit signed integers, as everywhere at the ABI."""


def did_you_mean(given: str, known: Iterable[object], template: str = "{}") -> str:
    """A remedy naming the nearest spelling, or nothing."""
    names = [str(name) for name in known]
    near = [name for name in names if name == given.lower()] or get_close_matches(given, names, 1, 0.6)
    return f"did you mean {template.format(near[0])}?" if near else ""


def resolve_dtype(name: str) -> DType:
    """A dtype by its name (LANG-02.2-01 to -13)."""
    require(
        name in DTYPES,
        "types",
        f"unknown dtype {name!r}",
        f"one of {', '.join(DTYPES)}",
        "LANG-02.3-38",
        did_you_mean(name, DTYPES),
    )
    return DTYPES[name]


def resolve_type(type_: s.TypeExpr) -> Type:
    """The type an annotation names. Raises `Refusal`; other types than these are not carried out and never get here."""
    if isinstance(type_, s.NamedType):
        return Scalar(resolve_dtype(type_.name))
    assert isinstance(type_, s.TensorType)
    shape = tuple(resolve_dim(dim) for dim in type_.shape)
    dtype = resolve_dtype(type_.dtype)
    return Tensor(shape, dtype, resolve_layout(type_.layout) if type_.layout else ROW_MAJOR)


def resolve_dim(dim: s.Dimension) -> Dim:
    """An extent, a name or `?`."""
    if not dim.text.isdecimal():
        return dim.text
    digits = dim.text.lstrip("0") or "0"
    require(
        len(digits) <= 19 and int(digits) <= LARGEST_EXTENT,
        "shapes",
        "an extent is too large",
        f"extents up to {LARGEST_EXTENT}",
        "LANG-02.3-37",
    )
    return int(digits)


def resolve_layout(spec: s.LayoutSpec) -> Layout:
    """A known layout with exactly its parameters (LANG-02.3-39, -40, -81, -82)."""
    require(
        spec.name in LAYOUTS,
        "layouts",
        f"unknown layout {spec.name!r}",
        f"one of {', '.join(LAYOUTS)}",
        "LANG-02.3-39",
        did_you_mean(spec.name, LAYOUTS),
    )
    names = [name for name, _ in spec.parameters]
    wanted = LAYOUTS[spec.name]
    require(
        sorted(names) == sorted(wanted),
        "layouts",
        f"layout {spec.name} has parameters ({', '.join(names)})",
        f"{spec.name}({', '.join(f'{name}=...' for name in sorted(wanted))})" if wanted else "no parameters",
        "LANG-02.3-82",
    )
    sizes = {name: resolve_dim(s.Dimension(spec.span, text)) for name, text in spec.parameters}
    require(0 not in sizes.values(), "layouts", "a block has size 0", "block sizes of at least 1", "LANG-02.3-82")
    return Layout(spec.name, tuple(sorted((name, int(size)) for name, size in sizes.items())))
