"""Modules, kernels, their arguments and launches (runtime spec 4.5, 5, 6, 10.1, 17)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import NoneType
from typing import Any, TypeAlias

import numpy as np

from ..abi.fatbin import KernelEntry, KernelParameter, read
from ..abi.parameters import Parameter, ParameterLayout, ParameterValue, layout_of, pack
from ..abi.status import LaunchFlag
from ..numerics.formats import DTYPES, shown
from ..runtime.launches import LaunchConfig
from .contexts import Context, current, failures_raised, invalid, locked, locked_class, require
from .meshes import DefaultStream, DeviceArray, HostArray, Mesh, Stream, abi_dtype, host_array, is_array, stream_on

# Modules and their kernels (runtime spec 4.5, 5, 17).


@locked_class
class Kernel:
    """A kernel of a module, with its entry descriptor; it lives as long as the module."""

    def __init__(self, module: Module, name: str) -> None:
        """Call tessKernelGet. Raises `TesseraError`."""
        context = module.context
        self.module = module
        self.handle = context.call("tessKernelGet", module.handle, name)
        self.entry: KernelEntry = module.entries[name]

    @property
    def name(self) -> str:
        """The public name."""
        return self.entry.name


@locked_class
class Kernels:
    """The kernels of a module by name (RT-05-09)."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        """Return the kernel called `name`. Raises `TesseraError` where the module has none."""
        require("tessKernelGet", "name", name, str)
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._module, name)
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._module.entries)

    def __len__(self) -> int:
        return len(self._module.entries)


@locked_class
class Module:
    """A fatbin in a context: `module.kernel["name"]`."""

    def __init__(self, image: bytes, context: Context | None = None) -> None:
        """Call tessModuleLoad. Raises `TesseraError`."""
        self.context = current("tessModuleLoad", context)
        require("tessModuleLoad", "image", image, bytes, bytearray, memoryview)
        self.handle = self.context.call("tessModuleLoad", self.context.handle, image, len(image))
        with failures_raised():
            self.entries = {entry.name: entry for entry in read(image).metadata.kernels}
        self.kernel = Kernels(self)
        self._is_open = True

    def explain(self) -> str:
        """Return the text of tessExplain: fusion groups, tile shapes and collective plans."""
        return str(self.context.call("tessxExplain", self.handle).text)

    def close(self) -> None:
        """Call tessModuleUnload, which lets queued launches finish. Closing twice is not an error."""
        if self._is_open and self.context.is_open:
            self._is_open = False
            self.context.call("tessModuleUnload", self.handle)


# The arguments of a launch: arrays and numbers in the kernel's order (runtime spec 5, 10.1; RT-05-04).
#
# An array is a pointer, a Python int an int32, a float an fp32, a complex number a complex64, a bool a bool, and a
# scalar of numpy has its own dtype. The pointer of an array depends on the mesh, so it is looked up at the launch.


Value: TypeAlias = ParameterValue | HostArray | DeviceArray


@dataclass(frozen=True, eq=False)
class Argument:
    """One argument: its name, if any, its ABI type, and the number or the array."""

    name: str | None
    type: str
    value: Value


@locked_class
@dataclass(frozen=True, eq=False)
class ArgumentBuffer:
    """Arguments in order. It keeps their arrays alive; each launch makes the buffer of bytes for its mesh."""

    arguments: tuple[Argument, ...]

    @property
    def layout(self) -> ParameterLayout:
        """The layout of the arguments in the buffer, by their own types."""
        return layout_of([Parameter(f"argument_{n}", argument.type) for n, argument in enumerate(self.arguments)])

    def bytes_for(self, mesh: Mesh, entry: KernelEntry) -> bytes:
        """Return the parameter buffer of a launch. Raises `TesseraError` where the arguments are not the kernel's."""
        self._require(entry)
        values = [_word(argument.value, mesh) for argument in self.arguments]
        with failures_raised():
            return pack(entry.layout, values)

    def _require(self, entry: KernelEntry) -> None:
        """Require the arguments that the kernel declares."""
        declared = ", ".join(
            f"{declared_parameter.name}: {declared_parameter.type}" for declared_parameter in entry.parameters
        )
        if len(self.arguments) != len(entry.parameters):
            raise _refused(entry, f"{len(self.arguments)} arguments", f"{len(entry.parameters)} ({declared})")
        extents: dict[str, int] = {}
        for argument, parameter in zip(self.arguments, entry.parameters, strict=True):
            if argument.name not in (None, parameter.name):
                raise _refused(entry, f"{argument.name}= in the place of {parameter.name}", f"the order ({declared})")
            if argument.type != parameter.type:
                raise _refused(entry, f"{parameter.name} of type {argument.type}", _remedy(parameter))
            if isinstance(argument.value, int):
                extents[parameter.name] = argument.value
        for argument, parameter in zip(self.arguments, entry.parameters, strict=True):
            if isinstance(argument.value, HostArray | DeviceArray):
                _require_array(entry, parameter, argument.value, extents)


def pack_args(*arguments: Any, **named: Any) -> ArgumentBuffer:
    """Return the arguments of a launch in order, named ones last. Raises `TesseraError`."""
    pairs = [(None, value) for value in arguments] + list(named.items())
    return ArgumentBuffer(tuple(Argument(name, *_typed(value)) for name, value in pairs))


def _typed(value: Any) -> tuple[str, Value]:
    """Return the type and the value of an argument."""
    if isinstance(value, DeviceArray):
        return "ptr", value
    if is_array(value):
        return "ptr", host_array(value, "pack_args")
    if isinstance(value, np.generic):
        dtype = abi_dtype(value.dtype, "pack_args")
        return _checked(dtype.name, _PYTHON[dtype.kind](value))
    for kind, name in ((bool, "bool"), (int, "int32"), (float, "fp32"), (complex, "complex64")):
        if isinstance(value, kind):
            return _checked(name, value)
    allowed = "an array (np.asarray(...) of a list), a number, or a scalar of numpy"
    raise invalid("pack_args", f"an argument of type {type(value).__name__}", allowed)


def _checked(kind: str, value: ParameterValue) -> tuple[str, Value]:
    try:
        Parameter("value", kind).kind.store(value)
    except ValueError as error:
        remedy = ", or np.int64(value) for a parameter of type int64" if kind == "int32" else ""
        raise invalid("pack_args", f"{shown(value)} as {kind}", f"{error}{remedy}") from None
    return kind, value


_PYTHON: dict[str, Any] = {"bool": bool, "int": int, "float": float, "complex": complex}


def _word(value: Value, mesh: Mesh) -> ParameterValue:
    """Return a value as the buffer holds it: a number itself, an array's pointer."""
    if isinstance(value, HostArray):
        return mesh.mapped(value)
    if not isinstance(value, DeviceArray):
        return value
    if value.mesh is not mesh:
        raise invalid("tessLaunch", "a ts.DeviceArray of another mesh", "one of the mesh of the launch")
    return value.pointer


def _require_array(
    entry: KernelEntry, parameter: KernelParameter, array: HostArray | DeviceArray, extents: dict[str, int]
) -> None:
    """Compare an array with the kernel's declared tensor; named dimensions have the launch's extents."""
    if parameter.dtype is not None and array.dtype.name != DTYPES[parameter.dtype].storage.name:
        raise _refused(entry, f"{parameter.name} of dtype {array.dtype}", parameter.dtype)
    if parameter.shape is not None:
        shape = [extents.get(extent, extent) if isinstance(extent, str) else extent for extent in parameter.shape]
        numbers = [extent for extent in shape if isinstance(extent, int)]
        if len(numbers) == len(shape) and prod(numbers) != prod(array.shape):
            raise _refused(
                entry, f"{parameter.name} of shape {list(array.shape)}", f"{prod(numbers)} elements, {shape}"
            )
    if parameter.written and isinstance(array, HostArray) and not array.writable:
        allowed = "an array that may be written, or a ts.DeviceArray, since the kernel writes it"
        raise _refused(entry, f"{parameter.name}, an array that is read-only", allowed)


def _remedy(parameter: KernelParameter) -> str:
    if parameter.type == "ptr":
        return "an array"
    numpy = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}.get(parameter.type, parameter.type)
    return f"{parameter.type}: np.{numpy}(value)"


def _refused(entry: KernelEntry, actual: str, allowed: str) -> Exception:
    return invalid("tessLaunch", f"kernel {entry.name}: {actual}", allowed)


# Launches (runtime spec 4.5, 5, 6).


@locked
def launch(
    kernel: Kernel,
    mesh: Mesh,
    *,
    grid: Sequence[int],
    block: Sequence[int] = (0, 0, 0),
    args: ArgumentBuffer | None = None,
    stream: Stream | DefaultStream | None = None,
    shmem_bytes: int = 0,
    flags: int = LaunchFlag.TESS_LAUNCH_DEFAULT,
) -> None:
    """Call tessLaunch: queue a kernel on every rank of a mesh (RT-05-05); the compiler replaces zeros in `block`.

    Ranks use arrays of the caller in place and share them: leave them alone until the stream is synchronized. Raises
    `TesseraError`; `synchronize` raises failures of the running kernel.
    """
    for name, value, kind in (("kernel", kernel, Kernel), ("mesh", mesh, Mesh), ("flags", flags, int)):
        require("tessLaunch", name, value, kind)
    require("tessLaunch", "args", args, ArgumentBuffer, NoneType)
    on = stream_on(mesh, stream, "tessLaunch")
    config = LaunchConfig(_three("grid", grid, 1), _three("block", block, 1), shmem_bytes, int(flags))
    with mesh.submission(on):
        buffer = (args or pack_args()).bytes_for(mesh, kernel.entry)
        mesh.context.call("tessLaunch", kernel.handle, mesh.handle, config, buffer, len(buffer), on.handle)


def _three(name: str, extents: Sequence[int], rest: int) -> tuple[int, int, int]:
    """Return extents in three dimensions, with `rest` for missing ones. Raises `TesseraError`."""
    require("tessLaunch", name, extents, int, tuple, list)
    sizes = (extents,) if isinstance(extents, int) else tuple(extents)
    if not 1 <= len(sizes) <= 3:
        raise invalid("tessLaunch", f"{name} {sizes}", "one to three extents")
    x, y, z = (*sizes, *[rest] * (3 - len(sizes)))
    return x, y, z
