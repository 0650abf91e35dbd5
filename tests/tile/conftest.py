"""Kernels built by hand, one operation a line, and what running them gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tessera_reference.graph  # noqa: F401  # declares its operations
from tessera_reference.graph.constant import Constant
from tessera_reference.graph.elementwise import Add, Divide, Less, Multiply, Subtract
from tessera_reference.ir.diagnostics import Location, Span
from tessera_reference.ir.operation import Block, Builder, Function, Instruction, Operation
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.types import Fragment, Memref, Type, Value
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile.interpreter import run_kernel
from tessera_reference.tile.operations import BlockId, For, If, Load, SharedAlloc, Store, ThreadId
from tessera_reference.tile.verifier import shared_bound, verify_kernel


class Kernel:
    """A kernel on its way; `line` is that of its newest operation, counted from 1."""

    def __init__(
        self,
        *parameters: Type,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (32, 1, 1),
        target: str = "sm_90",
        name: str = "tss_kernel_k",
        **attributes: Any,
    ) -> None:
        self.line = 0
        self.build = Builder(self._place(), "v")
        self.parameters = tuple(Value(f"p{number}", type_) for number, type_ in enumerate(parameters))
        self.name = name
        self.target = target_of(target)
        self.attributes = {"grid": tuple(grid), "block": tuple(block), "target": target, **attributes}

    def __getitem__(self, number: int) -> Value:
        return self.parameters[number]

    def _place(self) -> Location:
        return Location("<kernel>", Span(self.line, 1, self.line, 2))

    # Types and arrays

    @staticmethod
    def buffer(held: str, *shape: Any) -> Memref:
        return Memref(shape, dtype(held), "global")

    @staticmethod
    def shared(held: str, *shape: int) -> Memref:
        return Memref(shape, dtype(held), "shared")

    @staticmethod
    def fragment(held: str, m: int, n: int, k: int) -> Fragment:
        return Fragment(m, n, k, dtype(held))

    @staticmethod
    def array(held: str, values: Any) -> Array:
        return Array.checked(dtype(held), np.asarray(values))

    # Operations

    def all(self, operation: type[Operation], *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        self.line += 1
        self.build.location = self._place()
        return self.build.all(operation, *operands, **attributes)

    def __call__(self, operation: type[Operation], *operands: Value, **attributes: Any) -> Value:
        (result,) = self.all(operation, *operands, **attributes)
        return result

    def constant(self, value: float, held: str = "int32") -> Value:
        return self(Constant, value=value, dtype=dtype(held))

    def number(self, value: Value | int) -> Value:
        return value if isinstance(value, Value) else self.constant(value)

    def thread(self, axis: str = "x") -> Value:
        return self(ThreadId, axis=axis)

    def block_id(self, axis: str = "x") -> Value:
        return self(BlockId, axis=axis)

    def add(self, a: Value, b: Value | int) -> Value:
        return self(Add, a, self.number(b))

    def minus(self, a: Value, b: Value | int) -> Value:
        return self(Subtract, a, self.number(b))

    def times(self, a: Value, b: Value | int) -> Value:
        return self(Multiply, a, self.number(b))

    def over(self, a: Value, b: Value | int) -> Value:
        return self(Divide, a, self.number(b))

    def rest(self, a: Value, b: int) -> Value:
        return self.minus(a, self.times(self.over(a, b), b))

    def less(self, a: Value, b: Value | int) -> Value:
        return self(Less, a, self.number(b))

    def load(self, memory: Value, *indices: Value | int) -> Value:
        return self(Load, memory, *map(self.number, indices))

    def store(self, value: Value, memory: Value, *indices: Value | int) -> None:
        self.all(Store, value, memory, *map(self.number, indices))

    def allocate(self, held: str, *shape: int) -> Value:
        return self(SharedAlloc, returns=self.shared(held, *shape))

    # Regions

    def loop(self, start: Any, stop: Any, step: Any, body: Callable[..., Any], *carried: Value) -> tuple[Value, ...]:
        operands = (*map(self.number, (start, stop, step)), *carried)
        arguments = tuple(self.build.value(value.type) for value in (operands[0], *carried))
        return self._owner(For, operands, (self._region(body, arguments),))

    def branch(self, condition: Value, then: Callable[[], Any], otherwise: Callable[[], Any] = tuple) -> Any:
        regions = (self._region(then, ()), self._region(otherwise, ()))
        returns = tuple(value.type for value in regions[0].results)
        return self._owner(If, (condition,), regions, returns=returns)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        outer = self.build.instructions
        self.build.instructions = []
        yield
        self.build.instructions = outer

    def _region(self, body: Callable[..., Any], arguments: tuple[Value, ...]) -> Block:
        with self._inside():
            made = body(*arguments)
            results = () if made is None else made if isinstance(made, tuple) else (made,)
            return Block(arguments, tuple(self.build.instructions), results, "yield")

    def _owner(self, operation: type[Operation], operands: Any, regions: Any, **fields: Any) -> tuple[Value, ...]:
        results = self.all(operation, *operands, **fields)
        made = self.build.instructions.pop()
        self.build.instructions.append(Instruction(made.operation, operands, results, made.location, regions))
        return results

    # The whole

    @property
    def function(self) -> Function:
        body = Block(self.parameters, tuple(self.build.instructions), ())
        place = Location("<kernel>", Span(99, 1, 99, 2))
        bare = Function(self.name, body, (), place, self.attributes, device="tile")
        attributes = {"smem_bytes": shared_bound(bare), **self.attributes}
        return Function(self.name, body, (), place, attributes, device="tile")

    def run(self, *arguments: Any, **options: Any) -> tuple[Array, ...]:
        verify_kernel(self.function, self.target)
        return run_kernel(self.function, arguments, self.target, **options)


@pytest.fixture
def kernel() -> type[Kernel]:
    """The builder of kernels."""
    return Kernel
