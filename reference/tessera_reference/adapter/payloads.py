"""The methods for what collectives put on the wire: chunks, compressed tensors, residuals, largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..abi.status import invalid
from ..collectives.chunk_sizes import read_chunk_size
from ..collectives.chunks import chunks_of
from ..numerics import formats
from .requests import checked
from .runtime import RuntimeMethods, statuses

__all__ = ["PayloadMethods"]


class PayloadMethods(RuntimeMethods):
    """Chunking and compression, of one tensor at a time (collectives spec 2.3 and 2.5)."""

    @checked
    def collectives_chunks(
        self,
        *,
        shape: Sequence[int],
        dtype: str,
        chunk: Any = None,
        chunk_bytes: Any = None,
        tile: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Which elements travel together."""
        function = "collectives.chunks"
        with statuses():
            size = read_chunk_size(function, chunk, chunk_bytes)
            rows, columns = _tile(function, tile)
            found = chunks_of(function, shape, formats.dtype(dtype), size, (rows, columns))
        return {"chunks": [asdict(each) for each in found]}


def _tile(function: str, tile: Sequence[int] | None) -> tuple[int, int]:
    """The rows and columns of a tile; of one element where none is given."""
    if tile is None:
        return 1, 1
    if len(tile) != 2:
        raise invalid(function, f"tile has {len(tile)} extents", "2: rows and columns")
    return tile[0], tile[1]
