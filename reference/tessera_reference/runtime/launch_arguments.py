"""What tessLaunch checks and reads before it queues a launch (runtime spec 4.5, 6, 10; AMB-RT-10, -16, -61, -85)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from ..numerics.trees import Tree
from .arguments import INT, SIZE, UNSIGNED, integer, invalid, required
from .capture import GraphWork
from .launches import Extents, LaunchConfig, LaunchWork, Tensor
from .machine import KERNELS_AT_ONCE
from .meshes import Mesh
from .modules import Kernel
from .pointers import host_bytes, region_of, require_aligned
from .streams import Stream

__all__ = [
    "argument_bytes",
    "configuration_of",
    "extents_of",
    "flags_of",
    "require_place",
    "require_targets",
    "require_together",
    "scalars_of",
    "tensors_of",
]

FUNCTION = "tessLaunch"


def flags_of(config: LaunchConfig) -> LaunchFlag:
    """The flags of a launch. Raises `Failure` for a bit that is not defined (AMB-RT-10)."""
    if not isinstance(config, LaunchConfig):
        raise invalid(f"cfg is {shown(config)}", "tessLaunchConfig")
    flags = integer("flags", config.flags, UNSIGNED)
    undefined = flags & ~int(~LaunchFlag(0))
    if undefined:
        raise invalid(f"flags is {flags:#x}, in which {undefined:#x} is not defined", "the bits 0x1 to 0xf")
    return LaunchFlag(flags)


def configuration_of(config: LaunchConfig) -> tuple[Extents, Extents, int]:
    """Grid, block and shared bytes of a launch; what the device takes is for the kernel to say. Raises `Failure`."""
    grid, block = _three("grid", config.grid, 1), _three("block", config.block, 0)
    return grid, block, integer("shmemBytes", config.shmemBytes, SIZE)


def _three(name: str, given: Any, least: int) -> Extents:
    if not isinstance(given, list | tuple) or len(given) != 3:
        raise invalid(f"{name} is {shown(given)}", "three numbers")
    x, y, z = (integer(f"{name}[{i}]", each, (least, INT[1])) for i, each in enumerate(given))
    return x, y, z


def require_targets(mesh: Mesh, targets: tuple[str, ...]) -> None:
    """A module is for every device of a mesh. Raises `Failure` with TESS_ERR_ARCH_MISMATCH (RT-19.A-05)."""
    for name in mesh.targets:
        if name not in targets:
            given = f"a module for {', '.join(targets) or 'no target'} on a mesh with a device {name}"
            raise Failure(Status.TESS_ERR_ARCH_MISMATCH, "", given, f"a module with code for {name}")


def require_order(kernel: Kernel, mesh: Mesh, order: Tree | None) -> None:
    """A kernel adds in the order of its descriptor, or adds nothing (RT-11-02, AMB-RT-78).

    Raises `Failure` with TESS_ERR_UNSUPPORTED for one that is lowered in another order.
    """
    if order is None:
        return
    from ..compilation.executables import reduction_orders  # imports the whole compiler

    for target in mesh.targets:
        own = reduction_orders(kernel.module.fatbin, kernel.entry.name, target)
        if own - {order}:
            given = f"kernel {kernel.entry.name}, which adds in the order {', '.join(sorted(map(str, own)))}"
            raise Failure(Status.TESS_ERR_UNSUPPORTED, "", given, f"the order of the descriptor, {order}")


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
            raise invalid(f"{name}, the extent of a dimension, is {extent}", "at least 0")
    return extents


def argument_bytes(kernel: Kernel, buffer: bytes | int | None, size: int, stream: Stream) -> bytes:
    """The parameter buffer of a launch, as far as its last argument reaches. Raises `Failure`."""
    count = integer("argSize", size, SIZE)
    needed = kernel.entry.layout.end_of_last_argument
    if count < needed:
        allowed = f"at least {needed}, where the last argument of {kernel.entry.name} ends"
        raise invalid(f"argSize is {count}", allowed)
    if needed == 0:
        return b""
    memory = stream.mesh.machine.memory
    return host_bytes(memory, FUNCTION, "argBuffer", required("argBuffer", buffer), needed, "argSize")


def tensors_of(
    entry: KernelEntry, pointers: Mapping[str, int], extents: Mapping[str, int], stream: Stream
) -> dict[str, Tensor]:
    """The tensors behind the pointers. Raises `Failure` for a pointer that is NULL, misaligned or too short."""
    shapes = shapes_of(entry, extents)
    found: dict[str, Tensor] = {}
    for each in entry.parameters:
        if each.type != "ptr":
            continue
        argument, pointer = f"argument {each.name}", pointers[each.name]
        if each.dtype is None:
            found[each.name] = _untyped(argument, pointer, each.written, stream)
            continue
        held, shape = dtype(each.dtype), shapes[each.name]
        size = prod(shape) * held.storage_bytes
        if size == 0 and pointer == 0:  # nothing is read or written there (AMB-RT-172)
            found[each.name] = Tensor(None, held, shape, 0, each.written)
            continue
        required(argument, pointer)
        require_aligned(argument, pointer, held)
        region = region_of(FUNCTION, argument, pointer, size, "device", stream, each.written)
        found[each.name] = Tensor(region, held, shape, size, each.written)
    return found


def _untyped(argument: str, pointer: int, written: bool, stream: Stream) -> Tensor:
    """The bytes from a pointer to the end of its allocation."""
    region = region_of(FUNCTION, argument, required(argument, pointer), 1, "device", stream)
    size = region.allocation.bytes - region.offset
    return Tensor(region, dtype("int8"), (size,), size, written)


def require_together(kernel: Kernel, mesh: Mesh, stream: Stream) -> None:
    """Kernel, mesh and stream belong to each other. Raises `Failure`."""
    stream.require_of(mesh)
    if kernel.context is not mesh.context:
        given = f"a kernel of context {kernel.context.handle} on a mesh of context {mesh.context.handle}"
        raise invalid(given, "a kernel and a mesh of one context")


def require_place(stream: Stream, streams: Sequence[Stream]) -> None:
    """Every device of a stream has a place left, beside one a stream for persistent kernels (AMB-RT-65).

    Raises `Failure`.
    """
    others = [each for each in streams if each is not stream and _may_stay(each)]
    for device in stream.mesh.devices:
        count = sum(device in each.mesh.devices for each in others)
        if count >= KERNELS_AT_ONCE - 1:
            given = f"one more stream with persistent kernels beside {count} on device {device}"
            allowed = f"at most {KERNELS_AT_ONCE - 1} at a time"
            raise Failure(Status.TESS_ERR_UNSUPPORTED, "", given, allowed)


def _may_stay(stream: Stream) -> bool:
    """Whether a stream has persistent kernels that have not ended."""
    works = [each for work in stream.queued for each in (work.works if isinstance(work, GraphWork) else (work,))]
    return any(isinstance(each, LaunchWork) and each.flags & LaunchFlag.TESS_LAUNCH_PERSISTENT for each in works)
