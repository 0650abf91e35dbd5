"""Programs lowered to Tile IR and run there, beside the same programs run at Graph IR."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest

from tessera_reference.ir.operation import Function, Module, Operation
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast
from tessera_reference.schedule.choices import Options
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.tile.lowering import to_tile
from tessera_reference.tile.verifier import verify_kernel

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-45, 3e38)
"""Special numbers that stand in a tensor of at least two dozen elements."""


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of both signs around 1, and special ones among them."""
    held, generator = DTYPES[dtype], np.random.Generator(np.random.PCG64(seed))
    values = generator.standard_normal(shape) * 3
    if held.kind == "bool":
        return Array(held, values > 0)
    if held.kind == "complex":
        return Array(held, (values + 1j * generator.standard_normal(shape)).astype(held.carrier))
    flat = values.reshape(-1)
    for place, special in enumerate(SPECIAL if flat.size >= 24 else ()):
        flat[(place * 7 + seed) % flat.size] = special
    return cast(Array(DTYPES["fp64"], values), held)


def ordinary(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of both signs around 1."""
    drawn = np.random.Generator(np.random.PCG64(seed)).standard_normal(shape)
    return cast(Array(DTYPES["fp64"], drawn), DTYPES[dtype])


def codes(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Storage codes drawn at random, so that every exponent occurs."""
    held = DTYPES[dtype]
    count = prod(shape) * held.storage_bytes
    drawn = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, count, dtype=np.uint8)
    return Array.from_bits(held, shape, drawn.tobytes())


@dataclass(frozen=True)
class Lowered:
    """A program at Graph IR and at Tile IR; its function is f."""

    graph: Module
    tile: Module

    @property
    def kernels(self) -> tuple[Function, ...]:
        """Its kernels in order."""
        return tuple(function for function in self.tile.functions.values() if function.device)

    @property
    def kernel(self) -> Function:
        """Its only kernel."""
        (kernel,) = self.kernels
        return kernel

    def operations(self, name: str) -> list[Operation]:
        """The operations of that short name in its kernels, as they stand."""
        every = (instruction.operation for kernel in self.kernels for instruction in kernel.body.walk())
        return [operation for operation in every if operation.name == f"tessera.tile.{name}"]


class Programs:
    """Makes and compares programs; a body without a semicolon is what f returns."""

    numbers = staticmethod(numbers)
    ordinary = staticmethod(ordinary)
    codes = staticmethod(codes)

    @staticmethod
    def lower(body: str, signature: str, target: str = "sm_90", **options: Any) -> Lowered:
        """A program scheduled with these options, lowered, and verified."""
        statements = body if ";" in body else f"return {body};"
        graph = compile_source(f"module m {{ func f({signature}) {{ {statements} }} }}", "t.tsr").module
        device = target_of(target)
        tile = to_tile(to_schedule(graph, device, Options(**options)), device)
        verify(tile)
        lowered = Lowered(graph, tile)
        for kernel in lowered.kernels:
            verify_kernel(kernel, device)
        return lowered


@pytest.fixture
def programs() -> type[Programs]:
    return Programs
