"""Orders of summation and node arithmetics as values, and their replay bit for bit.

A vendor at the deterministic level declares in which order its sums run and what each node does; `replay` computes what
that declaration gives. It shares nothing with the reference implementation.
"""

from __future__ import annotations

from tessera_conformance.arithmetic import replay
from tessera_conformance.arithmetic.tree import (
    FOLD,
    PAIRWISE,
    LeafCountError,
    LeafError,
    ModelError,
    NodeArithmetic,
    Tree,
    TreeError,
    TreeFormError,
    TreeSyntaxError,
    canonical,
    ring,
)

__all__ = [
    "FOLD",
    "PAIRWISE",
    "LeafCountError",
    "LeafError",
    "ModelError",
    "NodeArithmetic",
    "Tree",
    "TreeError",
    "TreeFormError",
    "TreeSyntaxError",
    "canonical",
    "replay",
    "ring",
]
