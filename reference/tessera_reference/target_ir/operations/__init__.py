"""The operations of the Target level, by concept; importing this declares them all."""

from . import llvm, memory, vendors

__all__ = ["llvm", "memory", "vendors"]
