"""What the arithmetic refuses, as types with fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from .formats import DType

__all__ = [
    "DTypeMismatch",
    "DivisionByZero",
    "MalformedStorage",
    "NotRepresentable",
    "NumericsFailure",
    "ShapeMismatch",
    "UnknownDType",
    "UnsuitableEnvironment",
    "UnsupportedDType",
    "WrongCarrier",
]


class NumericsFailure(Exception):
    """Base of everything raised on purpose by `tessera_reference.numerics`."""


class UnknownDType(NumericsFailure):
    """`name` is no dtype of the specifications."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"unknown dtype {self.name!r}"


class UnsupportedDType(NumericsFailure):
    """`operation` is not defined on `dtype`."""

    def __init__(self, operation: str, dtype: DType) -> None:
        super().__init__(operation, dtype)
        self.operation = operation
        self.dtype = dtype

    def __str__(self) -> str:
        return f"{self.operation} is not defined on {self.dtype}"


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
