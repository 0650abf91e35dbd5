"""Matrices in memory as warps read and write them: one corner for each warp, rows a stride apart (section 7.2)."""

from __future__ import annotations

from functools import cache

import numpy as np

from .block import BlockState
from .faults import Address, Misaligned, OutOfBounds
from .storage import Offsets, Storage, Values


def load_matrices(block: BlockState, memory: Storage, corners: Offsets, shape: tuple[int, int], stride: int) -> Values:
    """A matrix for each warp, [warps, rows, columns]; zeros for inactive warps. Raises `KernelFault`."""
    warps = block.whole_warps("a matrix")
    at = _elements(block, memory, corners, warps, shape, stride)
    read = memory.read(at, block.clock.of_warps(warps)[:, None, None])
    if warps.size == block.warps:
        return read
    made = np.zeros((block.warps, *shape), read.dtype)
    made[warps] = read
    return made


def store_matrices(block: BlockState, memory: Storage, corners: Offsets, values: Values) -> None:
    """Write the matrix of each active warp. Raises `KernelFault`."""
    warps = block.whole_warps("a matrix")
    at = _elements(block, memory, corners, warps, (values.shape[1], values.shape[2]), memory.shape[-1])
    memory.write(at, block.clock.of_warps(warps)[:, None, None], values[warps])


def require_aligned(block: BlockState, memory: Storage, corners: Offsets, alignment: int) -> None:
    """Raise `Misaligned` unless the corner of each active warp lies at a multiple of `alignment` bytes."""
    warps = block.whole_warps("a matrix")
    begin = corners[warps] * memory.dtype.storage_bytes
    odd = begin % alignment != 0
    if odd.any():
        warp = int(warps[odd][0])
        raise Misaligned(block.clock.warp(warp), memory.address(int(corners[warp])), int(begin[odd][0]), alignment)


def _elements(
    block: BlockState, memory: Storage, corners: Offsets, warps: Offsets, shape: tuple[int, int], stride: int
) -> Offsets:
    """The offsets of all elements. Raises `OutOfBounds`.

    At the memory's own stride, a matrix ends where its rows and its columns do; at another one, where the memory does.
    """
    at = corners[warps, None, None] + _pattern(*shape, stride)
    outside = at[:, -1, -1] >= memory.size
    if stride == memory.shape[-1]:
        outside |= corners[warps] % stride + shape[1] > stride
        outside |= corners[warps] // stride % memory.shape[-2] + shape[0] > memory.shape[-2]
    if outside.any():
        warp = int(warps[outside][0])
        *batch, row, column = memory.address(int(corners[warp])).indices
        last = Address(memory.name, (*batch, row + shape[0] - 1, column + shape[1] - 1))
        raise OutOfBounds(block.clock.warp(warp), last, memory.shape)
    return np.asarray(at)


@cache
def _pattern(rows: int, columns: int, stride: int) -> Offsets:
    """The offsets of a matrix from its corner."""
    made = np.arange(rows)[:, None] * stride + np.arange(columns)
    made.flags.writeable = False
    return made
