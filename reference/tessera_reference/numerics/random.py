"""Random numbers that do not depend on the sharding of a tensor, by Philox4x32-10."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, prod, tau
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import elementary
from .array import Array
from .errors import InvalidArgument, ShapeMismatch, require_room
from .formats import DTYPES, DType, UnsupportedDType
from .rounding import round_exact, round_to

# Philox4x32-10, the counter generator behind every random number.
#
# Reference arithmetic ("random"); Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC
# 2011). A block of four words is a function of a counter and a key, nothing else, so a shard of a tensor computes its
# own part. The key is (low, high) half of the seed. Block b of stream t has the counter (b low, b high, t low, t high)
# and holds words 4b to 4b + 3 of that stream.


UInt64s: TypeAlias = npt.NDArray[np.uint64]
UInt32s: TypeAlias = npt.NDArray[np.uint32]

ROUNDS = 10
WORD_LIMIT = 1 << 64
"""The number of words of one stream."""

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


# Random numbers that do not depend on the sharding of a tensor.
#
# Reference arithmetic ("random"). Element i of a tensor, i its row-major index in the whole tensor, takes its number
# from fixed words of a Philox stream. The `offset` of a shard gives its elements: the index of its first element, from
# which the others count up, or an array with the index of each.
#
# uniform   (w >> (32 - p)) * 2**-p with w = word(i) and p significand bits; fp64 takes 53 bits of words 2i and 2i + 1
# normal    sqrt(-2 log u1) * cos(2 pi u2), u1 = (word(2i) + 1) * 2**-32, u2 = word(2i + 1) * 2**-32 (Box and Muller)
# dropout   keeps element i where word(i) >= ceil(rate * 2**32), and divides it by 1 - rate


Offset: TypeAlias = int | npt.NDArray[np.integer[Any]]

ELEMENT_LIMIT = 1 << 63
"""The most elements of a tensor; two words each exhaust a stream."""


def uniform(seed: int, stream: int, shape: Sequence[int], dtype: DType, offset: Offset = 0) -> Array:
    """Return numbers of `shape` spread evenly over the multiples of 2**-p in [0, 1), p the significand bits of `dtype`.

    Floats only; tf32 is fp32. Raises `UnsupportedDType`, `ShapeMismatch`, `InvalidArgument`, `TooLarge`.
    """
    _require_float("uniform", dtype)
    bits = dtype.storage.fraction_bits + 1
    if bits > 32:
        high, low = _words_of_each(seed, stream, tuple(shape), offset, 2)
        grid = (high >> np.uint32(5)).astype(np.uint64) * np.uint64(1 << 26) + (low >> np.uint32(6))
    else:
        (word,) = _words_of_each(seed, stream, tuple(shape), offset, 1)
        grid = (word >> np.uint32(32 - bits)).astype(np.uint64)
    return Array(dtype, np.ldexp(grid.astype(np.float64), -bits).astype(dtype.carrier))


def normal(seed: int, stream: int, shape: Sequence[int], dtype: DType, offset: Offset = 0) -> Array:
    """Return numbers of `shape` with mean 0 and variance 1, below 6.67 in magnitude.

    Every step is correctly rounded in fp64, the result once more to `dtype`. Floats only; tf32 is fp32.
    Raises as `uniform` does.
    """
    _require_float("normal", dtype)
    first, second = _words_of_each(seed, stream, tuple(shape), offset, 2)
    u1 = np.ldexp(first.astype(np.float64) + 1.0, -32)
    u2 = np.ldexp(second.astype(np.float64), -32)
    fp64 = DTYPES["fp64"]
    with np.errstate(all="ignore"):
        radius = np.sqrt(-2.0 * elementary.log(u1, fp64))
        return Array(dtype, round_to(np.asarray(radius * elementary.cos(tau * u2, fp64)), dtype))


def dropout(x: Array, rate: float, seed: int, stream: int, offset: Offset = 0) -> Array:
    """Return `x` with about `rate` of its elements replaced by +0 and the others divided by 1 - rate; same shape.

    1 - rate is rounded to the accumulator type, the quotient in it, and then to the dtype of `x`. Floats only.
    Raises as `uniform` does.
    """
    _require_float("dropout", x.dtype)
    keeps = dropout_mask(rate, seed, stream, x.shape, offset).values
    accumulator = x.dtype.accumulator
    kept_share = np.array(round_exact(1 - Fraction(rate), accumulator), accumulator.carrier)
    with np.errstate(all="ignore"):
        scaled = round_to(np.asarray(x.values / kept_share), x.dtype)
        return Array(x.dtype, np.where(keeps, scaled, np.zeros_like(scaled)))


def dropout_mask(rate: float, seed: int, stream: int, shape: Sequence[int], offset: Offset = 0) -> Array:
    """Return the mask of the elements that dropout keeps. Raises `ShapeMismatch`, `InvalidArgument`, `TooLarge`."""
    if not 0.0 <= rate < 1.0:
        raise InvalidArgument("dropout", "rate", rate, "a number with 0 <= rate < 1")
    threshold = np.uint64(ceil(Fraction(rate) * 2**32))  # 2**32 at the last rates below 1, where nothing is kept
    (word,) = _words_of_each(seed, stream, tuple(shape), offset, 1)
    return Array(DTYPES["bool"], word.astype(np.uint64) >= threshold)


def _words_of_each(seed: int, stream: int, shape: tuple[int, ...], offset: Offset, each: int) -> list[UInt32s]:
    """Return `each` arrays of words: for element i those from `each` * i on."""
    count = _count(shape)
    if isinstance(offset, np.ndarray):
        first = _indices(shape, offset) * np.uint64(each)
        return [words_at(seed, stream, first + np.uint64(place)) for place in range(each)]
    drawn = words(seed, stream, each * _first(offset, count), each * count)
    return [drawn[place::each].reshape(shape) for place in range(each)]


def _require_float(operation: str, dtype: DType) -> None:
    if dtype.kind != "float":
        raise UnsupportedDType(operation, dtype)


def _count(shape: tuple[int, ...]) -> int:
    if any(extent < 0 for extent in shape):
        raise ShapeMismatch("random numbers", f"{list(shape)} has a negative extent")
    require_room("random numbers", shape)
    return prod(shape)


def _first(offset: int, count: int) -> int:
    is_integer = isinstance(offset, int) and not isinstance(offset, bool)
    if not is_integer or not 0 <= offset <= offset + count <= ELEMENT_LIMIT:
        raise InvalidArgument("random numbers", "offset", offset, f"0 <= offset and offset + {count} <= 2**63")
    return offset


def _indices(shape: tuple[int, ...], offset: npt.NDArray[np.integer[Any]]) -> UInt64s:
    if offset.dtype.kind not in "iu":
        raise InvalidArgument("random numbers", "offset", str(offset.dtype), "an integer or an array of integers")
    if offset.shape != shape:
        raise ShapeMismatch("random numbers", f"{list(offset.shape)} element indices for shape {list(shape)}")
    indices = offset.astype(np.uint64)  # a negative one becomes at least 2**63
    if (indices >= np.uint64(ELEMENT_LIMIT)).any():
        first = int(offset[indices >= np.uint64(ELEMENT_LIMIT)][0])
        raise InvalidArgument("random numbers", "offset", first, "element indices from 0 to 2**63 - 1")
    return indices
