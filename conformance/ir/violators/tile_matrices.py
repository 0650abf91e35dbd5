"""Machines whose matrix instructions compute or read other values (language spec, 7.1 to 7.3, 10; AMB-LANG-34)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.kernel_machine.block import BlockState
from tessera_reference.kernel_machine.storage import Misaligned
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import cast
from tessera_reference.tile import fragments
from tessera_reference.tile import fragments as matrices
from tessera_reference.tile.fragments import LoadMatrix, MmaSync

from ..variants.declared_arithmetic import DeclaredArithmetic

MMA, LOADING, FRAGMENTS, ALIGNED = "LANG-07.2-03", "LANG-07.2-02", "LANG-07.1-01", "LANG-07.3-01"

Product = Callable[[Array, Array, DType, Array], Array]

# Products


def multiplies(name: str, description: str, product: Product, clause: str = MMA) -> Violation:
    """Return a violation with another product of fragments."""

    def run(self: MmaSync, block: BlockState, a: Array, b: Array, c: Array) -> Array:
        block.whole_warps("mma.sync")
        return product(a, b, self.accum, c)

    return replaced(clause, description, make, ("tile.fragments.MmaSync.run", run), name=name)


def canonical(a: Array, b: Array, accum: DType, c: Array) -> Array:
    """Return the right product."""
    return matmul(a, b, accum, addend=c, accumulator=accum)


def second_half_first(a: Array, b: Array, accum: DType, c: Array) -> Array:
    count = a.shape[-1]
    order = [*range(count // 2, count), *range(count // 2)] if count == 32 else [*range(count)]
    return canonical(Array(a.dtype, a.values[..., order]), Array(b.dtype, b.values[..., order, :]), accum, c)


def fused(a: Array, b: Array, accum: DType, c: Array) -> Array:
    if accum.kind != "float":
        return canonical(a, b, accum, c)
    return matmul(a, b, accum, addend=c, arithmetic=DeclaredArithmetic(accum, product="fused"))


def wide(a: Array, b: Array, accum: DType, c: Array) -> Array:
    if accum == a.dtype.accumulator:
        return canonical(a, b, accum, c)
    full = a.dtype.accumulator
    return cast(matmul(a, b, full, addend=cast(c, full), accumulator=full), accum)


def unrounded(a: Array, b: Array, accum: DType, c: Array) -> Array:
    if a.dtype.name != "tf32":
        return canonical(a, b, accum, c)
    full = dtype("fp32")
    return matmul(Array(full, a.values), Array(full, b.values), accum, addend=c, accumulator=accum)


def short_integers(a: Array, b: Array, accum: DType, c: Array) -> Array:
    found = canonical(a, b, accum, c)
    return found if accum.kind != "int" else Array(accum, found.values.astype(np.int16).astype(found.values.dtype))


PRODUCTS = [
    multiplies("second_half_first", "adds the second half of a k of 32 first", second_half_first),
    multiplies("wide", "accumulates wider than it is asked to", wide),
    multiplies("unrounded", "does not round operands of tf32", unrounded),
    multiplies("short_integers", "accumulates integers in 16 bits", short_integers),
]

# Fragments in memory


def loads(name: str, clause: str, description: str, run: Any) -> Violation:
    """Return a violation with another ldmatrix."""
    return replaced(clause, description, make, ("tile.fragments.LoadMatrix.run", run), name=name)


def otherwise(**fields: Any) -> Any:
    """Return an ldmatrix with some attributes replaced."""

    def run(self: LoadMatrix, block: BlockState, memory: Any, *indices: Array) -> Array:
        before = {name: getattr(self, name) for name in fields}
        for name, change in fields.items():
            object.__setattr__(self, name, change(self))
        try:
            return LOAD(self, block, memory, *indices)
        finally:
            for name, value in before.items():
                object.__setattr__(self, name, value)

    return run


def whole_transposed(self: LoadMatrix, block: BlockState, memory: Any, *indices: Array) -> Array:
    return LOAD(self, block, memory, *(indices[::-1] if self.transpose else indices))


def corner_of_lane_0(block: BlockState, what: str, values: Any) -> Any:
    found = BY_WARP(block, what, values)
    return np.broadcast_to(found[:1], found.shape)


def corner_of_first_lanes(block: BlockState, what: str, values: Any) -> Any:
    block.whole_warps(what)
    return values.reshape(block.warps, block.warp)[:, 0]


def within_the_memory(block: BlockState, memory: Any, corners: Any, warps: Any, shape: Any, stride: int) -> Any:
    at = corners[warps, None, None] + matrices._pattern(*shape, stride)
    if (at[:, -1, -1] >= memory.size).any():
        return ELEMENTS(block, memory, corners, warps, shape, stride)
    return np.asarray(at)


def within_the_batch(block: BlockState, memory: Any, corners: Any, warps: Any, shape: Any, stride: int) -> Any:
    check = ELEMENTS if len(memory.shape) < 3 else within_the_memory
    return check(block, memory, corners, warps, shape, stride)


def clamped(block: BlockState, memory: Any, corners: Any, warps: Any, shape: Any, stride: int) -> Any:
    at = corners[warps, None, None] + matrices._pattern(*shape, stride)
    return np.minimum(at, memory.size - 1)


def of_eight(block: BlockState, memory: Any, corners: Any, alignment: int) -> None:
    """Require an alignment of 8 bytes only."""
    REQUIRED(block, memory, corners, 8)


def partial(self: BlockState, what: str) -> Any:
    if self.mask is None:
        return np.arange(self.warps)
    return np.unique(self.active // self.warp)


def packed(block: BlockState, memory: Any, corners: Any, alignment: int) -> None:
    begin = 0
    for buffer in block.shared.values():
        if buffer is memory:
            break
        begin += buffer.size * buffer.dtype.storage_bytes
    if begin % alignment:
        raise Misaligned(block.clock.warp(0), memory.address(0), begin, alignment)
    REQUIRED(block, memory, corners, alignment)


LOAD, BY_WARP, ELEMENTS, REQUIRED = LoadMatrix.run, fragments.by_warp, matrices._elements, fragments.require_aligned
SPACES = "LANG-08.3-01"

READING = [
    loads("always_transposed", LOADING, "transposes always", otherwise(transpose=lambda self: True)),
    loads("corner_transposed", LOADING, "transposes the corner too", whole_transposed),
    loads("no_stride", LOADING, "takes rows to be as long as those in memory", otherwise(
        stride=lambda self: self.memory.shape[-1])),
    replaced(FRAGMENTS, "has one corner for all warps", make, ("tile.fragments.by_warp", corner_of_lane_0),
             name="one_corner"),
    replaced(LOADING, "takes a corner from the first lane", make, ("tile.fragments.by_warp", corner_of_first_lanes),
             name="corner_of_first_lanes"),
    replaced(SPACES, "lets a matrix go on in the next one", make, ("tile.fragments._elements", within_the_batch),
             name="next_matrix"),
    replaced(ALIGNED, "aligns matrices to 8 bytes", make, ("tile.fragments.require_aligned", of_eight),
        name="of_eight"),
    replaced("LANG-16-05", "lays allocations without gaps", make, ("tile.fragments.require_aligned", packed),
             name="packed"),
    replaced("LANG-16-06", "aligns matrices in shared memory to 8 bytes", make,
             ("tile.fragments.require_aligned", of_eight), name="tiles_of_eight"),
    replaced(MMA, "runs matrix instructions for part of a warp", make,
             ("kernel_machine.block.BlockState.whole_warps", partial),
             ("tile.fragments.by_warp", lambda block, what, values: values.reshape(block.warps, block.warp)[:, 0]
              if values.size % block.warp == 0 else values[:: block.warp]), name="part_of_a_warp"),
]  # fmt: skip
