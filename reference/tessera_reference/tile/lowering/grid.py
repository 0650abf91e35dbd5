"""The grid of a kernel: which tile of which matrix a block computes (spec sections 8.1, 8.2; AMB-LANG-203)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..verifier import MOST_BLOCKS
from .index import Index, ceiling, unravelled
from .kernel import Extents, KernelBuilder


@dataclass(frozen=True)
class Grid:
    """Blocks for the tiles of matrices: columns along x, rows along y, matrices along z; all along x where too many."""

    extents: Extents
    corner: tuple[Index, Index]
    matrix: Index

    @classmethod
    def of(cls, kernel: KernelBuilder, shape: Sequence[int], tile: Sequence[int], matrices: int) -> Grid:
        """The grid for so many matrices of a shape in tiles, and the place of a block in it; never empty."""
        (rows, columns), (m, n) = shape, tile
        x, y, z = max(ceiling(columns, n), 1), max(ceiling(rows, m), 1), max(matrices, 1)
        if all(extent <= most for extent, most in zip((x, y, z), MOST_BLOCKS, strict=True)):
            matrix, row, column = (
                kernel.block_id(axis) if extent > 1 else kernel.index(0)
                for axis, extent in (("z", z), ("y", y), ("x", x))
            )
            return cls((x, y, z), (row * m, column * n), matrix)
        matrix, row, column = unravelled(kernel.block_id("x"), (z, y, x))
        return cls((x * y * z, 1, 1), (row * m, column * n), matrix)
