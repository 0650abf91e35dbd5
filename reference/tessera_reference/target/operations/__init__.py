"""The operations of the Target level, by concept; importing this declares them all."""

from . import (
    arithmetic,
    calls,
    comparisons,
    control,
    conversions,
    nvvm,
    nvvm_matrix,
    pointers,
    registers,
    rocdl,
    rocdl_matrix,
    vectors,
)

__all__ = [
    "arithmetic",
    "calls",
    "comparisons",
    "control",
    "conversions",
    "nvvm",
    "nvvm_matrix",
    "pointers",
    "registers",
    "rocdl",
    "rocdl_matrix",
    "vectors",
]
