"""The base of kernel operations, which run for all lanes of a block at once (spec sections 7 and 8.3).

A scalar of a kernel has one value for each lane: an `Array` of shape [lanes]. A fragment is an `Array` of shape
[warps, rows, columns], a memref the `Storage` that it refers to. Values in inactive lanes are arbitrary.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ..ir.operation import Operation, Refusal, require
from ..ir.types import Scalar
from ..numerics.formats import dtype
from .block import BlockState

INT32 = Scalar(dtype("int32"))
"""The type of every index."""


class KernelOperation(Operation):
    """An operation of Tile or Target IR, which only kernels hold."""

    @property
    def short_name(self) -> str:
        """The name without the dialect of Tile IR; names of other dialects are whole."""
        return self.name.removeprefix("tessera.tile.")

    @abstractmethod
    def run(self, block: BlockState, *operands: Any) -> Any:
        """The result, or a tuple of as many as it has, for the active lanes of the block. Raises `KernelFault`."""

    def execute(self, *operands: Any, **context: Any) -> Any:
        """Never called: it runs by `run`, in a block."""
        raise TypeError(f"{self.name} runs in kernels")


def require_indices(indices: tuple[Scalar, ...], places: int, optional: bool = False) -> None:
    """Refuse unless there is an int32 index for each place, or, where they are `optional`, none at all."""
    require(
        len(indices) == places or (optional and not indices),
        "types",
        f"{len(indices)} indices given",
        f"{places} of them" + (", or none for the beginning" if optional else ""),
        "LANG-11-01",
    )
    for index in indices:
        if index != INT32:
            raise Refusal("types", f"an index is {index}, not int32", "int32 scalars", "LANG-11-01", "")
