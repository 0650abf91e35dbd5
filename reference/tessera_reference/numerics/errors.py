"""What the arithmetic refuses, as types with fields."""

from __future__ import annotations

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


class DTypeMismatch(NumericsFailure):
    """The operands of `operation` have two dtypes, `a` and `b`; nothing is promoted implicitly (LANG-03.1-05)."""

    def __init__(self, operation: str, a: DType, b: DType) -> None:
        super().__init__(operation, a, b)
        self.operation = operation
        self.a = a
        self.b = b

    def __str__(self) -> str:
        return f"{self.operation}: operands are {self.a} and {self.b}"


class ShapeMismatch(NumericsFailure):
    """`operation` does not take these shapes, axes or permutations; `problem` says why."""

    def __init__(self, operation: str, problem: str) -> None:
        super().__init__(operation, problem)
        self.operation = operation
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.operation}: {self.problem}"


class DivisionByZero(NumericsFailure):
    """An integer was divided by zero; `index` is the first such element of the result, in row-major order."""

    def __init__(self, index: tuple[int, ...]) -> None:
        super().__init__(index)
        self.index = index

    def __str__(self) -> str:
        return f"integer division by zero at element {list(self.index)}"


class WrongCarrier(NumericsFailure):
    """Values of `dtype` are held in `dtype.carrier`, not in `found`."""

    def __init__(self, dtype: DType, found: np.dtype[np.generic]) -> None:
        super().__init__(dtype, found)
        self.dtype = dtype
        self.found = found

    def __str__(self) -> str:
        return f"{self.dtype} is held in {self.dtype.carrier}, not in {self.found}"


class NotRepresentable(NumericsFailure):
    """`value` at `index` is no value of `dtype`."""

    def __init__(self, dtype: DType, index: tuple[int, ...], value: object) -> None:
        super().__init__(dtype, index, value)
        self.dtype = dtype
        self.index = index
        self.value = value

    def __str__(self) -> str:
        return f"{self.value!r} at {list(self.index)} is not a value of {self.dtype}"


class MalformedStorage(NumericsFailure):
    """A buffer of `found` bytes cannot hold what takes `expected` bytes."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"expected {self.expected} bytes, found {self.found}"


class UnsuitableEnvironment(NumericsFailure):
    """This process does not compute by IEEE 754's default rules; `findings` names each departure."""

    def __init__(self, findings: tuple[str, ...]) -> None:
        super().__init__(findings)
        self.findings = findings

    def __str__(self) -> str:
        return "arithmetic of this process is not IEEE 754's default: " + "; ".join(self.findings)


class InvalidArgument(NumericsFailure):
    """`operation` was given `found` for `argument`; `allowed` says in words what it takes."""

    def __init__(self, operation: str, argument: str, found: object, allowed: str) -> None:
        super().__init__(operation, argument, found, allowed)
        self.operation = operation
        self.argument = argument
        self.found = found
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.operation}: {self.argument} is {shown(self.found)}, allowed is {self.allowed}"


class TooLarge(MemoryError):
    """`operation` would take `needed` of `what`, and at most `limit` are made here: no error of whoever asks."""

    def __init__(self, operation: str, what: str, needed: int, limit: int) -> None:
        super().__init__(operation, what, needed, limit)
        self.operation = operation
        self.what = what
        self.needed = needed
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.operation}: {shown(self.needed)} {self.what} are too many, at most {self.limit} are taken"


class NonFinite(NumericsFailure):
    """`operation` met `value` at `index`, where only numbers of the kind `allowed` can be worked with."""

    def __init__(self, operation: str, index: tuple[int, ...], value: float, allowed: str) -> None:
        super().__init__(operation, index, value, allowed)
        self.operation = operation
        self.index = index
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.operation}: {self.value!r} at {list(self.index)} is not {self.allowed}"


class AxisOutOfRange(ShapeMismatch):
    """`operation` has no axis `axis` to work along: axes are -rank to rank - 1."""

    def __init__(self, operation: str, axis: int, rank: int) -> None:
        allowed = f"{-rank} <= axis <= {rank - 1}" if rank else "none, an operand of rank 0 has no axes"
        super().__init__(operation, f"axis {axis} is out of range for rank {rank}, allowed is {allowed}")
        self.axis = axis
        self.rank = rank


class EmptyAxis(ShapeMismatch):
    """`operation` needs at least one element along `axis`, and there are none."""

    def __init__(self, operation: str, axis: int) -> None:
        super().__init__(operation, f"axis {axis} has extent 0, at least 1 element is needed")
        self.axis = axis


class MalformedTree(NumericsFailure):
    """`problem` stands at `column`, from 1, of `text`; or, in JSON, at `path`."""

    def __init__(self, problem: str, text: str = "", column: int = 0, path: str = "") -> None:
        super().__init__(problem, text, column, path)
        self.problem = problem
        self.text = text
        self.column = column
        self.path = path

    def __str__(self) -> str:
        return f"reduction tree, {f'at {self.path}' if self.path else f'column {self.column}'}: {self.problem}"


class LeafCount(NumericsFailure):
    """A reduction of `expected` elements was given a tree of `found` leaves."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"reduction tree: {self.expected} elements are reduced, the tree has {self.found} leaves"
