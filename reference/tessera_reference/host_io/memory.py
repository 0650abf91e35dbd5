"""Bytes by address, of which only those that were written take room."""

from __future__ import annotations

from collections.abc import Iterator

from ..mesh.intervals import Intervals

__all__ = ["PAGE", "SparseMemory"]

PAGE = 1 << 12
"""Bytes of a page: a multiple of every element that a pattern repeats."""
ZEROS = bytes(PAGE)


class SparseMemory:
    """An address space of zeros, by pages; the pages of a fill share their bytes until one is changed."""

    def __init__(self) -> None:
        self._pages: dict[int, bytes | bytearray] = {}
        self._written = Intervals()

    def read(self, pa: int, nbytes: int) -> bytes:
        """The bytes from an address on."""
        parts = [memoryview(self._pages.get(page, ZEROS))[start:stop] for page, start, stop in _pieces(pa, nbytes)]
        return b"".join(parts)

    def write(self, pa: int, data: bytes | memoryview) -> None:
        """Write bytes from an address on."""
        data = memoryview(data)
        self._written.add(pa, pa + len(data))
        done = 0
        for page, start, stop in _pieces(pa, len(data)):
            self._own(page)[start:stop] = data[done : done + stop - start]
            done += stop - start

    def fill(self, pa: int, nbytes: int, element: bytes) -> None:
        """Repeat an element whose size divides `nbytes` and a page, from the first byte on (AMB-HIO-35)."""
        first, last = -(-pa // PAGE), (pa + nbytes) // PAGE
        if first >= last:
            self.write(pa, element * (nbytes // len(element)))
            return
        turn = -pa % len(element)
        page = (element[turn:] + element[:turn]) * (PAGE // len(element))
        self.write(pa, page[PAGE - (first * PAGE - pa) :])
        self._pages.update(dict.fromkeys(range(first, last), page))
        self.write(last * PAGE, page[: pa + nbytes - last * PAGE])
        self._written.add(pa, pa + nbytes)

    def was_written(self, pa: int, nbytes: int) -> bool:
        """Whether each of the bytes was written once."""
        return self._written.covers(pa, pa + nbytes)

    def _own(self, page: int) -> bytearray:
        """A page to write to, which no other shares."""
        found = self._pages.get(page, ZEROS)
        if isinstance(found, bytes):
            found = self._pages[page] = bytearray(found)
        return found


def _pieces(pa: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """The pages of a range, each with the first and the last position within it."""
    end = pa + nbytes
    while pa < end:
        page, start = divmod(pa, PAGE)
        stop = min(PAGE, start + end - pa)
        yield page, start, stop
        pa += stop - start
