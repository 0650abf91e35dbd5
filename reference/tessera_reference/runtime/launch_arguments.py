"""What tessLaunch checks and reads before it queues a launch (runtime spec 4.5, 6, 10; AMB-RT-10, -16, -61, -85)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from ..abi.enumerations import LaunchFlag
from ..abi.fatbin import KernelEntry
from ..abi.parameters import unpack
from ..abi.status import Failure, Status
from ..compilation.extents import named_dimensions, shapes_of
from ..numerics.array import Array
from ..numerics.errors import shown
from ..numerics.formats import dtype
from .arguments import INT, SIZE, UNSIGNED, integer, invalid
from .launches import Extents, LaunchConfig
from .meshes import Mesh

__all__ = ["configuration_of", "extents_of", "flags_of", "require_targets", "scalars_of", "tensor_bytes"]

FUNCTION = "tessLaunch"


def flags_of(config: LaunchConfig) -> LaunchFlag:
    """The flags of a launch. Raises `Failure` for a bit that is not defined (AMB-RT-10)."""
    if not isinstance(config, LaunchConfig):
        raise invalid(FUNCTION, f"cfg is {shown(config)}", "tessLaunchConfig")
    flags = integer(FUNCTION, "flags", config.flags, UNSIGNED)
    undefined = flags & ~int(~LaunchFlag(0))
    if undefined:
        raise invalid(FUNCTION, f"flags is {flags:#x}, in which {undefined:#x} is not defined", "the bits 0x1 to 0xf")
    return LaunchFlag(flags)


def configuration_of(config: LaunchConfig) -> tuple[Extents, Extents, int]:
    """Grid, block and shared bytes of a launch; what the device takes is for the kernel to say. Raises `Failure`."""
    grid, block = _three("grid", config.grid, 1), _three("block", config.block, 0)
    return grid, block, integer(FUNCTION, "shmemBytes", config.shmemBytes, SIZE)


def _three(name: str, given: Any, least: int) -> Extents:
    if not isinstance(given, list | tuple) or len(given) != 3:
        raise invalid(FUNCTION, f"{name} is {shown(given)}", "three numbers")
    x, y, z = (integer(FUNCTION, f"{name}[{i}]", each, (least, INT[1])) for i, each in enumerate(given))
    return x, y, z


def require_targets(mesh: Mesh, targets: tuple[str, ...], function: str = FUNCTION) -> None:
    """A module is for every device of a mesh. Raises `Failure` with TESS_ERR_ARCH_MISMATCH (RT-19.A-05)."""
    for name in mesh.targets:
        if name not in targets:
            given = f"a module for {', '.join(targets) or 'no target'} on a mesh with a device {name}"
            raise Failure(Status.TESS_ERR_ARCH_MISMATCH, function, given, f"a module with code for {name}")


def scalars_of(entry: KernelEntry, buffer: bytes) -> tuple[Mapping[str, int], Mapping[str, Array]]:
    """The pointers and the scalars in a parameter buffer, by name. Raises `Failure` for one that is too short."""
    values = unpack(entry.layout, buffer)
    pointers: dict[str, int] = {}
    scalars: dict[str, Array] = {}
    layout = entry.layout
    for parameter, value, offset, size in zip(entry.parameters, values, layout.offsets, layout.sizes, strict=True):
        if parameter.type == "ptr":
            pointers[parameter.name] = value  # type: ignore[assignment]  # of a pointer it is a whole number
        else:
            raw = bytes([bool(value)]) if parameter.type == "bool" else buffer[offset : offset + size]
            scalars[parameter.name] = Array.from_bits(dtype(parameter.type), (), raw)
    return pointers, scalars


def extents_of(entry: KernelEntry, scalars: Mapping[str, Array]) -> dict[str, int]:
    """The extents of named dimensions: the integer parameters of their names (AMB-RT-85). Raises `Failure`."""
    extents = {name: int(scalars[name].values) for name in named_dimensions(entry) if name in scalars}
    for name, extent in extents.items():
        if extent < 0:
            raise invalid(FUNCTION, f"{name}, the extent of a dimension, is {extent}", "at least 0")
    return extents


def tensor_bytes(entry: KernelEntry, extents: Mapping[str, int]) -> dict[str, tuple[tuple[int, ...], int]]:
    """The shape and the size in bytes of the tensor behind each pointer."""
    shapes = shapes_of(entry, extents)
    dtypes = {each.name: dtype(each.dtype) for each in entry.parameters if each.dtype is not None}
    return {name: (shape, prod(shape) * dtypes[name].storage_bytes) for name, shape in shapes.items()}
