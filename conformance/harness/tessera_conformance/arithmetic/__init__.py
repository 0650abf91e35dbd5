"""Node arithmetics as values, and the replay of a declared order bit for bit.

A vendor at the deterministic level declares in which order its sums run and what each node does; `replay` computes what
that declaration gives. It shares nothing with the reference implementation.
"""

from tessera_conformance.arithmetic import replay
from tessera_conformance.arithmetic.nodes import ModelError, NodeArithmetic, canonical

__all__ = ["ModelError", "NodeArithmetic", "canonical", "replay"]
