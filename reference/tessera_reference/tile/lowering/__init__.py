"""Lowering to Tile IR: every nest of a scheduled function becomes a kernel and its launch (sections 8.1, 8.2, 16).

One module for each kind of nest: `contractions`, `maps` and `rows`. They build kernels with `kernel` and `index`, and
compute single elements of fused operations with `elements`. Operations outside nests stay in the host function.
"""

from .module import to_tile

__all__ = ["to_tile"]
