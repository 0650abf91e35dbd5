"""Tile kernels: those of Tile or Target IR, which a host launches with a grid and blocks of its own (RT-04.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ..abi.status import invalid
from ..graph.execution import FROM_ZERO, RandomSource, describe
from ..ir.diagnostics import Diagnostic, Rejection
from ..ir.module import Function, Value
from ..ir.types import Pointer, Scalar
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from ..numerics.formats import DType
from ..tile.interpreter import run_kernel
from ..tile.verifier import MOST_BLOCKS
from .executable import Arguments, Executable, Extents, held_as
from .pointers import BYTE, accessed_dtypes

__all__ = ["TileExecutable", "as_bytes", "of_bytes"]


@dataclass(frozen=True, eq=False)
class TileExecutable(Executable):
    """A kernel of Target IR. An opaque pointer is given the bytes behind it, as int8, and read as it is accessed."""

    kernel: Function

    @property
    def most_blocks(self) -> Extents:
        """What the device takes (AMB-LANG-203)."""
        return MOST_BLOCKS

    def run(
        self,
        arguments: Arguments,
        grid: Extents = (1, 1, 1),
        block: Extents = (0, 0, 0),
        source: RandomSource = FROM_ZERO,
    ) -> dict[str, Array]:
        """Run the kernel on the grid and the blocks of the launch; see `Executable.run`."""
        self.require_configuration(grid, block)
        pairs = zip(self.kernel.parameters, self.in_order(arguments), strict=True)
        given = [self._held(parameter, array) for parameter, array in pairs]
        if self.kernel.body.instructions:
            given = self._run(given, grid, self.block_of(block))
        left = {each.name: array for each, array in zip(self.entry.parameters, given, strict=True) if each.written}
        return {name: as_bytes(array, arguments[name]) for name, array in left.items()}

    def _run(self, given: list[Array], grid: Extents, block: Extents) -> list[Array]:
        """The arguments after the kernel has run. Raises `Rejection`."""
        try:
            buffers = run_kernel(configured(self.kernel, grid, block), given, self.target)
        except NumericsFailure as failure:
            raise Rejection([_failed(self.kernel, failure)]) from failure
        return [*buffers, *given[len(buffers) :]]  # scalars stand behind buffers (LANG-16-02)

    def _held(self, parameter: Value, array: Array) -> Array:
        """An argument as the kernel takes it. Raises `Failure` for one that does not fit."""
        type_ = parameter.type
        if isinstance(type_, Pointer):
            entry = self.entry.parameters[self.kernel.parameters.index(parameter)]
            if entry.dtype is not None:  # of a kernel of Tile IR the table still knows what the pointer is to
                _require(parameter.name, array, entry.dtype, entry.shape)
                return array
            return of_bytes(array, self._accessed.get(parameter, BYTE))
        assert isinstance(type_, Scalar), "a kernel of Target IR takes pointers and scalars"
        held = held_as(parameter, array)
        _require(parameter.name, held, type_.dtype.name, ())
        return held

    @cached_property
    def _accessed(self) -> dict[Value, DType]:
        return accessed_dtypes(self.kernel)


@lru_cache(maxsize=256)
def configured(kernel: Function, grid: Extents, block: Extents) -> Function:
    """The kernel with the grid and the block of a launch in place of its own; the same one for the same launch."""
    return replace(kernel, attributes={**kernel.attributes, "grid": grid, "block": block})


def of_bytes(array: Array, dtype: DType) -> Array:
    """The bytes behind an opaque pointer as whole elements of a dtype; what is given as another is that already."""
    if array.dtype != BYTE or dtype == BYTE:
        return array
    data = array.to_bits()
    count = len(data) // dtype.storage_bytes
    return Array.from_bits(dtype, (count,), data[: count * dtype.storage_bytes])


def as_bytes(left: Array, given: Array) -> Array:
    """What a kernel has left as the bytes that it was given as, those of unchanged elements just as they were.

    An element whose bits no kernel would write, such as one of many NaN, stays what it is unless it is written.
    """
    if left.dtype == given.dtype:
        return left
    size = left.dtype.storage_bytes
    before = np.frombuffer(given.to_bits(), np.uint8)
    elements = before[: before.size // size * size].reshape(-1, size)
    old = np.frombuffer(of_bytes(given, left.dtype).to_bits(), np.uint8).reshape(-1, size)
    new = np.frombuffer(left.to_bits(), np.uint8).reshape(-1, size)
    kept = (old == new).all(axis=1)
    merged = np.where(kept[:, None], elements, new).tobytes() + before[elements.size :].tobytes()
    return Array.from_bits(BYTE, given.shape, merged)


def _require(name: str, array: Array, dtype: str, shape: tuple[int | str, ...] | None) -> None:
    if (array.dtype.name, array.shape) != (dtype, shape):
        raise invalid("tessLaunch", f"argument {name} is {describe(array)}", f"{dtype} of shape {shape}")


def _failed(kernel: Function, failure: NumericsFailure) -> Diagnostic:
    """What went wrong in a launch as a whole, such as buffers that this machine has no room for."""
    place = kernel.location
    return Diagnostic("tile", "execute", f"@{kernel.name}: {failure}", place.span, place.filename)
