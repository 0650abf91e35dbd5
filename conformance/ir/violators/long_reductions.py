"""Implementations that leave the reference's order if a reduction is longer than a tile (language spec, 10)."""

import numpy as np

from tessera_reference.numerics import reductions as numerics
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.trees import fold, pairwise

from .changes import around, changed
from .normalization import divided_at_the_end
from .products import in_blocks, multiplied, operands_as, over, to
from .reductions import ordered


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


def adjacent(rows, node):
    """Return the canonical tree."""
    return pairwise(rows, 0, lambda a, b: node([a, b]))


def in_lanes(width, least=0):
    """Return an order in which each lane adds every width-th of at least so many rows; then the canonical tree."""

    def order(rows, node, neutral):
        if len(rows) < least:
            return adjacent(rows, node)
        lanes = [fold(rows[lane::width], 0, lambda a, b: node([a, b])) for lane in range(min(width, len(rows)))]
        return adjacent(np.stack(lanes), node)

    return order


def filled_past_64(rows, node, neutral):
    """Return the canonical tree over rows padded with the neutral element, if they are many."""
    filler = np.full((-len(rows) % 128 if len(rows) > 64 else 0, *rows.shape[1:]), neutral, rows.dtype)
    return adjacent(np.concatenate([rows, filler]), node)


def later_tile(x, axis, keepdims=False):
    found = numerics.argmax(x, axis, keepdims)
    if x.shape[axis] <= 64:
        return found
    values = np.moveaxis(x.values, axis, -1)
    last = values.shape[-1] - 1 - np.argmax(values[..., ::-1] == values.max(-1, keepdims=True), axis=-1)
    places = np.expand_dims(last, axis) if keepdims else last
    same = found.values // 64 == places // 64
    return Array(found.dtype, np.where(same, found.values, places).astype(found.values.dtype))


def filled_minimum(x, axis, keepdims=False):
    if x.shape[axis] > 64 and x.dtype.kind == "float":
        shape = [1 if place == axis % x.rank else extent for place, extent in enumerate(x.shape)]
        x = Array(x.dtype, np.concatenate([x.values, np.full(shape, 3e38, x.values.dtype)], axis))
    return numerics.min(x, axis, keepdims)


def without_late_nan(x, axis, keepdims=False):
    values = np.moveaxis(x.values, axis, -1).copy()
    values[..., 64:] = np.where(np.isnan(values[..., 64:]), -np.inf, values[..., 64:])
    return numerics.max(Array(x.dtype, np.moveaxis(values, -1, axis)), axis, keepdims)


def in_two_halves(usual, values, axis, tree, dtype):
    if values.shape[axis] <= 1024 or tree is not None:
        return usual(values, axis, tree, dtype)
    halves = [usual(half, axis, None, dtype) for half in np.array_split(values, 2, axis)]
    return usual(np.stack(halves), 0, None, dtype)


VIOLATIONS = [
    multiplied("past_its_tail", "multiplies zeros with what lies behind a matrix", past_its_tail, "LANG-05.2-02"),
    multiplied("blocks_of_512", "adds blocks of 512 terms for themselves", over(in_blocks(512))),
    multiplied("tf32_past_32", "rounds operands to tf32 where all extents are past 32", lambda a, b, out:
        (operands_as(to("tf32", "fp32")) if min(*a.shape[-2:], b.shape[-1]) > 32 else matmul)(a, b, out)),
    ordered("lanes_past_512", "adds more than 512 elements in 512 lanes", in_lanes(512, 513), "LANG-10-06"),
    ordered("filled_past_64", "fills sums of more than 64 elements up with zeros", filled_past_64, "LANG-10-01"),
    ordered("lanes_deterministic", "adds in 256 lanes, and declares pairs", in_lanes(256), "LANG-10-05"),
    changed("LANG-02-04", "later_tile", "takes the last of equal elements in two tiles",
            ("graph.reductions.ArgMax.compute", staticmethod(later_tile)), only=["argmax"]),
    changed("LANG-02-04", "min_filled_with_finite", "fills long rows up with the largest number for a minimum",
            ("graph.reductions.Min.compute", staticmethod(filled_minimum)), only=["min"]),
    changed("LANG-15-07", "softmax_in_halves", "adds more than 1,024 exponentials of a softmax in halves",
            ("numerics.reductions.add_up", around(in_two_halves)), only=["softmax"]),
    changed("LANG-02-04", "late_nan", "passes over a NaN behind 64 elements",
            ("graph.reductions.Max.compute", staticmethod(without_late_nan)), only=["max"]),
    changed("LANG-02-04", "key_blocks", "divides the attention of more than 64 keys at its end",
            ("graph.composites.FlashAttention.decompose", around(lambda usual, self, build, q, k, *rest:
                (divided_at_the_end if k.type.shape[-2] > 64 else usual)(self, build, q, k, *rest))),
            only=["flash_attention"]),
]  # fmt: skip
