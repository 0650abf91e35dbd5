"""Philox4x32-10, the counter generator behind every random number.

Canon of arithmetic ("random"); Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
A block of four words is a function of a counter and a key, nothing else, so a shard of a tensor computes its own part.
The key is (low, high) half of the seed. Block b of stream t has the counter (b low, b high, t low, t high) and holds
words 4b to 4b + 3 of that stream.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgument

__all__ = ["ROUNDS", "WORD_LIMIT", "philox4x32", "words", "words_at"]

UInt64s: TypeAlias = npt.NDArray[np.uint64]
UInt32s: TypeAlias = npt.NDArray[np.uint32]

ROUNDS = 10
WORD_LIMIT = 1 << 64
"""Words of one stream."""

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_HALF = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)


def philox4x32(counter: npt.NDArray[np.integer[Any]], key: tuple[int, int]) -> UInt32s:
    """Return the four output words of every counter: (..., 4) -> (..., 4), each word below 2**32."""
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = (product1 >> _HALF) ^ c1 ^ np.uint64(k0), (product0 >> _HALF) ^ c3 ^ np.uint64(k1)
        c1, c3 = product1 & _MASK, product0 & _MASK
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def words(seed: int, stream: int, first: int, count: int) -> UInt32s:
    """Return words `first` to `first + count - 1` of a stream. Raises `InvalidArgument`."""
    if not 0 <= first <= first + count <= WORD_LIMIT:
        raise InvalidArgument("random words", "first", first, f"0 <= first and first + {count} <= 2**64")
    begin, end = first // 4, -(-(first + count) // 4)
    blocks = np.uint64(begin) + np.arange(end - begin, dtype=np.uint64)
    return _blocks(seed, stream, blocks).reshape(-1)[first - 4 * begin :][:count]


def words_at(seed: int, stream: int, indices: UInt64s) -> UInt32s:
    """Return the word at each of `indices`, in the same shape. Raises `InvalidArgument`."""
    blocks = _blocks(seed, stream, indices >> np.uint64(2))
    lane = (indices & np.uint64(3)).astype(np.intp)
    return np.asarray(blocks.reshape(-1)[np.arange(lane.size) * 4 + lane.reshape(-1)].reshape(indices.shape))


def _blocks(seed: int, stream: int, blocks: UInt64s) -> UInt32s:
    """Return blocks (...) of a stream as words (..., 4)."""
    _require_uint64("seed", seed)
    _require_uint64("stream", stream)
    counter = np.empty((*blocks.shape, 4), np.uint64)
    counter[..., 0], counter[..., 1] = blocks & _MASK, blocks >> _HALF
    counter[..., 2], counter[..., 3] = np.uint64(stream & 0xFFFFFFFF), np.uint64(stream >> 32)
    return philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))


def _require_uint64(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise InvalidArgument("random words", name, value, "an integer from 0 to 2**64 - 1")
