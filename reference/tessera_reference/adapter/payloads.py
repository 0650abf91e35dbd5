"""The methods on what travels: chunks, compressed and packed tensors, residuals, largest elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tessera_conformance.tensors import Tensor

from ..abi.status import invalid
from ..collectives.chunk_sizes import read_chunk_size
from ..collectives.chunks import chunks_of
from ..collectives.compression import Compression, compress, read_compression
from ..collectives.error_feedback import feed_back
from ..collectives.packing import TensorType, pack, unpack
from ..collectives.sparsity import densify, sparsify
from ..numerics import formats
from ..numerics.errors import shown
from .outcomes import array, tensor
from .requests import checked
from .session_state import SessionState
from .statuses import statuses

__all__ = ["PayloadMethods"]


class PayloadMethods(SessionState):
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

    @checked
    def collectives_compress(
        self, *, input: Tensor, dtype: Any, qscheme: Any = None, block: Any = None
    ) -> dict[str, Any]:
        """What of a tensor travels, and what arrives."""
        function = "collectives.compress"
        with statuses():
            compression = read_compression(function, dtype, qscheme, block)
            found = compress(function, array(input), compression)
        answer: dict[str, Any] = {"payload": tensor(found.payload), "restored": tensor(found.restored)}
        if found.scales is not None:
            answer |= {"scales": tensor(found.scales), "block": compression.block}
        return answer

    @checked
    def collectives_pack(
        self, *, inputs: Sequence[Tensor], dtype: Any = None, qscheme: Any = None, block: Any = None
    ) -> dict[str, Any]:
        """The bytes of a buffer of tensors."""
        with statuses():
            compression = _compression("collectives.pack", dtype, qscheme, block)
            return {"wire": pack([array(each) for each in inputs], compression).hex()}

    @checked
    def collectives_unpack(
        self,
        *,
        wire: bytes,
        tensors: Sequence[Mapping[str, Any]],
        dtype: Any = None,
        qscheme: Any = None,
        block: Any = None,
    ) -> dict[str, Any]:
        """The tensors of a buffer."""
        with statuses():
            compression = _compression("collectives.unpack", dtype, qscheme, block)
            types = [TensorType(formats.dtype(each["dtype"]), tuple(each["shape"])) for each in tensors]
            return {"outputs": [tensor(each) for each in unpack(wire, types, compression)]}

    @checked
    def collectives_feedback(
        self, *, gradients: Sequence[Tensor], dtype: Any, qscheme: Any = None, block: Any = None
    ) -> dict[str, Any]:
        """What is sent and kept, step by step."""
        function = "collectives.feedback"
        with statuses():
            compression = read_compression(function, dtype, qscheme, block)
            steps = feed_back(function, [array(each) for each in gradients], compression)
        return {
            "sent": [tensor(each.sent) for each in steps],
            "residuals": [tensor(each.residual) for each in steps],
        }

    @checked
    def collectives_sparsify(self, *, input: Tensor, k: Any) -> dict[str, Any]:
        """The largest elements, and what stays behind."""
        with statuses():
            found = sparsify("collectives.sparsify", array(input), k)
        return {"indices": tensor(found.indices), "values": tensor(found.values), "rest": tensor(found.rest)}

    @checked
    def collectives_densify(self, *, indices: Tensor, values: Tensor, shape: Sequence[int]) -> dict[str, Any]:
        """A tensor of some elements."""
        with statuses():
            return {"output": tensor(densify("collectives.densify", array(indices), array(values), shape))}


def _compression(function: str, dtype: Any, qscheme: Any, block: Any) -> Compression | None:
    """None where nothing is said of a wire."""
    unsaid = dtype is None and qscheme is None and block is None
    return None if unsaid else read_compression(function, dtype, qscheme, block)


def _tile(function: str, tile: Sequence[int] | None) -> tuple[int, int]:
    """The rows and columns of a tile; of one element where none is given."""
    if tile is None:
        return 1, 1
    if len(tile) != 2:
        raise invalid(function, f"tile has {len(tile)} extents", "2: rows and columns")
    if any(type(each) is not int or each < 1 for each in tile):
        raise invalid(function, f"tile {shown(list(tile))}", "extents from 1 on")
    return tile[0], tile[1]
