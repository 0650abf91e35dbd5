"""Type annotations: from syntax to types, or a `Refusal` that says what is wrong (spec sections 2.2, 3.1, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.operation import Refusal, require
from ..ir.spelling import did_you_mean
from ..ir.type_text import ADDRESS_SPACES, read_extent
from ..ir.types import LAYOUTS, ROW_MAJOR, Dim, Fragment, FunctionType, Layout, Memref, Mesh, Scalar, Tensor, Type
from ..numerics.formats import DTYPES, DType
from . import syntax as s

Aliases = Mapping[str, Type]
"""The types that a module has named, by name."""


def resolve_dtype(name: str) -> DType:
    """A dtype by its name (LANG-02.2-01 to -13)."""
    if name not in DTYPES:
        message, known = f"unknown dtype {name!r}", f"one of {', '.join(DTYPES)}"
        raise Refusal("types", message, known, "LANG-02.3-38", did_you_mean(name, DTYPES))
    return DTYPES[name]


def resolve_type(type_: s.TypeExpr, aliases: Aliases) -> Type:
    """The type an annotation names. Raises `Refusal`."""
    match type_:
        case s.NamedType():
            return _resolve_name(type_.name, aliases)
        case s.TensorType():
            shape = tuple(resolve_dim(dim) for dim in type_.shape)
            dtype = resolve_dtype(type_.dtype)
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
    """A dtype or an alias declared above (AMB-LANG-50, AMB-LANG-99)."""
    if name in aliases:
        return aliases[name]
    if name not in DTYPES and aliases:
        known = f"a dtype, or a type declared above: {', '.join(aliases)}"
        remedy = did_you_mean(name, [*DTYPES, *aliases])
        raise Refusal("types", f"unknown type {name!r}", known, "AMB-LANG-50", remedy)
    return Scalar(resolve_dtype(name))


def _resolve_memref(type_: s.MemrefType) -> Memref:
    space = type_.address_space or "global"
    require(
        space in ADDRESS_SPACES,
        "types",
        f"a memref does not lie in address space {space!r}",
        f"addrspace={' or '.join(ADDRESS_SPACES)}",
        "LANG-02.2-19",
        did_you_mean(space, ADDRESS_SPACES),
    )
    return Memref(tuple(resolve_dim(dim) for dim in type_.shape), resolve_dtype(type_.dtype), space)


def _resolve_fragment(type_: s.FragmentType) -> Fragment:
    m, n, k = (read_extent(text) for text in (type_.m, type_.n, type_.k))
    require(min(m, n, k) > 0, "tile", "a fragment has an extent of 0", "extents of at least 1", "LANG-02.2-15")
    return Fragment(m, n, k, resolve_dtype(type_.dtype), resolve_layout(type_.layout) if type_.layout else None)


def resolve_mesh(type_: s.MeshType) -> Mesh:
    """A mesh with one extent for each of its distinct axes (LANG-09-01, AMB-LANG-82)."""
    shape = tuple(read_extent(text) for text in type_.shape)
    repeated = next((axis for axis in type_.axes if type_.axes.count(axis) > 1), "")
    require(
        len(shape) == len(type_.axes),
        "distributed",
        f"a mesh of {len(type_.axes)} axes has {len(shape)} extents",
        "one extent for each axis",
        "LANG-09-01",
    )
    require(not repeated, "distributed", f"axis {repeated!r} stands twice", "axes of different names", "LANG-09-01")
    require(0 not in shape, "distributed", "an axis has extent 0", "extents of at least 1", "LANG-09-01")
    return Mesh(type_.axes, shape)


def resolve_dim(dim: s.Dimension) -> Dim:
    """An extent, a name or `?`."""
    return read_extent(dim.text) if dim.text.isdecimal() else dim.text


def resolve_layout(spec: s.LayoutSpec) -> Layout:
    """A known layout with exactly its parameters (LANG-02.3-39, -40, -81, -82)."""
    names = [name for name, _ in spec.parameters]
    repeated = next((name for name in names if names.count(name) > 1), "")
    require(not repeated, "layouts", f"{repeated} is given twice", "each parameter once", "LANG-02.3-82")
    return make_layout(spec.name, {name: read_extent(text) for name, text in spec.parameters})


def make_layout(name: str, sizes: Mapping[str, int]) -> Layout:
    """A layout by its name and parameters."""
    require(
        name in LAYOUTS,
        "layouts",
        f"unknown layout {name!r}",
        f"one of {', '.join(LAYOUTS)}",
        "LANG-02.3-39",
        did_you_mean(name, LAYOUTS),
    )
    wanted = LAYOUTS[name]
    require(
        sorted(sizes) == sorted(wanted),
        "layouts",
        f"layout {name} has parameters ({', '.join(sizes)})",
        f"{name}({', '.join(f'{each}=...' for each in sorted(wanted))})" if wanted else "no parameters",
        "LANG-02.3-82",
    )
    require(0 not in sizes.values(), "layouts", "a block has size 0", "block sizes of at least 1", "LANG-02.3-82")
    return Layout(name, tuple(sorted(sizes.items())))
