"""Implementations that leave the order of the reference where a reduction is longer than a tile (language spec, 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.graph.composites import FlashAttention
from tessera_reference.graph.reductions import ArgMax
from tessera_reference.numerics import reductions as numerics
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.trees import fold, pairwise

from .changes import changed
from .normalization import divided_at_the_end
from .products import Product, in_blocks, multiplied, operands_as, over, to
from .reductions import Node, ordered

Values: TypeAlias = Any
Order: TypeAlias = Callable[[Values, Node, int], Values]
DECOMPOSE = FlashAttention.decompose


def adjacent(rows: Values, node: Node) -> Values:
    """The canonical tree."""
    return pairwise(rows, 0, lambda a, b: node([a, b]))


def in_tiles(size: int) -> Order:
    """The canonical tree within each tile, the tiles from left to right."""

    def order(rows: Values, node: Node, neutral: int) -> Values:
        tiles = [adjacent(rows[first : first + size], node) for first in range(0, len(rows), size)]
        return fold(np.stack(tiles), 0, lambda a, b: node([a, b]))

    return order


def strided(width: int) -> Order:
    """Each lane adds every width-th element; then the lanes by the canonical tree."""

    def order(rows: Values, node: Node, neutral: int) -> Values:
        lanes = [fold(rows[lane::width], 0, lambda a, b: node([a, b])) for lane in range(min(width, len(rows)))]
        return adjacent(np.stack(lanes), node)

    return order


def past(extent: int, order: Order) -> Order:
    return lambda rows, node, neutral: order(rows, node, neutral) if len(rows) > extent else adjacent(rows, node)


def later_tile(x: Array, axis: int, keepdims: bool = False) -> Array:
    found = numerics.argmax(x, axis, keepdims)
    if x.shape[axis] <= 64:
        return found
    values = np.moveaxis(x.values, axis, -1)
    last = values.shape[-1] - 1 - np.argmax(values[..., ::-1] == values.max(-1, keepdims=True), axis=-1)
    places = np.expand_dims(last, axis) if keepdims else last
    same = found.values // 64 == places // 64
    return Array(found.dtype, np.where(same, found.values, places).astype(found.values.dtype))


def in_key_blocks(self: Any, build: Any, *operands: Any) -> Any:
    decompose = divided_at_the_end if operands[1].type.shape[-2] > 64 else DECOMPOSE
    return decompose(self, build, *operands)


def where_all_are_past(extent: int, compute: Product) -> Product:
    def product(a: Array, b: Array, out: DType | None) -> Array:
        large = min(*a.shape[-2:], b.shape[-1]) > extent
        return compute(a, b, out) if large else matmul(a, b, out)

    return product


PRODUCTS: list[Violation] = [
    multiplied("blocks_of_512", "adds blocks of 512 terms for themselves", over(in_blocks(512))),
    multiplied("tf32_past_32", "rounds operands to tf32 where all extents are past 32", where_all_are_past(
        32, operands_as(to("tf32", "fp32"))
    )),
]  # fmt: skip

SUMS: list[Violation] = [
    ordered("tiles_of_64", "adds tiles of 64 elements from left to right", in_tiles(64), "LANG-10-06"),
    ordered("lanes_past_512", "adds more than 512 elements in 512 lanes", past(512, strided(512)), "LANG-10-06"),
    ordered("lanes_deterministic", "adds in 256 lanes, and declares pairs", strided(256), "LANG-10-05"),
]

OTHERS: list[Violation] = [
    changed("LANG-02-04", "later_tile", "takes the last of equal elements in two tiles",
            (ArgMax, "compute", staticmethod(later_tile)), only=["argmax"]),
    changed("LANG-02-04", "key_blocks", "divides the attention of more than 64 keys at its end",
            (FlashAttention, "decompose", in_key_blocks), only=["flash_attention"]),
]  # fmt: skip
