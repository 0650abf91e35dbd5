"""Kernels in the form `wsp-kernel`: straight-line instructions over whole tensors, and their report of cycles.

A parameter is a tensor or a u64 scalar. An instruction works element by element on tensors of one dtype and one count.
A scalar or a constant stands for a value of that dtype. Integers wrap, floats are IEEE, and every NaN that arithmetic
gives is the quiet one. `sum` adds in element order into the one element of its destination (AMB-WSP-62). A kernel takes
`fixed + per_element * n` cycles, n the elements of its largest tensor (AMB-WSP-61).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.arithmetic import larger, smaller
from .errors import ProgramRefused
from .forms import Amount, Entry, Name, Word, member, plain

Values: TypeAlias = npt.NDArray[Any]

DTYPES: Mapping[str, np.dtype[Any]] = {
    **{f"i{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "fp32": np.dtype("<f4"),
    "fp64": np.dtype("<f8"),
    "bool": np.dtype("?"),
}
Dtype: TypeAlias = Annotated[str, plain(member, allowed=tuple(DTYPES))]
Op: TypeAlias = Annotated[str, lambda reader, value, path: member(value, path, tuple(INSTRUCTIONS))]


@dataclass(frozen=True)
class Operand:
    """A parameter by name, or a constant."""

    parameter: Name | None = None
    constant: Word | None = None

    def check(self, path: str) -> None:
        """Raise `ProgramRefused` for none of the two, and for both."""
        if (self.parameter is None) == (self.constant is None):
            raise ProgramRefused(path, "is no operand: a parameter or a constant")


@dataclass(frozen=True)
class Instruction:
    """One operation on whole tensors."""

    op: Op
    destination: Name
    operands: tuple[Operand, ...]

    def check_parameters(self, parameters: Mapping[str, str], path: str) -> None:
        """Raise `ProgramRefused` for operands that the operation does not take."""
        if parameters.get(self.destination) != "tensor":
            raise ProgramRefused(f"{path}/destination", f"{self.destination} is no tensor parameter")
        taken = INSTRUCTIONS[self.op].operands
        if len(self.operands) != len(taken):
            problem = f"are {len(self.operands)}, expected {len(taken)} for {self.op}"
            raise ProgramRefused(f"{path}/operands", problem)
        for place, (operand, needed) in enumerate(zip(self.operands, taken, strict=True)):
            kind = "scalar" if operand.parameter is None else parameters.get(operand.parameter)
            if kind is None:
                problem = f"{operand.parameter} is no parameter of the kernel"
                raise ProgramRefused(f"{path}/operands/{place}/parameter", problem)
            if needed not in (kind, "any"):
                raise ProgramRefused(f"{path}/operands/{place}", f"is a {kind}, and {self.op} needs a {needed}")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel."""

    name: Name
    kind: Literal["tensor", "scalar"]


@dataclass(frozen=True)
class Payload:
    """The instructions of a kernel, and what they work on."""

    form: Literal["wsp-kernel"]
    parameters: tuple[Parameter, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Cycles:
    """The report of a kernel."""

    fixed: Amount = 0
    per_element: Amount = 0

    def of(self, counts: Sequence[int]) -> int:
        """Return the cycles for tensors of these counts."""
        return self.fixed + self.per_element * max(counts, default=0)


@dataclass(frozen=True)
class Kernel(Entry):
    """An entry of the kernel registry; its entry symbol is its name where a program names none."""

    payload: Payload
    cycles: Cycles
    executor: Literal["vector", "matrix", "dma"] = "vector"
    entry: Name = ""

    def check(self, path: str) -> None:
        """Raise `ProgramRefused` for parameters of one name, and instructions that do not fit them."""
        if not self.entry:
            object.__setattr__(self, "entry", self.name)
        if len(self.parameters) < len(self.payload.parameters):
            raise ProgramRefused(f"{path}/payload/parameters", "have a name twice")
        for place, instruction in enumerate(self.payload.instructions):
            instruction.check_parameters(self.parameters, f"{path}/payload/instructions/{place}")

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The kinds of the parameters, by name."""
        return {parameter.name: parameter.kind for parameter in self.payload.parameters}

    @cached_property
    def code(self) -> Sequence[tuple[str, int, Sequence[tuple[str, int]]]]:
        """The instructions, with tensors and scalars by their places among the tensors and the scalars of a call.

        An operand is `tensor` or `scalar` and its place, or `constant` and its value.
        """
        places: dict[str, tuple[str, int]] = {}
        for kind in ("tensor", "scalar"):
            names = [name for name, other in self.parameters.items() if other == kind]
            places |= {name: (kind, place) for place, name in enumerate(names)}
        code = []
        for instruction in self.payload.instructions:
            operands = [
                ("constant", operand.constant or 0) if operand.parameter is None else places[operand.parameter]
                for operand in instruction.operands
            ]
            code.append((instruction.op, places[instruction.destination][1], operands))
        return code


def check_call(kernel: Kernel, tensors: Mapping[str, tuple[str, int]], path: str) -> None:
    """The instructions are defined for tensors of these dtypes and counts, by parameter. Raises `ProgramRefused`."""
    for instruction in kernel.payload.instructions:
        dtype, count = tensors[instruction.destination]
        if dtype == "bool" and not INSTRUCTIONS[instruction.op].of_bool:
            raise ProgramRefused(path, f"kernel {kernel.name}: {instruction.op} is not defined for bool")
        if instruction.op == "sum" and count != 1:
            raise ProgramRefused(path, f"kernel {kernel.name}: the destination of sum has {count} elements, expected 1")
        for operand in instruction.operands:
            if operand.parameter is None or operand.parameter not in tensors:
                continue
            other, length = tensors[operand.parameter]
            if other != dtype or (length != count and instruction.op != "sum"):
                expected = dtype if instruction.op == "sum" else f"{count} of {dtype}"
                actual = f"{operand.parameter} is {length} of {other}"
                raise ProgramRefused(path, f"kernel {kernel.name}: {actual}, and {instruction.op} needs {expected}")


def execute(kernel: Kernel, tensors: Sequence[Values], scalars: Sequence[int]) -> None:
    """Execute a call on its tensors and its scalars, both in the order of their parameters."""
    for op, place, operands in kernel.code:
        destination = tensors[place]
        values = [
            tensors[value]
            if kind == "tensor"
            else _element(scalars[value] if kind == "scalar" else value, destination.dtype)
            for kind, value in operands
        ]
        destination[:] = INSTRUCTIONS[op].result(destination, *values)
        if destination.dtype.kind == "f" and op != "copy":  # which keeps all bits
            destination[np.isnan(destination)] = np.nan


@lru_cache(1024)
def _element(value: int, dtype: np.dtype[Any]) -> Any:
    """A u64 as an element: integers wrap, floats round to nearest even, bool is whether it is not 0."""
    number = np.uint64(value)
    return number != 0 if dtype.kind == "b" else number.astype(dtype)


@dataclass(frozen=True)
class InstructionKind:
    """A kind of instruction: its result, and what its operands are: a tensor, a scalar, or any of the two.

    The result is computed from the destination, of which it has the count and the dtype, and the operands.
    """

    result: Callable[..., Any]
    operands: tuple[str, ...]
    of_bool: bool = False


def _iota(like: Values, first: Any) -> Values:
    numbers: Values = np.arange(len(like), dtype=np.uint64).astype(like.dtype) + first
    return numbers


INSTRUCTIONS: Mapping[str, InstructionKind] = {
    "fill": InstructionKind(lambda like, value: value, ("scalar",), of_bool=True),
    "iota": InstructionKind(_iota, ("scalar",)),
    "copy": InstructionKind(lambda like, source: source, ("tensor",), of_bool=True),
    "add": InstructionKind(lambda like, a, b: a + b, ("any", "any")),
    "sub": InstructionKind(lambda like, a, b: a - b, ("any", "any")),
    "mul": InstructionKind(lambda like, a, b: a * b, ("any", "any")),
    "min": InstructionKind(lambda like, a, b: smaller(a, b), ("any", "any"), of_bool=True),
    "max": InstructionKind(lambda like, a, b: larger(a, b), ("any", "any"), of_bool=True),
    "sum": InstructionKind(lambda like, source: reduce(operator.add, source), ("tensor",)),
}
