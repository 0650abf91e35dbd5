"""Lowering of kernels from Tile IR to Target IR (LANG-08.2-05 to -12)."""

from .kernel import to_target

__all__ = ["to_target"]
