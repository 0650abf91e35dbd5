"""Comparisons, and the choice that follows one (LANG-08-01)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...ir.operation import Attribute, Operand, operation, require
from ...ir.types import Scalar, Vector
from ...numerics import arithmetic
from ...numerics.array import Array
from ...numerics.formats import DTYPES
from ...tile.block import BlockState
from ..emission.writer import Writer
from ..operation import CLAUSES, TargetOperation, require_alike, require_dtype
from .arithmetic import FLOATS, LOGICAL

BOOL = DTYPES["bool"]

PREDICATES = {
    "eq": arithmetic.equal,
    "ne": arithmetic.not_equal,
    "lt": arithmetic.less,
    "gt": arithmetic.greater,
    "le": arithmetic.less_equal,
    "ge": arithmetic.greater_equal,
}
"""Comparisons by the last two letters of LLVM's predicates."""


@dataclass(frozen=True)
class Comparison(TargetOperation):
    """Base of both comparisons; the predicate is LLVM's."""

    a: Operand[Scalar]
    b: Operand[Scalar]
    predicate: Attribute[str]

    dtypes: ClassVar[tuple[str, ...]]
    predicates: ClassVar[tuple[str, ...]]

    def infer(self) -> Scalar:
        """A bool for each lane."""
        require_alike(self.a, self.b)
        require_dtype(self.a.dtype, self.dtypes)
        require(
            self.predicate in self.predicates,
            "types",
            f"there is no predicate {self.predicate!r}",
            f"one of {', '.join(self.predicates)}",
            "LANG-11-01",
        )
        return Scalar(BOOL)

    def run(self, block: BlockState, a: Array, b: Array) -> Array:
        """Whether it holds."""
        return PREDICATES[self.predicate[-2:]](a, b)

    def emit(self, text: Writer, a: str, b: str) -> str:
        """The instruction."""
        return text.value(f"{self.mnemonic} {self.predicate} {text.type(self.a)} {a}, {b}")


@operation("llvm.icmp", clauses=CLAUSES)
class ICmp(Comparison):
    """A comparison of integers."""

    dtypes = LOGICAL
    predicates = ("eq", "ne", "slt", "sgt", "sle", "sge")


@operation("llvm.fcmp", clauses=CLAUSES)
class FCmp(Comparison):
    """A comparison of floats: ordered, except `une`, which is true for NaN."""

    dtypes = FLOATS
    predicates = ("oeq", "une", "olt", "ogt", "ole", "oge")


@operation("llvm.select", clauses=CLAUSES)
class Select(TargetOperation):
    """`a` in the lanes where the condition holds, `b` in the others."""

    condition: Operand[Scalar]
    a: Operand[Scalar | Vector]
    b: Operand[Scalar | Vector]

    def infer(self) -> Scalar | Vector:
        """The type of both."""
        require_dtype(self.condition.dtype, ("bool",), "condition")
        require_alike(self.a, self.b)
        return self.a

    def run(self, block: BlockState, condition: Array, a: Array, b: Array) -> Array:
        """One or the other."""
        holds = condition.values.reshape(condition.shape + (1,) * (a.rank - condition.rank))
        return Array(a.dtype, np.where(holds, a.values, b.values))

    def emit(self, text: Writer, condition: str, a: str, b: str) -> str:
        """The instruction."""
        type_ = text.type(self.a)
        return text.value(f"select i1 {condition}, {type_} {a}, {type_} {b}")
