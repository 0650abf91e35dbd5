"""Memory that a kernel reads and writes: load, store and shared allocations (spec sections 7.1, 7.2, 8.3)."""

from __future__ import annotations

from typing import Any

from ..ir.operation import Hidden, Operand, Operands, Shown, operation, require
from ..ir.types import Memref, Scalar, is_unknown
from ..numerics.array import Array
from .block import BlockState
from .operation import KernelOperation, require_indices
from .storage import Storage


def require_known(memory: Memref) -> None:
    """Every extent of memory is a number at Tile IR. Raises `Refusal`."""
    require(
        all(isinstance(dim, int) for dim in memory.shape),
        "shapes",
        f"{memory} has {'unknown' if any(map(is_unknown, memory.shape)) else 'named'} dimensions",
        "extents that are numbers",
        "LANG-11-02",
        "specialize the function to the shapes that it runs on",
    )


@operation("tessera.tile.load", clauses=("LANG-08.3-01",))
class Load(KernelOperation):
    """The element at the indices, for each lane its own."""

    memory: Operand[Memref]
    indices: Operands[Scalar]

    def infer(self) -> Scalar:
        """One element."""
        require_indices(self.indices, len(self.memory.shape))
        return Scalar(self.memory.dtype)

    def run(self, block: BlockState, memory: Storage, *indices: Array) -> Array:
        """Read."""
        return Array(memory.dtype, block.load(memory, block.offsets(memory, indices)))


@operation("tessera.tile.store", clauses=("LANG-08.3-01",))
class Store(KernelOperation):
    """Writes the element at the indices, each lane its own."""

    value: Operand[Scalar]
    memory: Operand[Memref]
    indices: Operands[Scalar]

    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results; nothing is cast."""
        require_indices(self.indices, len(self.memory.shape))
        require(
            self.value.dtype == self.memory.dtype,
            "types",
            f"the value is {self.value}, the memory {self.memory}",
            "one dtype",
            "LANG-03.1-05",
            "cast the value: tessera.graph.cast",
        )
        return ()

    def run(self, block: BlockState, value: Array, memory: Storage, *indices: Array) -> tuple[()]:
        """Write."""
        block.store(memory, block.offsets(memory, indices), value.values)
        return ()


@operation("tessera.tile.shared.alloc", clauses=("LANG-07.2-01", "LANG-08.2-04"))
class SharedAlloc(KernelOperation):
    """Shared memory of the block, for as long as it runs, uninitialised; aligned to 16 bytes (AMB-LANG-200)."""

    returns: Hidden[Memref]

    effects = frozenset({"memory"})

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The type is that of the result."""
        types = shown.results or ()
        require(
            len(types) == 1 and isinstance(types[0], Memref),
            "types",
            "the result of shared.alloc is not stated to be a memref",
            ": () -> memref<128x64xbf16>[addrspace=shared]",
            "LANG-07.2-01",
        )
        return {"returns": types[0]}

    def infer(self) -> Memref:
        """The memref, in shared memory."""
        require(
            self.returns.space == "shared",
            "types",
            f"it allocates {self.returns}",
            "a memref in addrspace=shared",
            "LANG-07.2-01",
        )
        require_known(self.returns)
        return self.returns

    def run(self, block: BlockState) -> Storage:
        """Fresh memory."""
        return block.allocate(self.returns)
