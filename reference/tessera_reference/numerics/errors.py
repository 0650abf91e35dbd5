"""The errors of the arithmetic, as types with fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .failure import NumericsFailure, shown
from .formats import DType, UnknownDType, UnknownDTypeId, UnsupportedDType

__all__ = [
    "AxisOutOfRange",
    "DTypeMismatch",
    "DivisionByZero",
    "EmptyAxis",
    "InvalidArgument",
    "LeafCount",
    "MalformedStorage",
    "MalformedTree",
    "NonFinite",
    "NotRepresentable",
    "NumericsFailure",
    "ShapeMismatch",
    "TooLarge",
    "UnknownDType",
    "UnknownDTypeId",
    "UnsuitableEnvironment",
    "UnsupportedDType",
    "WrongCarrier",
    "shown",
]


@dataclass(eq=False, repr=False)
class DTypeMismatch(NumericsFailure):
    """The operands of `operation` have two dtypes, `a` and `b`; nothing is promoted implicitly (LANG-03.1-05)."""

    operation: str
    a: DType
    b: DType

    def __str__(self) -> str:
        return f"{self.operation}: operands are {self.a} and {self.b}"


@dataclass(eq=False, repr=False)
class ShapeMismatch(NumericsFailure):
    """`operation` does not take these shapes, axes or permutations; `problem` says why."""

    operation: str
    problem: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.problem}"


@dataclass(eq=False, repr=False)
class DivisionByZero(NumericsFailure):
    """An integer was divided by zero; `index` is the first such element of the result, in row-major order."""

    index: tuple[int, ...]

    def __str__(self) -> str:
        return f"integer division by zero at element {list(self.index)}"


@dataclass(eq=False, repr=False)
class WrongCarrier(NumericsFailure):
    """Values of `dtype` are held in `dtype.carrier`, not in `found`."""

    dtype: DType
    found: np.dtype[np.generic]

    def __str__(self) -> str:
        return f"{self.dtype} is held in {self.dtype.carrier}, not in {self.found}"


@dataclass(eq=False, repr=False)
class NotRepresentable(NumericsFailure):
    """`value` at `index` is no value of `dtype`."""

    dtype: DType
    index: tuple[int, ...]
    value: object

    def __str__(self) -> str:
        return f"{self.value!r} at {list(self.index)} is not a value of {self.dtype}"


@dataclass(eq=False, repr=False)
class MalformedStorage(NumericsFailure):
    """A buffer of `found` bytes cannot hold what takes `expected` bytes."""

    expected: int
    found: int

    def __str__(self) -> str:
        return f"expected {self.expected} bytes, found {self.found}"


@dataclass(eq=False, repr=False)
class UnsuitableEnvironment(NumericsFailure):
    """This process does not compute by IEEE 754's default rules; `findings` names each departure."""

    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "arithmetic of this process is not IEEE 754's default: " + "; ".join(self.findings)


@dataclass(eq=False, repr=False)
class InvalidArgument(NumericsFailure):
    """`operation` does not accept `found` for `argument`; `allowed` describes what it accepts."""

    operation: str
    argument: str
    found: object
    allowed: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.argument} is {shown(self.found)}, allowed is {self.allowed}"


@dataclass(eq=False, repr=False)
class TooLarge(MemoryError):
    """`operation` needs `needed` of `what`, more than the `limit` of this implementation: no error of the caller."""

    operation: str
    what: str
    needed: int
    limit: int

    def __str__(self) -> str:
        return f"{self.operation}: {shown(self.needed)} {self.what} are too many, at most {self.limit} are taken"


@dataclass(eq=False, repr=False)
class NonFinite(NumericsFailure):
    """`operation` found `value` at `index`, where it accepts only numbers of the kind `allowed`."""

    operation: str
    index: tuple[int, ...]
    value: float
    allowed: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.value!r} at {list(self.index)} is not {self.allowed}"


class AxisOutOfRange(ShapeMismatch):
    """`operation` has no axis `axis` to work along: axes are -rank to rank - 1."""

    def __init__(self, operation: str, axis: int, rank: int) -> None:
        allowed = f"{-rank} <= axis <= {rank - 1}" if rank else "none, an operand of rank 0 has no axes"
        super().__init__(operation, f"axis {axis} is out of range for rank {rank}, allowed is {allowed}")


class EmptyAxis(ShapeMismatch):
    """`operation` needs at least one element along `axis`, and there are none."""

    def __init__(self, operation: str, axis: int) -> None:
        super().__init__(operation, f"axis {axis} has extent 0, at least 1 element is needed")


@dataclass(eq=False, repr=False)
class MalformedTree(NumericsFailure):
    """`problem` stands at `column`, from 1, of `text`; or, in JSON, at `path`."""

    problem: str
    text: str = ""
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        return f"reduction tree, {f'at {self.path}' if self.path else f'column {self.column}'}: {self.problem}"


@dataclass(eq=False, repr=False)
class LeafCount(NumericsFailure):
    """A tree of `found` leaves does not fit a reduction of `expected` elements."""

    expected: int
    found: int

    def __str__(self) -> str:
        return f"reduction tree: {self.expected} elements are reduced, the tree has {self.found} leaves"
