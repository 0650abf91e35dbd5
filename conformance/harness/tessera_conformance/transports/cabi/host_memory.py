"""Host memory of the process that loads the library: made, read and written here, for a library has no part in it."""

from __future__ import annotations

from typing import Any

from cffi import FFI

from tessera_conformance.adapter import Refusal

__all__ = ["HostMemory"]

LARGEST = 1 << 32


class HostMemory:
    """Ordinary host memory, and the places of what `tessHostAlloc` gave, which is read and written alike."""

    def __init__(self, ffi: FFI) -> None:
        self._ffi = ffi
        self._own: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}

    def allocate(self, count: int) -> int:
        """The address of so many bytes. Raises `Refusal`."""
        if not 0 <= count <= LARGEST:
            raise Refusal(
                "TESS_ERR_OUT_OF_MEMORY", "call", f"tessxHostMemory: bytes = {count}: allowed: 0 to {LARGEST}"
            )
        block = self._ffi.new("char[]", max(count, 1))
        address = int(self._ffi.cast("uintptr_t", block))
        self._own[address], self._sizes[address] = block, count
        return address

    def add(self, address: int, count: int) -> None:
        """Memory that the library allocated."""
        self._sizes[address] = count

    def remove(self, address: int) -> None:
        """Memory that the library has freed."""
        if address not in self._own:
            self._sizes.pop(address, None)

    def forget(self) -> None:
        """Free it all."""
        self._own.clear()
        self._sizes.clear()

    def read(self, address: int, count: int) -> bytes:
        """What memory holds. Raises `Refusal` beyond what was allocated."""
        self._require(address, count, "tessxHostRead")
        return bytes(self._ffi.buffer(self._ffi.cast("char*", address), count))

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into memory. Raises `Refusal` beyond what was allocated."""
        self._require(address, len(data), "tessxHostWrite")
        self._ffi.memmove(self._ffi.cast("char*", address), data, len(data))

    def _require(self, address: int, count: int, function: str) -> None:
        found = any(base <= address and address + count <= base + size for base, size in self._sizes.items())
        if count < 0 or not found:
            allowed = "what tessxHostMemory or tessHostAlloc gave"
            text = f"{function}: hostPtr = {address:#x}, {count} bytes: allowed: {allowed}"
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", text)
