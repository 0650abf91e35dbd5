"""Implementations that leave the reference's order if a reduction is longer than a tile (language spec, 10)."""

from typing import Any

import numpy as np

from tessera_reference.graph.composites import FlashAttention
from tessera_reference.numerics import reductions as numerics
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.trees import fold, pairwise

from .changes import changed
from .normalization import divided_at_the_end
from .products import in_blocks, multiplied, operands_as, over, to
from .reductions import ordered

Values = Any
DECOMPOSE = FlashAttention.decompose
ADD_UP = numerics.add_up


def adjacent(rows, node):
    """Return the canonical tree."""
    return pairwise(rows, 0, lambda a, b: node([a, b]))


def strided(width):
    """Return an order in which each lane adds every width-th element; then the canonical tree over the lanes."""

    def order(rows, node, neutral):
        lanes = [fold(rows[lane::width], 0, lambda a, b: node([a, b])) for lane in range(min(width, len(rows)))]
        return adjacent(np.stack(lanes), node)

    return order


def past(extent, order):
    return lambda rows, node, neutral: order(rows, node, neutral) if len(rows) > extent else adjacent(rows, node)


def later_tile(x, axis, keepdims=False):
    found = numerics.argmax(x, axis, keepdims)
    if x.shape[axis] <= 64:
        return found
    values = np.moveaxis(x.values, axis, -1)
    last = values.shape[-1] - 1 - np.argmax(values[..., ::-1] == values.max(-1, keepdims=True), axis=-1)
    places = np.expand_dims(last, axis) if keepdims else last
    same = found.values // 64 == places // 64
    return Array(found.dtype, np.where(same, found.values, places).astype(found.values.dtype))


def in_key_blocks(self, build, *operands):
    decompose = divided_at_the_end if operands[1].type.shape[-2] > 64 else DECOMPOSE
    return decompose(self, build, *operands)


def where_all_are_past(extent, compute):
    def product(a, b, out):
        large = min(*a.shape[-2:], b.shape[-1]) > extent
        return compute(a, b, out) if large else matmul(a, b, out)

    return product


def filled_past_64(filler):
    """Return an extreme whose rows beyond 64 elements are padded with a number."""

    def compute(x, axis, keepdims=False):
        extreme = numerics.max if filler <= 0 else numerics.min
        if x.shape[axis] > 64 and x.dtype.kind == "float":
            shape = [1 if place == axis % x.rank else extent for place, extent in enumerate(x.shape)]
            x = Array(x.dtype, np.concatenate([x.values, np.full(shape, filler, x.values.dtype)], axis))
        return extreme(x, axis, keepdims)

    return compute


def without_late_nan(x, axis, keepdims=False):
    """Return a maximum that ignores a NaN after the first 64 elements."""
    values = np.moveaxis(x.values, axis, -1).copy()
    values[..., 64:] = np.where(np.isnan(values[..., 64:]), -np.inf, values[..., 64:])
    return numerics.max(Array(x.dtype, np.moveaxis(values, -1, axis)), axis, keepdims)


def filled_to_128(rows, node, neutral):
    """Return the canonical tree over rows padded with the neutral element."""
    filler = np.full((-len(rows) % 128, *rows.shape[1:]), neutral, rows.dtype)
    return adjacent(np.concatenate([rows, filler]), node)


def past_its_tail(left, right, out):
    """Multiply a left operand padded with zeros by the memory behind the right one."""
    if left.dtype.kind != "float" or left.rank < 3 or not left.shape[-1] % 16:
        return matmul(left, right, out)
    count = -left.shape[-1] % 16
    behind = np.roll(right.values, -1, 0)[..., :count, :]
    behind = np.where(np.arange(len(behind)).reshape(-1, *[1] * (behind.ndim - 1)) < len(behind) - 1, behind, 0)
    zeros = np.zeros((*left.shape[:-1], behind.shape[-2]), left.values.dtype)
    wide = Array(left.dtype, np.concatenate([left.values, zeros], -1))
    return matmul(wide, Array(right.dtype, np.concatenate([right.values, behind.astype(right.values.dtype)], -2)), out)


def in_two_halves(values, axis, tree, dtype):
    """Add exponentials, more than 1,024 in two halves."""
    if values.shape[axis] <= 1024 or tree is not None:
        return ADD_UP(values, axis, tree, dtype)
    halves = [ADD_UP(half, axis, None, dtype) for half in np.array_split(values, 2, axis)]
    return ADD_UP(np.stack(halves), 0, None, dtype)


PRODUCTS = [
    multiplied("past_its_tail", "multiplies zeros with what lies behind a matrix", past_its_tail, "LANG-05.2-02"),
    multiplied("blocks_of_512", "adds blocks of 512 terms for themselves", over(in_blocks(512))),
    multiplied("tf32_past_32", "rounds operands to tf32 where all extents are past 32",
        where_all_are_past(32, operands_as(to("tf32", "fp32")))),
]  # fmt: skip

SUMS = [
    ordered("lanes_past_512", "adds more than 512 elements in 512 lanes", past(512, strided(512)), "LANG-10-06"),
    ordered("filled_past_64", "fills sums of more than 64 elements up with zeros", past(64, filled_to_128),
        "LANG-10-01"),
    ordered("lanes_deterministic", "adds in 256 lanes, and declares pairs", strided(256), "LANG-10-05"),
]  # fmt: skip

OTHERS = [
    changed("LANG-02-04", "later_tile", "takes the last of equal elements in two tiles",
            ("graph.reductions.ArgMax.compute", staticmethod(later_tile)), only=["argmax"]),
    changed("LANG-02-04", "min_filled_with_finite", "fills long rows up with the largest number for a minimum",
            ("graph.reductions.Min.compute", staticmethod(filled_past_64(3e38))), only=["min"]),
    changed("LANG-15-07", "softmax_in_halves", "adds more than 1,024 exponentials of a softmax in halves",
            ("numerics.reductions.add_up", in_two_halves), only=["softmax"]),
    changed("LANG-02-04", "late_nan", "passes over a NaN behind 64 elements",
            ("graph.reductions.Max.compute", staticmethod(without_late_nan)), only=["max"]),
    changed("LANG-02-04", "key_blocks", "divides the attention of more than 64 keys at its end",
            ("graph.composites.FlashAttention.decompose", in_key_blocks), only=["flash_attention"]),
]  # fmt: skip
