"""Lowering to Tile IR: every nest of a scheduled function becomes a kernel and its launch (sections 8.1, 8.2, 16).

One module for each kind of nest: `contractions`, `maps` and `rows`; `kernel` and `index` are what they are written in,
`elements` and `movements` what one element of a fused operation is. What no kernel holds stays in the host function.
"""

from .module import to_tile

__all__ = ["to_tile"]
