"""Node arithmetics as values, and the replay of a declared order bit for bit.

A vendor at the deterministic level declares the order of its sums and the arithmetic of each node; `replay` computes
the result of that declaration. It shares nothing with the reference implementation.
"""

from tessera_conformance.arithmetic import replay
from tessera_conformance.arithmetic.nodes import ModelError, NodeArithmetic, canonical
from tessera_conformance.oracle.exact import Rounding

__all__ = ["ModelError", "NodeArithmetic", "Rounding", "canonical", "replay"]
