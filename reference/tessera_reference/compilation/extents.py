"""Named dimensions of a kernel, whose extents its int parameters give at launch (runtime spec 4.5, 10.1, 18).

The sample's `Q: tensor<BxHxLxDxbf16>` has the extents of the arguments `B`, `H`, `L` and `D`: a parameter buffer holds
pointers and scalars only, so nothing else can tell them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..abi.fatbin import KernelEntry
from ..abi.status import invalid
from ..ir.diagnostics import Diagnostic
from ..ir.dimensions import own_dims
from ..ir.module import Function
from ..ir.types import Scalar, is_unknown
from .refusals import refusal_at

__all__ = ["is_open", "named_dimensions", "shapes_of", "untellable"]


def is_open(function: Function) -> bool:
    """Whether a kernel has dimensions that are known only at launch."""
    return bool(own_dims(parameter.type for parameter in function.parameters))


def untellable(function: Function) -> Iterator[Diagnostic]:
    """What to say of each dimension of a kernel that no parameter tells."""
    counts = {
        parameter.name
        for parameter in function.parameters
        if isinstance(parameter.type, Scalar) and parameter.type.dtype.kind == "int"
    }
    for dimension in own_dims(parameter.type for parameter in function.parameters):
        if dimension not in counts:
            unknown = is_unknown(dimension)
            named = "a dimension ?" if unknown else f"the dimension {dimension}"
            remedy = "name the dimension" if unknown else f"add a parameter {dimension}: int32"
            message = f"@{function.name} has {named}, which no parameter tells at launch"
            requirement = "dimensions that are numbers, or the names of int parameters"
            yield refusal_at(function.location, "shapes", message, requirement, "RT-10.1-01", remedy)


def named_dimensions(entry: KernelEntry) -> tuple[str, ...]:
    """The names that stand in the shapes of a kernel's parameters, in their order."""
    names = [extent for each in entry.parameters for extent in each.shape or () if isinstance(extent, str)]
    return tuple(dict.fromkeys(names))


def shapes_of(entry: KernelEntry, extents: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shape of every pointer parameter of which one is known, with `extents` for its names.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a name that is not among them, or a negative extent.
    """
    for name in named_dimensions(entry):
        if name not in extents:
            raise invalid("tessLaunch", f"no extent {name} for kernel {entry.name}", f"a value of the parameter {name}")
        if extents[name] < 0:
            raise invalid("tessLaunch", f"{name} is {extents[name]}", "an extent of at least 0")
    return {
        each.name: tuple(extents[extent] if isinstance(extent, str) else extent for extent in each.shape)
        for each in entry.parameters
        if each.shape is not None
    }
