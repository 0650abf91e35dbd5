"""Arrays in the memory of a mesh and in pinned memory of the host (runtime spec 4.4, 5; AMB-RT-05)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..abi.enumerations import CopyKind, MemKind
from ..numerics.formats import DType
from .contexts import Context, current
from .element_types import dtype_of, numpy_dtype
from .errors import invalid, require
from .host_arrays import HostArray, host_array
from .locking import locked, locked_class
from .meshes import DefaultStream, Mesh, Stream, stream_on

__all__ = ["DeviceArray", "PinnedArray", "copy"]

KINDS = {
    (True, False): CopyKind.TESS_COPY_H2D,
    (False, True): CopyKind.TESS_COPY_D2H,
    (True, True): CopyKind.TESS_COPY_D2D,
}
"""By whether destination and source are of a device."""


@locked_class
class _Allocated(ABC):
    """An array whose memory the runtime holds: its dtype, its shape, and one life."""

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
        """Give the memory back, unless what it belongs to has ended."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self, data: bytes | memoryview) -> npt.NDArray[Any]:
        held = np.frombuffer(bytearray(data), np.uint8)
        return held.view(numpy_dtype(self._dtype)).reshape(self.shape)

    def _same(self, array: Any, function: str) -> HostArray:
        """An array of the caller with this dtype and shape. Raises `TesseraError`."""
        given = host_array(array, function, self._dtype)
        if (given.shape, given.dtype) != (self.shape, self._dtype):
            allowed = f"{self._dtype}{list(self.shape)}"
            raise invalid(function, f"an array {given.dtype}{list(given.shape)}", allowed)
        return given


@locked_class
class DeviceArray(_Allocated):
    """An array with a copy of its own on every rank of a mesh. Use it in a `with` statement, or `close` it."""

    def __init__(self, mesh: Mesh, shape: Sequence[int], dtype: Any = "fp32") -> None:
        """tessMalloc. Its bytes are nobody's until they are written. Raises `TesseraError`."""
        require("tessMalloc", "mesh", mesh, Mesh)
        super().__init__(shape, dtype, "tessMalloc")
        self.mesh = mesh
        self.pointer: int = mesh.context.value(mesh.context.runtime.tessMalloc(mesh.handle, max(self.nbytes, 1)))

    def put(self, array: Any, rank: int | None = None, stream: Stream | DefaultStream | None = None) -> DeviceArray:
        """Write an array to every rank, or to one, after the stream's work so far. Raises `TesseraError`."""
        given = self._same(array, "tessMemcpyAsync")
        on = stream_on(self.mesh, stream, "tessMemcpyAsync")
        if rank is None:
            copy(self, array, on)
            on.synchronize()
        else:
            on.synchronize()
            context = self.mesh.context
            context.check(context.runtime.tessxPoke(self.mesh.handle, rank, self.pointer, bytes(given.memory)))
        return self

    def get(self, rank: int = 0, stream: Stream | DefaultStream | None = None) -> npt.NDArray[Any]:
        """A copy of a rank's array, after the stream's work so far. Raises `TesseraError`."""
        stream_on(self.mesh, stream, "tessMemcpyAsync").synchronize()
        context = self.mesh.context
        return self._read(context.value(context.runtime.tessxPeek(self.mesh.handle, rank, self.pointer, self.nbytes)))

    def _free(self) -> None:
        if self.mesh.is_open:
            self.mesh.context.check(self.mesh.context.runtime.tessFree(self.mesh.handle, self.pointer))


@locked_class
class PinnedArray(_Allocated):
    """An array in pinned memory of the host. Use it in a `with` statement, or `close` it."""

    def __init__(self, shape: Sequence[int], dtype: Any = "fp32", context: Context | None = None) -> None:
        """tessHostAlloc. Raises `TesseraError`."""
        super().__init__(shape, dtype, "tessHostAlloc")
        self.context = current("tessHostAlloc", context)
        self.pointer: int = self.context.value(
            self.context.runtime.tessHostAlloc(max(self.nbytes, 1), int(MemKind.TESS_MEM_PINNED_HOST))
        )

    def put(self, array: Any) -> PinnedArray:
        """Write an array, at once. Raises `TesseraError`."""
        given = self._same(array, "tessHostAlloc")
        self.context.check(self.context.runtime.tessxHostWrite(self.pointer, bytes(given.memory)))
        return self

    def get(self) -> npt.NDArray[Any]:
        """A copy of what is in the memory now. Raises `TesseraError`."""
        return self._read(self.context.value(self.context.runtime.tessxHostRead(self.pointer, self.nbytes)))

    def _free(self) -> None:
        if self.context.is_open:
            self.context.check(self.context.runtime.tessHostFree(self.pointer))


@locked
def copy(destination: Any, source: Any, stream: Stream | DefaultStream | None = None) -> None:
    """tessMemcpyAsync between device arrays, pinned arrays and arrays of the caller; one at least is of a device.

    From the host every rank is written; to the host comes the array of rank 0 (AMB-RT-05). Raises `TesseraError` for
    arrays that differ in dtype or shape, and for a destination that is read-only.
    """
    function = "tessMemcpyAsync"
    device = next((each for each in (destination, source) if isinstance(each, DeviceArray)), None)
    if device is None:
        raise invalid(function, "two arrays of the host", "a ts.DeviceArray as one of the two")
    on = stream_on(device.mesh, stream, function)
    if not isinstance(destination, DeviceArray | PinnedArray) and not host_array(destination, function).writable:
        raise invalid(function, "a destination that is read-only", "an array that may be written")
    with device.mesh.submission(on):
        pointers = [_pointer(each, device, function) for each in (destination, source)]
        kind = int(KINDS[isinstance(destination, DeviceArray), isinstance(source, DeviceArray)])
        context = device.mesh.context
        context.check(context.runtime.tessMemcpyAsync(*pointers, device.nbytes, kind, on.handle))


def _pointer(array: Any, like: DeviceArray, function: str) -> int:
    """Where an array lies that has the dtype and shape of another. Raises `TesseraError`."""
    if not isinstance(array, DeviceArray | PinnedArray):
        return like.mesh.mapped(like._same(array, function), "host")
    if (array.shape, array.dtype) != (like.shape, like.dtype):
        given = f"an array {array.dtype}{list(array.shape)}"
        raise invalid(function, given, f"{like.dtype}{list(like.shape)}, as the other array")
    return array.pointer


def _shape(shape: Sequence[int], function: str) -> tuple[int, ...]:
    require(function, "shape", shape, int, tuple, list)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(type(each) is int and each >= 0 for each in extents):
        raise invalid(function, f"shape {extents}", "whole numbers from 0")
    return extents
