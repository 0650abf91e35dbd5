"""The kernel of a nest: its parameters, and how values of the host reach them (spec sections 8.1, 16).

Input buffers first, output buffers next, scalars last. A scalar of 32 or 64 bits that an ABI takes is a parameter; any
other is passed as a buffer of one element, as is a scalar result (AMB-LANG-235).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ...graph.constant import ConstTensor
from ...graph.shaping import Reshape
from ...graph.term import Term
from ...ir.module import Function, Instruction, Value
from ...ir.naming import Names
from ...ir.operation import Operation, Refusal
from ...ir.targets import Target
from ...ir.types import Memref, Numeric, Scalar, Tensor
from ...numerics.formats import DType
from ...schedule.nests import Nest
from ..launch import Launch
from .index import Position
from .kernel import Extents, KernelBuilder, extents_of

SCALARS = ("int32", "int64", "fp32", "fp64")
"""Dtypes of scalar parameters (LANG-08.1-05)."""


@dataclass(frozen=True, eq=False)
class Extra:
    """An input that the lowering adds: a constant of the host."""

    operation: ConstTensor

    @cached_property
    def value(self) -> Value:
        """The value that represents it among the inputs."""
        return Value("constant", self.operation.infer())


class NestKernel(KernelBuilder):
    """A kernel under construction, whose parameters are what a nest reads and writes."""

    def __init__(self, nest: Nest, target: Target, extras: Iterable[Extra] = ()) -> None:
        super().__init__(nest.location)
        self.nest = nest
        self.target = target
        self.extras = tuple(extras)
        inputs = (*nest.inputs, *(extra.value for extra in self.extras))
        self.buffers = tuple(value for value in inputs if not is_parameter(value.type))
        self.scalars = tuple(value for value in inputs if is_parameter(value.type))
        self.through: dict[Value, Callable[[Position], Term]] = {}
        """How elements of inputs that are staged are read."""
        self._of: dict[Value, Value] = {}
        self._made: dict[Value, Value] = {}
        for number, value in enumerate(self.buffers):
            self._of[value] = Value(f"in{number}", memref_of(value))
        for number, value in enumerate(nest.outputs):
            self._made[value] = Value(f"out{number}", memref_of(value))
        for number, value in enumerate(self.scalars):
            self._of[value] = Value(f"scalar{number}", value.type)

    @property
    def parameters(self) -> tuple[Value, ...]:
        """In the order of the ABI (LANG-16-02)."""
        inputs, scalars = ([self._of[value] for value in values] for values in (self.buffers, self.scalars))
        return (*inputs, *self._made.values(), *scalars)

    def memory_of(self, value: Value) -> Value:
        """The buffer of an input."""
        return self._of[value]

    def read(self, value: Value, at: Position) -> Term:
        """An element of an input, from where it is staged if it is."""
        return self.through[value](at) if value in self.through else self.read_there(value, at)

    def read_there(self, value: Value, at: Position) -> Term:
        """An element of an input from global memory, or the scalar."""
        parameter = self._of[value]
        if isinstance(parameter.type, Scalar):
            return self.term(parameter)
        return self.load(parameter, at or (self.index(0),))

    def write(self, value: Value, at: Position, element: Term) -> None:
        """An element of an output."""
        self.store(element, self._made[value], at or (self.index(0),))

    def finish(self, name: str, grid: Extents, threads: int) -> Function:
        """The kernel. Raises `Refusal` where it does not fit the target."""
        room = self.target.shared_bytes
        if self.shared_bytes > room:
            raise Refusal(
                "schedule",
                f"its tiles take {self.shared_bytes} bytes of shared memory",
                f"at most {room} bytes, which a block of {self.target.name} has",
                "LANG-07.3-03",
                "choose smaller tiles or a smaller depth",
            )
        return self.function(name, self.parameters, grid, threads, self.target)

    def launch(self, name: str, names: Names) -> tuple[Instruction, ...]:
        """The host instructions that replace the nest; their values have fresh names."""
        made: list[Instruction] = []
        held: dict[Value, Value] = {}
        for extra in self.extras:
            held[extra.value] = Value(names.unique(extra.value.name), extra.value.type)
            made.append(self._host(extra.operation, (), (held[extra.value],)))
        arguments = []
        for each in self.buffers:
            value = held.get(each, each)
            if isinstance(value.type, Scalar):
                buffer = _renamed(value, Tensor((1,), value.type.dtype), names)
                made.append(self._host(Reshape(x=value.type, shape=(1,)), (value,), (buffer,)))
                value = buffer
            arguments.append(value)
        arguments += self.scalars
        outputs = self.nest.outputs
        results = tuple(
            _renamed(value, Tensor((1,), value.type.dtype), names) if isinstance(value.type, Scalar) else value
            for value in outputs
        )
        types = tuple(value.type for value in results)
        operation = Launch(arguments=tuple(map(numeric, arguments)), kernel=name, returns=types)
        made.append(self._host(operation, tuple(arguments), results))
        for value, buffer in zip(outputs, results, strict=True):
            if buffer is not value:
                made.append(self._host(Reshape(x=numeric(buffer), shape=()), (buffer,), (value,)))
        return tuple(made)

    def _host(self, operation: Operation, operands: tuple[Value, ...], results: tuple[Value, ...]) -> Instruction:
        return Instruction(operation, operands, results, self.location)


def _renamed(value: Value, type_: Tensor, names: Names) -> Value:
    """The buffer that stands for a scalar."""
    return Value(names.unique(f"{value.name}_buffer"), type_)


def is_parameter(type_: object) -> bool:
    """Whether a value of the host is passed by value."""
    return isinstance(type_, Scalar) and type_.dtype.name in SCALARS


def numeric(value: Value) -> Numeric:
    """The type of a tensor or scalar."""
    assert isinstance(value.type, Tensor | Scalar)
    return value.type


def dtype_of(value: Value) -> DType:
    """The dtype of a tensor or scalar."""
    return numeric(value).dtype


def memref_of(value: Value) -> Memref:
    """The type of the buffer in which a value of the host is passed."""
    return Memref(extents_of(value.type) or (1,), dtype_of(value))
