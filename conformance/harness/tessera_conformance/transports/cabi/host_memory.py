"""Host memory of the process that loads the library: made, read and written here, for a library has no part in it.

Behind it lies a page that is not mapped, so that a library that goes far beyond its end is found out.
"""

from __future__ import annotations

import ctypes
import mmap

from tessera_conformance.adapter import Refusal

__all__ = ["HostMemory"]

LARGEST = 1 << 32
ALIGNMENT = 16
"""Bytes; so many at most lie between what was asked for and the page that is not mapped."""
FAILED = (1 << 8 * ctypes.sizeof(ctypes.c_void_p)) - 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class HostMemory:
    """Ordinary host memory, and the places of what `tessHostAlloc` gave, which is read and written alike."""

    def __init__(self) -> None:
        self._pages: dict[int, tuple[int, int]] = {}
        self._sizes: dict[int, int] = {}

    def allocate(self, count: int) -> int:
        """The address of so many bytes, zeros. Raises `Refusal`."""
        if not 0 <= count <= LARGEST:
            self._refuse(f"tessxHostMemory: bytes = {count}: allowed: 0 to {LARGEST}", "TESS_ERR_OUT_OF_MEMORY")
        taken = -(-max(count, 1) // ALIGNMENT) * ALIGNMENT
        pages = -(-taken // mmap.PAGESIZE) * mmap.PAGESIZE
        begin = _libc.mmap(
            None, pages + mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        if begin is None or begin == FAILED:
            self._refuse(f"tessxHostMemory: no memory for {count} bytes", "TESS_ERR_OUT_OF_MEMORY")
        _libc.munmap(begin + pages, mmap.PAGESIZE)
        address = int(begin + pages - taken)
        self._pages[address], self._sizes[address] = (begin, pages), count
        return address

    def add(self, address: int, count: int) -> None:
        """Memory that the library allocated."""
        self._sizes[address] = count

    def remove(self, address: int) -> None:
        """Memory that the library has freed."""
        if address not in self._pages:
            self._sizes.pop(address, None)

    def forget(self) -> None:
        """Free it all."""
        for begin, pages in self._pages.values():
            _libc.munmap(begin, pages)
        self._pages.clear()
        self._sizes.clear()

    def read(self, address: int, count: int) -> bytes:
        """What memory holds. Raises `Refusal` beyond what was allocated."""
        self._require(address, count, "tessxHostRead")
        return ctypes.string_at(address, count)

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into memory. Raises `Refusal` beyond what was allocated."""
        self._require(address, len(data), "tessxHostWrite")
        ctypes.memmove(address, data, len(data))

    def _require(self, address: int, count: int, function: str) -> None:
        found = any(base <= address and address + count <= base + size for base, size in self._sizes.items())
        if count < 0 or not found:
            allowed = "what tessxHostMemory or tessHostAlloc gave"
            self._refuse(f"{function}: hostPtr = {address:#x}, {count} bytes: allowed: {allowed}")

    @staticmethod
    def _refuse(text: str, code: str = "TESS_ERR_INVALID_VALUE") -> None:
        raise Refusal(code, "call", text)
