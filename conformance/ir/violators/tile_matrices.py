"""Machines whose matrix instructions compute or read other values (language spec, 7.1 to 7.3, 10; AMB-LANG-34)."""

from dataclasses import replace

import numpy as np

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.kernel_machine.storage import Misaligned
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import cast
from tessera_reference.tile import fragments

from .changes import around, breaks, instead, wrapped

MMA, LOADING, FRAGMENTS, ALIGNED = "LANG-07.2-03", "LANG-07.2-02", "LANG-07.1-01", "LANG-07.3-01"
SPACES = "LANG-08.3-01"


def multiplies(name, description, product):
    """Return a violation with another product of fragments."""

    def run(self, block, a, b, c):
        block.whole_warps("mma.sync")
        return product(a, b, self.accum, c)

    return instead(MMA, name, description, "tile.fragments.MmaSync.run", run)


def canonical(a, b, accum, c):
    return matmul(a, b, accum, addend=c, accumulator=accum)


def second_half_first(a, b, accum, c):
    count = a.shape[-1]
    order = [*range(count // 2, count), *range(count // 2)] if count == 32 else [*range(count)]
    return canonical(Array(a.dtype, a.values[..., order]), Array(b.dtype, b.values[..., order, :]), accum, c)


def wide(a, b, accum, c):
    full = a.dtype.accumulator
    return cast(canonical(a, b, full, cast(c, full)), accum)


def short_integers(a, b, accum, c):
    found = canonical(a, b, accum, c)
    return found if accum.kind != "int" else Array(accum, found.values.astype(np.int16).astype(found.values.dtype))


def loads(clause, name, description, **fields):
    """Return a violation with other attributes of ldmatrix; each is a function of the operation."""

    def run(usual, self, *operands):
        return usual(replace(self, **{name: value(self) for name, value in fields.items()}), *operands)

    return wrapped(clause, name, description, "tile.fragments.LoadMatrix.run", run)


@breaks(FRAGMENTS, "has one corner for all warps", "tile.fragments.by_warp")
def one_corner(usual, block, what, values):
    found = usual(block, what, values)
    return np.broadcast_to(found[:1], found.shape)


@breaks(LOADING, "takes a corner from the first lane", "tile.fragments.by_warp")
def corner_of_first_lanes(usual, block, what, values):
    block.whole_warps(what)
    return values.reshape(block.warps, block.warp)[:, 0]


@breaks("LANG-16-05", "lays allocations without gaps", "tile.fragments.require_aligned")
def packed(usual, block, memory, corners, alignment):
    begin = 0
    for buffer in block.shared.values():
        if buffer is memory:
            break
        begin += buffer.size * buffer.dtype.storage_bytes
    if begin % alignment:
        raise Misaligned(block.clock.warp(0), memory.address(0), begin, alignment)
    usual(block, memory, corners, alignment)


@breaks(SPACES, "lets a matrix go on in the next one", "tile.fragments._elements")
def next_matrix(usual, block, memory, corners, warps, shape, stride):
    at = corners[warps, None, None] + fragments._pattern(*shape, stride)
    if len(memory.shape) < 3 or (at[:, -1, -1] >= memory.size).any():
        return usual(block, memory, corners, warps, shape, stride)
    return np.asarray(at)


OF_EIGHT = around(lambda usual, block, memory, corners, alignment: usual(block, memory, corners, 8))

VIOLATIONS = [
    multiplies("second_half_first", "adds the second half of a k of 32 first", second_half_first),
    multiplies("wide", "accumulates wider than it is asked to", wide),
    multiplies("unrounded", "does not round operands of tf32", lambda a, b, accum, c:
        canonical(*(Array(DTYPES["fp32"], x.values) if x.dtype.name == "tf32" else x for x in (a, b)), accum, c)),
    multiplies("short_integers", "accumulates integers in 16 bits", short_integers),
    loads(LOADING, "always_transposed", "transposes always", transpose=lambda self: True),
    wrapped(LOADING, "corner_transposed", "transposes the corner too", "tile.fragments.LoadMatrix.run",
        lambda usual, self, block, memory, *indices:
        usual(self, block, memory, *(indices[::-1] if self.transpose else indices))),
    loads(LOADING, "no_stride", "takes rows to be as long as those in memory",
        stride=lambda self: self.memory.shape[-1]),
    instead(ALIGNED, "of_eight", "aligns matrices to 8 bytes", "tile.fragments.require_aligned", OF_EIGHT),
    instead("LANG-16-06", "tiles_of_eight", "aligns matrices in shared memory to 8 bytes",
        "tile.fragments.require_aligned", OF_EIGHT),
    replaced(MMA, "runs matrix instructions for part of a warp", make, ("kernel_machine.block.BlockState.whole_warps",
            lambda self, what: np.arange(self.warps) if self.mask is None else np.unique(self.active // self.warp)),
        ("tile.fragments.by_warp", lambda block, what, values: values.reshape(block.warps, block.warp)[:, 0]
            if values.size % block.warp == 0 else values[:: block.warp]), name="part_of_a_warp"),
]  # fmt: skip
