"""Meshes, streams, and arrays of the host and of devices (runtime spec 4.2 to 4.4, 5, Appendix B)."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from types import NoneType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..abi.status import CopyKind, MemKind
from ..mesh.topology import AXES, MeshAxes
from ..numerics.formats import DTYPES, DType, UnknownDType, shown
from ..numerics.formats import dtype as dtype_called
from .contexts import Context, TesseraError, current, failures_raised, invalid, locked, locked_class, require

# Dtypes of the ABI, and their names in numpy, ml_dtypes and torch (runtime spec 5, Appendix B).
#
# numpy itself has neither bf16 nor fp8. Where ml_dtypes is installed its types represent them, otherwise unsigned
# integers that hold the storage codes.


NUMPY_NAMES = {
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    **{name: name for name in ("int8", "int16", "int32", "int64", "bool", "complex64", "complex128")},
}
"""The dtype of the ABI for each name in numpy, ml_dtypes and, with the prefix `torch.`, in torch."""

ML_DTYPES = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "bf16": "bfloat16"}


def abi_dtype(dtype: Any, function: str) -> DType:
    """Return the ABI's dtype for a numpy dtype. Raises `TesseraError` with a remedy for one that has none."""
    name = getattr(dtype, "name", None)
    if name not in NUMPY_NAMES:
        raise invalid(function, f"an array of {dtype}", _supported(str(name)))
    if dtype.byteorder == ">":
        raise invalid(
            function, f"an array of big-endian {name}", "little-endian: array.astype(array.dtype.newbyteorder('<'))"
        )
    return DTYPES[NUMPY_NAMES[name]]


def dtype_of(named: Any, function: str) -> DType:
    """Return a dtype from its name in the ABI ("bf16"), or from anything that numpy converts. Raises `TesseraError`."""
    if isinstance(named, str) and named in DTYPES:
        return dtype_called(named).storage
    if named is None:  # which numpy replaces by a default
        raise invalid(function, "no dtype", _supported("None"))
    try:
        name = named if isinstance(named, str) else np.dtype(named).name
        return dtype_called(NUMPY_NAMES.get(name, name))
    except (TypeError, ValueError, UnknownDType):
        raise invalid(function, f"dtype {shown(named)}", _supported(str(named))) from None


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype of the caller's arrays for a dtype."""
    if dtype.name in ML_DTYPES:
        try:
            types: Any = importlib.import_module("ml_dtypes")
        except ImportError:
            return np.dtype(np.uint8 if dtype.storage_bytes == 1 else np.uint16)
        numpy_type: np.dtype[Any] = np.dtype(getattr(types, ML_DTYPES[dtype.name]))
        return numpy_type
    return np.dtype(np.float16) if dtype.name == "fp16" else dtype.carrier


def _supported(name: str) -> str:
    names = ", ".join(dict.fromkeys(NUMPY_NAMES.values()))
    remedy = f"; the bytes of {name} can be passed as array.view({name[1:]})" if name in UNSIGNED else ""
    return f"one of {names}{remedy or '; convert it with array.astype'}"


UNSIGNED = ("uint8", "uint16", "uint32", "uint64")

# Arrays of the caller, of any library, seen in place (runtime spec 5: zero-copy when possible; RT-05-08).
#
# numpy, torch and JAX arrays on the host, and all others that support DLPack, the array interface or the buffer
# protocol. Nothing is ever copied here: an array that cannot be viewed in place is refused with a remedy.


@dataclass(frozen=True, eq=False)
class HostArray:
    """Contiguous host memory with a dtype and a shape. `values` is a view of it, of some type of the right width."""

    dtype: DType
    values: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return self.values.shape

    @property
    def writable(self) -> bool:
        """True if the owner allows writing; arrays of JAX are never written."""
        return self.values.flags.writeable

    @property
    def memory(self) -> memoryview:
        """The bytes themselves."""
        return self.values.reshape(-1).view(np.uint8).data

    @property
    def place(self) -> tuple[int, int, bool]:
        """The address, size and writability, which identify this memory as long as it lives."""
        return self.values.__array_interface__["data"][0], self.values.nbytes, self.writable


def is_array(value: Any) -> bool:
    """True if a value is an array rather than a number."""
    if isinstance(value, np.generic | bool | int | float | complex):
        return False
    if any(hasattr(value, name) for name in ("__dlpack__", "__array_interface__", "__array__")):
        return True
    try:
        return memoryview(value).nbytes >= 0
    except TypeError:
        return False


def host_array(value: Any, function: str, codes_of: DType | None = None) -> HostArray:
    """Return a view of an array in place; integers may be codes of a dtype for which numpy has no type here.

    Raises `TesseraError` for a dtype that the ABI lacks, an array that is scattered, and one that is not on the host.
    """
    values, dtype = _values(value, function)
    if not values.flags.c_contiguous:
        allowed = "contiguous memory in row-major order: np.ascontiguousarray(array), or array.contiguous() of torch"
        raise invalid(function, f"an array of shape {values.shape} and strides {values.strides}", allowed)
    if codes_of is not None and values.dtype == numpy_dtype(codes_of):
        dtype = codes_of
    return HostArray(dtype or abi_dtype(values.dtype, function), values)


def _values(value: Any, function: str) -> tuple[npt.NDArray[Any], DType | None]:
    """Return a view of the memory and, where numpy does not know it, the dtype."""
    if isinstance(value, np.ndarray):
        return value, None
    refused: list[str] = []
    for view in (_codes_of_torch, np.from_dlpack, np.asarray) if is_array(value) else ():
        try:
            values = view(value)
        except Exception as error:  # any exception of the array's owner
            refused.append(str(error))
            continue
        if isinstance(values, np.ndarray) and values.dtype.kind != "O":
            name = NUMPY_NAMES.get(_torch_name(value)) if view is _codes_of_torch else None
            return _writable_twin(value, values), DTYPES[name] if name else None
    reasons = f" ({'; '.join(refused)})" if refused else ""
    allowed = "an array of numpy, torch or JAX on the host, a ts.DeviceArray, or np.asarray(...) of it"
    raise invalid(function, f"a value of type {type(value).__name__}{reasons}", allowed)


def _writable_twin(value: Any, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a writable view, as DLPack's first version, without a flag, may show writable memory as read-only."""
    if values.flags.writeable or not hasattr(value, "__array__"):
        return values
    again = np.asarray(value)
    same = again.__array_interface__["data"][0] == values.__array_interface__["data"][0]
    return again if same and again.dtype == values.dtype and again.shape == values.shape else values


_CODES_OF_TORCH = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}
"""The dtypes that torch cannot show to numpy, each with the integers that hold its codes."""


def _torch_name(value: Any) -> str:
    return str(getattr(value, "dtype", "")).removeprefix("torch.") if "torch" in sys.modules else ""


def _codes_of_torch(tensor: Any) -> npt.NDArray[Any] | None:
    """Return the storage codes of a torch tensor for whose dtype numpy has no type; None for any other array."""
    torch = sys.modules.get("torch")
    name = _torch_name(tensor)
    if torch is None or not isinstance(tensor, torch.Tensor) or name not in _CODES_OF_TORCH:
        return None
    if tensor.requires_grad:
        raise ValueError("a tensor that requires gradients; use tensor.detach()")
    return np.asarray(tensor.view(getattr(torch, _CODES_OF_TORCH[name])))


# Meshes, their streams, and the caller's memory that is mapped into them while work uses it (spec 4.2, 4.3, 5).
#
# Memory is mapped when work with it is submitted, and released once every stream with such work has been synchronized.
# Until then the mesh keeps the array alive.


Side = Literal["device", "host"]


@dataclass(frozen=True)
class _Mapping:
    """An array of the caller, and its pointer on the machine."""

    array: HostArray
    pointer: int


@locked_class
class Mesh:
    """Devices along tp, pp, dp and ep, where a missing axis has size 1. Use it in a `with` statement, or `close` it."""

    def __init__(self, devices: Iterable[int], axes: Mapping[str, int], context: Context | None = None) -> None:
        """Call tessMeshCreate. Raises `TesseraError`."""
        self.context = current("tessMeshCreate", context)
        require("tessMeshCreate", "devices", devices, Iterable)
        require("tessMeshCreate", "axes", axes, Mapping)
        unknown = [name for name in axes if name not in AXES]
        if unknown:
            raise invalid("tessMeshCreate", f"axes {', '.join(map(str, unknown))}", "some of " + ", ".join(AXES))
        with failures_raised():
            self.axes = MeshAxes(**axes)
        self.devices = tuple(devices)
        count = len(self.devices)
        self.handle = self.context.call("tessMeshCreate", self.context.handle, self.devices, count, self.axes)
        self.context.meshes.append(self)
        self._closed = False
        self._default_stream: Stream | None = None
        self._busy: dict[int, Stream] = {}
        self._mapped: dict[tuple[Side, int, int, bool], _Mapping] = {}

    @property
    def is_open(self) -> bool:
        """True if neither the mesh nor its context was closed."""
        return not self._closed and self.context.is_open

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.devices)

    @property
    def default_stream(self) -> Stream:
        """The stream used where none is named."""
        if self._default_stream is None:
            self._default_stream = Stream(self)
        return self._default_stream

    def mapped(self, array: HostArray, side: Side = "device") -> int:
        """Return the pointer of the caller's memory: for devices, which all share it, or for copies, as the host's."""
        key = (side, *array.place)
        if key not in self._mapped:
            adopt = ("tessxAdoptDevice", self.handle) if side == "device" else ("tessxAdoptHost",)
            self._mapped[key] = _Mapping(array, self.context.call(*adopt, array.memory))
        return self._mapped[key].pointer

    @contextmanager
    def submission(self, stream: Stream) -> Iterator[None]:
        """Mark a stream as busy with the work submitted within; on failure release mapped memory once it is idle."""
        try:
            yield
        except TesseraError:
            self._release_when_idle()
            raise
        self._busy[stream.handle] = stream

    def finished(self, stream: Stream) -> None:
        """Record that the work of a stream is done."""
        self._busy.pop(stream.handle, None)
        self._release_when_idle()

    def synchronize(self, default_stream: bool = False) -> None:
        """Wait for all streams with submitted work, or for the default stream alone.

        Raises the first failure as `TesseraError`.
        """
        failures = []
        for stream in [self.default_stream] if default_stream else list(self._busy.values()):
            try:
                stream.synchronize()
            except TesseraError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def close(self) -> None:
        """Call tessMeshDestroy once queued work is done; end arrays and streams. Closing twice is not an error."""
        if self.is_open:
            self._closed = True
            self.context.meshes.remove(self)
            self.context.call("tessMeshDestroy", self.handle)
        self._mapped.clear()
        self._busy.clear()

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _release_when_idle(self) -> None:
        """Free mapped memory once no stream is busy: freeing drains streams, whose errors must be reported before."""
        if self._busy or not self.is_open:
            return
        while self._mapped:
            (side, *_), area = self._mapped.popitem()
            free = ("tessFree", self.handle) if side == "device" else ("tessHostFree",)
            self.context.call(*free, area.pointer)


@locked_class
class Stream:
    """A queue of work on every rank of a mesh, in order."""

    def __init__(self, mesh: Mesh, priority: int = 0) -> None:
        """Call tessStreamCreate. Raises `TesseraError`."""
        require("tessStreamCreate", "mesh", mesh, Mesh)
        self.mesh = mesh
        self.handle = mesh.context.call("tessStreamCreate", mesh.handle, priority)
        self._is_open = True

    def synchronize(self) -> None:
        """Call tessStreamSynchronize, which waits for the work. Raises its first failure as `TesseraError`."""
        try:
            self.mesh.context.call("tessStreamSynchronize", self.handle)
        finally:
            self.mesh.finished(self)

    def record(self, event: Event) -> None:
        """Call tessEventRecord. Raises `TesseraError`."""
        require("tessEventRecord", "event", event, Event)
        self.mesh.context.call("tessEventRecord", event.handle, self.handle)

    def wait(self, event: Event) -> None:
        """Call tessStreamWaitEvent: work queued later starts once the event is reached. Raises `TesseraError`."""
        require("tessStreamWaitEvent", "event", event, Event)
        self.mesh.context.call("tessStreamWaitEvent", self.handle, event.handle)

    def close(self) -> None:
        """Call tessStreamDestroy, which lets the queued work finish. Closing twice is not an error."""
        if self._is_open and self.mesh.is_open:
            self._is_open = False
            self.mesh.context.call("tessStreamDestroy", self.handle)
            self.mesh.finished(self)


@locked_class
class Event:
    """A point in a stream that other streams can wait for."""

    def __init__(self, context: Context | None = None) -> None:
        """Call tessEventCreate. Raises `TesseraError`."""
        self.context = current("tessEventCreate", context)
        self.handle = self.context.call("tessEventCreate")
        self._is_open = True

    def close(self) -> None:
        """Call tessEventDestroy. Closing twice is not an error."""
        if self._is_open and self.context.is_open:
            self._is_open = False
            self.context.call("tessEventDestroy", self.handle)


class DefaultStream:
    """The default stream of any mesh with which it is used."""


def default_stream() -> DefaultStream:
    """Return the stream that every mesh has from the beginning (RT-05-10), as if none were named."""
    return DefaultStream()


@locked
def stream_on(mesh: Mesh, stream: Stream | DefaultStream | None, function: str) -> Stream:
    """Return the stream for work on a mesh. Raises `TesseraError` for a stream of another mesh, or another value."""
    if stream is None or isinstance(stream, DefaultStream):
        return mesh.default_stream
    if not isinstance(stream, Stream) or stream.mesh is not mesh:
        subject = (
            "a stream of another mesh" if isinstance(stream, Stream) else f"a stream of type {type(stream).__name__}"
        )
        raise invalid(function, subject, "ts.Stream(mesh) of the same mesh, ts.default_stream() or None")
    return stream


def mesh(devices: Iterable[int], axes: Mapping[str, int], context: Context | None = None) -> Mesh:
    """Call tessMeshCreate for the default context, and return the mesh (RT-05-02). Raises `TesseraError`."""
    return Mesh(devices, axes, context)


@locked
def synchronize(stream: Stream | DefaultStream | None = None, context: Context | None = None) -> None:
    """Wait for a stream, or else for all work of the context. Raises its first failure as `TesseraError`."""
    require("tessStreamSynchronize", "stream", stream, Stream, DefaultStream, NoneType)
    if isinstance(stream, Stream):
        stream.synchronize()
        return
    for mesh in list(current("tessStreamSynchronize", context).meshes):
        mesh.synchronize(default_stream=stream is not None)


# Arrays in the memory of a mesh and in pinned memory of the host (runtime spec 4.4, 5; AMB-RT-05).


KINDS = {
    (True, False): CopyKind.TESS_COPY_H2D,
    (False, True): CopyKind.TESS_COPY_D2H,
    (True, True): CopyKind.TESS_COPY_D2D,
}
"""The kind of copy, by whether destination and source are on a device."""


@locked_class
class _Allocated(ABC):
    """An array in memory of the runtime: its dtype, its shape, and a single lifetime."""

    def __init__(self, shape: Sequence[int], dtype: Any, function: str) -> None:
        self.shape = _shape(shape, function)
        self._dtype = dtype_of(dtype, function)
        self._is_open = True

    @property
    def dtype(self) -> DType:
        """The dtype of the ABI."""
        return self._dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of one copy."""
        return self.size * self._dtype.storage_bytes

    def close(self) -> None:
        """Free the memory. Closing twice is no error."""
        if self._is_open:
            self._is_open = False
            self._free()

    @abstractmethod
    def _free(self) -> None:
        """Free the memory, unless its owner has ended."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self, data: bytes | memoryview) -> npt.NDArray[Any]:
        content = np.frombuffer(bytearray(data), np.uint8)
        return content.view(numpy_dtype(self._dtype)).reshape(self.shape)

    def _same(self, array: Any, function: str) -> HostArray:
        """Return an array of the caller with this dtype and shape. Raises `TesseraError`."""
        values = host_array(array, function, self._dtype)
        if (values.shape, values.dtype) != (self.shape, self._dtype):
            allowed = f"{self._dtype}{list(self.shape)}"
            raise invalid(function, f"an array {values.dtype}{list(values.shape)}", allowed)
        return values


@locked_class
class DeviceArray(_Allocated):
    """An array with its own copy on every rank of a mesh. Use it in a `with` statement, or `close` it."""

    def __init__(self, mesh: Mesh, shape: Sequence[int], dtype: Any = "fp32") -> None:
        """Call tessMalloc. Its bytes are undefined until they are written. Raises `TesseraError`."""
        require("tessMalloc", "mesh", mesh, Mesh)
        super().__init__(shape, dtype, "tessMalloc")
        self.mesh = mesh
        self.pointer: int = mesh.context.call("tessMalloc", mesh.handle, max(self.nbytes, 1))

    def put(self, array: Any, rank: int | None = None, stream: Stream | DefaultStream | None = None) -> DeviceArray:
        """Write an array to every rank, or to one, after the stream's work so far. Raises `TesseraError`."""
        values = self._same(array, "tessMemcpyAsync")
        on = stream_on(self.mesh, stream, "tessMemcpyAsync")
        if rank is None:
            copy(self, array, on)
            on.synchronize()
        else:
            on.synchronize()
            self.mesh.context.call("tessxPoke", self.mesh.handle, rank, self.pointer, bytes(values.memory))
        return self

    def get(self, rank: int = 0, stream: Stream | DefaultStream | None = None) -> npt.NDArray[Any]:
        """Return a copy of a rank's array, after the stream's work so far. Raises `TesseraError`."""
        stream_on(self.mesh, stream, "tessMemcpyAsync").synchronize()
        mesh = self.mesh
        return self._read(mesh.context.call("tessxPeek", mesh.handle, rank, self.pointer, self.nbytes))

    def _free(self) -> None:
        if self.mesh.is_open:
            self.mesh.context.call("tessFree", self.mesh.handle, self.pointer)


@locked_class
class PinnedArray(_Allocated):
    """An array in pinned memory of the host. Use it in a `with` statement, or `close` it."""

    def __init__(self, shape: Sequence[int], dtype: Any = "fp32", context: Context | None = None) -> None:
        """Call tessHostAlloc. Raises `TesseraError`."""
        super().__init__(shape, dtype, "tessHostAlloc")
        self.context = current("tessHostAlloc", context)
        self.pointer: int = self.context.call("tessHostAlloc", max(self.nbytes, 1), int(MemKind.TESS_MEM_PINNED_HOST))

    def put(self, array: Any) -> PinnedArray:
        """Write an array at once. Raises `TesseraError`."""
        values = self._same(array, "tessHostAlloc")
        self.context.call("tessxHostWrite", self.pointer, bytes(values.memory))
        return self

    def get(self) -> npt.NDArray[Any]:
        """Return a copy of the current contents. Raises `TesseraError`."""
        return self._read(self.context.call("tessxHostRead", self.pointer, self.nbytes))

    def _free(self) -> None:
        if self.context.is_open:
            self.context.call("tessHostFree", self.pointer)


@locked
def copy(destination: Any, source: Any, stream: Stream | DefaultStream | None = None) -> None:
    """Call tessMemcpyAsync between device arrays, pinned arrays and arrays of the caller, at least one on a device.

    A copy from the host writes every rank; a copy to the host reads rank 0 (AMB-RT-05). Raises `TesseraError` for
    arrays that differ in dtype or shape, and for a destination that is read-only.
    """
    function = "tessMemcpyAsync"
    device = next((side for side in (destination, source) if isinstance(side, DeviceArray)), None)
    if device is None:
        raise invalid(function, "two arrays of the host", "a ts.DeviceArray as one of the two")
    on = stream_on(device.mesh, stream, function)
    if not isinstance(destination, DeviceArray | PinnedArray) and not host_array(destination, function).writable:
        raise invalid(function, "a destination that is read-only", "an array that may be written")
    with device.mesh.submission(on):
        pointers = [_pointer(side, device, function) for side in (destination, source)]
        kind = int(KINDS[isinstance(destination, DeviceArray), isinstance(source, DeviceArray)])
        device.mesh.context.call("tessMemcpyAsync", *pointers, device.nbytes, kind, on.handle)


def _pointer(array: Any, like: DeviceArray, function: str) -> int:
    """Return the address of an array that has the dtype and shape of another. Raises `TesseraError`."""
    if not isinstance(array, DeviceArray | PinnedArray):
        return like.mesh.mapped(like._same(array, function), "host")
    if (array.shape, array.dtype) != (like.shape, like.dtype):
        subject = f"an array {array.dtype}{list(array.shape)}"
        raise invalid(function, subject, f"{like.dtype}{list(like.shape)}, as the other array")
    return array.pointer


def _shape(shape: Sequence[int], function: str) -> tuple[int, ...]:
    require(function, "shape", shape, int, tuple, list)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(type(extent) is int and extent >= 0 for extent in extents):
        raise invalid(function, f"shape {extents}", "whole numbers from 0")
    return extents
