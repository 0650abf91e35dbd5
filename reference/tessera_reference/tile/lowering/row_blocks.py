"""How a block works on rows: which lanes have which elements, and the tree of the canon over them (section 10).

A power of two of lanes works on each row, on as many adjacent elements at a time. In the tree of adjacent pairs node i
of level l covers the elements from i * 2**l on, and is kept by the lane of the first of them. So at level l a lane
reads the value of the lane 2**l further on; a node whose neighbour would lie beyond the end of the row, the odd tail,
keeps its own value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from ...graph.term import Term
from ...ir.module import Value
from ...numerics.formats import DType
from ..fragments import ALIGNMENT
from ..synchronization import ShuffleSync
from .index import Condition, Index, Position, ceiling, power_of_two, unravelled
from .kernel import Extents, Terms
from .nest_kernel import NestKernel

MOST_LANES = 1024
"""Threads of a block that works on rows."""

Combine = Callable[[Term, Term], Term]


@dataclass(frozen=True)
class RowBlocks:
    """Rows of a length, counted over the extents of `shape`, and the lanes of a block on each of its rows."""

    kernel: NestKernel
    shape: tuple[int, ...]
    length: int
    together: int
    """The rows of a block."""
    lanes: int
    """The lanes of a row."""
    threads: int
    """The threads of a block, in whole warps."""
    local: Index
    """The row of a lane, counted in its block."""
    lane: Index
    """The place of a lane among those of its row."""
    position: Position
    """The position of a lane's row."""
    inside: Condition
    """Whether a lane has a row."""

    @classmethod
    def of(cls, kernel: NestKernel, shape: tuple[int, ...], length: int) -> RowBlocks:
        """Rows and lanes as the nest's tile requests, limited by the rows and threads that there are."""
        rows, chunk, _ = kernel.nest.tile
        most = min(MOST_LANES, kernel.target.threads_per_block)
        together = max(min(rows, prod(shape), most), 1)
        lanes = max(min(power_of_two(min(chunk, length)), power_of_two(most // together + 1) // 2), 1)
        threads = ceiling(together * lanes, kernel.target.warp) * kernel.target.warp
        local, lane = divmod(kernel.thread_id(), lanes)
        row = kernel.block_id("x") * together + local
        inside = kernel.every(
            threads == together * lanes or local.below(together),
            prod(shape) % together == 0 or row.below(prod(shape)),
        )
        return cls(kernel, shape, length, together, lanes, threads, local, lane, unravelled(row, shape), inside)

    @property
    def extents(self) -> Extents:
        """The grid."""
        return max(ceiling(prod(self.shape), self.together), 1), 1, 1

    def each(self, body: Callable[[Index], Terms]) -> None:
        """Do something in every lane for each element of its row."""

        def chunk(start: Index, _: tuple[Term, ...]) -> Terms:
            place = start + self.lane
            self.kernel.when(self.kernel.every(self.inside, self._exists(place)), lambda: body(place))
            return ()

        self.kernel.loop(0, self.length, self.lanes, chunk)

    def once(self, body: Callable[[], Terms]) -> None:
        """Do something once for each row."""
        self.kernel.when(self.kernel.every(self.inside, self.lane.equals(0)), body)

    def _exists(self, place: Index) -> Condition:
        return self.length % self.lanes == 0 or place.below(self.length)

    def node_bytes(self, dtype: DType) -> int:
        """The shared memory that one tree takes."""
        width = min(self.lanes, self.kernel.target.warp)
        size = self.threads // self.lanes * ceiling(self.length, width) * dtype.storage_bytes
        return ceiling(size, ALIGNMENT) * ALIGNMENT

    def tree(self, element: Callable[[Index], Term], combine: Combine, dtype: DType) -> Term:
        """The result of the tree over the elements of a row, in each of its lanes; there is at least one element."""
        width = min(self.lanes, self.kernel.target.warp)
        count = ceiling(self.length, width)
        rows = self.threads // self.lanes
        nodes = self.kernel.shared((rows, count), dtype)

        def chunk(start: Index, _: tuple[Term, ...]) -> Terms:
            place = start + self.lane
            exists = self._exists(place)
            (value,) = self.kernel.when(
                self.kernel.every(self.inside, exists),
                lambda: (element(place),),
                lambda: (self.kernel.exactly(0, dtype),),
            )
            value = self._of_warp(place, value, combine, width)
            node, within = divmod(place, width)
            first = self.kernel.every(exists, within.equals(0))
            self.kernel.when(first, lambda: self._keep(value, nodes, (self.local, node)))
            return ()

        self.kernel.loop(0, self.length, self.lanes, chunk)
        self.kernel.barrier("the nodes of all warps are there")
        self._of_block(nodes, count, combine)
        return self.kernel.load(nodes, (self.local, self.kernel.index(0)))

    def _of_warp(self, place: Index, value: Term, combine: Combine, width: int) -> Term:
        """The levels that stay within a warp."""
        delta = 1
        while delta < width:
            other = self.kernel.term(self.kernel.build(ShuffleSync, value.value, delta=delta))
            paired = self.length % (2 * delta) == 0 or (place + delta).below(self.length)
            value = self.kernel.chosen(paired, combine(value, other), value)
            delta *= 2
        return value

    def _of_block(self, nodes: Value, count: int, combine: Combine) -> None:
        """The levels above, in shared memory."""
        local, delta = self.local, 1
        while delta < count:
            pairs = ceiling(count - delta, 2 * delta)

            def node(start: Index, _: tuple[Term, ...], pairs: int = pairs, delta: int = delta) -> Terms:
                pair = start + self.lane
                first = pair * (2 * delta)
                left, right = (local, first), (local, first + delta)

                def join() -> Terms:
                    return self._keep(
                        combine(self.kernel.load(nodes, left), self.kernel.load(nodes, right)), nodes, left
                    )

                return self.kernel.when(pairs % self.lanes == 0 or pair.below(pairs), join)

            self.kernel.loop(0, pairs, self.lanes, node)
            self.kernel.barrier("the nodes of this level are there")
            delta *= 2

    def _keep(self, value: Term, nodes: Value, at: Position) -> Terms:
        self.kernel.store(value, nodes, at)
        return ()
