"""The arguments of a launch: arrays and numbers in the kernel's order (runtime spec 5, 10.1; RT-05-04).

An array is a pointer, a Python int an int32, a float an fp32, a complex number a complex64, a bool a bool, and a scalar
of numpy what its dtype says. Which pointer an array has depends on the mesh, so that it is looked up at the launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..abi.fatbin import KernelEntry, KernelParameter
from ..abi.parameter_types import Parameter, ParameterValue
from ..abi.parameters import ParameterLayout, layout_of, pack
from ..numerics.errors import shown
from ..numerics.formats import DTYPES
from .device_arrays import DeviceArray
from .element_types import abi_dtype
from .errors import failures_raised, invalid
from .host_arrays import HostArray, host_array, is_array
from .locking import locked_class
from .meshes import Mesh

__all__ = ["ArgumentBuffer", "pack_args"]

Value: TypeAlias = ParameterValue | HostArray | DeviceArray


@dataclass(frozen=True, eq=False)
class Argument:
    """One argument: the name it was given under, if any, its ABI type, and the number or the array."""

    name: str | None
    type: str
    value: Value


@locked_class
@dataclass(frozen=True, eq=False)
class ArgumentBuffer:
    """Arguments in order. It keeps their arrays alive; the buffer of bytes is made for a mesh at each launch."""

    arguments: tuple[Argument, ...]

    @property
    def layout(self) -> ParameterLayout:
        """Where the arguments lie in the buffer, going by their own types."""
        return layout_of([Parameter(f"argument_{n}", each.type) for n, each in enumerate(self.arguments)])

    def bytes_for(self, mesh: Mesh, entry: KernelEntry) -> bytes:
        """The parameter buffer of a launch. Raises `TesseraError` where the arguments are not the kernel's."""
        self._require(entry)
        values = [_word(each.value, mesh) for each in self.arguments]
        with failures_raised():
            return pack(entry.layout, values)

    def _require(self, entry: KernelEntry) -> None:
        """Compare with what the kernel declares."""
        declared = ", ".join(f"{each.name}: {each.type}" for each in entry.parameters)
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
    """The arguments of a launch, those with names last, in the order given. Raises `TesseraError`."""
    given = [(None, value) for value in arguments] + list(named.items())
    return ArgumentBuffer(tuple(Argument(name, *_typed(value)) for name, value in given))


def _typed(given: Any) -> tuple[str, Value]:
    """The type and the value of an argument."""
    if isinstance(given, DeviceArray):
        return "ptr", given
    if is_array(given):
        return "ptr", host_array(given, "pack_args")
    if isinstance(given, np.generic):
        dtype = abi_dtype(given.dtype, "pack_args")
        return _checked(dtype.name, _PYTHON[dtype.kind](given))
    for kind, name in ((bool, "bool"), (int, "int32"), (float, "fp32"), (complex, "complex64")):
        if isinstance(given, kind):
            return _checked(name, given)
    allowed = "an array (np.asarray(...) of a list), a number, or a scalar of numpy"
    raise invalid("pack_args", f"an argument of type {type(given).__name__}", allowed)


def _checked(type: str, value: ParameterValue) -> tuple[str, Value]:
    try:
        Parameter("value", type).kind.store(value)
    except ValueError as error:
        remedy = ", or np.int64(value) for a parameter of type int64" if type == "int32" else ""
        raise invalid("pack_args", f"{shown(value)} as {type}", f"{error}{remedy}") from None
    return type, value


_PYTHON: dict[str, Any] = {"bool": bool, "int": int, "float": float, "complex": complex}


def _word(value: Value, mesh: Mesh) -> ParameterValue:
    """What the buffer holds for a value: a number itself, an array's pointer."""
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
    """Compare an array with the tensor that a kernel declares; dimensions with names have the launch's extents."""
    if parameter.dtype is not None and array.dtype.name != DTYPES[parameter.dtype].storage.name:
        raise _refused(entry, f"{parameter.name} of dtype {array.dtype}", parameter.dtype)
    if parameter.shape is not None:
        shape = [extents.get(each, each) if isinstance(each, str) else each for each in parameter.shape]
        known = [each for each in shape if isinstance(each, int)]
        if len(known) == len(shape) and prod(known) != prod(array.shape):
            raise _refused(entry, f"{parameter.name} of shape {list(array.shape)}", f"{prod(known)} elements, {shape}")
    if parameter.written and isinstance(array, HostArray) and not array.writable:
        allowed = "an array that may be written, or a ts.DeviceArray, since the kernel writes it"
        raise _refused(entry, f"{parameter.name}, an array that is read-only", allowed)


def _remedy(parameter: KernelParameter) -> str:
    if parameter.type == "ptr":
        return "an array"
    numpy = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}.get(parameter.type, parameter.type)
    return f"{parameter.type}: np.{numpy}(value)"


def _refused(entry: KernelEntry, given: str, allowed: str) -> Exception:
    return invalid("tessLaunch", f"kernel {entry.name}: {given}", allowed)
