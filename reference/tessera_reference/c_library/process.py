"""The memory and the environment of the process that has loaded the library, asked through `library.c`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Process", "variables"]


class Process:
    """The `ProcessMemory` of a machine; `ffi` and `lib` are those of the library."""

    def __init__(self, ffi: Any, lib: Any) -> None:
        self._ffi = ffi
        self._lib = lib
        bytes = ffi.new("uint64_t*")
        first = lib.process_reserve(bytes)
        self.reserved = range(first, first + bytes[0])
        self._opened: dict[int, int] = {}

    def open(self, address: int, bytes: int) -> None:
        """Let there be zeros at reserved addresses. Raises `MemoryError`."""
        if not self._lib.process_open(address, bytes):
            raise MemoryError(f"{bytes} bytes of the host")
        self._opened[address] = bytes

    def close(self, address: int, bytes: int) -> None:
        """Let there be nothing any more."""
        del self._opened[address]
        self._lib.process_close(address, bytes)

    def close_all(self) -> None:
        """Let there be nothing at all reserved addresses."""
        for address, bytes in tuple(self._opened.items()):
            self.close(address, bytes)

    def holds(self, address: int, bytes: int) -> bool:
        """Whether something is mapped at all of these addresses, which are those of a process."""
        return bool(self._lib.process_holds(address, bytes))

    def view(self, address: int, bytes: int) -> memoryview:
        """The bytes there, in place."""
        return memoryview(self._ffi.buffer(self._ffi.cast("char*", address), bytes)).cast("B")


def variables(ffi: Any, lib: Any) -> dict[str, str]:
    """The environment variables as they are now, also those that the program has set since it began."""
    return dict(_variables(ffi, lib))


def _variables(ffi: Any, lib: Any) -> Iterator[tuple[str, str]]:
    place = 0
    while (entry := lib.process_variable(place)) != ffi.NULL:
        name, _, value = ffi.string(entry).decode("utf-8", "surrogateescape").partition("=")
        yield name, value
        place += 1
